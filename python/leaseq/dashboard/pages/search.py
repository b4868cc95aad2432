"""The search: for an id in all queues, for the function of jobs, for a text in dead letters."""

from typing import Final

from starlette.responses import Response

from leaseq.dashboard import scan
from leaseq.dashboard import search as id_search
from leaseq.dashboard.reader import QueueRecord
from leaseq.dashboard.site import Site, Visit

SHARED_SECS: Final = 2.0
"""Seconds for which viewers of the same search for an id share its answer."""

SCAN_SHARED_SECS: Final = 10.0
"""Seconds for which viewers of the same search through items share its answer."""

KINDS: Final = {"id": "id", "function": "function of jobs", "text": "text in dead letters"}
"""The kinds of search, and their words."""


def search(site: Site, visit: Visit) -> Response:
    """Return what was found, and how far the search looked."""
    kind, group, name = visit.choice("for", KINDS), visit.text("group").strip(), visit.text("queue").strip()
    text = visit.text("id").strip()
    queues = [
        each
        for each in site.reader.records()
        if (not group or each.queue.group == group) and (not name or each.queue.name == name)
    ]
    result = found = None
    if text and kind == "id":
        named = [each.queue for each in queues]
        result = site.reads.get(
            ("search", text, group, name), SHARED_SECS, lambda: id_search.find(site.source, named, text)
        )
    elif text:
        in_data = visit.visitor.may("data")
        found = site.reads.get(
            (kind, text, group, name, in_data),
            SCAN_SHARED_SECS,
            lambda: _scan(site, queues, kind, text, in_data=in_data),
        )
    return visit.render(
        "search",
        id=text,
        kind=kind,
        kinds=KINDS,
        group=group,
        queue=name,
        result=result,
        scan=found,
        in_data=visit.visitor.may("data"),
    )


def _scan(site: Site, queues: list[QueueRecord], kind: str, text: str, *, in_data: bool) -> scan.Scan:
    if kind == "function":
        return scan.jobs(site.source, queues, text)
    return scan.dead_letters(site.source, queues, text, in_data=in_data)
