"""The command `leaseq-conformance history`: as many histories as one wants, each from a seed of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from leaseq_conformance.cases import Outcome, VerdictError
from leaseq_conformance.history import suite
from leaseq_conformance.options import (
    EXIT_BROKEN,
    EXIT_CODES,
    EXIT_FAILED,
    EXIT_UNJUDGED,
    adapter_argument,
    adapter_options,
    opened,
)

if TYPE_CHECKING:
    from leaseq_conformance.cases import Verdict
    from leaseq_conformance.history.record import History

EXITS: Final = {
    Outcome.FAIL: EXIT_FAILED,
    Outcome.ERROR: EXIT_BROKEN,
    Outcome.UNKNOWN: EXIT_UNJUDGED,
    Outcome.PASS: 0,
}
"""Worst first."""


@click.command("history", epilog=EXIT_CODES)
@click.option("--rounds", type=click.IntRange(1), default=10, show_default=True, help="how many histories")
@click.option("--actors", type=click.IntRange(1, 32), default=4, show_default=True, help="clients at once")
@click.option("--steps", type=click.IntRange(1), default=40, show_default=True, help="calls of each client")
@click.option(
    "--faulty", type=click.FloatRange(0, 1), default=0.06, show_default=True, help="share of calls lost"
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("leaseq-histories"),
    show_default=True,
    help="the folder for histories that are not right, made when there is one",
)
@adapter_options
@adapter_argument
def history(
    rounds: int,
    actors: int,
    steps: int,
    faulty: float,
    out: Path,
    adapter: tuple[str, ...],
    *,
    seed: int,
    patience: float,
    url: str | None,
    program: str | None,
) -> None:
    """Run random histories of the client behind ADAPTER, and check each in two ways.

    The reference model makes the same calls in the server's order, and Porcupine (it needs Go) looks for an order that
    explains what clients were told. A history that is not right is written to a folder, with a picture where Porcupine has
    one. Its seed, of which the first is that given, draws the same programs again, but not the same interleaving.
    """
    console = Console(highlight=False)
    seen: list[Outcome] = []
    with (
        opened(adapter, url, program, seed, patience) as (context, about),
        Progress(console=console, transient=True) as progress,
    ):
        task = progress.add_task("histories", total=rounds)
        for number in range(seed, seed + rounds):
            context.server.flush()
            made = suite.record(context, number, actors=actors, steps=steps, faulty=faulty)
            verdict = _judged(made, out)
            seen.append(verdict.outcome)
            if verdict.outcome is not Outcome.PASS:
                console.print(f"{verdict.outcome.value:8}{escape(verdict.message)}")
            progress.advance(task)
    console.print(f"{seen.count(Outcome.PASS)} of {rounds} histories of {about.client} are right")
    sys.exit(next(code for outcome, code in EXITS.items() if outcome in seen))


def _judged(made: History, out: Path) -> Verdict:
    """The verdict; the history goes to the folder unless it is right."""
    there = out.is_dir()
    out.mkdir(parents=True, exist_ok=True)
    try:
        verdict = suite.judge(made, out / f"seed-{made.seed}.html")
    except VerdictError as error:
        verdict = error.judged()
    if verdict.outcome is not Outcome.PASS:
        made.write(out / f"seed-{made.seed}.jsonl")
    elif not there:
        out.rmdir()
    return verdict
