#!/usr/bin/env bash
# Follows docs/operators/running.md on a clean Debian 12, and makes each mistake that the operators'
# pages warn of once: the program must say what is wrong and what would work.
#
#   packaging/guide.sh PROGRAM
#
# DEBIAN_ROOT names a folder that `debootstrap --variant=minbase bookworm` made. Needs root and
# debootstrap. There is no systemd in a chroot: what it would start is started by hand.
set -euo pipefail
program="$(realpath "$1")"
cd "$(dirname "$0")/.."
work="$(mktemp -d)"
root="$work/root"
bot=
cleanup() {
    if [ -n "$bot" ]; then kill "$bot" 2>/dev/null || true; fi
    umount "$root/proc" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
fail() { printf 'guide: %s\n' "$*" >&2 && exit 1; }
# Notes something wrong; the guide is followed to its end.
missed=0
miss() { printf 'WRONG  %s\n' "$*" && missed=$((missed + 1)); }

if [ -n "${DEBIAN_ROOT:-}" ]; then
    cp -a "$DEBIAN_ROOT" "$root"
else
    debootstrap --variant=minbase bookworm "$root" >"$work/log"
fi
mount -t proc proc "$root/proc"
deb="$(packaging/deb.sh "$program" "$(dpkg --print-architecture)" "$work")"
cp "$deb" "$root/root/"

# As root, as another user, and as the service's user; the arguments are a shell's text.
as_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh -c "$1" </dev/null; }
as() { chroot "$root" env -i PATH=/usr/bin:/bin HOME="$2" setpriv --reuid="$1" --regid="$1" --clear-groups sh -c "$3" </dev/null; }
as_ann() { as ann /home/ann "$1"; }
as_bob() { as bob /home/bob "$1"; }
as_service() { as npubbot /var/lib/npubbot "$1"; }
# RIGHT COMMAND TEXT: it works, and says TEXT.
right() {
    local said
    said="$("$1" "$2" 2>&1)" || { miss "\`$2\` fails: $said" && return; }
    [[ "$said" == *"$3"* ]] || { miss "\`$2\` does not say \`$3\`: $said" && return; }
    printf 'ok     %s\n' "$2"
}
# WRONG COMMAND CODE TEXT: it fails with CODE, and says TEXT.
wrong() {
    local said code=0
    said="$("$1" "$2" 2>&1)" || code=$?
    [ "$code" = "$3" ] || { miss "\`$2\` ends with $code in place of $3: $said" && return; }
    [[ "$said" == *"$4"* ]] || { miss "\`$2\` does not say \`$4\`: $said" && return; }
    printf 'warned %s\n' "$2"
}

# 1. Install
as_root "dpkg --install /root/$(basename "$deb")" >/dev/null 2>&1 || fail "the package does not install"
as_root "useradd --create-home ann"
right as_ann "npubbot --version" "npubbot 0"
right as_ann "npubbot demo --prefix cat --json" '"verified":true'

# 2. Configure: a user
wrong as_ann "npubbot serve" 2 "\`npubbot init\` writes one"
wrong as_ann "npubbot status" 3 "no bot runs"
wrong as_ann "npubbot init" 2 "--passphrase-file"
as_ann "cd; echo 'correct horse' > secret; echo wrong > other"
cp relays.toml "$work/shipped"
right as_ann "cd; npubbot init --name annbot --relay ws://127.0.0.1:9 --device cpu --passphrase-file secret" "npubbot doctor"
[ -f "$root/home/ann/.config/npubbot/relays.toml" ] || fail "no configuration where the guide says"
[ -f "$root/home/ann/.local/share/npubbot/identity.age" ] || fail "no identity where the guide says"
wrong as_ann "cd; npubbot init --passphrase-file secret" 2 "already"
wrong as_ann "cd /tmp; npubbot serve --data elsewhere --passphrase-file ~/secret" 2 "make one with"
wrong as_ann "cd; npubbot serve --passphrase-file other" 2 "does not open"
config="$root/home/ann/.config/npubbot/relays.toml"
# MISTAKE NUMBER-SAID: an edit of the configuration that stops the start.
mistake() {
    cp "$config" "$work/good"
    sed -i "$1" "$config"
    cmp -s "$config" "$work/good" && fail "the edit $1 changes nothing"
    printf 'edit   %s\n' "$1"
    wrong as_ann "cd; npubbot serve --passphrase-file secret" 2 "$2"
    cat "$work/good" >"$config"
}
mistake 's/^device = .*/device = "gpu"/' "is no device"
mistake 's/^jobs_per_day = .*/jobs_per_dya = 20/' "unknown field"
mistake 's/"inbox", //' "no relay has the role"
mistake 's/^schedule = .*/schedule = "22-7"/' "allowed are spans like"
mistake 's/^time_zone = .*/time_zone = "Berlin"/' "is no time zone"
mistake 's/^answers_expire_after = .*/answers_expire_after = "1 h"/' "a key could expire"

