"""The command `history`: random runs of several clients, each from a seed, judged by the reference model."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console
from rich.markup import escape

from leaseq_conformance.cli.options import (
    EXIT_BROKEN,
    EXIT_CODES,
    EXIT_FAILED,
    EXIT_UNJUDGED,
    adapter_options,
    apply,
    opened,
)
from leaseq_conformance.cli.terminal import progress_bar
from leaseq_conformance.history import suite
from leaseq_conformance.history.record import History
from leaseq_conformance.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.cases import Context
    from leaseq_conformance.verdict import Verdict

EXITS: Final = {
    Outcome.FAIL: EXIT_FAILED,
    Outcome.ERROR: EXIT_BROKEN,
    Outcome.UNKNOWN: EXIT_UNJUDGED,
    Outcome.PASS: 0,
}
"""Worst first."""

adapter_argument = click.argument("adapter", nargs=-1, type=click.UNPROCESSED)


def _options(command: click.decorators.FC) -> click.decorators.FC:
    folder = click.Path(file_okay=False, path_type=Path)
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    return apply(
        command,
        [
            click.option(
                "--runs", type=click.IntRange(1), default=10, show_default=True, help="How many histories."
            ),
            click.option(
                "--clients",
                type=click.IntRange(1, 32),
                default=4,
                show_default=True,
                help="Clients at a time.",
            ),
            click.option(
                "--steps", type=click.IntRange(1), default=40, show_default=True, help="Calls of each client."
            ),
            click.option(
                "--faults",
                type=click.FloatRange(0, 1),
                default=0.06,
                show_default=True,
                help="Share of the calls whose connection is dropped or whose client is killed.",
            ),
            click.option(
                "--jobs",
                type=click.IntRange(1, 64),
                help="Histories at a time, each on its own server.  [default: number of CPUs, at most 4]",
            ),
            click.option(
                "--out",
                type=folder,
                default=Path("leaseq-histories"),
                show_default=True,
                help="Write histories that did not pass into this folder.",
            ),
            click.option(
                "--replay", type=file, help="Judge a history that was written, instead of running new ones."
            ),
            click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each history."),
        ],
    )


@click.command(epilog=EXIT_CODES)
@_options
@adapter_options
@adapter_argument
def history(
    *,
    runs: int,
    clients: int,
    steps: int,
    faults: float,
    jobs: int | None,
    out: Path,
    replay: Path | None,
    as_json: bool,
    adapter: tuple[str, ...],
    seed: int,
    patience: float,
    url: str | None,
    program: str | None,
) -> None:
    """Run random histories of ADAPTER's client, several clients at a time, and judge each by the reference model.

    Each call of a script is made again on the model in the order in which the server ran them. Every reply, every answer
    of a client and what is left in the queues must be as the model has it.

    The first history is drawn from --seed, the next from the seed after it. The same seed draws the same calls, but the
    server may run them in another order. A history that does not pass is written to --out; --replay judges it again.
    """
    console = Console(emoji=False, highlight=False, stderr=as_json)
    if replay is not None:
        verdicts = [_report(*_replayed(replay), console, as_json=as_json)]
    else:
        if not adapter:
            raise click.UsageError("name the adapter's command after --, or a file with --replay")
        with (
            opened(adapter, url, program, seed=seed, patience=patience, jobs=jobs) as (contexts, run),
            progress_bar(console, runs) as progress,
        ):
            verdicts = []
            drawn = {"clients": clients, "steps": steps, "faults": faults}
            for made, verdict in _recorded(contexts, range(seed, seed + runs), drawn):
                if verdict.outcome is not Outcome.PASS:
                    _write(made, out)
                verdicts.append(_report(made, verdict, console, as_json=as_json))
                progress.advance(progress.task_ids[0])
        passed = sum(verdict.outcome is Outcome.PASS for verdict in verdicts)
        console.print(f"{passed} of {runs} histories of {escape(run.client)} on {run.server} passed")
    seen = {verdict.outcome for verdict in verdicts}
    sys.exit(next(code for outcome, code in EXITS.items() if outcome in seen))


def _recorded(
    contexts: list[Context], seeds: range, drawn: dict[str, float]
) -> Iterator[tuple[History, Verdict]]:
    """Histories and their verdicts in the order of the seeds; as many at a time as there are contexts."""
    free: SimpleQueue[Context] = SimpleQueue()
    for context in contexts:
        free.put(context)

    def record(seed: int) -> tuple[History, Verdict]:
        context = free.get()
        try:
            context.server.flush()
            made = suite.record(context, seed, **drawn)
        finally:
            free.put(context)
        return made, suite.judge(made)

    with ThreadPoolExecutor(len(contexts)) as threads:
        yield from threads.map(record, seeds)


def _write(made: History, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    made.write(out / f"seed-{made.seed}.jsonl")


def _replayed(path: Path) -> tuple[History, Verdict]:
    try:
        made = History.read(path)
    except (ValueError, KeyError, TypeError) as error:
        raise click.UsageError(f"{path} is no history: {error}") from error
    return made, suite.judge(made)


def _report(made: History, verdict: Verdict, console: Console, *, as_json: bool) -> Verdict:
    if as_json:
        click.echo(
            json.dumps({"seed": made.seed, "outcome": verdict.outcome.value, "message": verdict.message})
        )
    elif verdict.outcome is not Outcome.PASS:
        console.print(f"{verdict.outcome.value:7} {escape(verdict.message)}", soft_wrap=True)
        for line in verdict.stderr:
            console.print(f"        {escape(line)}", style="dim", soft_wrap=True)
    return verdict
