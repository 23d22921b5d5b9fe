#!/usr/bin/env bash
# Makes a Debian package of a program that is built already.
#
#   packaging/deb.sh PROGRAM ARCHITECTURE FOLDER [RUNNABLE]
#
# ARCHITECTURE is Debian's: amd64 or arm64. RUNNABLE is the same version for this machine, which
# writes manual pages and completions; PROGRAM itself if it is left out. Prints the package's path.
# DEB_VERSION and DEB_COMPRESSION name others, for checks of an upgrade.
# Reproducible: the same program and SOURCE_DATE_EPOCH give the same bytes.
set -euo pipefail
program="$(realpath "$1")" architecture="$2" folder="$(realpath "$3")"
runnable="$(realpath "${4:-$1}")"
cd "$(dirname "$0")/.."
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
umask 022

version="${DEB_VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)}"
root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

put() { install -D -m "$1" "$2" "$root/$3"; }
put 755 "$program" usr/bin/npubbot
# Without the lines on how to install it by hand.
sed '1,/^\[Unit\]/ { /^#/d; /^$/d }' docs/operators/npubbot.service >"$root/unit"
put 644 "$root/unit" usr/lib/systemd/system/npubbot.service
rm "$root/unit"
for unit in packaging/debian/*.service packaging/debian/*.timer; do
    put 644 "$unit" "usr/lib/systemd/system/$(basename "$unit")"
done
put 644 packaging/debian/relays.toml etc/npubbot/relays.toml
put 644 relays.toml usr/share/doc/npubbot/relays.toml
put 644 packaging/debian/README.Debian usr/share/doc/npubbot/README.Debian
put 644 LICENSE usr/share/doc/npubbot/copyright
put 644 CHANGELOG.md usr/share/doc/npubbot/CHANGELOG.md
maintainer="npubbot contributors <npubbot@users.noreply.github.com>"
cat >"$root/usr/share/doc/npubbot/changelog" <<CHANGELOG
npubbot ($version) stable; urgency=medium

  * See CHANGELOG.md in this folder.

 -- $maintainer  $(date -uRd "@$SOURCE_DATE_EPOCH")
CHANGELOG
gzip -9n "$root"/usr/share/doc/npubbot/{changelog,CHANGELOG.md}

"$runnable" man "$root/usr/share/man/man1"
gzip -9n "$root"/usr/share/man/man1/*.1
complete() { install -d "$root/$(dirname "$2")"; "$runnable" completions "$1" >"$root/$2"; }
complete bash usr/share/bash-completion/completions/npubbot
complete zsh usr/share/zsh/vendor-completions/_npubbot
complete fish usr/share/fish/vendor_completions.d/npubbot.fish

install -d "$root/DEBIAN"
echo /etc/npubbot/relays.toml >"$root/DEBIAN/conffiles"
for script in postinst prerm postrm; do install -m 755 "packaging/debian/$script" "$root/DEBIAN/"; done
# The newest symbol version that the program needs of the C library.
glibc="$(grep -aoE 'GLIBC_[0-9]+\.[0-9]+' "$program" | sort -uV | tail -1)"
cat >"$root/DEBIAN/control" <<CONTROL
Package: npubbot
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size "$root/usr" "$root/etc" | awk '{ kb += $1 } END { print kb }')
Depends: libc6 (>= ${glibc#GLIBC_}), libgcc-s1, adduser, procps
Suggests: systemd, bash-completion
Section: net
Priority: optional${NPUBBOT_REPOSITORY:+
Homepage: $NPUBBOT_REPOSITORY}
Description: Nostr bot that finds vanity npubs
 People write an encrypted message with a prefix to the bot's npub. It searches
 for a key whose npub starts like that, on NVIDIA GPUs or the CPU, and sends the
 key back, encrypted so that only the asker can read it. The NVIDIA driver (525
 or newer) is loaded at run time; without one the CPU searches.
CONTROL
(cd "$root" && find usr etc -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +

file="$folder/npubbot_${version}_$architecture.deb"
dpkg-deb --root-owner-group --uniform-compression -Z"${DEB_COMPRESSION:-xz}" --build "$root" "$file" >/dev/null
echo "$file"
