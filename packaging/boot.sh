#!/usr/bin/env bash
# Boots real Debian systems with their systemd in containers, and lives an operator's life there as the pages
# docs/operators/debian.md and backup.md say, word for word where they show a command: install, `init`, credential,
# start, requests of a client of other authors to their keys, restart, reload, upgrade, mistakes, backup, a move to
# another machine, purge, restore.
#
#   packaging/boot.sh PROGRAM [SUITE…]     the suites are bookworm and trixie if none is named
#
# BOOT_ROOTS names a folder that keeps clean roots between runs. Needs root, debootstrap, systemd-nspawn, npm and
# PyPI; prints SKIPPED and the reason where one is missing.
set -euo pipefail
program="$(realpath "$1")"
cd "$(dirname "$0")/.."
suites=("${@:2}")
[ ${#suites[@]} -gt 0 ] || suites=(bookworm trixie)
skip() { printf 'SKIPPED %s\n' "$*" && exit 0; }
fail() { printf 'boot: %s\n' "$*" >&2 && exit 1; }
step() { printf '\n== %s: %s\n' "${machine:-all}" "$*"; }

[ "$(id -u)" = 0 ] || skip "the package on booted systems: it needs root rights"
for tool in debootstrap systemd-nspawn nsenter dpkg-deb npm python3; do
    command -v "$tool" >/dev/null || skip "the package on booted systems: no $tool"
done
interop="$PWD/target/interop"
tests/interop/install.sh >/dev/null || skip "the package on booted systems: no client of other authors from npm and PyPI"

work="$(mktemp -d)"
roots="${BOOT_ROOTS:-$work/roots}"
mkdir -p "$roots"
declare -A init=() spawned=()
relay=
cleanup() {
    for pid in $relay "${spawned[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait
    rm -rf "$work"
}
trap cleanup EXIT
architecture="$(dpkg --print-architecture)"
export DEB_COMPRESSION=none
old="$(DEB_VERSION=0.0.9 packaging/deb.sh "$program" "$architecture" "$work")"
new="$(packaging/deb.sh "$program" "$architecture" "$work")"

# Boots a machine of a suite and makes it the current one. All machines share the network of the first, a private one.
boot() { # NAME SUITE
    machine="$1"
    local base="$roots/$2" network=--private-network
    if [ ! -e "$base.done" ]; then
        rm -rf "$base"
        debootstrap --include=systemd-sysv,dbus,sudo,ca-certificates,procps "$2" "$base" >"$work/log" ||
            skip "the package on booted systems: debootstrap cannot make $2"
        touch "$base.done"
    fi
    cp -a "$base" "$work/$machine"
    cp "$old" "$new" "$work/$machine/root/"
    echo "127.0.0.1 localhost $(hostname)" >"$work/$machine/etc/hosts"
    [ -z "${first:-}" ] || network="--network-namespace-path=/proc/$first/ns/net"
    SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn -q --register=no --keep-unit -D "$work/$machine" \
        -M "npubbot-$$-$machine" "$network" --console=pipe /sbin/init >"$work/$machine.console" 2>&1 </dev/null &
    spawned[$machine]=$!
    until init[$machine]="$(pgrep -P "${spawned[$machine]}" -x systemd)"; do
        kill -0 "${spawned[$machine]}" 2>/dev/null || skip "the package on booted systems: $(tail -3 "$work/$machine.console")"
        sleep 0.2
    done
    first="${first:-${init[$machine]}}"
    for _ in $(seq 150); do
        [ "$(inside systemctl is-system-running 2>/dev/null)" = running ] && break
        sleep 0.2
    done
    step "boots: $(inside systemctl --version | head -1), $(inside systemctl is-system-running)"
}
# Runs a command on the current machine, as root.
inside() {
    nsenter -t "${init[$machine]}" -m -u -i -n -p -C -r -w env -i HOME=/root LANG=C.UTF-8 TERM=xterm \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
# Types a command at a terminal of the current machine, and the passphrase where it is asked for.
typed() {
    printf '$ %s\n' "$1"
    PASSPHRASE='correct horse' packaging/at_terminal.py nsenter -t "${init[$machine]}" -m -u -i -n -p -C -r -w \
        env -i HOME=/root LANG=C.UTF-8 TERM=xterm PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c "cd /root; $1"
}
# Types the one command of a page of docs/operators that has this text.
documented() { # PAGE TEXT
    local lines
    lines="$(awk '/^ *```/ { on = !on; next } on { sub(/^ +/, ""); print }' "docs/operators/$1" | grep -F -- "$2" | sort -u)" ||
        fail "$1 shows no command with \`$2\`"
    [ "$(wc -l <<<"$lines")" = 1 ] || fail "$1 shows several commands with \`$2\`: $lines"
    typed "$lines"
}
state() { inside systemctl show npubbot -P "$1"; }
journal() { inside journalctl -u npubbot --no-pager -o short-iso "$@"; }
# Waits until the bot serves.
serves() {
    for _ in $(seq 300); do
        if [ "$(state ActiveState)" = active ] && inside npubbot status >/dev/null 2>&1; then return; fi
        sleep 0.2
    done
    journal -n 20
    fail "the bot does not serve"
}
# A client of other authors asks for a key and gets it.
ask() { # PREFIX
    nsenter -t "$first" -n env RELAY=ws://127.0.0.1:7447 BOT="$bot" REQUEST="$1" \
        "$interop/venv/bin/python" tests/interop/monstr_asker.py || { journal -n 30 && fail "no key comes"; }
}
# The service ends for good with this exit status, and its log says TEXT.
ends() { # STATUS TEXT
    inside systemctl start npubbot 2>/dev/null && fail "it starts, in place of ending with $1"
    sleep 6 # longer than RestartSec
    local seen
    seen="$(state ActiveState) $(state ExecMainStatus) $(state NRestarts)"
    [ "$seen" = "failed $1 0" ] || { journal -n 20 && fail "it is \`$seen\`, not \`failed $1 0\`"; }
    journal -n 12 | grep -F -- "$2" | tail -1 || { journal -n 12 && fail "its log does not say \`$2\`"; }
    inside systemctl reset-failed npubbot
}
owned() {
    inside find /var/lib/npubbot ! -user npubbot | grep . && fail "the bot's user does not own these" || true
}
# The configuration of this check: one relay, on the machines' own network.
configure() {
    cat >"$work/$machine/etc/npubbot/relays.toml" <<TOML
allow_private_relays = true
relays = [{ url = "ws://127.0.0.1:7447", roles = ["inbox", "status", "discovery"] }]
bot.name = "$1"
TOML
}

start_relay() {
    cat >"$work/relay.yaml" <<YAML
storage:
  sqlalchemy.url: sqlite+aiosqlite:///$work/nostr.sqlite3
  validators: [nostr_relay.validators.is_signed]
gunicorn:
  bind: 127.0.0.1:7447
  workers: 1
  loglevel: warning
purple:
  host: 127.0.0.1
  port: 7447
  workers: 1
  disable_compression: true
max_event_size: 131072
message_timeout: 1800
subscription_limit: 64
YAML
    nsenter -t "$first" -n "$interop/venv/bin/nostr-relay" -c "$work/relay.yaml" serve >"$work/relay.log" 2>&1 </dev/null &
    relay=$!
}

live() {
    step "install"
    inside dpkg --install "/root/$(basename "$old")" 2>&1 | tail -3
    for unit in npubbot.service npubbot-backup.timer npubbot-fleet.service npubbot-worker.service; do
        said="$(inside systemd-analyze --man=no verify "$unit" 2>&1)" || fail "$unit: $said"
        [ -z "$said" ] || fail "systemd warns of $unit: $said"
    done
    inside systemd-analyze security --no-pager npubbot.service | tail -1
    inside systemd-analyze security --no-pager --threshold=19 npubbot.service >/dev/null || fail "it is too exposed"
    step "start without a credential: systemd ends it, and does not try again"
    ends 243 "243/CREDENTIALS"
    step "init, credential, start"
    configure one
    documented debian.md "npubbot init" | tee "$work/said"
    npub="$(grep -oE '^npub1[0-9a-z]{58}' "$work/said")" || fail "init shows no npub"
    bot="$("$interop/venv/bin/python" -c 'import sys; from monstr.encrypt import Keys; print(Keys(pub_k=sys.argv[1]).public_key_hex())' "$npub")"
    documented debian.md "systemd-creds encrypt"
    typed "sudo npubbot doctor" || true
    owned
    documented debian.md "enable --now npubbot"
    serves
    typed "sudo npubbot status"
    typed "sudo npubbot doctor" >"$work/said" || true
    cat "$work/said"
    # The kernel is this machine's, and may lack it.
    if grep '^BAD' "$work/said" | grep -v "has no Landlock"; then fail "doctor finds something that is BAD"; fi
    ask cat
    step "restart, reload"
    inside systemctl restart npubbot
    serves
    ask dad
    configure two
    pid="$(state MainPID)"
    inside systemctl reload npubbot
    for _ in $(seq 100); do journal | grep -q "configuration" && break || sleep 0.2; done
    serves
    [ "$(state MainPID)" = "$pid" ] || fail "the reload restarted it"
    ask ham
    step "upgrade: no question, although relays.toml was edited, and the new program runs"
    inside dpkg --install "/root/$(basename "$new")" </dev/null 2>&1 | tail -3
    serves
    [ "$(state MainPID)" != "$pid" ] || fail "the old program still runs"
    grep -q two "$work/$machine/etc/npubbot/relays.toml" || fail "the upgrade lost the configuration"
    ask sun
    step "backup"
    documented backup.md "npubbot backup /root"
    owned
    step "the nightly backup works on the second night"
    documented backup.md "tee /etc/npubbot/backup.env"
    documented backup.md "enable --now npubbot-backup.timer"
    for night in 1 2; do
        inside systemctl start npubbot-backup || { inside journalctl -u npubbot-backup --no-pager -n 20 && fail "night $night"; }
        sleep 1
    done
    [ "$(inside sh -c 'ls /var/lib/npubbot-backups | wc -l')" = 2 ] || fail "there are not two nightly backups"
    step "a time limit of the service is a restart, as of a night"
    mkdir -p "$work/$machine/etc/systemd/system/npubbot.service.d"
    printf '[Service]\nRuntimeMaxSec=8\n' >"$work/$machine/etc/systemd/system/npubbot.service.d/night.conf"
    inside systemctl daemon-reload
    inside systemctl restart npubbot
    for _ in $(seq 150); do [ "$(state NRestarts)" -gt 0 ] && break || sleep 0.2; done
    [ "$(state NRestarts)" -gt 0 ] || fail "RuntimeMaxSec does not restart it"
    rm "$work/$machine/etc/systemd/system/npubbot.service.d/night.conf"
    inside systemctl daemon-reload
    serves
    inside systemctl stop npubbot
    typed "sudo npubbot backup /root/stopped.age"
    owned
    step "another passphrase"
    typed "sudo npubbot passphrase"
    inside systemctl start npubbot
    serves
    step "the files of a fleet are the service's"
    typed "sudo npubbot fleet init --host localhost && sudo npubbot fleet add ann"
    owned
    step "a pause outlives a restart"
    typed "sudo npubbot pause --for 3d"
    inside systemctl restart npubbot
    serves
    [[ "$(inside npubbot status)" == *paused* ]] || fail "the restart ended the pause"
    typed "sudo npubbot resume"
    inside systemctl stop npubbot
    step "what only a person can repair ends the service for good, and the log says what it is"
    mkdir -p "$work/$machine/etc/systemd/system/npubbot.service.d"
    local drop_in="$work/$machine/etc/systemd/system/npubbot.service.d/check.conf"
    printf '[Service]\nSystemCallFilter=~landlock_create_ruleset\nSystemCallErrorNumber=kill\n' >"$drop_in"
    inside systemctl daemon-reload
    ends 2 "@sandbox"
    rm "$drop_in"
    inside systemctl daemon-reload
    configure 'three"'
    ends 2 "line 3"
    configure two
    local identity="$work/$machine/var/lib/npubbot/identity.age"
    cp -p "$identity" "$work/identity"
    for damage in 0 40 200; do
        truncate -s "$damage" "$identity"
        ends 2 "identity.age"
        cp -p "$work/identity" "$identity"
    done
    rm "$identity"
    ends 2 "restore the identity file from your copy"
    cp -p "$work/identity" "$identity"
    inside systemctl start npubbot
    serves
    ask fan
    step "the log"
    journal | sed -n 1,60p
    inside systemctl --failed --no-legend
}

for suite in "${suites[@]}"; do
    boot "$suite" "$suite"
    [ -n "$relay" ] || start_relay
    live
    [ "$suite" = "${suites[-1]}" ] || inside systemctl stop npubbot
done

# The last machine's bot moves to a new one of the first suite.
step "move: the old machine"
documented backup.md "disable --now npubbot"
documented backup.md "tar -C / -czf"
old_machine="$machine"
boot moved "${suites[0]}"
cp "$work/$old_machine/root/npubbot-move.tar.gz" "$work/moved/root/"
inside dpkg --install "/root/$(basename "$new")" 2>&1 | tail -1
step "move: the new machine"
documented backup.md "tar -C / -xzf"
documented backup.md "chown -R"
documented debian.md "systemd-creds encrypt"
documented debian.md "enable --now npubbot"
serves
[[ "$(inside npubbot status)" == *"$npub"* ]] || fail "another bot runs on the new machine"
ask cat
owned
inside systemctl stop npubbot

machine="$old_machine"
step "purge keeps the identity"
inside dpkg --purge npubbot 2>&1 | tail -3
inside test -e /var/lib/npubbot/identity.age || fail "purge removed the identity"
documented backup.md "rm -r /var/lib/npubbot"

step "restore of the backup of this machine, where the package has its own relays.toml"
inside dpkg --install "/root/$(basename "$new")" 2>&1 | tail -1
inside sh -c 'mv /root/npubbot-20*.age /root/npubbot-backup.age'
documented backup.md "npubbot restore" && fail "restore says nothing of the other configuration"
documented debian.md "systemd-creds encrypt"
ends 2 "relays.toml.restored"
typed "sudo npubbot doctor" && fail "doctor does not name the other configuration"
documented backup.md "diff /etc/npubbot" || true
documented backup.md "mv /etc/npubbot/relays.toml.restored"
owned
documented debian.md "enable --now npubbot"
serves
[[ "$(inside npubbot status)" == *"$npub"* ]] || fail "another bot was restored"
ask pal
journal -n 15
echo "the package lives a whole life on booted ${suites[*]}"
