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
from leaseq_conformance.rules import ROLES, bound, rules

if TYPE_CHECKING:
    from leaseq_conformance.cases import Case


@click.command("list")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: the cases with their bodies, or the rules."
)
@click.option(
    "--for",
    "role",
    type=click.Choice(ROLES),
    help="List the rules of the specification that bind this role, each with its cases. A port keeps those of the client,"
    " and those of the worker if it has a worker loop; the scripts keep their own.",
)
@click.argument("patterns", nargs=-1)
def list_cases(patterns: tuple[str, ...], *, role: str | None, as_json: bool) -> None:
    """List the cases: name, needed capabilities, title. PATTERNS select by name, for example 'wire/*'."""
    cases = _cases(patterns)
    if role:
        _list_rules(role, cases, as_json=as_json, only_with_cases=bool(patterns))
        return
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
    click.echo(
        yaml.dump(
            case.written or case.body,
            Dumper=_Plain,
            default_flow_style=None,
            sort_keys=False,
            width=110,
            allow_unicode=True,
        )
    )
    click.echo(registry.again(case))


class _Plain(yaml.SafeDumper):
    """Writes each value out, and short ones in a line, as case files do."""

    def ignore_aliases(self, _: Any) -> bool:
        """Write at each step what several steps share."""
        return True


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


def _list_rules(role: str, cases: list[Case], *, as_json: bool, only_with_cases: bool) -> None:
    """Print the rules that bind a role, with those of `cases` that name them."""
    found = {
        name: [case.name for case in cases if name in case.rules]
        for name, roles in bound().items()
        if role in roles
    }
    if only_with_cases:
        found = {name: named for name, named in found.items() if named}
    if as_json:
        listed = [{"id": name, "text": rules()[name], "cases": named} for name, named in found.items()]
        click.echo(json.dumps(listed, indent=1, ensure_ascii=False))
        return
    for name, named in found.items():
        click.echo(f"{name}  {rules()[name]}")
        click.echo("".join(f"    {case}\n" for case in named) or "    no case\n")
    count = len({case for named in found.values() for case in named})
    click.echo(f"{len(found)} rules bind the {role}; {count} cases name them")


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def _cases(patterns: tuple[str, ...]) -> list[Case]:
    try:
        return registry.all_cases(patterns=patterns)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