# 3. Check and start
wrong as_ann "npubbot doctor" 1 "nobody reaches the bot"
start() {
    chroot "$root" env -i PATH=/usr/bin:/bin HOME=/home/ann setpriv --reuid=ann --regid=ann --clear-groups \
        sh -c "cd; exec npubbot serve --passphrase-file secret" </dev/null >"$work/serve" 2>&1 &
    bot=$!
    for _ in $(seq 300); do
        as_ann "npubbot status" >/dev/null 2>&1 && return
        sleep 0.2
    done
    fail "the bot does not start: $(cat "$work/serve")"
}
start
right as_ann "npubbot status" "disconnected"
right as_ann "npubbot jobs" "No job is open"
right as_ann "npubbot stats" "0 accepted"
right as_ann "npubbot doctor || true" "is not connected to ws://127.0.0.1:9"
wrong as_ann "cd; npubbot serve --passphrase-file secret" 1 "another npubbot uses the folder"
as_root "useradd --create-home bob; chmod o+rx /home/ann /home/ann/.local /home/ann/.local/share"
wrong as_bob "npubbot status --data /home/ann/.local/share/npubbot" 2 "is another user's"
right as_root "npubbot status --data /home/ann/.local/share/npubbot" "npub1"
# 5. Look and act
right as_ann "npubbot pause" "paused"
right as_ann "npubbot resume" "search again"
cp "$config" "$work/good"
sed -i 's/^device = .*/device = "gpu"/' "$config"
wrong as_ann "npubbot reload" 2 "the old configuration stays"
cat "$work/good" >"$config"
sed -i 's/^schedule = .*/schedule = "00:00-00:01"/; s/^time_zone = .*/time_zone = "UTC"/' "$config"
right as_ann "npubbot reload" "is right"
right as_ann "for n in \$(seq 50); do npubbot status | grep -q rests && break; sleep 0.2; done; npubbot status" "rests until 00:00 UTC (schedule)"
wrong as_ann "npubbot top" 2 "needs a terminal"
# Backup and restore
right as_ann "cd; npubbot backup --passphrase-file secret bot.age && ls" "bot.age"
wrong as_ann "cd; npubbot restore --passphrase-file secret bot.age" 2 "to an empty place only"
right as_ann "cd; npubbot restore --passphrase-file secret --data new --config new.toml bot.age && ls new" "identity.age"
wrong as_ann "cd; npubbot restore --passphrase-file other --data newer --config newer.toml bot.age" 2 "wrong passphrase"
kill "$bot"
wait "$bot" || true
bot=

# The service
wrong as_root "npubbot init" 2 "sudo -u npubbot"
as_service "echo service > /var/lib/npubbot/secret"
right as_service "npubbot init --passphrase-file /var/lib/npubbot/secret" "npub1"
wrong as_ann "npubbot status --data /var/lib/npubbot" 2 "is another user's"
as_root "dpkg --purge npubbot" >/dev/null 2>&1
[ -f "$root/var/lib/npubbot/identity.age" ] || fail "purge removed the identity"
[ "$missed" = 0 ] || fail "$missed steps are not as the guide says"
echo "the guide works on a clean Debian 12, and every mistake is answered"
