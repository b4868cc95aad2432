#!/usr/bin/env bash
# Print the path of libfaketime; fetch it first, without root, where this machine does not have it.
#
# Fetched is Debian's package, unpacked below LEASEQ_SERVERS_DIR (default .servers). The package source is the one that
# apt of this machine uses.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=${LEASEQ_SERVERS_DIR:-$(cd "$here/.." && pwd)/.servers}/faketime

found() {
  find /usr/lib "$root" -name 'libfaketime.so.1' 2>/dev/null | head -n 1
}

fetch() {
  local state=$root/.apt dir=$root/root sources package
  if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "libfaketime is not here and cannot be fetched without apt-get and dpkg-deb: install libfaketime" >&2
    return 1
  fi
  mkdir -p "$state"/{lists/partial,cache/archives/partial,dl} "$dir"
  chown _apt "$state/dl" 2>/dev/null || true # apt drops its rights where it runs as root
  # lists of our own: the machine's may be empty, and only root may update them
  sources=(-qq -o "Dir::State::Lists=$state/lists" -o "Dir::Cache=$state/cache")
  apt-get "${sources[@]}" update
  (cd "$state/dl" && apt-get "${sources[@]}" download libfaketime)
  for package in "$state"/dl/*.deb; do dpkg-deb -x "$package" "$dir"; done
  rm -rf "$state"
}

if [ -z "$(found)" ]; then fetch >&2; fi
found
