#!/usr/bin/env bash
# Builds the files of a release from the committed sources: `just release`.
#
#   packaging/release.sh [--twice] [--no-cuda] [--only "x86_64 aarch64 windows"] [FOLDER]
#
# FOLDER (default: target/release-files) gets a .deb, a .tar.gz and a container image for each
# processor, a .zip for Windows, the crates, an SBOM (CycloneDX) and SHA256SUMS. Nothing is uploaded.
#
# NPUBBOT_REPOSITORY   the project's address, for the crates and the packages
# NPUBBOT_SIGNING_KEY  a secret key of minisign (-G -W, no password), which signs SHA256SUMS
# NPUBBOT_KERNEL_CACHE a folder that keeps the kernels' machine code for further runs
#
# --twice makes all files again in another folder and compares them byte for byte.
# --only names the targets, one or several; this machine's comes before another Linux.
# --no-cuda leaves the GPU kernels out: NVRTC compiles them at the first start then.
#
# Needs what docs/developers/release.md installs.
set -euo pipefail
# A build that fails ends the script, although it is in $(…).
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

arguments=("$@") twice="" processors="x86_64 aarch64 windows" folder=target/release-files cuda="built"
while [ $# -gt 0 ]; do
    case "$1" in
        --twice) twice=yes ;;
        --no-cuda) cuda=none ;;
        --only) processors="$2" && shift ;;
        -*) echo "unknown option $1; the first lines of $0 name them" >&2 && exit 2 ;;
        *) folder="$1" given="$1" ;;
    esac
    shift
done
fail() { printf '%s\n' "$*" >&2 && exit 1; }

[ -z "$(git status --porcelain)" ] || fail "there are uncommitted changes; a release is made of a commit"
NPUBBOT_COMMIT="$(git rev-parse HEAD)"
SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)"
export NPUBBOT_COMMIT SOURCE_DATE_EPOCH
if [ "$cuda" = none ]; then
    export NPUBBOT_CUDA_ARCHS=none
else
    unset NPUBBOT_CUDA_ARCHS
    [ -n "${NPUBBOT_NVRTC:-}" ] ||
        fail "NPUBBOT_NVRTC does not name NVRTC 12.9 (docs/developers/release.md); --no-cuda builds without GPU kernels"
fi
case " $processors " in
    " windows " | *" $(uname -m) "*) ;;
    *) fail "a program of this machine writes the package's manual pages: --only \"$(uname -m) $processors\"" ;;
esac
export NPUBBOT_REPOSITORY="${NPUBBOT_REPOSITORY:-}"
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
# The newest C library that a program may ask for: Debian 12's.
newest_glibc=2.36

mkdir -p "$folder"
folder="$(realpath "$folder")"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
registry="${CARGO_HOME:-$HOME/.cargo}"
# It would replace the flags of each target.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS

# Builds the committed sources in a folder of their own, for all targets at once: they share macros
# and build scripts. Paths of this machine are kept out of the programs, so that two folders give
# the same bytes.
source="$work/npubbot" triples=()
mkdir "$source"
git archive HEAD | tar -x -C "$source"
triple() { [ "$1" = windows ] && echo x86_64-pc-windows-gnu || echo "$1-unknown-linux-gnu"; }
for processor in $processors; do
    triples+=("$(triple "$processor")")
    name="$(triple "$processor" | tr - _)"
    flags="--remap-path-prefix=$source=/npubbot --remap-path-prefix=$registry=/cargo"
    if [ "$processor" = windows ]; then
        # Without the time in the program's header, and with the same names of import libraries.
        flags="$flags -Clink-arg=-Wl,--no-insert-timestamp -Cdlltool=dlltool.sh"
    elif [ "$processor" != "$(uname -m)" ]; then
        export "CC_$name=$processor-linux-gnu-gcc" "CARGO_TARGET_${name^^}_LINKER=$processor-linux-gnu-gcc"
    fi
    export "CARGO_TARGET_${name^^}_RUSTFLAGS=$flags"
    export "CFLAGS_$name=-ffile-prefix-map=$source=/npubbot -ffile-prefix-map=$registry=/cargo"
