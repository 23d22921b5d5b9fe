#!/usr/bin/env python3
"""Records `npubbot demo` in a pseudo-terminal and draws it as an animated SVG with termtosvg.

    scripts/record_demo.py NPUBBOT_BINARY OUTPUT.svg

The demo is run as it is. Two things are changed in the picture: the command is typed in at a
steady pace, and the secret key is covered, since a picture of a secret key is copied by somebody.
"""

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLUMNS, ROWS = 124, 16
KEYSTROKE = 0.06
# How long the last frame is shown before the recording starts again.
PAUSE_MS = 12_000
NSEC = re.compile(r"nsec1[a-z0-9]{58}")


def record(binary: str) -> list[tuple[float, str]]:
    """Runs the demo and returns its output with the seconds since the start."""
    leader, follower = pty.openpty()
    os.system(f"stty rows {ROWS} cols {COLUMNS} < {os.ttyname(follower)}")
    environment = {**os.environ, "TERM": "xterm-256color"}
    began = time.monotonic()
    child = subprocess.Popen([binary, "demo"], stdin=follower, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    events, rest = [], b""
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:
            break
        if not data:
            break
        data = rest + data
        # A chunk ends at a line break or at a redrawn bar, so that no key is cut in two.
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        rest = data[cut:]
        if cut:
            events.append((time.monotonic() - began, data[:cut].decode()))
    if rest:
        events.append((time.monotonic() - began, rest.decode()))
    if child.wait() != 0:
        sys.exit(f"the demo failed:\n{''.join(text for _, text in events)}")
    return events


def main() -> None:
    binary, output = sys.argv[1], Path(sys.argv[2])
    command = "npubbot demo"
    typed = [(0.6 + KEYSTROKE * at, character) for at, character in enumerate(command)]
    start = typed[-1][0] + 0.4
    cover = "nsec1" + "•" * 58
    shown = [(start + at, NSEC.sub(cover, text)) for at, text in record(binary)]
    events = [(0.0, "\x1b[32m$\x1b[0m "), *typed, (start, "\r\n"), *shown]
    assert not any(NSEC.search(text) for _, text in events)
    with tempfile.TemporaryDirectory() as folder:
        cast = Path(folder) / "demo.cast"
        head = {"version": 2, "width": COLUMNS, "height": ROWS}
        lines = [head, *([at, "o", text] for at, text in events)]
        cast.write_text("".join(json.dumps(line) + "\n" for line in lines))
        tool = [sys.executable, "-m", "termtosvg", "render", str(cast), str(output)]
        subprocess.run([*tool, "-D", str(PAUSE_MS), "-t", "window_frame", "-m", "80"], check=True)
    print(f"{output}: {output.stat().st_size / 1024:.0f} KiB, {events[-1][0]:.1f} s")


if __name__ == "__main__":
    main()
