#!/usr/bin/env bash
# Makes the .zip for Windows.
#
#   packaging/zip.sh PROGRAM FOLDER
#
# PROGRAM is npubbot.exe. FOLDER gets npubbot-VERSION-x86_64-windows.zip.
# The same program gives the same bytes, at any time and in any folder (SOURCE_DATE_EPOCH).
#
# Needs: zip, objdump of binutils-mingw-w64-x86-64, cargo and Python.
set -euo pipefail
program="$(realpath "$1")" folder="$(realpath "$2")"
cd "$(dirname "$0")/.."
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
name="npubbot-$version-x86_64-windows"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# Libraries of every Windows 10 and 11. Another one would have to be installed first.
windows='advapi32|api-ms-win-[a-z0-9-]+|bcrypt|bcryptprimitives|combase|crypt32|kernel32|msvcrt|ncrypt|ntdll|ole32|oleaut32|powrprof|psapi|secur32|shell32|user32|userenv|ws2_32'
needed="$(x86_64-w64-mingw32-objdump -p "$program" | sed -n 's/^\tDLL Name: \(.*\)\.dll$/\L\1/Ip' | sort -u)"
[ -n "$needed" ] || { echo "$program names no library: it is no program for Windows" >&2 && exit 1; }
if others="$(grep -vxE "$windows" <<<"$needed")"; then
    echo "the program needs libraries that Windows may lack:" $others >&2 && exit 1
fi

mkdir "$work/$name"
cp "$program" "$work/$name/npubbot.exe"
cp LICENSE relays.toml "$work/$name/"
scripts/licences.py x86_64-pc-windows-gnu | sed 's/$/\r/' >"$work/$name/LICENCES.txt"
cp "$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html" "$work/$name/"
# Texts as Notepad of every Windows shows them.
for text in README.md CHANGELOG.md docs/operators/windows.md; do
    sed 's/$/\r/' "$text" >"$work/$name/$(basename "$text")"
done
(
    cd "$work/$name"
    sha256sum -- *.* LICENSE >SHA256SUMS
    chmod 644 -- * && chmod 755 npubbot.exe
    cd ..
    # Times in a .zip are local ones, of even seconds.
    export TZ=UTC
    find "$name" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-0}" {} +
    rm -f "$folder/$name.zip"
    find "$name" | LC_ALL=C sort | zip -q -X -9 -@ "$folder/$name.zip"
)
