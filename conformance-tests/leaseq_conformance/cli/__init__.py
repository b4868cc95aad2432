"""The command `leaseq-conformance`."""

from __future__ import annotations

import click

from leaseq_conformance import __version__
from leaseq_conformance.adapter_protocol import PROTOCOL as ADAPTER_PROTOCOL
from leaseq_conformance.cases import CASE_SCHEMA
from leaseq_conformance.cli import history, inspect, report, run, skeleton, smoke
from leaseq_conformance.cli.options import EXIT_CODES
from leaseq_conformance.manifest import PROTOCOL

VERSIONS = f"%(prog)s %(version)s\nprotocol {PROTOCOL}\nadapter protocol {ADAPTER_PROTOCOL}\ncase schema {CASE_SCHEMA}"


HELP = """Check a client of the leaseq protocol, in any language, against a real server.

The client is checked through an adapter: a small program that reads JSON lines and makes the client's calls
(ADAPTER.md). Put the adapter's command after `--`. Start with `smoke`, then use `run`:

\b
  leaseq-conformance skeleton my-port
  leaseq-conformance smoke -- ./my-adapter
  leaseq-conformance run -- ./my-adapter
  leaseq-conformance run --case 'wire/*' -- ./my-adapter
  leaseq-conformance explain wire/add-plain

Without --redis the suite starts a server itself. Nothing is run twice: a case that passes only sometimes has failed.
"""


class InOrder(click.Group):
    """Lists its commands in the order in which a porter needs them."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """The names of the commands, as they were added."""
        return list(self.commands)


@click.group(
    cls=InOrder, help=HELP, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES
)
@click.version_option(__version__, prog_name="leaseq-conformance", message=VERSIONS)
def program() -> None:
    """Run one of the commands below."""


for command in (
    skeleton.skeleton,
    smoke.smoke,
    run.run,
    inspect.list_cases,
    inspect.explain,
    inspect.export,
    report.report,
    run.crash_points,
    history.history,
    run.vectors,
):
    program.add_command(command)


def main() -> None:
    """Run the program."""
    program(prog_name="leaseq-conformance")
