"""Export: all items of a queue as lines, page by page."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from leaseq._sync.pages import pages
from leaseq._sync.queue import WorkQueue
from leaseq.flows import chunks
from leaseq.results import COUNTERS, ListState, QueueStats
from leaseq.transfer import line_format, records

STATES: Final[tuple[ListState, ...]] = ("delayed", "ready", "leased", "dead")
"""In the order in which items move: an item that moves meanwhile is met twice rather than missed."""


def export_queue(queue: WorkQueue) -> Iterator[line_format.Line]:
    """The lines of an export: the header, each item in its order, the end. Each is a dict, to be written as JSON.

    Changes nothing, and holds no more than a page of items. While the queue is used, an item that moves on can be on
    two lines or on none; the end says whether anything moved (LQ-READ-5). Raises FormatError and those of the server.
    """
    before = queue.stats()
    yield line_format.header(queue.name, queue.group, before)
    count = 0
    for state in STATES:
        for entries in pages(partial(queue.list_items, state)):
            for line in _page(queue, [entry.id for entry in entries]):
                count += 1
                yield line
    yield line_format.end(count, changed=_moved(before) != _moved(queue.stats()))


def _page(queue: WorkQueue, ids: list[str]) -> Iterator[line_format.Line]:
    """The lines of items; those that are gone by now have none."""
    there = [info for info in queue.inspect_items(ids) if info.state != "absent"]
    for infos in chunks(there, lambda info: info.size):
        found = records.read(queue, [info.id for info in infos])
        for info, content in zip(infos, found, strict=True):
            if content is not None:
                yield line_format.item_line(info, content)


def _moved(stats: QueueStats) -> tuple[int, ...]:
    """Return what grows whenever an item comes, goes or moves."""
    return tuple(getattr(stats, name) for name in COUNTERS)
