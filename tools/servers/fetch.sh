#!/usr/bin/env bash
# Fetch servers by name into the cache, each from where it can be had, and start each once with --version.
#
#   fetch.sh NAME,NAME,... [PYTHON]
#
# Environment: LEASEQ_SERVERS_DIR the cache (default: .servers beside this repository's files).
set -euo pipefail
names=${1:?usage: fetch.sh NAME,NAME,... [PYTHON]}
python=${2:-python3}
here=$(cd "$(dirname "$0")" && pwd)
root=${LEASEQ_SERVERS_DIR:-$(cd "$here/../.." && pwd)/.servers}
mkdir -p "$root"

deb='' wheels=''
for name in ${names//,/ }; do
  if [ -x "$root/bin/$name" ]; then continue; fi
  case $name in
    redis-7.0 | redis-8.0t | redis-8.0 | redis-8.6 | valkey-8.0 | valkey-8.1 | valkey-9.1 | redict-7.3) deb="$deb $name" ;;
    redis-7.2 | redis-7.4) deb="$deb redis-6.0" wheels="$wheels $name" ;;    # they need its libssl1.1
    redis-8.6.2 | redis-8.10) deb="$deb redis-8.0t" wheels="$wheels $name" ;; # they need its newer C library
    *) wheels="$wheels $name" ;;
  esac
done
if [ -n "$deb" ]; then ONLY=$deb "$here/fetch_debian.sh" "$root"; fi
if [ -n "$wheels" ]; then ONLY=$wheels "$here/fetch_wheels.sh" "$root" "$python"; fi

missing=''
for name in ${names//,/ }; do
  if [ -x "$root/bin/$name" ] && version=$("$root/bin/$name" --version); then
    printf '%-14s %s\n' "$name" "$version"
  else
    missing="$missing $name"
  fi
done
if [ -n "$missing" ]; then
  echo "missing servers:$missing" >&2
  exit 1
fi
