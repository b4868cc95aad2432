"""Random histories of one queue, for Hypothesis: their rules, which `test_model` makes a test."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule
from support.corruptions import ABNORMAL_KINDS, DAMAGES, DAY, IDS, RandomTraffic
from support.model_pair import START
from support.queue_strategies import (
    BAD_IDS,
    data,
    delays,
    durations,
    entry,
    few_ids,
    ids,
    limits,
    rest,
    timed,
    token_kinds,
)
from support.stateful_queue_life import LifeMachine

from leaseq_conformance.model import invariants
from leaseq_conformance.model import keyspace as ks
from leaseq_conformance.model.base import CAP, END
from leaseq_conformance.model.calls import Add, Complete, Extend, Finish, Release
from leaseq_conformance.model.codec import EPOCH
from leaseq_conformance.model.queue import Queue

if TYPE_CHECKING:
    from leaseq_conformance.model.keyspace import Keyspace


class QueueMachine(LifeMachine):
    """Random histories of a queue; what it does with another and after an item's life is inherited."""

    # Time

    @rule(
        step=st.sampled_from([0, 1, 2, 999, 1_000, 1_000, 100_000, 3_000_000, CAP, 10_000_000, DAY, 31 * DAY])
    )
    def time_passes(self, step: int) -> None:
        """LQ-TIME-2, LQ-TIME-5."""
        if self.q.now < START + 900 * DAY:
            self.q.now += step

    @rule(step=st.sampled_from([1, 1_000, 5_000_000, DAY, 40 * DAY]))
    def server_clock_steps_back(self, step: int) -> None:
        """LQ-TIME-4: tokens, creations and places go on upwards."""
        if not self.clock_is_lost and self.q.now > START - 200 * DAY:
            self.q.now -= step

    @rule(item_id=ids)
    def a_lease_expires(self, item_id: bytes) -> None:
        """LQ-TIME-2: without a call that looks."""
        item = self.q.model.items.get(item_id)
        if item and item.where == "leased" and self.q.now < item.score < START + 900 * DAY:
            self.q.now = item.score

    @rule(offset=st.sampled_from([-1, 0, 1]))
    def time_reaches_what_is_next(self, offset: int) -> None:
        """LQ-TIME-2: the microsecond counts."""
        due = self.q.model.first_due()
        self._time_is(due, offset)

    @rule(offset=st.sampled_from([-1, 0, 1]), kept=st.booleans())
    def time_reaches_an_end(self, offset: int, kept: bool) -> None:
        """LQ-KEY-8, LQ-KEY-10: of an item, or of what is kept."""
        expiries = [item.expires for item in self.q.model.items.values() if item.indexed]
        ends = list(self.q.model.kept.values()) if kept else expiries
        if ends:
            self._time_is(min(ends), offset)

    def _time_is(self, due: int, offset: int) -> None:
        if START - 200 * DAY < due < START + 900 * DAY and (
            due + offset >= self.q.now or not self.clock_is_lost
        ):
            self.q.now = due + offset

    # Operations

    @rule(chosen=st.lists(st.tuples(ids, data, timed, rest), min_size=1, max_size=4))
    def add(self, chosen: list[tuple[bytes, bytes, dict[str, int], dict[str, object]]]) -> None:
        """LQ-ADD-1 to LQ-ADD-6, LQ-CALL-5, LQ-KEY-6."""
        self.q.add(*[entry(*each, self.q.now) for each in chosen])

    @rule(max_attempts=st.sampled_from([0, 0, 1, 1, 2, 3]), delay=st.sampled_from([None, None, 0, 2_000]))
    def add_all(self, max_attempts: int, delay: int | None) -> None:
        """LQ-ADD-1: keeps the queue from running empty."""
        self.q.add(*[Add(item_id, b"all", delay=delay, max_attempts=max_attempts) for item_id in IDS])

    @rule(item_id=ids, kind=token_kinds, max_attempts=st.sampled_from([0, 1, 2]))
    def complete_and_add_again(self, item_id: bytes, kind: str, max_attempts: int) -> None:
        """LQ-ADD-6."""
        self.q.complete(Complete(item_id, self.q.token(item_id, kind)))
        self.q.add(Add(item_id, b"again", max_attempts=max_attempts))

    @rule(
        times=st.integers(1, 3),
        delay=st.sampled_from([None, None, 5_000]),
        uncounted=st.booleans(),
        last=st.booleans(),
    )
    def lease_and_release(self, times: int, delay: int | None, uncounted: bool, last: bool) -> None:
        """LQ-LEASE-3, LQ-RELEASE-3: attempts are used up and tokens superseded."""
        for n in range(times):
            reply = self.q.lease(256, 20_000)
            entries = [
                Release(item_id, token, delay, uncounted)
                for item_id, token in [reply[at : at + 3 : 2] for at in range(3, 3 + 4 * reply[2], 4)]
            ]
            if entries and (last or n + 1 < times):
                self.q.release(*entries)

    @rule(item_id=ids, content=data)
    def add_plain(self, item_id: bytes, content: bytes) -> None:
        """LQ-ADD-1, LQ-ADD-2: the hot path."""
        self.q.add(Add(item_id, content))

    @rule(count=st.sampled_from([1, 1, 1, 2, 3, 256]), duration=durations)
    def lease(self, count: int, duration: int) -> None:
        """LQ-LEASE-1 to LQ-LEASE-9, LQ-ORDER-1, LQ-SETTLE-3, 4 and 6."""
        self.q.lease(count, duration)

    def _completions(self, chosen: list[tuple[bytes, str, bool]]) -> list[Complete]:
        return [Complete(item_id, self.q.token(item_id, kind), only) for item_id, kind, only in chosen]

    @rule(
        chosen=st.lists(
            st.tuples(ids, token_kinds, st.sampled_from([False, False, True])), min_size=1, max_size=4
        )
    )
    def complete(self, chosen: list[tuple[bytes, str, bool]]) -> None:
        """LQ-COMPLETE-1 to LQ-COMPLETE-5."""
        self.q.complete(*self._completions(chosen))

    @rule(
        count=st.sampled_from([1, 1, 2, 256]),
        duration=durations,
        chosen=st.lists(st.tuples(ids, token_kinds, st.booleans()), min_size=1, max_size=3),
    )
    def complete_and_lease(self, count: int, duration: int, chosen: list[tuple[bytes, str, bool]]) -> None:
        """LQ-FUSED-1, LQ-FUSED-2."""
        self.q.complete_and_lease(count, duration, *self._completions(chosen))

    @rule(chosen=st.lists(st.tuples(ids, token_kinds, durations), min_size=1, max_size=3))
    def extend(self, chosen: list[tuple[bytes, str, int]]) -> None:
        """LQ-EXTEND-1, LQ-EXTEND-2, LQ-SETTLE-5."""
        self.q.extend(*[Extend(item_id, self.q.token(item_id, kind), time) for item_id, kind, time in chosen])

    @rule(
        chosen=st.lists(
            st.tuples(ids, token_kinds, delays | st.none(), st.booleans()), min_size=1, max_size=3
        )
    )
    def release(self, chosen: list[tuple[bytes, str, int | None, bool]]) -> None:
        """LQ-RELEASE-1 to LQ-RELEASE-4, LQ-ORDER-2, LQ-ORDER-3."""
        entries = [
            Release(item_id, self.q.token(item_id, kind), delay, un) for item_id, kind, delay, un in chosen
        ]
        self.q.release(*entries)

    @rule(chosen=st.lists(ids, min_size=1, max_size=2))
    def remove(self, chosen: list[bytes]) -> None:
        """LQ-REMOVE-1."""
        self.q.remove(*chosen)

    @rule(limit=limits)
    def light_clean(self, limit: int) -> None:
        """LQ-LIGHT-1 to LQ-LIGHT-3."""
        self.q.light_clean(limit)

    @rule(limit=limits)
    def deep_clean(self, limit: int) -> None:
        """LQ-DEEP-2, LQ-DEEP-8: nothing to repair but deadlines that a clock set back has put a month ahead.

        And what was forged or lost on purpose.
        """
        found = self.q.deep_clean(limit)
        if not self.q.tolerated:
            assert set(found) <= {"far_deadline", "next_due"}
            assert found["far_deadline"] >= found["next_due"]
        self._sound_again()

    @rule()
    def settle(self) -> None:
        """LQ-SETTLE-1."""
        self.q.settle()

    @rule(
        chosen=few_ids,
        where=st.sampled_from([*ks.ZSETS, "kept"]),
        offset=st.integers(0, 3),
        limit=limits,
        order=st.sampled_from(["forward", "backward"]),
    )
    def look(self, chosen: list[bytes], where: str, offset: int, limit: int, order: str) -> None:
        """LQ-READ-1 to LQ-READ-5."""
        self.q.stats()
        self.q.inspect(*chosen)
        self.q.page(where, offset, limit, order)

    @rule(bad=st.sampled_from([*BAD_IDS, EPOCH - 1, END]))
    def a_call_that_is_refused(self, bad: bytes | int) -> None:
        """With an id that is none, or while the server's clock is out of its range."""
        if isinstance(bad, bytes):
            self._every_call_that_takes_an_id(bad)
            return
        before, self.q.now = self.q.now, bad
        try:
            self._every_call_that_takes_the_time()
        finally:
            self.q.now = before

    def _every_call_that_takes_an_id(self, item_id: bytes) -> None:
        """LQ-ITEM-1, LQ-ERROR-1, LQ-ADD-5: also behind a good entry, nothing is changed."""
        good = next(iter(self.q.model.items), b"a")
        token = self.q.token(good, "current")
        self.q.add(Add(item_id))
        self.q.add(Add(b"a"), Add(item_id), Add(b"b"))
        self.q.complete(Complete(item_id, 1))
        self.q.complete(Complete(good, token), Complete(item_id, 1))
        self.q.complete_and_lease(1, 1000, Complete(good, token), Complete(item_id, 1))
        self.q.extend(Extend(good, token, 1), Extend(item_id, 1, 1))
        self.q.release(Release(good, token), Release(item_id, 1))
        self.q.remove(good, item_id)
        self.q.revive(good, item_id)
        self.q.purge(good, item_id)
        if len(item_id) <= 256:
            self.q.complete_with(Finish(good, token, keep=0), Finish(item_id, 1, keep=0))
            self.q.outcome(good, item_id)
        self.q.complete_with(Finish(good, token, then=((1, Add(item_id)),)), targets=[self.r])

    def _every_call_that_takes_the_time(self) -> None:
        """LQ-TIME-3, LQ-COMPLETE-5."""
        token = self.q.token(b"a", "current")
        self.q.add(Add(b"a"))
        self.q.lease()
        self.q.complete_and_lease(1, 1, Complete(b"a", token))
        self.q.extend(Extend(b"a", token, 1))
        self.q.release(Release(b"a", token))
        self.q.light_clean()
        self.q.settle()
        self.q.stats()
        self.q.revive(b"a")
        self.q.purge(b"a")
        self.q.outcome(b"a")
        self.q.complete_with(Finish(b"a", token, keep=0, then=((1, Add(b"a")),)), targets=[self.r])
        self.q.lease_any(self.r)
        self.q.complete(Complete(b"a", token))

    # Waiters

    @rule()
    def a_waiter_is_woken(self) -> None:
        """LQ-SETTLE-3: from here on the waiter is the one who attends."""
        self.q.pop_wake()
        self.q.check()

    @precondition(lambda self: self.q.waiters)
    @rule(leaves=st.booleans())
    def a_woken_waiter_calls(self, leaves: bool) -> None:
        """LQ-BLOCK-5, LQ-BLOCK-6."""
        self.q.waiters -= 1
        if leaves:
            self.q.settle()
        else:
            self.q.lease()

    # Deadlines and keys forged

    @rule(item_id=ids, offset=st.sampled_from([-DAY, -1, 0, 1, 1_000_000, DAY]), is_stored=st.booleans())
    def forge_a_deadline(self, item_id: bytes, offset: int, is_stored: bool) -> None:
        """As tests of clients do; where the bound is not told, a lease does not look until it has passed."""
        item = self.q.model.items.get(item_id)
        if item is None or item.where != "leased":
            return
        deadline = max(self.q.now + offset, 1)
        item.score = deadline
        self.client.zadd(self.q.prefix + "leased", {item_id: deadline}, xx=True)
        state = self.q.model.state
        if state and deadline < state.next_due:
            if is_stored:
                state.next_due = deadline
                self.client.set(self.q.prefix + "state", state.encode())
            else:
                self.q.tolerated.add("next_due is late")
        self.q.check()

    @rule()
    def lose_the_state(self) -> None:
        """LQ-FAIL-4: the clock goes with it, so the server's must not go back until deep_clean found it again."""
        state = self.q.model.state
        if state is None:
            return
        self.q.now = max(self.q.now, state.clock + 1)
        if self.q.now >= START + 1000 * DAY:
            return
        self.clock_is_lost = True
        self.q.tolerated |= {"by the counters", "the clock is behind", "the flag does not say so"}
        self.q.model.state = None
        self.q.waiters += state.paused  # it looks again when the cap is over
        self.client.delete(self.q.prefix + "state")
        self.q.check()

    def _sound_again(self) -> None:
        """After a pass: what it cannot know, the number of items completed, is taken as it is."""
        self.clock_is_lost = False
        self.q.tolerated = {kind for kind in self.q.tolerated if kind in ABNORMAL_KINDS}
        state = self.q.model.state
        if state:
            gone = sum(self.q.model.counters[name.decode()] for name in invariants.GONE)
            self.q.model.finished = state.added - len(self.q.model.items) - gone
        else:
            self.q.tolerated.add("by the counters")
        self.q.check()

    @rule(
        damages=st.lists(st.tuples(st.integers(0, 99), ids, st.integers(0, 3)), min_size=1, max_size=4),
        traffic=st.lists(st.integers(0, 2**16), max_size=6),
        limit=limits,
    )
    def damage(self, damages: list[tuple[int, bytes, int]], traffic: list[int], limit: int) -> None:
        """LQ-DEEP-1 to LQ-DEEP-10: whatever was damaged, one pass repairs it and nothing that exists is lost."""
        q = self.q
        self.clock_is_lost = False

        def change(stored: Keyspace) -> None:
            for which, item_id, place in damages:
                DAMAGES[which % len(DAMAGES)](stored, item_id, place, q.now)

        if q.model.state:
            q.now = max(q.now, q.model.state.clock + 1)
        q.forge(change)
        random_traffic = RandomTraffic(q)
        for choice in traffic:
            random_traffic.call(choice)
        q.deep_clean(limit, strict=False)
        repaired = q.stored()
        assert repaired.items == random_traffic.items
        q.tolerated |= ABNORMAL_KINDS
        q.model = Queue.load(repaired)
        q.waiters += 1  # that a lost wake-up may have been for
        self._sound_again()
        assert not q.deep_clean(limit), "a second pass finds something"
        q.waiters -= 1
        q.settle()

    # Two ways to the same

    @rule(item_id=ids, kind=token_kinds, content=data, duration=durations)
    def hot_and_general_path_agree(self, item_id: bytes, kind: str, content: bytes, duration: int) -> None:
        """LQ-CALL-5: one entry on the hot path does what it does in the batch form."""
        token = self.q.token(item_id, kind)
        self.compare("add", [1, item_id, content, 0], [2, item_id, content, 0, item_id, b"", 0])
        self.compare("complete", [1, item_id, token, 0], [2, item_id, token, 0, item_id, token, 0])
        self.compare("lease", [1, duration], [1, duration])

    def compare(self, script: str, hot: list[int | bytes], general: list[int | bytes]) -> None:
        """Run both forms on two copies; the queue itself stays as it is."""
        q, other = self.q, self.q.twin
        replies: list[Any] = []
        after = []
        bound = q.model.first_due()
        for form, argv in enumerate((hot, general)):
            ks.copy(self.client, q.prefix, other)
            if script == "lease" and q.model.state and bound > q.now:
                # the general path is taken where the bound has passed; it finds the true one, which the other gets
                state = copy.copy(q.model.state)
                state.next_due = 0 if form else bound
                self.client.set(other + "state", state.encode())
            reply = q.call(script, argv, prefix=other)
            replies.append(reply[0] if form and script != "lease" and isinstance(reply, list) else reply)
            after.append(ks.read(self.client, other))
        assert replies[0] == replies[1], script
        if script != "lease" or replies[0][2]:  # a lease that gives nothing stores the bound that it found
            assert after[0] == after[1], f"{script}: hot against general:\n{after[0].difference(after[1])}"
