"""The live workers, and what they hold."""

from starlette.responses import Response

from leaseq.dashboard.site import Site, Visit
from leaseq.worker.registry import live_workers

SHARED_SECS = 2.0
"""Seconds for which viewers share the list."""


def workers(site: Site, visit: Visit) -> Response:
    """Return the workers; the worker that holds an item for longest is first."""
    found = site.reads.get("workers", SHARED_SECS, lambda: live_workers(site.source.client))
    text = visit.text("text").strip()
    chosen = [
        each
        for each in found
        if not text or text in each.id or any(text in f"{group}:{name}" for group, name in each.queues)
    ]
    chosen.sort(key=lambda each: max((item.seconds for item in each.items), default=0.0), reverse=True)
    return visit.render("workers", workers=chosen, known=len(found), text=text)
