"""What commands write to stdout: tables and lines for people, JSON for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from leaseq.cli.ends import Code, Refusal
from leaseq.cli.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
"""The option of all commands that answer something; the parameter is `as_json`."""


def document(value: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(value, indent=2))


def record(value: Any) -> None:
    """Print one JSON line, at once, so that a reader has it while the command goes on."""
    click.echo(json.dumps(value))


def line(text: str) -> None:
    """Print a line for people."""
    click.echo(plain(text))


def counted(count: int, what: str, *, as_json: bool) -> int:
    """Print how many items something was done to; answer the exit code, which is a no for none. Raises Refusal."""
    if as_json:
        record({what: count})
    elif count:
        line(f"{count} {what}")
    else:
        raise Refusal(f"nothing was {what}")
    return Code.DONE if count else Code.NO


def console(*, stderr: bool = False) -> Console:
    """Where tables go: no colour and no width limit to lose text by, where it is not a terminal."""
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal:
        made.width = 10_000
    return made


def show(picture: RenderableType) -> None:
    """Print a table for people. rich writes it itself only into a string: it has an exit code of its own for a closed pipe."""
    made = console()
    with made.capture() as drawn:
        made.print(picture)
    lines = (line.rstrip(" ") for line in drawn.get().split("\n"))
    click.echo("\n".join(lines), nl=False, color=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> Table:
    """A table without lines. Cells that are str have their control characters written out; others are rich's own."""
    made = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="dim")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
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
