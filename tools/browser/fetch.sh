#!/usr/bin/env bash
# Fetch what `make dashboard` looks at the dashboard with: Debian's headless Chromium, and axe-core from npm.
#
#   fetch.sh
#
# Chromium and its libraries are unpacked without root, and run with the C library of the host, which is to be 2.36 or later.
# Needs: apt-get, dpkg-deb and the Debian archive keyring; tools/node.sh for npm.
# Environment: LEASEQ_SERVERS_DIR the cache (default: .servers beside this repository's files), all is below its folder browser;
# DEBIAN_URI, DEBIAN_KEYRING as for servers/fetch_debian.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=${LEASEQ_SERVERS_DIR:-$(cd "$here/../.." && pwd)/.servers}/browser
suite=bookworm
axe="axe-core@4.14.1"

wanted="$suite $axe $(cksum < "$here/fetch.sh")"
if [ "$(cat "$root/fetched" 2>/dev/null)" = "$wanted" ]; then exit 0; fi
key=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
# no host name is written here: take the first configured source whose path ends in /debian
uri=${DEBIAN_URI:-$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null \
  | awk '/^URIs:/{print $2} /^deb /{print $2}' | grep -E '/debian/?$' | head -1 || true)}
: "${uri:?no Debian package source configured; set DEBIAN_URI}"

rm -rf "$root"
mkdir -p "$root/chromium"
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
# not the C library, and nothing that draws with a graphics card or on a desktop
names=$(apt-get "${apt[@]}" install --simulate --no-install-recommends chromium-headless-shell fonts-dejavu-core \
  | awk '/^Inst /{print $2}' | grep -vE '^(libc6|debconf|libllvm|libz3|libgl1-mesa|x11-|xdg-utils|sysvinit|lsb-base)')
# shellcheck disable=SC2086  # the list is meant to be split
(cd "$work/deb" && apt-get "${apt[@]}" download $names)
for package in "$work"/deb/*.deb; do dpkg-deb -x "$package" "$root/chromium"; done
rm -rf "$root"/chromium/usr/share/{doc,man,locale}

cat > "$root/chromium/run" <<'LAUNCHER'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
libraries=$here/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH="$libraries:$libraries/pulseaudio:$here/lib/x86_64-linux-gnu:$here/usr/lib/chromium"
export FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/usr/lib/chromium/chromium-headless-shell" "$@"
LAUNCHER
chmod +x "$root/chromium/run"
printf '<fontconfig><dir>%s</dir><cachedir>%s</cachedir></fontconfig>\n' \
  "$root/chromium/usr/share/fonts" "$root/chromium/font-cache" > "$root/chromium/fonts.conf"

(cd "$work" && "$here/../node.sh" npm pack --silent "$axe" >/dev/null && tar -xzf axe-core-*.tgz package/axe.min.js)
mv "$work/package/axe.min.js" "$root/axe.min.js"
echo "$wanted" > "$root/fetched"
