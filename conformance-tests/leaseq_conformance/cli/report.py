"""The command `report`: reports of a run that was stored."""

from __future__ import annotations

import json
from pathlib import Path

import click

from leaseq_conformance.cli.terminal import show_summary
from leaseq_conformance.reports.html import write_html
from leaseq_conformance.reports.json_report import ResultsError, read_results, results_of, write_badge
from leaseq_conformance.reports.junit import write_junit

TARGET = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--junit", type=TARGET, help="Write JUnit XML.")
@click.option("--html", type=TARGET, help="Write one HTML page.")
@click.option("--badge", type=TARGET, help="Write the JSON of a badge (shields.io endpoint).")
@click.option("--json", "as_json", is_flag=True, help="Print the levels as JSON instead of a table.")
@click.argument("results", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def report(
    results: Path, junit: Path | None, html: Path | None, badge: Path | None, *, as_json: bool
) -> None:
    """Make reports of RESULTS, a file that `run --results` wrote."""
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
    if as_json:
        click.echo(
            json.dumps({key: value for key, value in results_of(run).items() if key != "results"}, indent=1)
        )
    else:
        show_summary(run)
