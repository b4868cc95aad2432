"""The command `leaseq-conformance`."""

from __future__ import annotations

import click

from leaseq_conformance import suites
from leaseq_conformance.history.command import history


@click.group()
def main() -> None:
    """Check a client of the leaseq protocol, in whatever language it is written."""


@main.command("list")
@click.argument("patterns", nargs=-1)
def list_cases(patterns: tuple[str, ...]) -> None:
    """List the cases, or those whose names fit PATTERNS."""
    for case in suites.all_cases(patterns=patterns):
        click.echo(f"{case.name}  {case.title}")


main.add_command(history)
