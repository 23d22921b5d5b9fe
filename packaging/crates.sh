#!/bin/sh
# Packs the sources of the last commit as cargo does: npubbot and the packages it is made of.
#
#   packaging/crates.sh FOLDER
#
# cargo packs a package together with one that it depends on only if both may be published. Ours may
# not, so this packs a copy in which they may.
set -eu
folder="$(realpath "$1")"
cd "$(dirname "$0")/.."
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
git clone -q . "$work/npubbot"
cd "$work/npubbot"
sed -i '/^publish = false$/d' Cargo.toml fleet/Cargo.toml miner/Cargo.toml vault/Cargo.toml
cargo package --workspace --locked --no-verify --allow-dirty --quiet --target-dir "$work/target"
cp "$work"/target/package/*.crate "$folder/"
