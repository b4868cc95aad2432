"""What a run shows in the terminal: progress, each case that is not right, and the levels at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from leaseq_conformance.cases import Outcome
from leaseq_conformance.levels import claim, levels

if TYPE_CHECKING:
    from types import TracebackType

    from leaseq_conformance.cases import Case
    from leaseq_conformance.runner import Result, Run

LAST_LINES: Final = 25
"""How much of a transcript is shown; the reports have all of it."""
COLOURS: Final = {
    Outcome.FAIL: "red",
    Outcome.ERROR: "red",
    Outcome.UNKNOWN: "yellow",
    Outcome.SKIP: "yellow",
}


class Terminal:
    """Shows a run while it goes on; a `with` block."""

    def __init__(self, cases: int) -> None:
        self.console = Console(highlight=False)
        columns = (BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        self._progress = Progress(*columns, console=self.console, transient=True)
        self._task = self._progress.add_task("", total=cases)

    def begin(self, case: Case) -> None:
        """A case is run now."""
        self._progress.update(self._task, description=case.name)

    def told(self, result: Result) -> None:
        """A case is over."""
        self._progress.advance(self._task)
        verdict = result.verdict
        if result.known and verdict.outcome is Outcome.PASS:
            self.console.print(f"[red]fixed[/]  {result.case.name}: listed as a known failure, and passes")
        elif verdict.outcome in COLOURS and not result.known:
            colour = COLOURS[verdict.outcome]
            self.console.print(
                f"[{colour}]{verdict.outcome.value:7}[/] {result.case.name}: {escape(verdict.message)}"
            )
            if verdict.outcome is not Outcome.SKIP:
                for line in (*verdict.difference.splitlines(), *verdict.transcript[-LAST_LINES:]):
                    self.console.print(f"       {escape(line[:300])}", style="dim", soft_wrap=True)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


def show_levels(run: Run) -> None:
    """The table of levels, and the closing line."""
    console = Console(highlight=False)
    console.print(f"\n[bold]{run.client}[/] on {run.server}\n")
    table = Table(box=None, pad_edge=False)
    for heading in ("level", "right", "claim"):
        table.add_column(heading)
    for level in levels(run):
        colour = "green" if level.holds else "dim" if not level.declared else "red"
        table.add_row(level.name, f"{level.right}/{level.cases}", f"[{colour}]{level.word}[/]")
    console.print(table)
    right = sum(result.right for result in run.results)
    console.print(f"\n{claim(run)}: {right} of {len(run.results)} cases right")
