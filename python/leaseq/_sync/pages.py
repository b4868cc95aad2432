# Generated from _aio/pages.py by tools/unasync.py: do not edit.
"""Lists of items, page by page, while others move them."""

import math
import sys
from collections.abc import Callable, Iterator

from leaseq._scripts import MAX_ENTRIES
from leaseq.results import ListedItem, Page

ListPage = Callable[..., Page]
"""`list_items` of a queue, with a state."""


def pages(list_page: ListPage, offset: int = 0, max_items: int = sys.maxsize) -> Iterator[list[ListedItem]]:
    """The pages of a list, `max_items` items in all. While others work, an item may be missed or met twice."""
    while max_items > 0 and (page := (list_page(offset=offset, limit=min(MAX_ENTRIES, max_items))).items):
        yield page
        offset, max_items = offset + len(page), max_items - len(page)


def remove_listed(list_page: ListPage, take: Callable[[list[str]], int], until: float = math.inf) -> int:
    """Remove entries with a time up to `until` from a list; return how many. `take` returns how many it removed.

    Other programs may remove entries at the same time, which moves the pages: so pass again, until a pass finds none.
    """
    done = 0
    while True:
        page = list_page(limit=MAX_ENTRIES)
        before, removed, offset = page.total, 0, 0
        while ids := [entry.id for entry in page.items if entry.time <= until]:
            count = take(ids)
            removed += count
            offset += len(ids) - count
            page = list_page(offset=offset, limit=MAX_ENTRIES)
        done += removed
        if not removed and (until == math.inf or page.total >= before):
            return done
