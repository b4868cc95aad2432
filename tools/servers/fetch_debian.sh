#!/usr/bin/env bash
# Fetch Redis, Valkey and Redict servers of several Debian suites and run them side by side.
#
#   fetch_debian.sh ROOT
#
# Each server is unpacked into ROOT/<name>/ with the C library and libraries of its own suite; a launcher
# ROOT/bin/<name> (and ROOT/bin/<name>-cli) starts it through that suite's loader. Launchers find their server
# relative to themselves, so ROOT can be moved or cached. Nothing is installed on the host; root is not needed.
#
# Needs: a Debian x86-64 host with apt-get, dpkg-deb and the Debian archive keyring.
# Environment: ONLY="name name ..." fetch only these; DEBIAN_URI package source to use (default: the one this
# host's apt is configured with); DEBIAN_KEYRING the archive keyring (default: the host's).
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: ${0##*/} ROOT" >&2; exit 2; }
mkdir -p "$1/bin"; ROOT=$(cd "$1" && pwd)
KEY=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
# no host name is written here: take the first configured source whose path ends in /debian
URI=${DEBIAN_URI:-$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null \
  | awk '/^URIs:/{print $2} /^deb /{print $2}' | grep -E '/debian/?$' | head -1 || true)}
: "${URI:?no Debian package source configured; set DEBIAN_URI}"
LIBS="libc6 libgcc-s1 libstdc++6 libatomic1 libjemalloc2 liblzf1 libsystemd0 libcap2 libzstd1 zlib1g liblzma5 liblz4-1"

launcher() { # out loader library-dirs program: all below ROOT, written relative to it
  local out=$1 ld=${2#"$ROOT"/} lp='' d
  for d in $3; do lp="$lp\${R}/${d#"$ROOT"/}:"; done
  # the program's own symlink stays unresolved: redis-server links to redis-check-rdb, and argv[0] picks the role
  # shellcheck disable=SC2016  # $R is for the launcher, not for us
  printf '#!/bin/sh\nR=$(dirname "$(dirname "$(readlink -f "$0")")")\nexec "$R/%s" --library-path "%s" "$R/%s" "$@"\n' \
    "$ld" "${lp%:}" "${4#"$ROOT"/}" > "$out"
  chmod +x "$out"
}

get() { # name suite server-package tools-package ssl-library [base-suite [extra-libraries]]
  local name=$1 suite=$2 srv=$3 tools=$4 ssl=$5 base=${6:-$2} extra=${7:-} st="$ROOT/.apt/$2" d="$ROOT/$1"
  [ -n "${ONLY:-}" ] && case " $ONLY " in *" $name "*) ;; *) return 0;; esac
  [ -x "$ROOT/bin/$name" ] && return 0
  mkdir -p "$st"/{lists/partial,cache/archives/partial,etc,dl} "$d"; chown _apt "$st/dl" 2>/dev/null || true
  printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$URI" \
    "$( [ "$base" = "$suite" ] && echo "$suite" || echo "$suite $base")" "$KEY" > "$st/etc/x.sources"
  local A=(-qq -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$st/etc" -o "Dir::State::Lists=$st/lists"
    -o "Dir::Cache=$st/cache" -o Dir::State::status=/dev/null
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null)
  [ -e "$st/done" ] || { apt-get "${A[@]}" update; touch "$st/done"; }
  # shellcheck disable=SC2086  # the library lists are meant to be split
  ( cd "$st/dl" && apt-get "${A[@]}" -t "$suite" download "$srv" "$tools" \
    && apt-get "${A[@]}" download $LIBS $ssl $extra )
  local f; for f in "$st"/dl/*.deb; do dpkg-deb -x "$f" "$d"; done; rm -f "$st"/dl/*.deb
  local ld lib='' p b c exe
  ld=$(find "$d" -path '*/x86_64-linux-gnu/ld-linux-x86-64.so.2' | head -1)  # lib64's link may point out of ROOT
  for p in lib/x86_64-linux-gnu usr/lib/x86_64-linux-gnu lib usr/lib; do lib="$lib $d/$p"; done
  for b in server cli; do
    exe=; for c in redis valkey redict; do [ ! -e "$d/usr/bin/$c-$b" ] || exe="$d/usr/bin/$c-$b"; done
    [ -n "$exe" ] || continue
    if [ "$b" = server ]; then launcher "$ROOT/bin/$name" "$ld" "$lib" "$exe"
    else launcher "$ROOT/bin/$name-cli" "$ld" "$lib" "$exe"; fi
  done
}

# redis-6.0 is kept only for its libssl1.1 (two wheel servers need it); its own cjson is missing in this form
get redis-6.0    bullseye           redis-server  redis-tools  libssl1.1  bullseye "liblua5.1-0 lua-bitop lua-cjson libgcrypt20 libgpg-error0"
get redis-7.0    bookworm           redis-server  redis-tools  libssl3    bookworm "libgcrypt20 libgpg-error0"
get redis-8.0t   trixie             redis-server  redis-tools  libssl3t64
get redis-8.0    sid                redis-server  redis-tools  libssl3t64
get redis-8.6    experimental       redis-server  redis-tools  libssl3t64 sid
get valkey-8.0   bookworm-backports valkey-server valkey-tools libssl3    bookworm "libgcrypt20 libgpg-error0"
get valkey-8.1   trixie             valkey-server valkey-tools libssl3t64
get valkey-9.1   sid                valkey-server valkey-tools libssl3t64
get redict-7.3   bookworm-backports redict-server redict-tools libssl3    bookworm "libgcrypt20 libgpg-error0 libhiredict1.3.1"
