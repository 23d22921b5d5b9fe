#!/usr/bin/env bash
# Checks that the Rust code compiles for macOS: `just check-macos`.
#
#   packaging/macos.sh [TARGET…]
#
# TARGET is aarch64-apple-darwin or x86_64-apple-darwin; without one both are checked. Nothing is
# linked and nothing runs. The C code of SQLite, secp256k1 and ring is passed over: a stand-in for the
# C compiler makes empty objects, so Apple's SDK is not needed.
#
# Needs: rustup, ar.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- aarch64-apple-darwin x86_64-apple-darwin

# Always the same place: with another compiler cargo would check everything again.
work="$PWD/target/macos"
mkdir -p "$work"
cat >"$work/cc" <<'STANDIN'
#!/bin/sh
# Makes the file that follows -o. The answer to -E says which compiler it stands for.
case "$1" in
    -E) echo '"clang"' ;;
    '-?') exit 1 ;;
esac
while [ $# -gt 0 ]; do
    if [ "$1" = -o ]; then : >"$2"; fi
    shift
done
STANDIN
chmod 755 "$work/cc"
# Without it the C libraries' build scripts ask Xcode.
export SDKROOT="$work" NPUBBOT_CUDA_ARCHS=none
for target in "$@"; do
    printf '\n== %s\n' "$target"
    rustup target add "$target"
    name="${target//-/_}"
    export "CC_$name=$work/cc" "AR_$name=ar"
    # Without optimisation: nothing is generated but build scripts and macros.
    cargo check --locked --target "$target" --config profile.dev.opt-level=0
done
