"""The command `leaseq-conformance`. Without the extra `conformance` it says how to install it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import click

_EXTRA: Final = {"click", "rich", "jinja2", "jsonschema", "yaml"}


def main() -> None:
    """Run the program."""
    try:
        program = _program()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in _EXTRA:
            raise
        sys.stderr.write(
            f"leaseq-conformance: it needs {error.name}; install it with: pip install 'leaseq[conformance]'\n"
        )
        sys.exit(2)
    program(prog_name="leaseq-conformance")


def _program() -> click.Group:
    import click

    import leaseq
    from leaseq_conformance import looking, running
    from leaseq_conformance.history.command import history
    from leaseq_conformance.options import EXIT_CODES
    from leaseq_conformance.selftest.command import selftest_command

    @click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
    @click.version_option(leaseq.__version__, prog_name="leaseq-conformance", message="%(prog)s %(version)s")
    def program() -> None:
        """Check a client of the leaseq protocol, in whatever language it is written.

        A client is checked through an adapter, a small program that answers JSON lines (ADAPTER.md). Begin with `smoke`,
        then `run`. Nothing is run twice: a case that passes at times only has failed.
        """

    for command in (running.smoke, running.run, running.vectors, running.sweep, history, selftest_command):
        program.add_command(command)
    for command in (looking.list_cases, looking.explain, looking.export, looking.report):
        program.add_command(command)
    return program
