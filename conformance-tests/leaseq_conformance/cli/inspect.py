"""The commands that show cases: list, explain, export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from leaseq_conformance import __version__, registry
from leaseq_conformance.adapter_protocol import PROTOCOL as ADAPTER_PROTOCOL
from leaseq_conformance.cases import CASE_SCHEMA
from leaseq_conformance.manifest import PROTOCOL
from leaseq_conformance.rules import rules

if TYPE_CHECKING:
    from leaseq_conformance.cases import Case


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the cases as JSON, with their bodies.")
@click.argument("patterns", nargs=-1)
def list_cases(patterns: tuple[str, ...], *, as_json: bool) -> None:
    """List the cases: name, needed capabilities, title. PATTERNS select by name, for example 'wire/*'."""
    cases = _cases(patterns)
    if as_json:
        click.echo(json.dumps([case.plain() for case in cases], indent=1))
        return
    for case in cases:
        click.echo(f"{case.name:48} {'+'.join(case.capabilities) or '-':20} {case.title}")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the case as JSON.")
@click.argument("name", metavar="CASE")
def explain(name: str, *, as_json: bool) -> None:
    """Show what CASE does, the rules it checks, and the command that runs it alone."""
    (case, *more) = _cases((name,))
    if more:
        raise click.UsageError(f"{name} is the name of several cases: give the name of one")
    if as_json:
        click.echo(json.dumps(case.plain(), indent=1))
        return
    click.echo(f"{case.name}: {case.title}\n")
    for rule in case.rules:
        click.echo(f"{rule}  {rules().get(rule, '')}\n")
    click.echo(f"needs  {', '.join(case.capabilities) or 'no client'}\n")
    click.echo(yaml.safe_dump(case.body, sort_keys=False, width=110, allow_unicode=True))
    click.echo(registry.again(case))


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def export(folder: Path) -> None:
    """Write every case as JSON into FOLDER, for a port that runs them itself: one file each, and index.json."""
    cases = _cases(())
    for case in cases:
        _write(folder / f"{case.name}.json", case.plain())
    versions = {
        "suite": __version__,
        "protocol": PROTOCOL,
        "adapter_protocol": ADAPTER_PROTOCOL,
        "case_schema": CASE_SCHEMA,
    }
    _write(folder / "index.json", {**versions, "rules": rules(), "cases": [case.name for case in cases]})
    click.echo(f"{len(cases)} cases in {folder}")


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def _cases(patterns: tuple[str, ...]) -> list[Case]:
    try:
        return registry.all_cases(patterns=patterns)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
