#!/usr/bin/env bash
# Unpack Debian packages below a folder, without root.
#
#   debian_packages.sh FOLDER PACKAGE...
#
# Without SUITE they come from the package source that apt of this machine uses, and only they.
# Environment: SUITE, such as bookworm: from that suite, with what they need, of which ONLY and WITHOUT choose by name (extended
# regular expressions); DEBIAN_URI the package source for it (default: the one this machine's apt is configured with);
# DEBIAN_KEYRING the archive keyring (default: this machine's).
# Needs: apt-get and dpkg-deb; with SUITE the Debian archive keyring, and to run what is unpacked a C library as new as the suite's.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: ${0##*/} FOLDER PACKAGE..." >&2; exit 2; }
folder=$1
shift
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo "$* cannot be fetched without apt-get and dpkg-deb: install it" >&2
  exit 1
fi

work=$(mktemp -d)
chmod 755 "$work" # apt reads it as another user
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,etc,deb} "$folder"
chown _apt "$work/deb" 2>/dev/null || true # apt drops its rights where it runs as root
# lists of our own: the machine's may be empty, and only root may update them
apt=(-qq -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache")
if [ -n "${SUITE:-}" ]; then
  # no host name is written here: take the first configured source whose path ends in /debian
  uri=${DEBIAN_URI:-$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null \
    | awk '/^URIs:/{print $2} /^deb /{print $2}' | grep -E '/debian/?$' | head -1 || true)}
  : "${uri:?no Debian package source configured; set DEBIAN_URI}"
  printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$uri" "$SUITE" \
    "${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}" > "$work/etc/x.sources"
  apt+=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$work/etc" -o Dir::State::status=/dev/null
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null)
fi
apt-get "${apt[@]}" update
names=("$@")
if [ -n "${SUITE:-}" ]; then
  mapfile -t names < <(apt-get "${apt[@]}" install --simulate --no-install-recommends "$@" \
    | awk '/^Inst /{print $2}' | grep -E "${ONLY:-.}" | grep -vE "${WITHOUT:-^\$}")
  [ ${#names[@]} -gt 0 ] || { echo "$* is not in $SUITE" >&2; exit 1; }
fi
(cd "$work/deb" && apt-get "${apt[@]}" download "${names[@]}")
for package in "$work"/deb/*.deb; do dpkg-deb -x "$package" "$folder"; done
