"""The `leaseq` program. `program` lists its commands; each has a module of its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from leaseq.cli import standard

if TYPE_CHECKING:
    import click

_EXTRA: Final = {"click", "rich"}  # what the extra `cli` installs


def main() -> None:
    """Run the program; without the extra `cli`, say how to install it and end with 2."""
    standard.reopen()
    try:
        program = _program()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in _EXTRA:
            raise
        sys.stderr.write(
            f"leaseq: the command line needs {error.name}; install it with: pip install 'leaseq[cli]'\n"
        )
        sys.exit(2)
    program(prog_name="leaseq")


def _program() -> click.Group:
    import rich  # noqa: F401 # commands are imported when they are called for; say now that it is missing

    from leaseq.cli.program import program

    return program
