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
manifests="Cargo.toml fleet/Cargo.toml miner/Cargo.toml vault/Cargo.toml"
sed -i '/^publish = false$/d' $manifests
if [ -n "${NPUBBOT_REPOSITORY:-}" ]; then
    sed -i "0,/^license/s|^license|repository = \"$NPUBBOT_REPOSITORY\"\nlicense|" fleet/Cargo.toml miner/Cargo.toml vault/Cargo.toml
    sed -i "/^license.workspace/s|^|repository = \"$NPUBBOT_REPOSITORY\"\n|" Cargo.toml
fi
cargo package --workspace --locked --no-verify --allow-dirty --quiet --target-dir "$work/target"
cp -v "$work"/target/package/*.crate "$folder/"
