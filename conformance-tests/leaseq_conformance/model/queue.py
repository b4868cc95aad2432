"""A queue in plain Python: what every script must answer and leave behind.

Written from the specification, not from the scripts: items are objects in one dict, order is a sort, and the entries
of a call are taken one after the other. The server's time is an argument. Conformance vectors are made with it.

`Queue` is a queue whose keys are sound; its `state` may be lost. Damage is the business of `repair`, calls that
touch several queues that of `multi_queue`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from leaseq_conformance.model.base import (
    BUDGET,
    CAP,
    END,
    NEVER,
    Item,
    bare,
    check_id,
    listed,
    require,
    tick,
    until,
)
from leaseq_conformance.model.codec import DIES, EXTRA, OUTCOMES, TAIL, UNLIMITED, Extra
from leaseq_conformance.model.inspections import Inspections
from leaseq_conformance.model.outcomes import Outcomes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaseq_conformance.model.calls import Add, Answer, Complete, Extend, Release, Reply
    from leaseq_conformance.model.codec import State

SWEEP: Final = 64
MONTH_MS: Final = 2_592_000_000
DECADE_MS: Final = 315_360_000_000
LAST_ERROR: Final = 8192


class Queue(Inspections, Outcomes):
    """A queue. Every operation takes the server's time where its script does, and gives the script's reply."""

    def add(self, now: int, entries: Sequence[Add]) -> Reply:
        """Add what does not exist."""
        state = self._open_to_add(now)
        for entry in entries:
            check_add(state, now, entry)
        dues: list[int] = []
        outcomes = bool(state.flags & OUTCOMES)
        answers = [self.put(state, now, entry, dues, limited=True) for entry in entries]
        if outcomes:
            self.forget_kept(entries, answers)
        if any(answer > 0 for answer in answers):
            self._nearer(state, dues)
        return bare(list(answers))

    def put(self, state: State, now: int, entry: Add, dues: list[int], *, limited: bool) -> int:
        """Add one item; `dues` gets its due time, where it has one."""
        if entry.id in self.items:
            return 0
        if limited and state.max_items and not self._has_room(state):
            return -1
        created = tick(state, now)
        state.added += 1
        state.largest = max(state.largest, len(entry.data))
        due = due_of(entry, now)
        self.items[entry.id] = item = Item(entry.data, "delayed", due, created)
        item.priority = entry.priority or 0
        item.max_attempts = UNLIMITED if entry.max_attempts == 0 else entry.max_attempts or 0
        item.keep = entry.keep or 0
        if entry.expires_in is not None:
            item.expires, item.indexed = now + entry.expires_in * 1000, True
        if pairs := entry.pairs():
            item.extra = Extra(b"", pairs)
        if item.priority or item.max_attempts or item.keep or item.expires or item.extra:
            item.options = TAIL + EXTRA * bool(item.extra) + DIES * entry.dies
        item.recorded = due > now or bool(item.options)
        if due > now:
            dues.append(due)
        else:
            self._to_ready(item, created)
        if item.keep:
            state.flags |= OUTCOMES
        return created

    def forget_kept(self, entries: Sequence[Add], answers: Sequence[int]) -> None:
        """Forget the outcome of an earlier item with this id."""
        for entry, answer in zip(entries, answers, strict=True):
            if answer > 0:
                self.kept.pop(entry.id, None)

    def lease(self, now: int, count: int, duration: int) -> Reply:
        """Sweep, then lease the first `count`."""
        require(1 <= count <= 256 and 1 <= duration <= MONTH_MS)
        return self.take(self._open(now), now, count, duration)

    def take(self, state: State, now: int, count: int, duration: int) -> list[Answer]:
        """A lease whose arguments are right."""
        bound, changed = state.next_due, False
        died: list[bytes] = []
        if now >= bound:
            changed = any(self._sweep(state, now, SWEEP, died))
        heads = [] if state.paused else within_budget(self._in("ready")[:count])
        taken: list[Answer] = []
        extras: list[Answer] = []
        for item_id, item in heads:
            if 0 < item.expires <= now:
                continue
            item.token = tick(state, now)
            item.attempt += 1
            item.recorded, item.indexed, item.expires = True, False, 0
            item.move("leased", now + duration * 1000)
            taken += [item_id, item.data, item.token, item.attempt]
            number = len(taken) // 4
            pairs = item.extra.pairs if item.extra else ()
            extras += [number, b"keep", item.keep] * bool(item.keep)
            extras += [part for pair in pairs for part in (number, *pair)]
        for item_id, item in heads:
            if item.where == "ready":
                self.expire(item_id, now, died)
        leased, left = len(taken) // 4, self._attended(state)
        if leased:
            state.leases += leased
            state.next_due = min(state.next_due, now + duration * 1000)
        wait = 0
        if not leased and not left:
            state.next_due = self.first_due()
            wait = until(state.next_due, now)
        if changed or heads or state.next_due != bound:
            self.state = state
        if left or (leased and state.next_due <= now + CAP):
            self._wake()
        self._signal_room(state)
        extras += [part for item_id in died for part in (0, b"died", item_id)]
        return [wait, now + duration * 1000 if leased else 0, leased, *taken, *extras]

    def expire(self, item_id: bytes, now: int, died: list[bytes]) -> bool:
        """End an item whose time was over before it was ever leased; whether it died. `died` gets one with keep."""
        item = self.items[item_id]
        if not item.options & DIES:
            del self.items[item_id]
            self.counters["expired"] += 1
            return False
        item.failed(b"expired")
        item.expires, item.indexed = 0, False
        item.move("dead", now)
        self.counters["died"] += 1
        died += [item_id] * bool(item.keep)
        return True

    def win(self, item_id: bytes, token: int, *, only_current: bool) -> Item | None:
        """Finish an item with any token it had."""
        item = self.items.get(item_id)
        if item is None or not item.had(token) or (only_current and not self._held(item_id, token)):
            return None
        self.finished += 1
        return self.items.pop(item_id)

    def complete(self, entries: Sequence[Complete]) -> Reply:
        """Finish items."""
        for entry in entries:
            check_id(entry.id)
        won = [self.win(entry.id, entry.token, only_current=entry.only_current) for entry in entries]
        return bare([int(item is not None) for item in won])

    def complete_and_lease(self, now: int, count: int, duration: int, entries: Sequence[Complete]) -> Reply:
        """One after the other. Where the state is lost, its counts are those from before both."""
        require(1 <= count <= 256 and 1 <= duration <= MONTH_MS)
        state = self._open(now)
        answers = self.complete(entries)
        return [*self.take(state, now, count, duration), *listed(answers)]

    def extend(self, now: int, entries: Sequence[Extend]) -> Reply:
        """Move the deadlines of current leases."""
        for entry in entries:
            check_id(entry.id)
            require(1 <= entry.duration <= MONTH_MS)
        state = self._open(now)
        answers: list[Answer] = []
        for entry in entries:
            item = self._held(entry.id, entry.token)
            if item:
                item.move("leased", now + entry.duration * 1000)
            answers.append(item.score if item else 0)
        moved = [answer for answer in answers if isinstance(answer, int) and answer]
        if moved and (state.next_due == 0 or min(moved) < state.next_due):
            state.next_due = min(state.next_due, *moved)
            self.state = state
            self._wake()
        return bare(answers)

    def release(self, now: int, entries: Sequence[Release]) -> Reply:
        """Give leased items back, or dead letter them."""
        state = self._open(now)
        for entry in entries:
            check_id(entry.id)
            require(now + (entry.delay or 0) * 1000 < END)
            require(not entry.dead or (entry.delay is None and not entry.uncounted))
            require(entry.keep is None or 0 <= entry.keep <= DECADE_MS)
        answers: list[Answer] = []
        dues: list[int] = []
        for entry in entries:
            item = self._held(entry.id, entry.token)
            if not item:
                answers.append(b"lost")
                continue
            due = now + (entry.delay or 0) * 1000
            if entry.error is not None:
                item.failed(cut(entry.error))
            if entry.dead or (not entry.uncounted and self._spent(state, item)):
                item.move("dead", now)
                self.counters["died"] += 1
                if entry.keep is not None and (entry.keep or item.keep):
                    self.publish(state, now, entry.id, entry.keep or item.keep)
            elif due > now:
                item.move("delayed", due)
                dues.append(due)
            else:
                back = tick(state, now)
                self._to_ready(item, item.created if entry.uncounted else back)
            if entry.uncounted:
                item.attempt = max(0, item.attempt - 1)
            self.counters["released"] += 1
            answers.append(item.where.encode())
        if any(answer != b"lost" for answer in answers):
            self._nearer(state, dues)
        return bare(answers)

    def remove(self, entries: Sequence[bytes]) -> Reply:
        """Drop items whatever their state."""
        for item_id in entries:
            check_id(item_id)
        answers: list[Answer] = []
        for item_id in entries:
            item = self.items.pop(item_id, None)
            answers.append(item.where.encode() if item else b"absent")
            self.counters["removed"] += item is not None
        return bare(answers)

    def settle(self, now: int) -> Reply:
        """Pass a wake-up on."""
        state = self._open(now)
        worker = not self.wake and (self._attended(state) or state.next_due <= now + CAP)
        if worker:
            self._wake()
        return int(self._signal_room(state) or worker)

    def delete(self, now: int) -> Reply:
        """Delete a queue that holds nothing; a result without a place in `kept` ends with its time to live."""
        state = self._open(now)
        require(not self.items and all(end <= now for end in self.kept.values()), "IN_USE")
        require(state.clock <= now, "IN_USE")
        existed = bool(self.state or self.counters or self.kept or self.wake or self.room)
        self.state, self.wake, self.room = None, 0, 0
        self.counters.clear()
        self.kept.clear()
        return int(existed)

    def light_clean(self, now: int, limit: int) -> Reply:
        """Promote and reclaim, then end items and outcomes whose time is over."""
        require(1 <= limit <= 256)
        state = self._open(now)
        bound = state.next_due
        died: list[bytes] = []
        moved = self._sweep(state, now, limit, died)
        indexed = sorted((item.expires, key) for key, item in self.items.items() if item.indexed)
        over = [item_id for end, item_id in indexed if end <= now][:limit]
        lapsed = expired = 0
        for item_id in over:
            item = self.items[item_id]
            item.indexed = False
            if item.where in {"ready", "delayed"}:
                ended = self.expire(item_id, now, died)
                lapsed, expired = lapsed + ended, expired + (not ended)
        ends = sorted((end, item_id) for item_id, end in self.kept.items())
        pruned = [item_id for end, item_id in ends if end <= now][:limit]
        for item_id in pruned:
            del self.kept[item_id]
        if any(moved) or over or state.next_due != bound:
            self.state = state
            if self._attended(state):
                self._wake()
        self._signal_room(state)
        index = [item.expires for item in self.items.values() if item.indexed]
        first = min([state.next_due, *index, *self.kept.values()])
        promoted, reclaimed, deaths = moved
        return [promoted, reclaimed, deaths + lapsed, expired, len(pruned), until(first, now), *died]

    def configure(
        self,
        *,
        max_data: int | None = None,
        max_items: int | None = None,
        max_attempts: int | None = None,
        paused: int | None = None,
    ) -> Reply:
        """Set limits, pause or resume."""
        require(max_data is None or 1 <= max_data <= 2**29)
        require(max_items is None or 0 <= max_items < 2**32)
        require(max_attempts is None or 0 <= max_attempts < UNLIMITED)
        require(paused in {None, 0, 1})
        self.state = state = self._state()
        state.max_data = state.max_data if max_data is None else max_data
        state.max_items = state.max_items if max_items is None else max_items
        state.max_attempts = state.max_attempts if max_attempts is None else max_attempts
        if paused is not None:
            state.flags = state.flags & ~1 | paused
        if paused == 0 and (self._attended(state) or state.next_due < NEVER):
            self._wake()  # any timer will do: this call has no clock
        if max_items == 0:
            self.room = self.room or 1  # producers that wait need not wait longer
        elif max_items:
            self._signal_room(state)
        return 1


def check_add(state: State, now: int, entry: Add) -> None:
    """Refuse an entry of add that is not right."""
    check_id(entry.id)
    require(len(entry.data) <= (state.max_data or BUDGET), "TOO_LARGE")
    require(entry.delay is None or entry.not_before is None)
    require(due_of(entry, now) < END)
    require(entry.priority is None or -7 <= entry.priority <= 7)
    require(entry.max_attempts is None or 0 <= entry.max_attempts < UNLIMITED)
    require(entry.keep is None or 1 <= entry.keep <= DECADE_MS)
    require(entry.expires_in is not None or not entry.dies)
    if entry.expires_in is not None:
        require(1 <= entry.expires_in <= DECADE_MS)
        require(due_of(entry, now) < now + entry.expires_in * 1000 < END)
    names = [name for name, _ in entry.headers]
    require(len(names) <= 16 and all(re.fullmatch(rb"[A-Za-z0-9_.-]{1,100}", name) for name in names))
    require(sum(len(name) + len(value) for name, value in entry.pairs()) <= 4096, "TOO_LARGE")


def due_of(entry: Add, now: int) -> int:
    return entry.not_before * 1000 if entry.not_before is not None else now + (entry.delay or 0) * 1000


def within_budget(heads: list[tuple[bytes, Item]]) -> list[tuple[bytes, Item]]:
    """As many as have a mebibyte of data together, but at least one."""
    size = 0
    for number, (_, item) in enumerate(heads):
        size += len(item.data)
        if number and size > BUDGET:
            return heads[:number]
    return heads


def cut(error: bytes) -> bytes:
    """As much of a text as is kept, whole characters of it; of what is no text, up to 3 bytes are lost."""
    end = min(len(error), LAST_ERROR)
    while LAST_ERROR - 3 < end < len(error) and 0x80 <= error[end] <= 0xBF:
        end -= 1
    return error[:end]
