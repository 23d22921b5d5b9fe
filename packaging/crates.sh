#!/bin/sh
# Packs the sources of the last commit as cargo does: npubbot and the packages it is made of.
#
#   packaging/crates.sh FOLDER
#
# NPUBBOT_REPOSITORY, if it is set, is the address that they name.
set -eu
folder="$(realpath "$1")"
cd "$(dirname "$0")/.."
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
git clone -q . "$work/npubbot"
cd "$work/npubbot"
if [ -n "${NPUBBOT_REPOSITORY:-}" ]; then
    sed -i "0,/^license/s|^license|repository = \"$NPUBBOT_REPOSITORY\"\n&|" Cargo.toml */Cargo.toml
    sed -i "s|^license.workspace|repository = \"$NPUBBOT_REPOSITORY\"\n&|" Cargo.toml
fi
cargo package --workspace --locked --no-verify --allow-dirty --quiet --target-dir "$work/target"
cp -v "$work"/target/package/*.crate "$folder/"
