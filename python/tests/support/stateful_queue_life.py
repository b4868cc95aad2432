"""The rules of random histories about an item that is neither leased nor completed, and about a second queue."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from support.corruptions import HOUR_MS, IDS
from support.queue_driver import QueueDriver
from support.queue_strategies import (
    call_keeps,
    data,
    delays,
    durations,
    entry,
    errors,
    few_ids,
    ids,
    limits,
    rest,
    timed,
    token_kinds,
)

from leaseq_conformance.model.calls import Add, Finish, Release

if TYPE_CHECKING:
    import redis
    from support.queue_strategies import Chosen

follow_ups = st.lists(st.tuples(st.integers(0, 2), st.tuples(ids, data, timed, rest)), max_size=3)
finishes = st.tuples(ids, token_kinds, st.sampled_from([False, False, True]), call_keeps, data, follow_ups)


class LifeMachine(RuleBasedStateMachine):
    """A queue `q`, and another `r` in its group."""

    client: ClassVar[redis.Redis]
    name: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.q = QueueDriver(self.client, self.name)
        self.r = QueueDriver(self.client, self.name + "-other", self.q)
        self.clock_is_lost = False

    def teardown(self) -> None:
        for driver in (self.q, self.r):
            if not driver.tolerated and sys.exc_info()[0] is None:
                driver.waiters += 1  # that may have died
                driver.drain()
            driver.forget()

    # Outcomes and hand-off

    @rule(chosen=st.lists(finishes, min_size=1, max_size=3), into=st.sampled_from(["r", "qr", "rqr", "qq"]))
    def complete_with(
        self,
        chosen: list[tuple[bytes, str, bool, int | None, bytes, list[tuple[int, Chosen]]]],
        into: str,
    ) -> None:
        """LQ-KEY-7, LQ-KEY-10: into the same queue too, and twice."""
        entries = []
        for item_id, kind, only, keep, result, then in chosen:
            follow = tuple((1 + number % len(into), entry(*add, self.q.now)) for number, add in then)
            token = self.q.token(item_id, kind)
            entries.append(Finish(item_id, token, only, keep, None if keep is None else result, follow))
        self.q.complete_with(*entries, targets=[{"q": self.q, "r": self.r}[name] for name in into])

    @rule(item_id=ids, keep=call_keeps, again=st.booleans())
    def complete_with_twice(self, item_id: bytes, keep: int | None, again: bool) -> None:
        """The reply of the first was lost; or another lease comes late."""
        then = ((1, Add(item_id, b"next")), (2, Add(item_id + b"/1", keep=HOUR_MS)))
        for kind in ("current", "previous" if again else "superseded"):
            token = self.q.token(item_id, kind)
            self.q.complete_with(
                Finish(item_id, token, keep=keep, result=None if keep is None else b"done", then=then),
                targets=[self.r, self.r],
            )

    @rule(chosen=few_ids)
    def outcome(self, chosen: list[bytes]) -> None:
        """LQ-KEY-10."""
        self.q.outcome(*chosen)

    # Dead letters

    @rule(
        chosen=st.lists(
            st.tuples(ids, token_kinds, delays | st.none(), st.booleans(), errors, call_keeps),
            min_size=1,
            max_size=3,
        )
    )
    def release_with_error(
        self, chosen: list[tuple[bytes, str, int | None, bool, bytes | None, int | None]]
    ) -> None:
        """LQ-RELEASE-1 to LQ-RELEASE-4."""
        entries = [
            Release(item_id, self.q.token(item_id, kind), delay, un, error, keep=keep)
            for item_id, kind, delay, un, error, keep in chosen
        ]
        self.q.release(*entries)

    @rule(
        chosen=st.lists(st.tuples(ids, token_kinds, errors, call_keeps), min_size=1, max_size=3),
        lease=st.booleans(),
    )
    def dead_letter(self, chosen: list[tuple[bytes, str, bytes | None, int | None]], lease: bool) -> None:
        """A lease before it, so that there is something to bury."""
        if lease:
            self.q.lease(4, 10_000)
        entries = [
            Release(item_id, self.q.token(item_id, kind), error=error, dead=True, keep=keep)
            for item_id, kind, error, keep in chosen
        ]
        self.q.release(*entries)

    @rule(chosen=few_ids)
    def revive(self, chosen: list[bytes]) -> None:
        """Attempts start again."""
        self.q.revive(*chosen)

    @rule(chosen=few_ids)
    def promote(self, chosen: list[bytes]) -> None:
        """Attempts stay."""
        self.q.promote(*chosen)

    @rule(chosen=few_ids, older_than=st.sampled_from([0, 0, 1, 5_000]))
    def purge(self, chosen: list[bytes], older_than: int) -> None:
        """Only items that have been dead for that time."""
        self.q.purge(*chosen, older_than=older_than)

    # Limits

    @rule(max_data=st.sampled_from([4, 39, 40, 1_000_000]))
    def limit_data(self, max_data: int) -> None:
        """LQ-CONFIG-1, LQ-ITEM-4."""
        self.q.configure(max_data=max_data)

    @rule(
        max_items=st.sampled_from([0, 1, 2, 3, 2**32 - 1]),
        max_attempts=st.sampled_from([0, 1, 2, 65_534]),
        only=st.sampled_from(["max_items", "max_attempts", "both"]),
    )
    def limit(self, max_items: int, max_attempts: int, only: str) -> None:
        """LQ-CONFIG-1."""
        values = {"max_items": max_items, "max_attempts": max_attempts}
        self.q.configure(**{name: value for name, value in values.items() if only in {name, "both"}})

    @rule(paused=st.sampled_from([0, 0, 1]), other=st.sampled_from([False, False, True]))
    def pause_or_resume(self, paused: int, other: bool) -> None:
        """LQ-KEY-7."""
        (self.r if other else self.q).configure(paused=paused)

    @rule(max_items=st.sampled_from([1, 2, 3]))
    def fill_up(self, max_items: int) -> None:
        """Each entry is judged separately."""
        self.q.configure(max_items=max_items)
        self.q.add(*[Add(item_id, b"fill") for item_id in IDS])

    @rule()
    def a_producer_is_woken(self) -> None:
        """A producer takes the element of `room`. The next call that checks puts another if there is room."""
        self.q.pop_room()
        self.q.check()

    # Two queues

    @rule(item_id=ids, when=timed, more=rest)
    def add_to_the_other(self, item_id: bytes, when: dict[str, int], more: dict[str, object]) -> None:
        """So that there is something in both."""
        self.r.add(entry(item_id, b"other", when, more, self.r.now))

    @rule(count=st.sampled_from([1, 2, 256]), duration=durations, turned=st.booleans())
    def lease_any(self, count: int, duration: int, turned: bool) -> None:
        """LQ-LEASE-1, LQ-SETTLE-3: the first that gives items ends it."""
        first, second = (self.r, self.q) if turned else (self.q, self.r)
        first.lease_any(second, count=count, duration=duration)

    @rule(limit=limits)
    def clean_the_other(self, limit: int) -> None:
        """LQ-LIGHT-1 to LQ-LIGHT-3."""
        self.r.light_clean(limit)

    @rule()
    def a_waiter_of_the_other_is_woken(self) -> None:
        """The waiter leases from both queues."""
        if self.r.pop_wake():
            self.r.lease_any(self.q)
            self.r.waiters -= 1
            self.r.settle()
