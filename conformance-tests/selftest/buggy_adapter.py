"""The adapter of a client with one seeded bug: python -m selftest.buggy_adapter NAME.

For a look at a bug through the suite's own command, as in

    leaseq-conformance run --case 'wire/*' -- python -m selftest.buggy_adapter keys-swapped

A bug of a script is run with a Python client that sends the script with the bug.
"""

from __future__ import annotations

import importlib
import os
import sys

from selftest.client_copies import ClientCopies
from selftest.seeded_bug import load_all


def main() -> int:
    """Answer as the adapter of the right client does, until the end of the input."""
    bugs = {bug.name: bug for bug in load_all() if bug.part not in {"typescript", "go", "rust"}}
    bug = bugs.get(sys.argv[1]) if len(sys.argv) == 2 else None
    if bug is None:
        print(f"usage: buggy_adapter NAME, one of {', '.join(sorted(bugs))}", file=sys.stderr)
        return 2
    with ClientCopies() as copies:
        # in this process, so that the copy goes with it
        copy = str(copies.python_copy(bug))
        sys.path.insert(0, copy)
        os.environ["PYTHONPATH"] = copy  # for its job worker program
        importlib.import_module(copies.program(bug)).main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
