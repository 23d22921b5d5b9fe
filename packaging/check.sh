#!/usr/bin/env bash
# Installs the Debian package of a built program in a clean Debian 12, runs it there, upgrades,
# removes and purges it; then makes the container image and runs it.
#
#   packaging/check.sh PROGRAM
#
# DEBIAN_ROOT names a folder that `debootstrap --variant=minbase --include=systemd,procps bookworm` made, to
# save a minute.
# The unit is checked by this Debian's systemd: it warns of what it does not know, and that fails.
# `packaging/boot.sh` starts it. Needs root, debootstrap and buildah. Prints SKIPPED and the reason for each part that it cannot do.
set -euo pipefail
program="$(realpath "$1")"
cd "$(dirname "$0")/.."
skip() { printf 'SKIPPED %s\n' "$*"; }
fail() { printf '%s\n' "$*" >&2 && exit 1; }
has() { command -v "$1" >/dev/null; }
# Fails if the output of `demo --json` is not one object that says verified.
verified() { python3 -c 'import json, sys; assert json.load(sys.stdin)["verified"]'; }

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
if ! has dpkg-deb; then
    skip "the Debian package: no dpkg-deb"
    exit 0
fi
architecture="$(dpkg --print-architecture)"
deb="$(packaging/deb.sh "$program" "$architecture" "$work")"

root="$work/root"
clean_root() {
    [ "$(id -u)" = 0 ] || return 1
    if [ -n "${DEBIAN_ROOT:-}" ]; then
        cp -a "$DEBIAN_ROOT" "$root"
    else
        has debootstrap && debootstrap --variant=minbase --include=systemd,procps bookworm "$root" >"$work/log"
    fi
}
if ! clean_root; then
    skip "the package's installation in a clean root: it needs root rights, debootstrap and a mirror"
    dpkg-deb -x "$deb" "$work/files"
    "$work/files/usr/bin/npubbot" demo --prefix cat --json | verified
    exit 0
fi

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
said="$(cp "$deb" "$root/tmp/" && inside dpkg --install "/tmp/$(basename "$deb")" 2>&1)" || fail "$said"
inside npubbot --version
if [ -x "$root/usr/bin/systemd-analyze" ]; then
    for unit in npubbot.service npubbot-backup.timer npubbot-fleet.service npubbot-worker.service; do
        said="$(inside systemd-analyze --man=no verify "$unit" 2>&1)" || fail "$unit: $said"
        [ -z "$said" ] || fail "systemd warns of $unit: $said"
    done
else
    skip "the unit by systemd 252: DEBIAN_ROOT has no systemd"
fi
if has lintian; then
    # The program keeps its symbols, so that a backtrace in a report has names.
    lintian --fail-on error --suppress-tags maintainer-script-calls-systemctl,unstripped-binary-or-object "$deb" ||
        fail "lintian finds errors"
else
    skip "the package's form: no lintian"
fi
inside npubbot demo --prefix cat --json | verified
inside dpkg --verify npubbot | grep . && fail "installed files differ from the package's"
[ "$(stat -c %U:%a "$root/var/lib/npubbot" 2>/dev/null)" ] || fail "no data folder"
inside sh -c '[ "$(stat -c %U:%G:%a /var/lib/npubbot)" = npubbot:npubbot:700 ]'
# Root would make a bot that the service does not run.
said="$(inside npubbot init </dev/null 2>&1)" && fail "root made a bot that the service does not run"
[[ "$said" == *"sudo -u npubbot"* ]] || fail "root's init names no user: $said"
# The service's user makes its bot in the service's folders, with the package's configuration.
inside sh -c 'echo secret >/tmp/passphrase && chmod 644 /tmp/passphrase'
inside setpriv --reuid=npubbot --regid=npubbot --clear-groups npubbot init --passphrase-file /tmp/passphrase
[ -f "$root/var/lib/npubbot/identity.age" ] || fail "the service's user made its bot elsewhere"
# An upgrade keeps an edited configuration; purge keeps the identity.
echo "# edited" >>"$root/etc/npubbot/relays.toml"
inside dpkg --install "/tmp/$(basename "$deb")" >/dev/null 2>&1
grep -q "# edited" "$root/etc/npubbot/relays.toml" || fail "the upgrade lost the edited configuration"
inside dpkg --remove npubbot >/dev/null
[ -f "$root/etc/npubbot/relays.toml" ] || fail "removing the package removed its configuration"
said="$(inside dpkg --purge npubbot 2>&1)" || fail "$said"
[[ "$said" == *"stay in /var/lib/npubbot"* ]] || fail "purge says nothing of the identity: $said"
[ -f "$root/var/lib/npubbot/identity.age" ] || fail "purge removed the identity"
[ ! -e "$root/etc/npubbot" ] || fail "purge left the configuration"
echo "the package installs, runs, upgrades and purges in a clean Debian 12"

if ! has buildah; then
    skip "the container image: no buildah"
    exit 0
fi
file="$(packaging/image.sh "$program" "$architecture" "$work")"
export BUILDAH_ISOLATION=chroot
store=(--storage-driver vfs --root "$work/containers" --runroot "$work/containers.run")
image="$(buildah "${store[@]}" from "docker-archive:$file" 2>"$work/log")" || fail "$(cat "$work/log")"
user="$(buildah "${store[@]}" inspect --format '{{.OCIv1.Config.User}}' "$image")"
[ "$user" = npubbot ] || fail "the container runs as ${user:-root}"
buildah "${store[@]}" run "$image" -- npubbot demo --prefix cat --json | verified
buildah "${store[@]}" rm -a >/dev/null
echo "the container image loads and runs"
