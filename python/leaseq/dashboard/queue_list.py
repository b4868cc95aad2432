"""The overview: queues in an order, those that a filter leaves, page by page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from leaseq.dashboard.reader import QueueRecord
from leaseq.results import QueueStats

PAGE_SIZE: Final = 50
"""Queues on a page."""

_NUMBERS: Final[dict[str, Callable[[QueueRecord, QueueStats], float]]] = {
    "ready": lambda _, stats: stats.ready,
    "delayed": lambda _, stats: stats.delayed,
    "leased": lambda _, stats: stats.leased,
    "dead": lambda _, stats: stats.dead,
    "waited": lambda _, stats: stats.waited if stats.ready else 0,
    "added": lambda record, _: record.rate("added"),
    "completed": lambda record, _: record.rate("completed"),
}
"""The columns by which queues can be sorted, the greatest number first."""

ORDERS: Final = ("name", *_NUMBERS)

SHOWN: Final[dict[str, Callable[[QueueStats], Any]]] = {
    "all": lambda _: True,
    "dead": lambda stats: stats.dead,
    "paused": lambda stats: stats.paused,
    "overdue": lambda stats: stats.overdue,
    "busy": lambda stats: stats.ready or stats.delayed or stats.leased,
}
"""The kinds of queues that can be shown alone."""


@dataclass(frozen=True, slots=True)
class QueuePage:
    """One page of the overview.

    Attributes:
        records: its queues.
        total: how many queues the filter leaves, on all pages.
        known: how many queues there are.
        unread: how many of them have not been read yet.
        page: the number of this page, from 1.
        pages: the number of pages.
    """

    records: Sequence[QueueRecord]
    total: int
    known: int
    unread: int
    page: int
    pages: int


def page_of(records: Sequence[QueueRecord], *, text: str, show: str, sort: str, page: int) -> QueuePage:
    """Return a page of the queues whose group or name has this text. Queues that are not read yet come last."""
    chosen = [record for record in records if _fits(record, text.lower(), show)]
    if number := _NUMBERS.get(sort):
        chosen.sort(key=lambda each: -1.0 if each.stats is None else number(each, each.stats), reverse=True)
    pages = max(1, -(-len(chosen) // PAGE_SIZE))
    page = min(max(1, page), pages)
    return QueuePage(
        chosen[(page - 1) * PAGE_SIZE : page * PAGE_SIZE],
        len(chosen),
        len(records),
        sum(record.stats is None for record in records),
        page,
        pages,
    )


def _fits(record: QueueRecord, text: str, show: str) -> bool:
    if text and text not in f"{record.queue.group}:{record.queue.name}".lower():
        return False
    return show == "all" or (record.stats is not None and bool(SHOWN[show](record.stats)))
