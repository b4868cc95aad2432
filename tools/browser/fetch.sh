#!/usr/bin/env bash
# Fetch what `make dashboard` looks at the dashboard with: Debian's headless Chromium, and axe-core from npm.
#
#   fetch.sh
#
# Chromium and its libraries are unpacked without root, and run with the C library of the host, which is to be 2.36 or later.
# Needs: what debian_packages.sh needs; tools/node.sh for npm.
# Environment: LEASEQ_SERVERS_DIR the cache (default: .servers beside this repository's files), all is below its folder browser;
# DEBIAN_URI, DEBIAN_KEYRING as for debian_packages.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=${LEASEQ_SERVERS_DIR:-$(cd "$here/../.." && pwd)/.servers}/browser
suite=bookworm
axe="axe-core@4.14.1"

wanted="$suite $axe $(cksum < "$here/fetch.sh")"
if [ "$(cat "$root/fetched" 2>/dev/null)" = "$wanted" ]; then exit 0; fi

rm -rf "$root"
mkdir -p "$root/chromium"
root=$(cd "$root" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# not the C library, and nothing that draws with a graphics card or on a desktop
SUITE=$suite WITHOUT='^(libc6|debconf|libllvm|libz3|libgl1-mesa|x11-|xdg-utils|sysvinit|lsb-base)' \
  "$here/../debian_packages.sh" "$root/chromium" chromium-headless-shell fonts-dejavu-core
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
