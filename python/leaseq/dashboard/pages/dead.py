"""The dead letters of a queue, grouped by error; or those of one group."""

from collections.abc import Sequence

from starlette.responses import Response

from leaseq.dashboard import dead_groups
from leaseq.dashboard.dead_groups import DeadLetters
from leaseq.dashboard.purge_plans import PurgePlan
from leaseq.dashboard.site import Site, Visit
from leaseq.dashboard.templates import paging
from leaseq.keys import RegisteredQueue

PAGE_SIZE = 50
"""Groups, or items of a group, on a page."""

SHARED_SECS = 5.0
"""Seconds for which viewers of the same dead letters share them: many are read."""


def dead(site: Site, visit: Visit) -> Response:
    """Return the groups of dead letters, or with `error` the items of one."""
    asked, text, number = visit.queue(), visit.text("text").strip(), visit.number("page")
    plans = site.pending(asked)
    letters = site.reads.get(
        ("dead", asked, text, tuple(plan.id for plan in plans)),
        SHARED_SECS,
        lambda: _read(site, asked, text, plans),
    )
    error = visit.request.query_params.get("error")
    entries = letters.groups if error is None else letters.group(error).items
    pages = max(1, -(-len(entries) // PAGE_SIZE))
    number = min(number, pages)
    return visit.render(
        "dead",
        queue=asked,
        letters=letters,
        plans=plans,
        text=text,
        error=error,
        entries=entries[(number - 1) * PAGE_SIZE : number * PAGE_SIZE],
        count=len(entries),
        links=paging(number, pages),
        number=number,
    )


def _read(site: Site, asked: RegisteredQueue, text: str, plans: Sequence[PurgePlan]) -> DeadLetters:
    with site.source.queue(asked) as opened:
        return dead_groups.read(opened, text, plans)
