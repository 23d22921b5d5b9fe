#!/bin/sh
# Builds, checks and times variants of the kernels on a machine with a GPU and nvcc, in one call:
#
#     scripts/kernel-variants.sh [folder of kernels[:compiler option]]...
#
# A variant is a folder like kernels/, or one with an option, as kernels:-DTABLE=512.
# Fails if a variant finds wrong hits.
set -eu
here=$(dirname "$0")
[ $# -gt 0 ] || set -- "$here/../kernels"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
for variant in "$@"; do
    number=$((number + 1))
    options=$(echo "$variant" | sed -n 's/^[^:]*://p')
    # shellcheck disable=SC2086
    "${NVCC:-nvcc}" -arch="${ARCH:-native}" -O3 -std=c++17 -Xptxas -v -I "${variant%%:*}" $options \
        -o "$work/$number" "$here/kernel_bench.cu" 2> "$work/$number.log" &
done
wait
number=0 failed=0
for variant in "$@"; do
    number=$((number + 1))
    echo "== $variant"
    grep -A2 -E "Function properties for (plain|tensor|lean)" "$work/$number.log" |
        sed -n 's/.*properties for //p; s/.*frame, \(.*spill loads\)/    \1/p; s/.*Used \([0-9]* registers\).*/    \1/p' | paste - - - || true
    if [ -x "$work/$number" ]; then
        "$work/$number" ${STEPS:-8} ${LAUNCHES:-5} || failed=1
    else
        tail -5 "$work/$number.log" && failed=1
    fi
done
exit $failed