done
if command -v rustup >/dev/null; then rustup target add "${triples[@]}"; fi
# The kernels' machine code is the same for every target, and for the second build.
export NPUBBOT_KERNEL_CACHE="${NPUBBOT_KERNEL_CACHE:-$work/kernels}"
mkdir -p "$NPUBBOT_KERNEL_CACHE"
# PATH: where rustc finds dlltool.sh. Its path in the flags would make them differ.
(cd "$source" && PATH="$source/packaging:$PATH" CARGO_TARGET_DIR="$work/target" CARGO_PROFILE_RELEASE_STRIP=debuginfo \
    cargo build --release --locked --bin npubbot "${triples[@]/#/--target=}")

check_glibc() { # PROGRAM
    local glibc
    glibc="$(grep -aoE 'GLIBC_[0-9]+\.[0-9]+' "$1" | sort -uV | tail -1)"
    printf '%s\n' "${glibc#GLIBC_}" "$newest_glibc" | sort -CV ||
        fail "the program needs $glibc, but Debian 12 has $newest_glibc; build on Debian 12"
}

runnable=""
for processor in $processors; do
    printf '\n== %s\n' "$processor"
    program="$work/target/$(triple "$processor")/release/npubbot"
    if [ "$processor" = windows ]; then program="$program.exe"; else check_glibc "$program"; fi
    if [ "$processor" = "$(uname -m)" ]; then
        runnable="$program"
        "$program" --version
    fi
    # Code of CUDA 13 needs driver 580, and 12.8 is the first that knows compute capability 12.0.
    if [ "$cuda" = built ] && ! grep -aqE "CUDA kernels: [0-9a-z+ ]*by NVRTC 12\.[89]" "$program"; then
        fail "the kernels were not compiled by NVRTC 12.8 or 12.9; cargo's warning above may say why"
    fi
    if [ "$processor" = windows ]; then
        packaging/zip.sh "$program" "$folder"
    else
        case "$processor" in x86_64) debian=amd64 ;; aarch64) debian=arm64 ;; esac
        packaging/deb.sh "$program" "$debian" "$folder" ${runnable:+"$runnable"}
        packaging/image.sh "$program" "$debian" "$folder"
        name="npubbot-$version-$processor-linux"
        mkdir "$work/$name"
        cp "$program" README.md CHANGELOG.md LICENSE relays.toml docs/operators/npubbot.service "$work/$name/"
        scripts/licences.py "$processor-unknown-linux-gnu" >"$work/$name/LICENCES.txt"
        cp "$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html" "$work/$name/"
        tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$work" \
            -c "$name" | gzip -9n >"$folder/$name.tar.gz"
    fi
done

printf '\n== crates, SBOM, sums\n'
# Not verified by building: this is the source that was built above.
packaging/crates.sh "$folder"
if ! cargo cyclonedx --version >/dev/null 2>&1; then cargo install -q --locked cargo-cyclonedx; fi
(cd "$source" && cargo cyclonedx --format json --override-filename sbom)
sed "s|$source|/npubbot|g" "$source/sbom.json" >"$folder/npubbot-$version.cdx.json"
(cd "$folder" && rm -f SHA256SUMS* && sha256sum -- *"$version"* >SHA256SUMS && cat SHA256SUMS)
if [ -n "${NPUBBOT_SIGNING_KEY:-}" ]; then
    minisign -S -q -s "$NPUBBOT_SIGNING_KEY" -m "$folder/SHA256SUMS" -t "npubbot $version, commit $NPUBBOT_COMMIT"
fi

if [ -n "$twice" ]; then
    printf '\n== all of it a second time\n'
    again=()
    for argument in "${arguments[@]}"; do
        case "$argument" in --twice | "${given:-}") ;; *) again+=("$argument") ;; esac
    done
    rm -rf "$work/target" "$source"
    TMPDIR="$work" "$0" "${again[@]}" "$work/again"
    diff "$folder/SHA256SUMS" "$work/again/SHA256SUMS" || fail "two builds differ"
    echo "two builds in two folders are equal"
fi
