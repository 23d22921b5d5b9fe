#!/usr/bin/env bash
# Counts the instructions that the portable kernel takes a candidate, and the 64-bit multiplications
# among them: `just count-instructions`.
#
#   scripts/count_instructions.sh [aarch64|x86_64]
#
# qemu-user names every block of instructions that it translates and each run of one. The difference
# between runs of two lengths is the search alone.
#
# Needs: qemu-user-static, rustup; for aarch64 gcc-aarch64-linux-gnu and libc6-dev-arm64-cross.
set -euo pipefail
cd "$(dirname "$0")/.."
processor="${1:-aarch64}" triple="${1:-aarch64}-unknown-linux-gnu"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}" NPUBBOT_CUDA_ARCHS=none
root=/
if [ "$processor" = aarch64 ]; then
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
    root=/usr/aarch64-linux-gnu
fi
cargo build -q --locked --release -p npubbot-miner --features test-util --example portable_rounds --target "$triple"
program="$CARGO_TARGET_DIR/$triple/release/examples/portable_rounds"
folder="$(mktemp -d)" pipe="$folder/pipe"
mkfifo "$pipe"
trap 'rm -r "$folder"' EXIT

# Prints candidates, instructions, and multiplications of 64 by 64 bits: low and high halves.
count() { # LAUNCHES
    "qemu-$processor-static" -L "$root" -d in_asm,exec,nochain -D "$pipe" "$program" "$1" >"$folder/candidates" &
    awk '
        # A block: its first instruction names it.
        /^IN:/ { first = ""; next }
        /^0x[0-9a-f]+: / {
            if (first == "") {
                first = substr($1, 3, length($1) - 3)
                sub(/^0+/, "", first)
                size[first] = low[first] = high[first] = 0
            }
            size[first]++
            for (at = 2; at <= 4; at++) {
                if ($at ~ /^(mul|madd|mulx|mulq|imulq)$/) low[first]++
                if ($at ~ /^(umulh|mulx|mulq)$/) high[first]++
            }
            next
        }
        /^Trace/ {
            split($0, part, "/")
            block = part[2]
            sub(/^0+/, "", block)
            all += size[block]
            lows += low[block]
            highs += high[block]
        }
        END { printf "%.0f %.0f %.0f\n", all, lows, highs }' "$pipe"
    wait $!
}
few=($(count 1)) && few_candidates="$(cat "$folder/candidates")"
more=($(count 3)) && more_candidates="$(cat "$folder/candidates")"
awk -v n="$((more_candidates - few_candidates))" -v all="$((more[0] - few[0]))" -v low="$((more[1] - few[1]))" \
    -v high="$((more[2] - few[2]))" -v processor="$processor" 'BEGIN {
        printf "%s: %d candidates, %.1f instructions each, of these %.1f low and %.1f high products of 64 bits\n",
            processor, n, all / n, low / n, high / n
    }'
