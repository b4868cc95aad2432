"""The adapter of the Python client with one seeded bug: python -m leaseq_conformance.adapters.mutant NAME.

The bug is one of clients, or one of scripts: then the client sends the edited script, with a digest of its own.
"""

from __future__ import annotations

import hashlib
import sys

from leaseq import _scripts
from leaseq_conformance.adapters import python_sync
from leaseq_conformance.mutants import scripts
from leaseq_conformance.mutants.registry import adapter_mutants, everywhere


def main() -> int:
    """Make the client of this process wrong, then answer as the adapter of the right one does."""
    clients, edited = adapter_mutants(), {each.name: each for each in scripts.load()}
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name in clients:
        clients[name][1]()
    elif name in edited:
        send(edited[name].script, edited[name].source())
    else:
        print(f"usage: mutant NAME, one of {', '.join(sorted({*clients, *edited}))}", file=sys.stderr)
        return 2
    python_sync.main()
    return 0


def send(script: str, source: str) -> None:
    """Let the client of this process send another text for a script."""
    known = next(each for each in _scripts.SCRIPTS if each.name == script)
    digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    everywhere(known, known._replace(source=source, sha1=digest))


if __name__ == "__main__":
    sys.exit(main())
