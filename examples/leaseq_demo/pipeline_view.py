"""The pipelines of the demo side by side: live in a terminal, else a line now and then; a table at the end."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from leaseq_demo.pipeline import PipelineOptions
from leaseq_demo.pipeline_result import PipelineResult, Standing
from leaseq_demo.stage import LAST, STAGES

View = Callable[[Sequence[Standing]], None]
_LINE_SECS: Final = 1.0
_FRAMES: Final = 10  # a second


def title(options: PipelineOptions) -> str:
    """Return what the demo is about to do."""
    return (
        f"{options.items} orders go through {len(STAGES)} stages: {', '.join(STAGES)}."
        f" {options.kills} workers and cleaners are killed (kill -9).\n"
        "Each stage completes an order and adds it to the next one: in one step (hand-off), and beside it in two."
    )


def view(console: Console) -> AbstractContextManager[View]:
    """The view that suits where the output goes."""
    return _Screen(console) if console.is_interactive else nullcontext(_Lines(console))


class _Screen(Live):
    """A picture that moves."""

    def __init__(self, console: Console) -> None:
        super().__init__(console=console, refresh_per_second=_FRAMES, transient=True)

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def __call__(self, standings: Sequence[Standing]) -> None:
        self.update(_table(standings))


class _Lines:
    """Lines, for a pipe or a log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next = 0.0

    def __call__(self, standings: Sequence[Standing]) -> None:
        seconds = max(each.seconds for each in standings)
        if seconds >= self._next:
            self._next = seconds + _LINE_SECS
            summary = "; ".join(
                f"{_name(each)}: {each.arrived} {LAST}, {each.kills.total()} kills" for each in standings
            )
            self._console.print(f"{seconds:5.1f} s  {summary}", soft_wrap=True)


def report(console: Console, result: PipelineResult) -> None:
    """The table at the end, what it means, and what is not as promised."""
    standings = (result.handoff, result.then_add)
    console.print(Group("", _table(standings), ""))
    console.print(
        f"With a hand-off {result.handoff.arrived} of {result.items} orders were {LAST}, each once. Without it"
        f" {result.then_add.lost} are gone: their worker died between complete and add.",
        soft_wrap=True,
    )
    console.print(Text(f"{result.handoff.seconds:.1f} s on {result.server}", "dim"))
    for problem in result.problems():
        console.print(Text(f"Not as promised: {problem}.", "bold red"))


def _table(standings: Sequence[Standing]) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("")
    for each in standings:
        table.add_column(_name(each), justify="right")
    for stage in STAGES:
        table.add_row(stage, *(_stage(each, stage) for each in standings))
    table.add_row(LAST, *(Text(str(each.arrived), "green") for each in standings))
    table.add_row("lost", *(Text(str(each.lost), "bold red" if each.lost else "green") for each in standings))
    table.add_row("killed", *(str(each.kills.total()) for each in standings))
    return table


def _name(standing: Standing) -> str:
    return "hand-off" if standing.handoff else "complete, then add"


def _stage(standing: Standing, stage: str) -> str:
    if not standing.stats:
        return ""
    stats = standing.stats[stage]
    here = f"{stats.items} here, " if stats.items else ""
    return f"{here}{stats.completed} done"
