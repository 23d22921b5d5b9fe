#!/usr/bin/env bash
# Counts the instructions that a CPU kernel's loops take for a candidate on aarch64, under qemu-user.
#
#   scripts/count_instructions.sh [PATTERN...]     m0ctane
#
# qemu names every block of instructions that it translates, and each run of one.
#
# Needs: qemu-user-static, gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, the target of rustup.
set -euo pipefail
cd "$(dirname "$0")/.."
patterns=("${@:-m0ctane}")
target=aarch64-unknown-linux-gnu
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}" NPUBBOT_CUDA_ARCHS=none
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
cargo build -q --locked --release -p npubbot-miner --example cpu_kernels --target "$target"
program="$CARGO_TARGET_DIR/$target/release/examples/cpu_kernels"
# qemu loads the program at 0x5500000000.
functions="$(nm -CS "$program" | awk '/run_round|may_pass|marks_of/ { printf ",0x55%s+0x%s", substr($1, 9), $2 }')"
trace="$(mktemp)"
trap 'rm "$trace"' EXIT

for kernel in portable neon; do
    candidates="$(qemu-aarch64-static -L /usr/aarch64-linux-gnu -d in_asm,exec,nochain -D "$trace" \
        -dfilter "${functions#,}" "$program" launch "$kernel" "${patterns[@]}")"
    awk -v kernel="$kernel" -v candidates="$candidates" '
        /^IN:/ { block = ""; next }
        /^0x[0-9a-f]+: / {
            if (block == "") {
                block = substr($1, 3, length($1) - 3)
                sub(/^0+/, "", block)
                size[block] = 0
            }
            size[block]++
            next
        }
        /^Trace/ {
            split($0, part, "/")
            sub(/^0+/, "", part[2])
            all += size[part[2]]
        }
        END { printf "%s: %d candidates, %.2f instructions each\n", kernel, candidates, all / candidates }' "$trace"
done
