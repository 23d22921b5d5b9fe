#!/usr/bin/env bash
# Installs the clients and the relay of the tests `relays::interop` below target/interop, by package
# name. Does nothing if they are there.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
into="${1:-$here/../../target/interop}"
mkdir -p "$into"
# Every test runs in its own process: one installs, the others wait.
exec 9>"$into/lock"
flock 9
if [ ! -e "$into/npm.done" ] || ! cmp -s "$here/package-lock.json" "$into/package-lock.json"; then
    cp "$here/package.json" "$here/package-lock.json" "$into/"
    (cd "$into" && npm ci --no-audit --no-fund --loglevel=error)
    touch "$into/npm.done"
fi
if [ ! -e "$into/pip.done" ] || ! cmp -s "$here/requirements.txt" "$into/requirements.txt"; then
    python3 -m venv "$into/venv"
    "$into/venv/bin/pip" install -q -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$into/"
    touch "$into/pip.done"
fi
