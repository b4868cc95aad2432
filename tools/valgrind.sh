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

program=$root/root/usr/bin/valgrind.bin
if ! command -v valgrind >/dev/null && [ ! -x "$program" ]; then "$here/debian_packages.sh" "$root/root" valgrind; fi
if [ "${1:---fetch}" = --fetch ]; then exit 0; fi
if command -v valgrind >/dev/null; then exec valgrind "$@"; fi
VALGRIND_LIB=$(dirname "$(find "$root/root/usr" -name 'callgrind-*-linux' | head -n 1)")
export VALGRIND_LIB
exec "$program" "$@"
