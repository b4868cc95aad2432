"""Dead letters, grouped by the first line of their error."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from leaseq import WorkQueue
from leaseq._sync.pages import pages
from leaseq.dashboard.purge_plans import PurgePlan
from leaseq.dashboard.visible_text import first_line
from leaseq.results import ItemInfo

MAX_SCANNED: Final = 2048
"""Dead letters that are looked at, those that died last."""


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Dead letters with one first line of their errors.

    Attributes:
        error: that line.
        items: the dead letters, the last died first.
    """

    error: str
    items: Sequence[ItemInfo]


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Dead letters of a queue as they were found.

    Attributes:
        groups: them by error, the largest group first.
        scanned: how many were looked at.
        total: how many the queue has.
        read_at: the server's time before they were read: seconds since 1970.
        hidden: how many of them are left out since their purge is planned.
    """

    groups: Sequence[DeadGroup]
    scanned: int
    total: int
    read_at: float
    hidden: int

    def group(self, error: str) -> DeadGroup:
        """Return the group of an error; an empty one if there is none."""
        return next((each for each in self.groups if each.error == error), DeadGroup(error, ()))


def read(queue: WorkQueue, text: str = "", plans: Sequence[PurgePlan] = ()) -> DeadLetters:
    """Read dead letters whose id or error has this text, in any case; not those that `plans` purge. Raises the errors of leaseq."""
    own = [plan for plan in plans if plan.queue == (queue.name, queue.group)]
    stats = queue.stats()
    found: dict[str, list[ItemInfo]] = {}
    scanned = hidden = 0
    wanted = text.lower()
    for item in _dead(queue):
        scanned += 1
        if any(plan.has(item) for plan in own):
            hidden += 1
        elif not wanted or wanted in item.error.lower() or wanted in item.id.lower():
            found.setdefault(first_line(item.error), []).append(item)
    groups = [DeadGroup(error, items) for error, items in found.items()]
    groups.sort(key=lambda each: len(each.items), reverse=True)
    return DeadLetters(groups, scanned, max(stats.dead, scanned), stats.now, hidden)


def _dead(queue: WorkQueue) -> Iterator[ItemInfo]:
    for page in pages(partial(queue.list_items, "dead", backward=True), max_items=MAX_SCANNED):
        infos = queue.inspect_items([each.id for each in page])
        yield from (info for info in infos if info.state == "dead")
