#!/usr/bin/env bash
# Run valgrind; fetch it first, without root, where it is not on PATH.
#
#   valgrind.sh --fetch       only make sure that it is there
#   valgrind.sh ARGUMENT...   run it
#
# Fetched is Debian's package, unpacked below LEASEQ_SERVERS_DIR (default .servers). The package source is the one that
# apt of this machine uses.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=${LEASEQ_SERVERS_DIR:-$(cd "$here/.." && pwd)/.servers}/valgrind

fetch() {
  local state=$root/.apt dir=$root/root sources
  if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "valgrind is not on PATH and cannot be fetched without apt-get and dpkg-deb: install valgrind" >&2
    return 1
  fi
  mkdir -p "$state"/{lists/partial,cache/archives/partial,dl} "$dir"
  chown _apt "$state/dl" 2>/dev/null || true  # apt drops its rights where it runs as root
  # lists of our own: the machine's may be empty, and only root may update them
  sources=(-qq -o "Dir::State::Lists=$state/lists" -o "Dir::Cache=$state/cache")
  apt-get "${sources[@]}" update
  (cd "$state/dl" && apt-get "${sources[@]}" download valgrind)
  local package
  for package in "$state"/dl/*.deb; do dpkg-deb -x "$package" "$dir"; done
  rm -rf "$state"
}

program=$root/root/usr/bin/valgrind.bin
if ! command -v valgrind >/dev/null && [ ! -x "$program" ]; then fetch; fi
if [ "${1:---fetch}" = --fetch ]; then exit 0; fi
if command -v valgrind >/dev/null; then exec valgrind "$@"; fi
VALGRIND_LIB=$(dirname "$(find "$root/root/usr" -name 'callgrind-*-linux' | head -n 1)")
export VALGRIND_LIB
exec "$program" "$@"
