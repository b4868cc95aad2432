"""The `leaseq` program. Each command has a module of its own; this one puts them together."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import click

_EXTRA: Final = {"click", "rich"}  # what the extra `cli` installs


def main() -> None:
    """Run the program; without the extra `cli`, say how to install it and end with 2."""
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
    import click

    import leaseq
    from leaseq.demo.command import demo

    @click.group(context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(leaseq.__version__, prog_name="leaseq", message="%(prog)s %(version)s")
    def program() -> None:
        """Work queues with leases on Redis and Valkey."""

    program.add_command(demo)
    return program
