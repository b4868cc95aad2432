"""Purges that are planned: they can be undone for ten minutes, and a running dashboard carries out what is due.

A plan is a delayed item of a separate queue, `leaseq-dashboard`, so that it outlives a dashboard and is known to all.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

from leaseq import Item, LeasedItem, WorkQueue, audit_log
from leaseq._sync.pages import pages
from leaseq.dashboard.source import Source
from leaseq.errors import AccessDeniedError, FormatError
from leaseq.flows import chunks
from leaseq.keys import RegisteredQueue
from leaseq.results import ItemInfo, ListState, State
from leaseq.transfer import records

log = logging.getLogger("leaseq.dashboard")

QUEUE: Final = RegisteredQueue("leaseq-dashboard", "leaseq-dashboard")
"""The queue of the plans."""

UNDO_SECS: Final = 600
"""Seconds for which a purge can be undone."""

LEASE_SECS: Final = 60
"""Seconds for which a dashboard holds a plan that it carries out."""

MAX_PLAN_BYTES: Final = 768 << 10
"""Bytes of a plan. More items become several plans."""

ROUNDING_SECS: Final = 1.0
"""Seconds by which an age is lowered, since the server compares it in milliseconds."""

READ_TOGETHER: Final = 8
"""Plans that are read in one call."""

MAX_PLANS: Final = 1024
"""Plans of each state that are read."""

_STATES: Final[tuple[ListState, ...]] = ("delayed", "ready", "leased")
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """A purge that is planned.

    Attributes:
        id: the id of the plan.
        queue: the queue of the dead letters.
        error: the first line of their errors; None for a single dead letter.
        user: the user who planned it.
        items: when each dead letter was added and when it died, by id. Seconds since 1970.
        due: when it is carried out: seconds since 1970.
    """

    id: str
    queue: RegisteredQueue
    error: str | None
    user: str
    items: Mapping[str, tuple[float, float]]
    due: float

    @classmethod
    def read(cls, plan_id: str, data: bytes) -> Self:
        """Read the data of a plan. Raises FormatError."""
        try:
            given = json.loads(data)
            if given["v"] != _VERSION:
                raise FormatError(f"plan {plan_id!r} is of another version: update leaseq")
            items = {str(each): (float(created), float(died)) for each, created, died in given["items"]}
            queue = RegisteredQueue(str(given["queue"]), str(given["group"]))
            return cls(plan_id, queue, given["error"], str(given["user"]), items, float(given["due"]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise FormatError(f"plan {plan_id!r} cannot be read: {error!r}") from error

    def has(self, item: ItemInfo) -> bool:
        """Return whether this dead letter goes: the same one, which has not lived in the meantime."""
        return item.state == "dead" and self.items.get(item.id) == (item.created, item.time)


class PurgePlans:
    """The plans on a server."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._read: dict[str, PurgePlan] = {}

    def add(
        self, queue: RegisteredQueue, items: Sequence[ItemInfo], user: str, error: str | None = None
    ) -> list[PurgePlan]:
        """Plan to purge dead letters. Return the plans: one, unless their ids are very long."""
        with self._source.queue(QUEUE) as plans:
            due = plans.stats().now + UNDO_SECS
            texts = [json.dumps([item.id, item.created, item.time], ensure_ascii=False) for item in items]
            made: list[PurgePlan] = []
            for part in _parts(texts):
                fixed = {"v": _VERSION, "queue": queue.name, "group": queue.group, "user": user}
                head = json.dumps({**fixed, "error": error, "due": due}, ensure_ascii=False)
                data = f'{head[:-1]}, "items": [{", ".join(part)}]}}'.encode(errors="replace")
                item = Item(data, content_type="application/json")
                plans.add_item(item, delay=UNDO_SECS, max_attempts=0)
                made.append(PurgePlan.read(item.id, data))
            return made

    def pending(self) -> list[PurgePlan]:
        """Return the plans that are not carried out, those due first at the start; none if this user may not read them."""
        try:
            with self._source.queue(QUEUE) as plans:
                stats = plans.stats()
                if not stats.delayed + stats.ready + stats.leased:
                    self._read = {}
                    return []
                ids = list(dict.fromkeys(self._ids(plans)))
                before = self._read
                found = {each: before[each] for each in ids if each in before}
                new = [each for each in ids if each not in found]
                for at in range(0, len(new), READ_TOGETHER):
                    found |= {plan.id: plan for plan in _stored(plans, new[at : at + READ_TOGETHER])}
                self._read = found
        except AccessDeniedError:
            return []
        return self.known()

    def known(self) -> list[PurgePlan]:
        """Return the plans as they were read last."""
        return sorted(self._read.values(), key=lambda plan: plan.due)

    def find(self, plan_id: str) -> PurgePlan | None:
        """Return a plan; None if it was undone or carried out."""
        with self._source.queue(QUEUE) as plans:
            return next(iter(_stored(plans, [plan_id])), None)

    def undo(self, plan: PurgePlan) -> State:
        """Drop a plan. Return the state that it was in: "leased" if it is being carried out."""
        with self._source.queue(QUEUE) as plans:
            return plans.remove(plan.id)

    def carry_out(self) -> None:
        """Purge what is due. Raises the errors of leaseq."""
        with self._source.queue(QUEUE) as plans:
            while _is_due(plans) and (item := plans.lease(LEASE_SECS, block=False)):
                self._carry_out(plans, item)

    def _carry_out(self, plans: WorkQueue, item: LeasedItem) -> None:
        try:
            plan = PurgePlan.read(item.id, item.data)
        except FormatError as error:
            plans.dead_letter(item, error=str(error))
            return
        subject = {"queue": plan.queue.name, "group": plan.queue.group, "options": {"plan": plan.id}}
        try:
            with audit_log.logged(plan.user, "dashboard purge_due", subject) as entry:
                entry.changed = self._purge(plan)
        except OSError as error:  # it is tried again when the lease has ended
            log.error("the audit log cannot be written, so a purge waits: %s", error)  # noqa: TRY400
            return
        plans.complete(item)
        log.info(
            "purged %d dead letters of queue %s, planned by %s", entry.changed, plan.queue.name, plan.user
        )

    def _purge(self, plan: PurgePlan) -> int:
        """Purge the dead letters of a plan that are still the same. Return how many."""
        done = 0
        with self._source.queue(plan.queue) as queue:
            now = queue.stats().now
            for ids in chunks(plan.items):
                chosen = [item for item in queue.inspect_items(ids) if plan.has(item)]
                # an item that is revived at this moment and dies again is younger
                age = max(0.0, now - max((item.time for item in chosen), default=now) - ROUNDING_SECS)
                done += sum(queue.purge_items([item.id for item in chosen], older_than=age))
        return done

    @staticmethod
    def _ids(plans: WorkQueue) -> Iterator[str]:
        for state in _STATES:
            for page in pages(partial(plans.list_items, state), max_items=MAX_PLANS):
                yield from (entry.id for entry in page)


def _is_due(plans: WorkQueue) -> bool:
    stats = plans.stats()
    return bool(stats.ready or stats.due or stats.overdue)


def _stored(plans: WorkQueue, ids: Sequence[str]) -> Iterator[PurgePlan]:
    """Read plans; those that are gone, or cannot be read, are left out."""
    for plan_id, stored in zip(ids, records.read(plans, ids), strict=True):
        try:
            if stored is not None:
                yield PurgePlan.read(plan_id, stored.data)
        except FormatError as error:
            log.warning("%s", error)


def _parts(texts: Sequence[str]) -> Iterator[list[str]]:
    """Divide texts into parts that fit into a plan."""
    part: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode(errors="replace")) + 2
        if part and size + length > MAX_PLAN_BYTES:
            yield part
            part, size = [], 0
        part.append(text)
        size += length
    yield part
