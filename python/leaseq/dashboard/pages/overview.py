"""The overview: all queues."""

from starlette.responses import Response

from leaseq.dashboard import purge_plans, queue_list
from leaseq.dashboard.history import MAX_SAMPLES
from leaseq.dashboard.reader import QueueRecord
from leaseq.dashboard.site import Site, Visit
from leaseq.dashboard.templates import paging

SHARED_SECS = 1.0
"""Seconds for which viewers of the same list share it."""


def overview(site: Site, visit: Visit) -> Response:
    """Return the queues that the filter leaves, in the order that was asked for."""
    text, show = visit.text("text").strip(), visit.choice("show", queue_list.SHOWN)
    sort, number = visit.choice("sort", queue_list.ORDERS), visit.number("page")
    page = site.reads.get(
        ("overview", text, show, sort, number),
        SHARED_SECS,
        lambda: queue_list.page_of(_listed(site), text=text, show=show, sort=sort, page=number),
    )
    site.reader.view([record.queue for record in page.records])
    return visit.render(
        "overview",
        page=page,
        plans=site.pending(),
        links=paging(page.page, page.pages),
        text=text,
        show=show,
        shows=list(queue_list.SHOWN),
        sort=sort,
        error=site.reader.error,
        has_read=site.reader.has_read,
        slots=MAX_SAMPLES - 1,
    )


def _listed(site: Site) -> list[QueueRecord]:
    """Return all queues but that of the planned purges, which are shown above the list."""
    return [record for record in site.reader.records() if record.queue != purge_plans.QUEUE]
