"""The output of commands: tables and lines for people, JSON for programs."""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import click
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from leaseq.cli import audit
from leaseq.cli.exit_codes import CommandError, ExitCode
from leaseq.formatting import plain

T = TypeVar("T")

_ABOUT = "leaseq.cli.output.about"

COLUMN_GAP = 3
"""Spaces between two columns of a table."""

MAX_FITTED_ROWS = 500
"""Rows of a table that is fitted to the width of a terminal, at most."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
"""The option of all commands that answer something; the parameter is `as_json`."""


def _as_dict(value: Any) -> dict[str, Any]:
    return dataclasses.asdict(value)


@contextlib.contextmanager
def about(queue: str, group: str) -> Iterator[None]:
    """Print JSON as records that name the queue: the command runs on several."""
    meta = click.get_current_context().meta
    meta[_ABOUT] = {"queue": queue, "group": group}
    try:
        yield
    finally:
        del meta[_ABOUT]


def document(value: Any) -> None:
    """Print one JSON document."""
    if _ABOUT in click.get_current_context().meta:
        record(value)
    else:
        click.echo(json.dumps(value, indent=2))


def record(value: Any) -> None:
    """Print one JSON line, at once, so that a reader has it while the command goes on."""
    queue = click.get_current_context().meta.get(_ABOUT)
    click.echo(json.dumps(value if queue is None else queue | value))


def line(text: str) -> None:
    """Print a line for people."""
    click.echo(plain(text))


def answer(record_: dict[str, Any], text: str, *, no: str = "", as_json: bool) -> None:
    """Print what was answered. Where that is a no, which `no` explains, raises CommandError."""
    if as_json:
        record(record_)
    elif not no:
        line(text)
    if no:
        raise CommandError("" if as_json else no)


def answers(ids: Iterable[str], given: Iterable[bool], yes: str, no: str, *, as_json: bool) -> int:
    """Print what was answered for each id; answer the exit code, which is a no unless all are a yes."""
    code, changed = ExitCode.DONE, 0
    for item_id, answer in zip(ids, given, strict=True):
        changed += answer
        code = code if answer else ExitCode.NO
        if as_json:
            record({"id": item_id, yes: answer})
        else:
            line(f"{yes if answer else no} {item_id}")
    audit.changed(changed)
    return code


def counted(count: int, what: str, *, as_json: bool) -> int:
    """Print how many items something was done to; answer the exit code. None is a no: raises CommandError."""
    audit.changed(count)
    no = "" if count else f"nothing was {what}"
    answer({what: count}, f"{count} {what}", no=no, as_json=as_json)
    return ExitCode.DONE


def report(value: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Print what a command did: a dataclass, or the same in lines for people."""
    if as_json:
        document(dataclasses.asdict(value))
        return
    for text in lines:
        line(text)


def print_list(
    found: Iterable[T],
    row: Callable[[T], Sequence[object]],
    columns: Sequence[str],
    *,
    right_aligned: Sequence[str] = (),
    as_dict: Callable[[T], Any] = _as_dict,
    nothing: str,
    as_json: bool,
) -> None:
    """Print what was found: each as a JSON line, or as a row of a table. Raises CommandError where that is nothing."""
    count = 0
    if as_json:
        for count, each in enumerate(found, 1):  # noqa: B007 (how many there were)
            record(as_dict(each))
    elif rows := [row(each) for each in found]:
        count = len(rows)
        show_rows(columns, rows, right_aligned=right_aligned)
    if not count:
        raise CommandError("" if as_json else nothing)


def console(*, stderr: bool = False) -> Console:
    """Where tables go: no colour and no width limit to lose text by, where it is not a terminal."""
    made = Console(stderr=stderr, emoji=False, highlight=False)
    if not made.is_terminal:
        made.width = 10_000
    return made


def show(renderable: RenderableType) -> None:
    """Print a table for people. rich writes into a string only, because it has another exit code for a closed pipe."""
    made = console()
    with made.capture() as drawn:
        made.print(renderable)
    lines = (line.rstrip(" ") for line in drawn.get().split("\n"))
    click.echo("\n".join(lines), nl=False, color=True)


def show_rows(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, right_aligned: Sequence[str] = ()
) -> None:
    """Print a table for people. It is fitted to the width of a terminal, unless it is long: rich takes 1 ms for a row."""
    if len(rows) <= MAX_FITTED_ROWS and console().is_terminal:
        show(table(columns, rows, right_aligned=right_aligned))
        return
    cells = [list(columns), *([_plain_cell(cell) for cell in row] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    right = [name in right_aligned for name in columns]
    click.echo("\n".join(_line(row, widths, right) for row in cells))


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        " " * (width - cell_len(cell)) + cell if is_right else cell + " " * (width - cell_len(cell))
        for cell, width, is_right in zip(row, widths, right, strict=True)
    )
    return (" " * COLUMN_GAP).join(padded).rstrip(" ")


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, right_aligned: Sequence[str] = ()
) -> Table:
    """A table without lines. Cells that are str have their control characters written out; others are rich's own."""
    made = Table(box=None, padding=(0, COLUMN_GAP, 0, 0), pad_edge=False, header_style="dim")
    for column in columns:
        made.add_column(column, justify="right" if column in right_aligned else "left", overflow="fold")
    for row in rows:
        made.add_row(*(_cell(cell) for cell in row))
    return made


def facts(pairs: Iterable[tuple[str, object]]) -> Table:
    """Names and values, one pair a line."""
    made = Table.grid(padding=(0, 3, 0, 0))
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        made.add_row(name, _cell(value))
    return made


def _cell(cell: object) -> Any:
    return Text(plain(cell)) if isinstance(cell, str) else Text(str(cell)) if isinstance(cell, int) else cell


def _plain_cell(cell: object) -> str:
    return plain(cell) if isinstance(cell, str) else str(cell)
