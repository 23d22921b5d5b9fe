#!/usr/bin/env bash
# dlltool for a release: `packaging/release.sh` has rustc call it.
#
# rustc makes each import library of Windows in a folder with a random name. dlltool takes the
# symbols' names from it, and the linker the order of the imports, so no two builds would be equal.
# Here each is named after its crate.
set -euo pipefail
arguments=() library=""
name="${CARGO_PKG_NAME:?cargo sets it}-${CARGO_PKG_VERSION:?cargo sets it}"
while [ $# -gt 0 ]; do
    case "$1" in
        -l) library="$2" && shift ;;
        --temp-prefix) shift ;;
        *) arguments+=("$1") ;;
    esac
    shift
done
name="$name-$(basename "$library")"
# rustc gives absolute paths.
cd "$(dirname "$library")"
x86_64-w64-mingw32-dlltool "${arguments[@]}" -l "$name" --temp-prefix "$name"
mv "$name" "$library"
