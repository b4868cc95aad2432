"""Pieces of a page: its style, tables, sections."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.15rem .6rem;border-bottom:1px solid #ddd;"
    "text-align:right}td+td{white-space:nowrap}td:first-child,th:first-child{text-align:left}.no{color:#b00020;font-weight:600}"
    "svg{max-width:100%;height:auto}h2{margin-top:2.2rem}"
)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Its first column is on the left, the others on the right."""
    lines = ["<tr>" + "".join(f"<th>{escape(cell)}" for cell in head)]
    lines += ["<tr>" + "".join(f"<td>{escape(cell)}" for cell in row) for row in rows]
    return "<table>" + "\n".join(lines) + "</table>"


def section(title: str, note: str, body: str) -> str:
    """A heading, what is to be known, and what is shown."""
    return f"<h2>{escape(title)}</h2><p>{escape(note)}</p>{body}"
