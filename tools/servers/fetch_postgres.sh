#!/usr/bin/env bash
# Fetch Debian's PostgreSQL, for the tests of the outbox.
#
#   fetch_postgres.sh
#
# The programs and their libraries are unpacked without root, and run with the C library of the host, which is to be 2.36 or later.
# Needs: what ../debian_packages.sh needs.
# Environment: LEASEQ_SERVERS_DIR the cache (default: .servers beside this repository's files), all is below its folder postgresql;
# DEBIAN_URI, DEBIAN_KEYRING as for debian_packages.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=${LEASEQ_SERVERS_DIR:-$(cd "$here/../.." && pwd)/.servers}/postgresql
suite=bookworm
version=15

wanted="$suite $version $(cksum < "$here/fetch_postgres.sh")"
if [ "$(cat "$root/fetched" 2>/dev/null)" = "$wanted" ]; then exit 0; fi

rm -rf "$root"
mkdir -p "$root/bin"
root=$(cd "$root" && pwd)
# the server, its client and their libraries; not the C library, that of LLVM (120 MB, for queries that are compiled) or those of Perl
SUITE=$suite ONLY="^(postgresql-(client-)?$version\$|lib)" WITHOUT='^lib(c6|c-bin|c-l10n|llvm|perl|.*-perl$)' \
  "$here/../debian_packages.sh" "$root" "postgresql-$version"
rm -rf "$root"/usr/share/{doc,man,locale} "$root/usr/share/postgresql/$version/man"

for program in initdb postgres psql; do
  cat > "$root/bin/$program" <<LAUNCHER
#!/bin/sh
here=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
export LD_LIBRARY_PATH="\$here/usr/lib/x86_64-linux-gnu:\$here/lib/x86_64-linux-gnu"
exec "\$here/usr/lib/postgresql/$version/bin/$program" "\$@"
LAUNCHER
  chmod +x "$root/bin/$program"
done
"$root/bin/postgres" --version
echo "$wanted" > "$root/fetched"
