#!/usr/bin/env python3
"""Runs a command at a terminal of its own and types $PASSPHRASE at each hidden prompt.

Ends with the command's status. Fails if the terminal ever shows the passphrase.
"""
import os
import pty
import re
import select
import signal
import sys
import termios
import time

TIME_LIMIT = 120  # seconds
passphrase = os.environb.pop(b"PASSPHRASE")
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
shown, answered = b"", 0
deadline = time.monotonic() + TIME_LIMIT
while True:
    if time.monotonic() > deadline:
        os.kill(child, signal.SIGKILL)
        sys.exit(f"no end; the terminal shows {shown!r}")
    ready, _, _ = select.select([terminal], [], [], 0.3)
    if ready:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the terminal is closed
            part = b""
        if not part:
            break
        shown += part
        continue
    is_hidden = not termios.tcgetattr(terminal)[3] & termios.ECHO
    question = re.sub(rb"\x1b\[[0-9;]*m", b"", shown[answered:]).rpartition(b"\n")[2].rstrip()
    # systemd's own prompt ends with a hint in brackets, and shows a dot for each character.
    if is_hidden and question.endswith((b":", b")")):
        answered = len(shown)
        os.write(terminal, passphrase + b"\n")
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
if passphrase in shown:
    sys.exit("the terminal showed the passphrase")
sys.exit(status)
