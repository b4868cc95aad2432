"""The commands that run nothing: list, export, explain, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
import yaml

from leaseq_conformance import suites
from leaseq_conformance.reports.html import write_html
from leaseq_conformance.reports.junit import write_junit
from leaseq_conformance.reports.plain import ResultsError, read_results, write_badge
from leaseq_conformance.rules import rules
from leaseq_conformance.terminal import show_levels

if TYPE_CHECKING:
    from leaseq_conformance.cases import Case


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="as JSON, bodies and all")
@click.argument("patterns", nargs=-1)
def list_cases(patterns: tuple[str, ...], *, as_json: bool) -> None:
    """List the cases, or those whose names fit PATTERNS."""
    cases = _cases(patterns)
    if as_json:
        click.echo(json.dumps([case.plain() for case in cases], indent=1))
        return
    for case in cases:
        click.echo(f"{case.name:48} {'+'.join(case.capabilities) or '-':20} {case.title}")


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def export(folder: Path) -> None:
    """Write every case as plain JSON into FOLDER, a file each, for those who run them natively."""
    for case in _cases(()):
        path = folder / f"{case.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(case.plain(), indent=1) + "\n", "utf-8")
    click.echo(f"{len(_cases(()))} cases in {folder}")


@click.command()
@click.argument("name", metavar="CASE")
def explain(name: str) -> None:
    """Say what CASE does, which rules it rests on, and how to run it alone."""
    (case, *more) = _cases((name,))
    if more:
        raise click.UsageError(f"{name} is more than one case")
    click.echo(f"{case.name}: {case.title}\n")
    for rule in case.rules:
        click.echo(f"{rule}  {rules()[rule]}\n")
    click.echo(f"needs    {', '.join(case.capabilities) or 'no client'}")
    click.echo(f"catches  {', '.join(case.catches)}\n")
    click.echo(yaml.safe_dump(case.body, sort_keys=False, width=110, allow_unicode=True))
    command = "run" if case.capabilities else "vectors"
    click.echo(
        f"leaseq-conformance {command} --case '{case.name}'" + (" -- ADAPTER" if case.capabilities else "")
    )


@click.command()
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="write JUnit XML")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="write one HTML page")
@click.option("--badge", type=click.Path(dir_okay=False, path_type=Path), help="write the JSON of a badge")
@click.argument("results", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def report(results: Path, junit: Path | None, html: Path | None, badge: Path | None) -> None:
    """Make reports of RESULTS, the file that `run --results` wrote."""
    try:
        run = read_results(results)
    except ResultsError as error:
        raise click.UsageError(str(error)) from error
    if junit:
        write_junit(run, junit)
    if html:
        write_html(run, html)
    if badge:
        write_badge(run, badge)
    show_levels(run)


def _cases(patterns: tuple[str, ...]) -> list[Case]:
    try:
        return suites.all_cases(patterns=patterns)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
