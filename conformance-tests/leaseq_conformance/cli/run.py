"""The commands that run cases: run, vectors, crash-points."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from leaseq_conformance import registry
from leaseq_conformance.cli.options import (
    EXIT_BROKEN,
    EXIT_CODES,
    EXIT_FAILED,
    EXIT_UNJUDGED,
    adapter_argument,
    opened,
    run_options,
)
from leaseq_conformance.cli.terminal import Terminal, show_summary
from leaseq_conformance.conformance_levels import levels
from leaseq_conformance.reports.html import write_html
from leaseq_conformance.reports.json_report import results_of, write_badge, write_results
from leaseq_conformance.reports.junit import write_junit
from leaseq_conformance.rules import CORE
from leaseq_conformance.runner import run_all
from leaseq_conformance.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from leaseq_conformance.cases import Case
    from leaseq_conformance.runner import Run

WRITERS = {"results": write_results, "junit": write_junit, "html": write_html, "badge": write_badge}


@click.command(epilog=EXIT_CODES)
@click.option(
    "--suite",
    "suites",
    multiple=True,
    type=click.Choice(registry.OF_CLIENTS),
    help="Run only this suite. May be repeated.",
)
@run_options
@adapter_argument
def run(suites: tuple[str, ...], adapter: tuple[str, ...], **options: Any) -> None:
    """Run the cases against the client behind ADAPTER, the command of an adapter, after `--`.

    The result is a table of levels: Core and the capabilities that the client claims in `hello`. Cases that need another
    capability are skipped. With --case or --suite only some cases are run, and no level is judged.
    """
    _run(suites, adapter, **options)


@click.command(epilog=EXIT_CODES)
@run_options
def vectors(**options: Any) -> None:
    """Check the scripts themselves on a server. No client is needed."""
    _run(registry.OF_SCRIPTS, (), **options)


@click.command("crash-points", epilog=EXIT_CODES)
@run_options
@adapter_argument
def crash_points(adapter: tuple[str, ...], **options: Any) -> None:
    """Break each operation of ADAPTER's client at each command that it sends: drop the connection, or kill the client.

    This is `run --suite crash-points`.
    """
    _run(("crash-points",), adapter, **options)


def _run(
    suites: tuple[str, ...],
    adapter: tuple[str, ...],
    *,
    url: str | None,
    program: str | None,
    patterns: tuple[str, ...],
    known_failures: Iterable[str] | None,
    seed: int,
    patience: float,
    jobs: int | None,
    as_json: bool,
    **reports: Path | None,
) -> None:
    known = [line.strip() for line in known_failures or () if line.strip() and not line.startswith("#")]
    cases = _chosen(suites, patterns, known, of_clients=bool(adapter))
    with (
        opened(adapter, url, program, seed=seed, patience=patience, jobs=jobs) as (contexts, run),
        Terminal(len(cases), quiet=as_json) as terminal,
    ):
        run.filtered = bool(patterns) or (bool(adapter) and bool(suites))
        run_all(cases, contexts, run, known, terminal)
    for name, path in reports.items():
        if path is not None:
            WRITERS[name](run, path)
    if as_json:
        click.echo(json.dumps(results_of(run), indent=1))
    else:
        show_summary(run)
    sys.exit(exit_code(run))


def _chosen(
    suites: tuple[str, ...], patterns: tuple[str, ...], known: list[str], *, of_clients: bool
) -> list[Case]:
    """The cases to run: those that need a client, or those that need none."""
    try:
        cases = registry.all_cases(suites, patterns)
        registry.check_patterns(known)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    chosen = [case for case in cases if bool(case.capabilities) == of_clients]
    if not chosen:
        raise click.UsageError(
            f"{cases[0].name} checks the scripts, not a client: use `leaseq-conformance vectors`"
            if of_clients
            else f"{cases[0].name} checks a client: use `leaseq-conformance run`"
        )
    return chosen


def exit_code(run: Run) -> int:
    """The exit code of a run; if only some cases were asked for, no level has to hold."""
    outcomes = {result.verdict.outcome for result in run.results if not result.known}
    left_out = any(result.verdict.outcome is Outcome.SKIP for result in run.claimed)
    if any(result.wrong for result in run.results):
        return EXIT_FAILED
    if Outcome.ERROR in outcomes:
        return EXIT_BROKEN
    if Outcome.UNKNOWN in outcomes or left_out:
        return EXIT_UNJUDGED
    if run.filtered or not run.all_cases:
        return 0
    held = all(level.holds for level in levels(run) if level.claimed or level.name == CORE)
    return 0 if held else EXIT_FAILED
