"""Output of a run: progress, each case that did not pass, and the levels at the end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from leaseq_conformance.conformance_levels import claim, levels
from leaseq_conformance.verdict import Outcome

if TYPE_CHECKING:
    from types import TracebackType

    from leaseq_conformance.cases import Case
    from leaseq_conformance.runner import Result, Run

TRANSCRIPT_LINES: Final = 25
"""The number of lines of a transcript that are printed. The reports have all of them."""
COLOURS: Final = {
    Outcome.FAIL: "red",
    Outcome.ERROR: "red",
    Outcome.UNKNOWN: "yellow",
    Outcome.SKIP: "yellow",
}


def progress_bar(console: Console, total: int) -> Progress:
    """Progress of long work; nothing if the output is no terminal."""
    columns = (BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    progress.add_task("", total=total)
    return progress


class Terminal:
    """Shows a run while it goes on, in a `with` block; with `quiet` on stderr, because stdout is for JSON."""

    def __init__(self, cases: int, *, quiet: bool = False) -> None:
        self.console = Console(emoji=False, highlight=False, stderr=quiet)
        self._progress = progress_bar(self.console, cases)
        (self._task,) = self._progress.task_ids

    def started(self, case: Case) -> None:
        """A case is run now."""
        self._progress.update(self._task, description=case.name)

    def finished(self, result: Result) -> None:
        """A case has been run."""
        self._progress.advance(self._task)
        verdict, name = result.verdict, result.case.name
        if result.known and verdict.outcome is Outcome.PASS:
            self._line(
                f"[red]fixed[/]   {name}: listed as a known failure, but it passes: take it off the list"
            )
        elif verdict.outcome in COLOURS and not result.known and not _is_unclaimed(result):
            colour = COLOURS[verdict.outcome]
            self._line(f"[{colour}]{verdict.outcome.value:7}[/] {name}: {escape(verdict.message)}")
            if verdict.outcome is not Outcome.SKIP:
                self._details(result)

    def _details(self, result: Result) -> None:
        verdict = result.verdict
        parts = {
            "what differs in the keys:": verdict.difference.splitlines(),
            "the last lines that the adapter wrote to stderr:": verdict.stderr,
            "the end of the transcript:": verdict.transcript[-TRANSCRIPT_LINES:],
        }
        for heading, lines in parts.items():
            for line in (heading, *(f"  {line[:300]}" for line in lines)) if lines else ():
                self._line(f"        [dim]{escape(line)}[/]")

    def _line(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


def _is_unclaimed(result: Result) -> bool:
    return result.verdict.message.startswith("the client does not claim ")


def show_summary(run: Run) -> None:
    """Print the table of levels and the counts of the outcomes."""
    console = Console(emoji=False, highlight=False)
    console.print(f"\n[bold]{escape(run.client)}[/] on {run.server}\n")
    if run.all_cases:
        table = Table(box=None, pad_edge=False)
        for heading in ("level", "passed", "run", "of", "status"):
            table.add_column(heading, justify="right" if heading in {"passed", "run", "of"} else "left")
        for level in levels(run):
            if run.filtered and not level.ran:
                continue
            numbers = (str(level.passed), str(level.ran), str(level.cases)) if level.claimed else ("", "", "")
            colour = (
                "green"
                if level.holds
                else "dim"
                if not level.claimed
                else "red"
                if level.passed < level.ran
                else ""
            )
            status = f"[{colour}]{level.status}[/]" if colour else level.status
            table.add_row(level.name, *numbers, status)
        console.print(table)
        console.print(f"\n{claim(run)}: {_counts(run)}", soft_wrap=True)
    else:
        console.print(_counts(run), soft_wrap=True)


def _counts(run: Run) -> str:
    passed, claimed = sum(result.passed for result in run.claimed), len(run.claimed)
    outcomes = Counter(result.verdict.outcome.value for result in run.claimed if not result.known)
    others = [f"{count} {name}" for name, count in sorted(outcomes.items()) if name != "pass"]
    known = sum(result.known for result in run.claimed)
    others += [f"{known} known failures"] if known else []
    text = f"{passed} of {claimed} cases passed" + (f" ({', '.join(others)})" if others else "")
    unclaimed = len(run.results) - claimed
    return (
        f"{text}; {unclaimed} skipped, which need capabilities that the client does not claim"
        if unclaimed
        else text
    )
