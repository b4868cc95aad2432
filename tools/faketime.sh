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

if [ -z "$(found)" ]; then "$here/debian_packages.sh" "$root/root" libfaketime >&2; fi
found
