#!/usr/bin/env bash
# Runs tests in a virtual machine for aarch64 with a kernel of its own: those that need system calls
# which qemu-user does not hand on, such as seccomp.
#
#   machine.sh FOLDER KERNEL FILTER
#
# FOLDER is made by packaging/aarch64.sh. KERNEL is the file /boot/vmlinuz-… of Linux for aarch64.
# FILTER is a part of the names of the integration tests. Needs qemu-system-arm and Python.
set -euo pipefail
folder="$(realpath "$1")" kernel="$(realpath "$2")" filter="$3"
{ read -r sources && read -r program; } <"$folder/paths"
disk="$(mktemp -d)"
trap 'rm -rf "$disk" "$disk.cpio"' EXIT
chmod 755 "$disk"
mkdir -p "$disk"/{proc,sys,dev,etc,tmp} "$disk$sources" "$disk$(dirname "$program")"
chmod 1777 "$disk/tmp"
cp "$folder/init" "$folder/it" "$disk/"
cp -r "$folder/root/lib" "$disk/"
cp "$folder/npubbot" "$disk$program"
echo 'root:x:0:0:root:/tmp:/bin/sh' >"$disk/etc/passwd"
echo '127.0.0.1 localhost' >"$disk/etc/hosts"
"$folder/qemu" -L "$folder/root" "$folder/it" --list 2>/dev/null | sed -n 's/: test$//p' |
    grep -F -- "$filter" >"$disk/tests"
# An archive in cpio's format "newc", which the kernel unpacks into memory.
python3 - "$disk" >"$disk.cpio" <<'PYTHON'
import os, stat, sys
top, number = sys.argv[1], 0
def entry(name, mode, data):
    global number
    number += 1
    name = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    sys.stdout.buffer.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))
for folder, folders, files in os.walk(top):
    for name in sorted(folders + files):
        path = os.path.join(folder, name)
        mode = os.lstat(path).st_mode
        entry(os.path.relpath(path, top), mode, b"" if stat.S_ISDIR(mode) else open(path, "rb").read())
entry("TRAILER!!!", 0, b"")
PYTHON
qemu-system-aarch64 -M virt -cpu cortex-a72 -smp 2 -m 3072 -kernel "$kernel" -initrd "$disk.cpio" \
    -append "console=ttyAMA0 quiet panic=-1" -nographic -no-reboot -nic none </dev/null |
    tr -d '\r' | tee "$folder/machine.log"
grep -q '^machine: [1-9][0-9]* ok, 0 failed' "$folder/machine.log"
