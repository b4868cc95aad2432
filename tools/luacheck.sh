#!/usr/bin/env bash
# Run luacheck on the scripts; fetch it first, without root, where it is not on PATH.
#
#   luacheck.sh FOLDER    check the Lua files below FOLDER
#   luacheck.sh --fetch   only make sure that it is there
#
# Fetched are Debian's packages lua-check, its Lua libraries and the Lua interpreter, unpacked below
# LEASEQ_SERVERS_DIR (default .servers). The package source is the one that apt of this machine uses.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=${LEASEQ_SERVERS_DIR:-$(cd "$here/.." && pwd)/.servers}/luacheck

fetch() {
  "$here/debian_packages.sh" "$root/root" lua-check lua-filesystem lua-argparse lua5.1 libreadline8 libtinfo6
}

available() { command -v luacheck >/dev/null || [ -e "$root/root/usr/bin/luacheck" ]; }

run() {
  if command -v luacheck >/dev/null; then
    luacheck "$@"
    return
  fi
  local usr=$root/root/usr libs
  libs=$(dirname "$(find "$usr/lib" -path '*/lua/5.1/lfs.so' | head -n 1)")
  LUA_PATH="$usr/share/lua/5.1/?.lua;$usr/share/lua/5.1/?/init.lua;;" LUA_CPATH="$libs/?.so;;" \
    LD_LIBRARY_PATH="$(dirname "$(dirname "$libs")"):$root/root/lib/$(basename "$(dirname "$(dirname "$libs")")")" \
    "$usr/bin/lua5.1" "$usr/bin/luacheck" "$@"
}

available || fetch
if [ "${1:---fetch}" != --fetch ]; then
  # What is checked is a rendered script. A function whose body takes the place of a call gives all its results, and a script uses
  # some (W211 by name, W231, W311); a function of the library does not know the names around it (W4, W581). Lines are as long as
  # the source.
  run --std lua51 --no-color --codes --no-max-line-length \
    --ignore 211/attempt 231 311 4 581 --globals redis KEYS ARGV cjson cmsgpack bit struct -- "$@"
fi
