# Generated from _aio/pages.py by python/unasync.py: do not edit.
"""Lists of items, page by page, while others move them."""

import math
import sys
from collections.abc import Callable, Iterator

from leaseq._scripts import MAX_ENTRIES
from leaseq.results import ListedItem, Page

Look = Callable[..., Page]
"""`list_items` of a queue, with a state."""


def pages(look: Look, offset: int = 0, most: int = sys.maxsize) -> Iterator[list[ListedItem]]:
    """The pages of a list, `most` items in all. While others work, an item may be missed or met twice."""
    while most > 0 and (page := (look(offset=offset, limit=min(MAX_ENTRIES, most))).items):
        yield page
        offset, most = offset + len(page), most - len(page)


def take_out(look: Look, take: Callable[[list[str]], int], until: float = math.inf) -> int:
    """Take out of a list what has a time up to `until`; answers how many in all. `take` answers how many it took out.

    Others may take out at the same time, which moves the pages: once more, until a pass finds none. With an end to the
    list, where a pass is short, until one finds none with nobody else at work.
    """
    done = 0
    while True:
        page = look(limit=MAX_ENTRIES)
        before, taken, offset = page.total, 0, 0
        while ids := [listed.id for listed in page.items if listed.time <= until]:
            count = take(ids)
            taken += count
            offset += len(ids) - count
            page = look(offset=offset, limit=MAX_ENTRIES)
        done += taken
        if not taken and (until == math.inf or page.total >= before):
            return done
