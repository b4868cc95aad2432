"""The command `python -m selftest`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table

from leaseq_conformance.cli.options import server_options
from leaseq_conformance.redis_server import open_server
from leaseq_conformance.server_process import ServerError
from selftest.client_copies import NoNodeError
from selftest.plan import ALL_PARTS, QUICK_PARTS, TIMEOUT_SECS, Options
from selftest.pool import JOBS
from selftest.score import Score, selftest
from selftest.seeded_bug import SeededBugError

if TYPE_CHECKING:
    from rich.progress import TaskID

LINE_EVERY: Final = 25
"""Steps for which there is one line where no terminal shows a bar."""


@click.command("selftest")
@click.option(
    "--part", "parts", multiple=True, type=click.Choice(ALL_PARTS), help="this part only; repeatable"
)
@click.option("--bug", "bugs", multiple=True, metavar="PATTERN", help="only bugs whose names fit; repeatable")
@click.option(
    "--case", "cases", multiple=True, metavar="PATTERN", help="only cases whose names fit; repeatable"
)
@click.option(
    "--all",
    "every_case",
    is_flag=True,
    help="run each bug with every case of its kind, and the mechanical mutants",
)
@click.option(
    "--quick",
    is_flag=True,
    help="run each bug with the first case that is to catch it; leave out right clients",
)
@click.option("--first", is_flag=True, help="leave the other cases of a bug out once one has caught it")
@click.option("--jobs", type=click.IntRange(1), default=JOBS, show_default=True, help="processes at a time")
@click.option(
    "--patience",
    type=click.FloatRange(1),
    default=TIMEOUT_SECS,
    show_default=True,
    help="seconds to wait for an answer",
)
@click.option(
    "--results",
    type=click.Path(dir_okay=False, path_type=Path),
    help="keep the results of bugs in this file; what it has already is not run again",
)
@click.option("--record", is_flag=True, help="write which cases caught which bugs to selftest/caught.json")
@click.option("--json", "as_json", is_flag=True, help="print the score as JSON")
@server_options
def selftest_command(
    parts: tuple[str, ...],
    bugs: tuple[str, ...],
    cases: tuple[str, ...],
    every_case: bool,
    quick: bool,
    first: bool,
    jobs: int,
    patience: float,
    results: Path | None,
    record: bool,
    as_json: bool,
    url: str | None,
    program: str | None,
) -> None:
    """Judge the suite itself: seeded bugs have to fail the cases that are to catch them.

    Exits with 0 if all that was run is as it has to be, with 1 if not, and with 2 if it cannot be run.
    """
    # that the right clients pass all cases is what the suite's own runs show
    usual = tuple(part for part in QUICK_PARTS if not (quick and part == "right"))
    chosen = parts or (ALL_PARTS if every_case else usual)
    options = Options(chosen, bugs, cases, every_case, quick, first, jobs, patience, results, record)
    console = Console(emoji=False, highlight=False, stderr=as_json)
    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with open_server(url, program) as server, Bars(*columns, console=console, transient=True) as bars:
            score = selftest(server, _Shown(bars), options)
    except (ServerError, NoNodeError, SeededBugError) as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        click.echo(json.dumps(score.plain(), indent=1))
    else:
        show(score, console)
    sys.exit(0 if score.is_good else 1)


class _Shown:
    """Progress in the terminal."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._task: TaskID | None = None
        self._title = ""

    def begin(self, title: str, steps: int) -> None:
        self._end()
        self._title = title
        self._task = self._bars.add_task(title, total=steps)
        self._steps, self._of, self._begun = 0, steps, time.monotonic()
        self._bars.console.print(f"{title}: {steps}")

    def step(self, name: str) -> None:
        assert self._task is not None
        self._steps += 1
        self._bars.update(self._task, completed=self._steps, description=f"{self._title}: {name}")
        if not self._bars.console.is_terminal and (self._steps % LINE_EVERY == 0 or self._steps == self._of):
            passed = time.monotonic() - self._begun
            self._bars.console.print(f"  {self._steps} of {self._of}, {passed:.0f} s")

    def wrong(self, line: str) -> None:
        self._bars.console.print(f"[red]wrong[/]  {escape(line)}")

    def _end(self) -> None:
        if self._task is not None:
            self._bars.update(self._task, completed=self._steps, description=self._title)


def show(score: Score, console: Console) -> None:
    """Print the score, and once more what is wrong: some readers see the end alone."""
    for line in [*score.problems, *(line for part in score.parts for line in part.wrong)]:
        console.print(f"[red]wrong[/]  {escape(line)}")
    for line in score.rules.wrong if score.rules else []:
        console.print(f"[yellow]open[/]   {escape(line)}")
    table = Table(box=None, pad_edge=False)
    for title in ("", "right", "of"):
        table.add_column(title, justify="left" if not title else "right")
    for part in [*score.parts, *([score.rules] if score.rules else [])]:
        table.add_row(part.title, str(part.right), str(part.of))
    console.print(table)
    console.print(f"cases that were never seen to catch a bug: {len(score.idle)} of {score.cases}")
    console.print("the suite is as it has to be" if score.is_good else "something is wrong")
