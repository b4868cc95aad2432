"""The progress of a long command, on stderr if that is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from leaseq.cli import output


@contextmanager
def progress(total: int | None) -> Iterator[Callable[[int, str], None]]:
    """A bar of `total` steps (None: unknown); call what it gives with the steps done so far and a text."""
    console = output.console(stderr=True)
    if not console.is_terminal:  # rich before 14.3 ends also a bar that it does not show with a blank line
        yield lambda *_: None
        return
    columns = (BarColumn(), TextColumn("{task.fields[text]}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total, text="")
        yield lambda done, text: bar.update(task, completed=done, text=text)
