"""The cleaner's work: what waits for it, and what was done since each queue exists."""

from typing import Final

from starlette.responses import Response

from leaseq.dashboard.site import Site, Visit
from leaseq.dashboard.templates import paging

PAGE_SIZE: Final = 50
"""Queues on a page."""

DONE: Final = ("reclaimed", "promoted", "expired", "dropped")
"""The counters of the cleaner's work. Workers that wait do a part of it."""


def cleaner(site: Site, visit: Visit) -> Response:
    """Return the queues with overdue leases and due items, the most first. Asks the server nothing more."""
    records = [(record, record.stats) for record in site.reader.records() if record.stats is not None]
    waiting = [(record, stats) for record, stats in records if stats.overdue or stats.due]
    waiting.sort(key=lambda each: each[1].overdue + each[1].due, reverse=True)
    pages = max(1, -(-len(waiting) // PAGE_SIZE))
    number = min(visit.number("page"), pages)
    shown = waiting[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
    site.reader.view([record.queue for record, _ in shown])
    return visit.render(
        "cleaner",
        rows=shown,
        waiting=len(waiting),
        known=len(records),
        links=paging(number, pages),
        error=site.reader.error,
        done={name: sum(getattr(stats, name) for _, stats in records) for name in DONE},
    )
