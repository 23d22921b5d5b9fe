#!/usr/bin/env bash
# Builds the tests for aarch64 Linux and runs them under qemu-user: `just check-arm`.
#
#   packaging/aarch64.sh [--pack] [FILTER]
#   tests/aarch64/machine.sh target/aarch64/run KERNEL safety::walls::
#
# The second line runs some tests afterwards in a virtual machine with a kernel of its own.
# FILTER is a part of the tests' names. --pack only makes the folder target/aarch64/run, which has
# all that the tests need: its `run.sh` runs them on another machine too, without cargo.
#
# Needs: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, gcc, qemu-user-static, and rustup. Other
# programs that the tests start, such as a shell and nats-server, are those of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."

pack="" filter=""
for argument in "$@"; do
    case "$argument" in
        --pack) pack=yes ;;
        -*) echo "unknown option $argument; the first lines of $0 name them" >&2 && exit 2 ;;
        *) filter="$argument" ;;
    esac
done
triple=aarch64-unknown-linux-gnu libraries=/usr/aarch64-linux-gnu/lib
for tool in aarch64-linux-gnu-gcc aarch64-linux-gnu-strip gcc qemu-aarch64-static; do
    command -v "$tool" >/dev/null || {
        echo "there is no $tool: apt install gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc qemu-user-static" >&2
        exit 2
    }
done
if command -v rustup >/dev/null; then rustup target add "$triple"; fi

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target/aarch64}" NPUBBOT_CUDA_ARCHS=none
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
folder="$CARGO_TARGET_DIR/run"
rm -rf "$folder"
mkdir -p "$folder/root/lib"

# Prints the path of each program that was built, after the name of its target.
build() {
    cargo test --no-run --locked --target "$triple" --config profile.dev.debug=false --lib --test it \
        --message-format json-render-diagnostics "$@" |
        python3 -c '
import json, sys
for line in sys.stdin:
    built = json.loads(line)
    if built.get("executable"):
        print(built["target"]["name"], built["executable"])'
}
# The integration tests need the program, which cargo builds with them.
while read -r name program; do
    case "$name" in npubbot_miner) name=miner ;; npubbot_vault) name=vault ;; npubbot) name=lib ;; esac
    [ "$program" = "$CARGO_TARGET_DIR/$triple/debug/npubbot" ] && name=npubbot
    aarch64-linux-gnu-strip -o "$folder/$name" "$program"
done < <(build -p npubbot -p npubbot-miner -p npubbot-vault)
for name in it lib miner vault npubbot; do [ -x "$folder/$name" ] || { echo "cargo built no $name" >&2 && exit 1; }; done

cp "$(command -v qemu-aarch64-static)" "$folder/qemu"
for library in ld-linux-aarch64.so.1 libc.so.6 libm.so.6 libgcc_s.so.1 libdl.so.2 libpthread.so.0 librt.so.1 \
    libnss_files.so.2 libnss_dns.so.2 libresolv.so.2; do
    cp -L "$libraries/$library" "$folder/root/lib/"
done
aarch64-linux-gnu-gcc -O1 -Wall -Werror -Wno-format-truncation -shared -fPIC -o "$folder/exec.so" tests/aarch64/exec.c
gcc -O1 -Wall -Werror -Wno-format-truncation -static -o "$folder/launcher" tests/aarch64/launcher.c
aarch64-linux-gnu-gcc -O1 -Wall -Werror -static -o "$folder/init" tests/aarch64/init.c
cp tests/aarch64/run.sh "$folder/"
# Where the tests look for the sources and the program: both paths are compiled in.
printf '%s\n' "$PWD" "$CARGO_TARGET_DIR/$triple/debug/npubbot" >"$folder/paths"

if [ -n "$pack" ]; then
    mkdir "$folder/sources"
    # One for this machine's processor, as a fleet's server may have another than its workers.
    nats="$(command -v "${NATS_SERVER:-nats-server}" || true)"
    if [ -n "$nats" ]; then cp -L "$nats" "$folder/nats-server"; fi
    git archive HEAD | tar -x -C "$folder/sources"
    du -sh "$folder"
else
    "$folder/run.sh" 7200 "$filter"
fi
