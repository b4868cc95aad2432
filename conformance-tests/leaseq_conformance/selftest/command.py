"""The command `leaseq-conformance selftest`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table

from leaseq.errors import EmbeddedServerError
from leaseq_conformance.options import server_options
from leaseq_conformance.rules import core_rules, rules
from leaseq_conformance.selftest.score import PARTS, Score, selftest
from leaseq_conformance.server import ServerError, open_server

if TYPE_CHECKING:
    from rich.progress import TaskID


SAID_EACH: Final = 25
"""Where there is no terminal to show a bar in, one line for so many steps."""


@click.command("selftest")
@click.option("--quick", is_flag=True, help="each bug against its own case only, and no mechanical mutants")
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(PARTS),
    help="this part only; may be given several times",
)
@server_options
def selftest_command(quick: bool, parts: tuple[str, ...], url: str | None, program: str | None) -> None:
    """Check the suite itself: every seeded bug must fail the case that is to catch it.

    Exits 0 at a score of 100 % of what was looked at, and otherwise 1. With a server of its own several bugs are looked at
    at a time.
    """
    console = Console(highlight=False)
    try:
        server = open_server(url, program)
    except (ServerError, EmbeddedServerError) as error:
        raise click.UsageError(str(error)) from error
    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    with server, Bars(*columns, console=console, transient=True) as bars:
        score = selftest(server, _Shown(bars), quick=quick, parts=parts or PARTS)
    show(score, console)
    sys.exit(0 if score.whole else 1)


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
        if not self._bars.console.is_terminal and (self._steps % SAID_EACH == 0 or self._steps == self._of):
            passed = time.monotonic() - self._begun
            self._bars.console.print(f"  {self._steps} of {self._of}, {passed:.0f} s")

    def wrong(self, line: str) -> None:
        self._bars.console.print(f"[red]wrong[/]  {escape(line)}")

    def _end(self) -> None:
        if self._task is not None:
            self._bars.update(self._task, completed=self._steps, description=self._title)


def show(score: Score, console: Console) -> None:
    """Print the score; what is wrong was said on the way."""
    table = Table(box=None, pad_edge=False)
    for title in ("", "right", "of"):
        table.add_column(title, justify="left" if not title else "right")
    for part in score.parts:
        table.add_row(part.title, str(part.right), str(part.looked_at))
    table.add_row("rules that a caught bug broke", str(len(score.covered)), str(len(rules())))
    core = core_rules()
    table.add_row("of these of Core", str(sum(rule in score.covered for rule in core)), str(len(core)))
    console.print(table)
    # never rounded up to 100
    console.print(f"score: {int(score.percent * 10) / 10:g} %")
