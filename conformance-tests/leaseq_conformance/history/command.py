"""The command `leaseq-conformance history`: as many histories as one wants, each from a seed of its own."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import Progress

from leaseq_conformance.actor import Actor, ActorError
from leaseq_conformance.cases import BrokenError, Context, Outcome, UnjudgedError, Verdict
from leaseq_conformance.history import suite
from leaseq_conformance.server import ServerError, open_server

if TYPE_CHECKING:
    from leaseq_conformance.history.record import History
    from leaseq_conformance.server import Server

WORST = (Outcome.ERROR, Outcome.FAIL, Outcome.UNKNOWN, Outcome.PASS)
EXIT = {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.UNKNOWN: 2, Outcome.ERROR: 3}


@click.command("history")
@click.option("--adapter", required=True, help="The command that starts the adapter.")
@click.option("--server", "url", help="Where a server is whose database is empty; without it one is started.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the first history.")
@click.option("--rounds", type=click.IntRange(1), default=10, show_default=True, help="How many histories.")
@click.option("--actors", type=click.IntRange(1, 32), default=4, show_default=True)
@click.option("--steps", type=click.IntRange(1), default=40, show_default=True, help="Calls of each actor.")
@click.option(
    "--faulty", type=click.FloatRange(0, 1), default=0.06, show_default=True, help="Share of calls lost."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("leaseq-histories"),
    show_default=True,
    help="The folder for histories that are not right, made when there is one.",
)
def history(
    adapter: str,
    url: str | None,
    seed: int,
    rounds: int,
    actors: int,
    steps: int,
    faulty: float,
    out: Path,
) -> None:
    """Run random histories and check each in two ways: against the reference model, and with Porcupine.

    Exits 0 where all are right, 1 where one is wrong, 2 where one could not be judged, 3 where the adapter broke its
    protocol. A history that is not right is written to a folder, with a picture where Porcupine has one; its seed
    draws the same programs again, but not the same interleaving.
    """
    console = Console()
    seen: list[Outcome] = []
    try:
        with open_server(url) as server, Progress(console=console) as progress:
            command = tuple(shlex.split(adapter))
            context = Context(server, command, _capabilities(command, server))
            task = progress.add_task("histories", total=rounds)
            for number in range(seed, seed + rounds):
                server.flush()
                made = suite.record(context, number, actors=actors, steps=steps, faulty=faulty)
                verdict = _judged(made, out)
                seen.append(verdict.outcome)
                if verdict.outcome is not Outcome.PASS:
                    progress.console.print(
                        f"seed {number}: [bold]{verdict.outcome}[/]: ", verdict.message, sep=""
                    )
                progress.advance(task)
    except ServerError as error:
        raise click.UsageError(str(error)) from error
    except ActorError as error:
        console.print(f"the adapter does not start: {error}")
        raise SystemExit(EXIT[Outcome.ERROR]) from error
    console.print(f"{seen.count(Outcome.PASS)} of {rounds} histories are right")
    raise SystemExit(EXIT[next(outcome for outcome in WORST if outcome in seen)])


def _capabilities(command: tuple[str, ...], server: Server) -> frozenset[str]:
    with Actor("hello", command, server.url) as actor:
        return actor.capabilities


def _judged(made: History, out: Path) -> Verdict:
    page = out / f"seed-{made.seed}.html"
    written = out / f"seed-{made.seed}.jsonl"
    out.mkdir(parents=True, exist_ok=True)
    try:
        verdict = suite.judge(made, page)
    except BrokenError as error:
        verdict = Verdict(Outcome.ERROR, str(error))
    except UnjudgedError as error:
        verdict = Verdict(Outcome.UNKNOWN, str(error))
    if verdict.outcome is not Outcome.PASS:
        made.write(written)
    elif not any(out.iterdir()):
        out.rmdir()
    return verdict
