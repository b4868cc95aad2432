"""The view of the demo: live in a terminal, else a line now and then; a table at the end."""

from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from leaseq_demo.result import POLL_SECS, Kill, Result
from leaseq_demo.run import Options, Progress

_LINE_SECS: Final = 1.0
_FRAMES: Final = 10  # a second


class View(Protocol):
    """Shows a run while it goes on."""

    def __call__(self, progress: Progress) -> None:
        """Show how it stands."""


def title(options: Options) -> str:
    """Return what the demo is about to do."""
    return (
        f"{options.workers} workers count the words of {options.items} pieces of text; "
        f"leases last {options.lease_secs:g} s.\n"
        f"{options.kills} times, one of them is killed (kill -9) while it holds a piece."
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

    def __call__(self, progress: Progress) -> None:
        self.update(_picture(progress))


def _picture(progress: Progress) -> RenderableType:
    total = progress.options.items
    bar = Table.grid(padding=(0, 2))
    bar.add_row(
        ProgressBar(total, progress.completed, width=26, complete_style="green"),
        f"{progress.completed:>{len(str(total))}} of {total} completed",
        f"{progress.waiting} waiting",
        f"{progress.leased} leased",
        f"{progress.seconds:.1f} s",
    )
    workers = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    workers.add_column("worker")
    workers.add_column("works on")
    for pid, item in progress.workers:
        workers.add_row(str(pid), item or Text("starting", "dim"))
    return Group(bar, "", workers, "", *([_kill_table(progress.kills)] if progress.kills else []))


def _kill_table(kills: list[Kill]) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for name in ("killed", "at", "while it held", "leased again by", "back after"):
        table.add_column(name, justify="right" if name in {"at", "back after"} else "left")
    for kill in kills:
        table.add_row(
            Text(str(kill.pid), "red"),
            f"{kill.time:.1f} s",
            kill.item,
            Text("no worker yet", "dim") if kill.recovery is None else Text(str(kill.again_by), "green"),
            "" if kill.recovery is None else f"{kill.recovery:.2f} s",
        )
    return table


class _Lines:
    """Lines, for a pipe or a log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next = 0.0
        self._killed = 0
        self._recovered: set[int] = set()

    def __call__(self, progress: Progress) -> None:
        for number, kill in enumerate(progress.kills):
            if number >= self._killed:
                self._killed += 1
                self._line(kill.time, f"killed worker {kill.pid}, which held {kill.item}")
            if kill.recovery is not None and number not in self._recovered:
                self._recovered.add(number)
                self._line(
                    progress.seconds,
                    f"{kill.item} leased again by {kill.again_by}, {kill.recovery:.2f} s after the kill",
                )
        if progress.seconds >= self._next or progress.completed == progress.options.items:
            self._next = progress.seconds + _LINE_SECS
            self._line(progress.seconds, f"{progress.completed} of {progress.options.items} completed")

    def _line(self, seconds: float, text: str) -> None:
        self._console.print(f"{seconds:5.1f} s  {text}", soft_wrap=True)


def report(console: Console, result: Result) -> None:
    """The table at the end, and what is not as promised."""
    if console.is_interactive:  # elsewhere the lines have told it
        console.print(_kill_table(result.kills))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    killed = len(result.kills)
    late = result.longest_recovery > result.recovery_bound
    bound = f"at most {result.recovery_bound:g} s: the lease and {POLL_SECS:g} s"
    if late:
        bound = f"more than {result.recovery_bound:g} s: is the machine busy?"
    table.add_row("items added", str(result.added))
    table.add_row(
        "completed exactly once", _good(result.completed_once, result.completed_once == result.items)
    )
    table.add_row("killed while holding one", str(killed))
    table.add_row("leased again after a death", _good(result.leased_again, result.leased_again == killed))
    table.add_row("longest recovery", _good(f"{result.longest_recovery:.2f} s", not late), Text(bound, "dim"))
    table.add_row(
        "answer",
        _good("right" if result.answer_right else "wrong", result.answer_right),
        Text(f"{result.words} words, as counted in one go" if result.answer_right else "", "dim"),
    )
    table.add_row("time", f"{result.seconds:.1f} s", Text(result.server, "dim"))
    console.print(Group("", table))
    for problem in result.problems():
        console.print(Text(f"Not as promised: {problem}.", "bold red"))


def _good(value: object, good: bool) -> Text:
    return Text(str(value), "green" if good else "bold red")
