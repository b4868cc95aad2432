"""The adapter of the Python client with one seeded bug: python -m leaseq_conformance.adapters.mutant NAME."""

from __future__ import annotations

import sys

from leaseq_conformance.adapters import python_sync
from leaseq_conformance.mutants.registry import adapter_mutants


def main() -> int:
    """Make the client of this process wrong, then answer as the adapter of the right one does."""
    known = adapter_mutants()
    if len(sys.argv) != 2 or sys.argv[1] not in known:
        print(f"usage: mutant NAME, one of {', '.join(sorted(known))}", file=sys.stderr)
        return 2
    _, patch = known[sys.argv[1]]
    patch()
    python_sync.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
