"""A queue: its states, its last hour, its items by state."""

from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from leaseq import QueueStats
from leaseq.dashboard.history import MAX_SAMPLES, QueueHistory
from leaseq.dashboard.site import Site, Visit
from leaseq.dashboard.templates import paging
from leaseq.keys import RegisteredQueue
from leaseq.results import STATES, ItemInfo, ListedItem

PAGE_SIZE: Final = 50
"""Items on a page."""

SHARED_SECS: Final = 2.0
"""Seconds for which viewers of the same list share it."""

LISTS: Final = {
    "ready": "ready",
    "delayed": "due",
    "leased": "lease ends",
    "dead": "died",
    "kept": "forgotten",
}
"""The lists of items, and what their time means."""

Rows = Sequence[ItemInfo | ListedItem]


def queue(site: Site, visit: Visit) -> Response:
    """Return a queue and one page of its items in a state."""
    asked, state, number = visit.queue(), visit.choice("state", LISTS), visit.number("page")
    backward = visit.text("order") == "last"
    stats, total, rows = site.reads.get(
        ("queue", asked, state, number, backward),
        SHARED_SECS,
        lambda: _read(site, asked, state, number, backward=backward),
    )
    site.reader.view([asked])
    record = site.reader.record(asked)
    pages = max(1, -(-total // PAGE_SIZE))
    return visit.render(
        "queue",
        queue=asked,
        stats=stats,
        plans=site.pending(asked),
        states=STATES,
        lists=list(LISTS),
        state=state,
        time_of=LISTS[state],
        rows=rows,
        total=total,
        number=min(number, pages),
        links=paging(min(number, pages), pages),
        order="last" if backward else None,
        history=record.history if record else QueueHistory(),
        record=record,
        slots=MAX_SAMPLES - 1,
    )


def _read(
    site: Site, asked: RegisteredQueue, state: str, number: int, *, backward: bool
) -> tuple[QueueStats, int, Rows]:
    """Read the stats and a page of items: in three round trips."""
    offset = (number - 1) * PAGE_SIZE
    list_state = next(each for each in (*STATES, "kept") if each == state)
    with site.source.queue(asked) as opened:
        stats = opened.stats()
        page = opened.list_items(list_state, offset=offset, limit=PAGE_SIZE, backward=backward)
        rows: Rows = page.items
        if state != "kept":
            infos = opened.inspect_items([each.id for each in page.items])
            rows = [info for info in infos if info.state == state]
    return stats, page.total, rows
