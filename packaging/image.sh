#!/usr/bin/env bash
# Makes a container image of a built program, for `podman load` and `docker load`.
#
#   packaging/image.sh PROGRAM ARCHITECTURE FOLDER
#
# ARCHITECTURE is amd64 or arm64. The image has the program, this machine's C library (or the cross
# compiler's) and nothing else: no shell, no packages. NVIDIA's runtime adds the GPU's driver.
# The same program, libraries and SOURCE_DATE_EPOCH give the same bytes. Prints the file's path.
set -euo pipefail
program="$(realpath "$1")" architecture="$2" folder="$(realpath "$3")"
cd "$(dirname "$0")/.."
case "$architecture" in amd64) processor=x86_64 ;; arm64) processor=aarch64 ;; esac
cc=cc
if [ "$processor" != "$(uname -m)" ]; then cc="$processor-linux-gnu-gcc"; fi
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
epoch="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
work="$(mktemp -d)" uid=947 home=/var/lib/npubbot
trap 'rm -rf "$work"' EXIT
root="$work/root" image="$work/image"
umask 022
mkdir -p "$root"/{etc,lib,tmp,usr/bin,"$home"} "$image"

install -m 755 "$program" "$root/usr/bin/npubbot"
ln -s lib "$root/lib64"
loader="$(readelf -l "$program" | sed -n 's|.*interpreter: .*/\(.*\)]|\1|p')"
# The program's libraries, and those that a GPU's driver needs.
for library in "$loader" $(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)]/\1/p') \
    libdl.so.2 libpthread.so.0 librt.so.1; do
    install -m 755 "$("$cc" -print-file-name="$library")" "$root/lib/"
done
printf 'root:x:0:0::/:\nnpubbot:x:%d:%d::%s:\n' $uid $uid "$home" >"$root/etc/passwd"
printf 'root:x:0:\nnpubbot:x:%d:\n' $uid >"$root/etc/group"
pack() { tar --sort=name --mtime="@$epoch" --numeric-owner "$@"; }
# Three times, because owners and rights differ.
pack --owner=0 --group=0 --exclude="./tmp" --exclude=".$home" -C "$root" -cf "$image/layer.tar" .
pack --owner=0 --group=0 --mode=1777 -C "$root" -rf "$image/layer.tar" ./tmp
pack --owner=$uid --group=$uid --mode=700 -C "$root" -rf "$image/layer.tar" ".$home"

sum() { sha256sum "$1" | cut -d' ' -f1; }
cat >"$work/config" <<CONFIG
{"architecture": "$architecture", "os": "linux", "created": "$(date -ud "@$epoch" +%FT%TZ)",
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$(sum "$image/layer.tar")"]},
 "config": {
  "User": "npubbot", "WorkingDir": "$home", "Volumes": {"$home": {}}, "StopSignal": "SIGTERM",
  "Entrypoint": ["/usr/bin/npubbot"], "Cmd": ["serve"],
  "Env": ["PATH=/usr/bin", "HOME=$home", "NPUBBOT_DATA=$home", "NPUBBOT_CONFIG=$home/relays.toml",
   "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"],
  "Healthcheck": {"Test": ["CMD", "npubbot", "status", "--quiet"],
   "Interval": 60000000000, "StartPeriod": 120000000000}}}
CONFIG
config="$(sum "$work/config").json"
mv "$work/config" "$image/$config"
echo "[{\"Config\": \"$config\", \"RepoTags\": [\"npubbot:$version\"], \"Layers\": [\"layer.tar.gz\"]}]" >"$image/manifest.json"
gzip -9n "$image/layer.tar"
file="$folder/npubbot-$version-$architecture-image.tar"
pack --owner=0 --group=0 -C "$image" -cf "$file" manifest.json "$config" layer.tar.gz
echo "$file"
