#!/usr/bin/env bash
# Fetch Debian's PostgreSQL, for the tests of the outbox.
#
#   fetch_postgres.sh
#
# The programs and their libraries are unpacked without root, and run with the C library of the host, which is to be 2.36 or later.
# Needs: apt-get, dpkg-deb and the Debian archive keyring.
# Environment: LEASEQ_SERVERS_DIR the cache (default: .servers beside this repository's files), all is below its folder postgresql;
# DEBIAN_URI, DEBIAN_KEYRING as for fetch_debian.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=${LEASEQ_SERVERS_DIR:-$(cd "$here/../.." && pwd)/.servers}/postgresql
suite=bookworm
version=15

wanted="$suite $version $(cksum < "$here/fetch_postgres.sh")"
if [ "$(cat "$root/fetched" 2>/dev/null)" = "$wanted" ]; then exit 0; fi
key=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
# no host name is written here: take the first configured source whose path ends in /debian
uri=${DEBIAN_URI:-$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null \
  | awk '/^URIs:/{print $2} /^deb /{print $2}' | grep -E '/debian/?$' | head -1 || true)}
: "${uri:?no Debian package source configured; set DEBIAN_URI}"

rm -rf "$root"
mkdir -p "$root/bin"
root=$(cd "$root" && pwd)
work=$(mktemp -d)
chmod 755 "$work"  # apt reads it as another user
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,etc,deb}
chown _apt "$work/deb" 2>/dev/null || true
printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$uri" "$suite" "$key" > "$work/etc/x.sources"
apt=(-qq -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$work/etc" -o "Dir::State::Lists=$work/lists"
  -o "Dir::Cache=$work/cache" -o Dir::State::status=/dev/null
  -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null)
apt-get "${apt[@]}" update
# the server, its client and their libraries; not the C library, that of LLVM (120 MB, for queries that are compiled) or those of Perl
names=$(apt-get "${apt[@]}" install --simulate --no-install-recommends "postgresql-$version" \
  | awk '/^Inst /{print $2}' | grep -E "^(postgresql-(client-)?$version\$|lib)" | grep -vE '^lib(c6|c-bin|c-l10n|llvm|perl|.*-perl$)')
# shellcheck disable=SC2086  # the list is meant to be split
(cd "$work/deb" && apt-get "${apt[@]}" download $names)
for package in "$work"/deb/*.deb; do dpkg-deb -x "$package" "$root"; done
rm -rf "$root"/usr/share/{doc,man,locale} "$root/usr/share/postgresql/$version/man"

for program in initdb postgres psql; do
  cat > "$root/bin/$program" <<LAUNCHER
#!/bin/sh
here=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
export LD_LIBRARY_PATH="\$here/usr/lib/x86_64-linux-gnu:\$here/lib/x86_64-linux-gnu"
exec "\$here/usr/lib/postgresql/$version/bin/$program" "\$@"
LAUNCHER
  chmod +x "$root/bin/$program"
done
"$root/bin/postgres" --version
echo "$wanted" > "$root/fetched"
