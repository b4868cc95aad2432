"""The search for an id in all queues."""

from starlette.responses import Response

from leaseq.dashboard import search as id_search
from leaseq.dashboard.site import Site, Visit

SHARED_SECS = 2.0
"""Seconds for which viewers of the same search share its answer."""


def search(site: Site, visit: Visit) -> Response:
    """Return the items of an id, in the queues of a group or in all."""
    item_id, group = visit.text("id").strip(), visit.text("group").strip()
    result = None
    if item_id:
        queues = [each.queue for each in site.reader.records() if not group or each.queue.group == group]
        result = site.reads.get(
            ("search", item_id, group),
            SHARED_SECS,
            lambda: id_search.find(site.source, queues, item_id),
        )
    return visit.render("search", id=item_id, group=group, result=result)
