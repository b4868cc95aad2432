"""The commands that run cases: smoke, run, vectors, sweep."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leaseq_conformance import suites
from leaseq_conformance.actor import ActorError
from leaseq_conformance.cases import Outcome
from leaseq_conformance.levels import levels
from leaseq_conformance.messages import b64
from leaseq_conformance.options import (
    EXIT_BROKEN,
    EXIT_CODES,
    EXIT_FAILED,
    EXIT_UNJUDGED,
    BrokenAdapterError,
    adapter_argument,
    opened,
    run_options,
    server_options,
)
from leaseq_conformance.reports.html import write_html
from leaseq_conformance.reports.junit import write_junit
from leaseq_conformance.reports.plain import write_badge, write_results
from leaseq_conformance.runner import run_all
from leaseq_conformance.terminal import Terminal, show_levels

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from leaseq_conformance.cases import Case, Context
    from leaseq_conformance.runner import Run

WRITERS = {"results": write_results, "junit": write_junit, "html": write_html, "badge": write_badge}


@click.command(epilog=EXIT_CODES)
@click.option("--suite", "names", multiple=True, help="only this suite; may be given several times")
@run_options
@adapter_argument
def run(names: tuple[str, ...], adapter: tuple[str, ...], **options: Any) -> None:
    """Run the cases against the client behind ADAPTER, the command of an adapter process, behind `--`."""
    _run(names, adapter, **options)


@click.command(epilog=EXIT_CODES)
@run_options
def vectors(**options: Any) -> None:
    """Check the scripts on a server; no client is needed."""
    _run(("vectors", "rights", "bounds"), (), **options)


@click.command(epilog=EXIT_CODES)
@run_options
@adapter_argument
def sweep(adapter: tuple[str, ...], **options: Any) -> None:
    """Kill the client, and lose its replies, before and after every command of every operation."""
    _run(("sweep",), adapter, **options)


@click.command(epilog=EXIT_CODES)
@server_options
@adapter_argument
def smoke(url: str | None, program: str | None, adapter: tuple[str, ...]) -> None:
    """Add, lease and complete one item. If this fails, the adapter is wrong."""
    with opened(adapter, url, program) as (context, about), context.the_crew.shift() as shift:
        context.server.flush()
        try:
            added = shift.call(
                "w1", "q", "add", 60, {"items": [{"id": b64(b"a"), "data": b64(b"\0\xff")}]}
            ).ok
            (lease,) = shift.call("w1", "q", "lease", 60, {"duration_ms": 30_000}).ok["leases"]
            held = [{"id": lease["id"], "token": lease["token"]}]
            done = shift.call("w1", "q", "complete", 60, {"items": held}).ok
            right = (added, lease["id"], lease["data"], done) == (
                ["added"],
                b64(b"a"),
                b64(b"\0\xff"),
                [True],
            )
        except (ActorError, AssertionError, ValueError) as error:
            click.echo("\n".join(shift.transcript()))
            raise BrokenAdapterError(f"smoke: {error}") from error
        if not right:
            click.echo("\n".join(shift.transcript()))
            raise BrokenAdapterError("smoke: an answer is not what it has to be")
        click.echo(f"smoke: {about.client} added, leased and completed an item on {about.server}")


def _run(
    names: tuple[str, ...],
    adapter: tuple[str, ...],
    *,
    url: str | None,
    program: str | None,
    patterns: tuple[str, ...],
    known_failures: Iterable[str] | None,
    seed: int,
    patience: float,
    **reports: str | None,
) -> None:
    known = [line.strip() for line in known_failures or () if line.strip() and not line.startswith("#")]
    try:
        cases = suites.all_cases(names, patterns)
        suites.check_patterns(known)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    cases = [
        case for case in cases if bool(case.capabilities) == bool(adapter)
    ]  # of the client, or of the scripts
    about = _run_cases(cases, known, opened(adapter, url, program, seed, patience))
    for name, path in reports.items():
        if path is not None:
            WRITERS[name](about, Path(path))
    show_levels(about)
    sys.exit(exit_code(about, whole=not names and not patterns))


def _run_cases(
    cases: list[Case], known: list[str], opening: AbstractContextManager[tuple[Context, Run]]
) -> Run:
    with opening as (context, about), Terminal(len(cases)) as terminal:
        run_all(cases, context, about, known, terminal)
        return about


def exit_code(run: Run, *, whole: bool) -> int:
    """What the run ends with; where not all cases were run, no level is asked for."""
    outcomes = {result.verdict.outcome for result in run.results if not result.known}
    held = all(level.holds for level in levels(run) if level.declared or level.name == "core")
    if any(result.wrong for result in run.results):
        return EXIT_FAILED
    if Outcome.ERROR in outcomes:
        return EXIT_BROKEN
    if Outcome.UNKNOWN in outcomes or any(
        _left_out(run, result.case) for result in run.results if not result.right
    ):
        return EXIT_UNJUDGED
    return EXIT_FAILED if whole and not held else 0


def _left_out(run: Run, case: Case) -> bool:
    """Whether a case that did not pass is one of what the client claims."""
    return any(
        result.case is case
        and result.verdict.outcome is Outcome.SKIP
        and set(case.capabilities) <= run.capabilities
        for result in run.results
    )
