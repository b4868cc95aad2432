"""A queue in plain Python: what every script must answer and leave behind.

Written from the specification, not from the scripts: items are objects in one dict, order is a sort, and the entries
of a call are taken one after the other. The server's time is an argument. Conformance vectors are made with it.

`Queue` is a queue whose keys are sound; its `state` may be lost. Damage is the business of `reference_repair`.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from keyspace import EPOCH, LEVEL, Keyspace, Record, State, place_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reference_calls import Add, Answer, Complete, Extend, Release, Reply

END: Final = 2_840_140_800_000_000
"""2060-01-01; times are taken from 2025 until then."""
NEVER: Final = 2**53
CAP: Final = 4_000_000
BUDGET: Final = 1_048_576
SWEEP: Final = 64
MONTH_MS: Final = 2_592_000_000


class RefusedError(Exception):
    """A call that changes nothing; the text is the code."""


def require(condition: bool, code: str = "BAD_ARGUMENT") -> None:
    if not condition:
        raise RefusedError(f"LEASEQ_{code}")


@dataclass
class Item:
    """An item; `score` is its place, due time, deadline or time of death, whichever its state makes it."""

    data: bytes
    where: str
    score: int
    created: int
    recorded: bool
    attempt: int = 0
    token: int = 0
    priority: int = 0
    max_attempts: int = 0

    def had(self, token: int) -> bool:
        """Whether the item was ever leased under the token."""
        return self.recorded and self.created < token <= self.token

    def move(self, where: str, score: int) -> None:
        """Put the item in another state."""
        self.where, self.score = where, score


@dataclass
class Queue:
    """A queue. Every operation takes the server's time where its script does, and gives the script's reply."""

    items: dict[bytes, Item] = field(default_factory=dict)
    counters: Counter[str] = field(default_factory=Counter)
    state: State | None = None
    wake: int = 0

    # Writing

    def add(self, now: int, entries: Sequence[Add]) -> Reply:
        """Add what does not exist."""
        state = self._open(now)
        for entry in entries:
            _check_id(entry.id)
            require(len(entry.data) <= (state.max_data or BUDGET), "TOO_LARGE")
            require(entry.delay is None or entry.not_before is None)
            require(_due(entry, now) < END)
        answers: list[Answer] = []
        dues: list[int] = []
        for entry in entries:
            answers.append(0)
            if entry.id in self.items:
                continue
            answers[-1] = created = tick(state, now)
            state.added += 1
            state.largest = max(state.largest, len(entry.data))
            due, priority, max_attempts = _due(entry, now), entry.priority or 0, entry.max_attempts or 0
            waits = due > now
            self.items[entry.id] = item = Item(entry.data, "delayed", due, created, recorded=waits)
            item.priority, item.max_attempts = priority, max_attempts
            item.recorded = waits or bool(priority or max_attempts)
            if waits:
                dues.append(due)
            else:
                self._to_ready(item, created)
        if any(answers):
            self._nearer(state, dues)
        return _answer(answers)

    def lease(self, now: int, count: int, duration: int) -> Reply:
        """Sweep, then lease the first `count`."""
        require(1 <= count <= 256 and 1 <= duration <= MONTH_MS)
        return self._lease(self._open(now), now, count, duration)

    def _lease(self, state: State, now: int, count: int, duration: int) -> list[Answer]:
        bound, changed = state.next_due, False
        if now >= bound:
            changed = any(self._sweep(state, now, SWEEP))
        taken: list[Answer] = []
        size = 0
        for item_id, item in self._in("ready")[:count]:
            size += len(item.data)
            if taken and size > BUDGET:
                break
            item.token = tick(state, now)
            item.attempt += 1
            item.recorded = True
            item.move("leased", now + duration * 1000)
            taken += [item_id, item.data, item.token, item.attempt]
        leased, left = len(taken) // 4, bool(self._in("ready"))
        if leased:
            state.leases += leased
            state.next_due = min(state.next_due, now + duration * 1000)
        wait = 0
        if not leased and not left:
            state.next_due = self.first_due()
            wait = _wait(state.next_due, now)
        if changed or leased or state.next_due != bound:
            self.state = state
        if left or (leased and state.next_due <= now + CAP):
            self._wake()
        return [wait, now + duration * 1000 if leased else 0, leased, *taken]

    def complete(self, entries: Sequence[Complete]) -> Reply:
        """Finish items with any token they had."""
        for entry in entries:
            _check_id(entry.id)
        answers: list[Answer] = []
        for entry in entries:
            item = self.items.get(entry.id)
            won = item is not None and item.had(entry.token)
            if won and entry.only_current:
                won = self._held(entry.id, entry.token) is not None
            if won:
                del self.items[entry.id]
            answers.append(int(won))
        return _answer(answers)

    def complete_and_lease(self, now: int, count: int, duration: int, entries: Sequence[Complete]) -> Reply:
        """One after the other. Where the state is lost, its counts are those from before both."""
        require(1 <= count <= 256 and 1 <= duration <= MONTH_MS)
        state = self._open(now)
        answers = self.complete(entries)
        return [*self._lease(state, now, count, duration), *_many(answers)]

    def extend(self, now: int, entries: Sequence[Extend]) -> Reply:
        """Move the deadlines of current leases."""
        for entry in entries:
            _check_id(entry.id)
            require(1 <= entry.duration <= MONTH_MS)
        state = self._open(now)
        answers: list[Answer] = []
        for entry in entries:
            item = self._held(entry.id, entry.token)
            if item:
                item.move("leased", now + entry.duration * 1000)
            answers.append(item.score if item else 0)
        moved = [answer for answer in _many(answers) if isinstance(answer, int) and answer]
        if moved and (state.next_due == 0 or min(moved) < state.next_due):
            state.next_due = min(state.next_due, *moved)
            self.state = state
            self._wake()
        return _answer(answers)

    def release(self, now: int, entries: Sequence[Release]) -> Reply:
        """Give leased items back."""
        state = self._open(now)
        for entry in entries:
            _check_id(entry.id)
            require(now + (entry.delay or 0) * 1000 < END)
        answers: list[Answer] = []
        dues: list[int] = []
        for entry in entries:
            item = self._held(entry.id, entry.token)
            if not item:
                answers.append(b"lost")
                continue
            due = now + (entry.delay or 0) * 1000
            if entry.uncounted:
                item.attempt = max(0, item.attempt - 1)
            if not entry.uncounted and item.max_attempts and item.attempt >= item.max_attempts:
                item.move("dead", now)
                self.counters["died"] += 1
            elif due > now:
                item.move("delayed", due)
                dues.append(due)
            else:
                back = tick(state, now)
                self._to_ready(item, item.created if entry.uncounted else back)
            self.counters["released"] += 1
            answers.append(item.where.encode())
        if any(answer != b"lost" for answer in answers):
            self._nearer(state, dues)
        return _answer(answers)

    def remove(self, entries: Sequence[bytes]) -> Reply:
        """Drop items whatever their state."""
        for item_id in entries:
            _check_id(item_id)
        answers: list[Answer] = []
        for item_id in entries:
            item = self.items.pop(item_id, None)
            answers.append(item.where.encode() if item else b"absent")
            self.counters["removed"] += item is not None
        return _answer(answers)

    def settle(self, now: int) -> Reply:
        """Pass a wake-up on."""
        state = self._open(now)
        if self.wake or not (self._in("ready") or state.next_due <= now + CAP):
            return 0
        self._wake()
        return 1

    def light_clean(self, now: int, limit: int) -> Reply:
        """Promote and reclaim."""
        require(1 <= limit <= 256)
        state = self._open(now)
        bound = state.next_due
        promoted, reclaimed, died = self._sweep(state, now, limit)
        if promoted or reclaimed or died or state.next_due != bound:
            self.state = state
            if self._in("ready"):
                self._wake()
        return [promoted, reclaimed, died, _wait(state.next_due, now)]

    def configure(self, max_data: int) -> Reply:
        """Set the limit of data."""
        require(1 <= max_data <= 2**29)
        self.state = self._state()
        self.state.max_data = max_data
        return 1

    # Reading

    def stats(self, now: int) -> Reply:
        """All numbers of the queue."""
        state = self._open(now)
        count = self.counters
        sizes = Counter(item.where for item in self.items.values())
        ready = self._in("ready")
        completed = state.added - len(self.items) - count["removed"] - count["dropped"]
        numbers = {
            "now": now,
            "items": len(self.items),
            **{name: sizes[name] for name in ("ready", "delayed", "leased", "dead")},
            "overdue": sum(item.score <= now for _, item in self._in("leased")),
            "due": sum(item.score <= now for _, item in self._in("delayed")),
            "waited": max(0, now - place_time(ready[0][1].score)) if ready else 0,
            "added": state.added,
            "leases": state.leases,
            "completed": max(0, completed),
            **{
                name: count[name]
                for name in ("promoted", "reclaimed", "released", "died", "removed", "dropped")
            },
            "largest": state.largest,
            "max_data": state.max_data or BUDGET,
        }
        return [part for name, number in numbers.items() for part in (name.encode(), number)]

    def inspect(self, entries: Sequence[bytes]) -> Reply:
        """Eight fields for each id."""
        reply: list[Answer] = []
        for item_id in entries:
            _check_id(item_id)
            item = self.items.get(item_id)
            if item is None:
                reply += [b"absent", *[0] * 7]
                continue
            created = item.created if item.recorded or item.where == "ready" else 0
            known = (item.attempt, item.token, created, len(item.data), item.priority, item.max_attempts)
            reply += [item.where.encode(), _time(item), *known]
        return reply

    def page(self, where: str, offset: int, limit: int, order: str) -> Reply:
        """A page of one state."""
        require(1 <= limit <= 256)
        found = self._in(where)
        if order == "backward":
            found.reverse()
        page = found[offset : offset + limit]
        return [len(found), *(part for item_id, item in page for part in (item_id, _time(item)))]

    # The stored form

    def keyspace(self) -> Keyspace:
        """The keys as they must be stored."""
        keyspace = Keyspace(state=copy.copy(self.state), wake=self.wake)
        for item_id, item in self.items.items():
            keyspace.items[item_id] = item.data
            keyspace.zsets()[item.where][item_id] = item.score
            if item.recorded:
                fields = (item.attempt, item.token, item.created, item.priority, item.max_attempts)
                keyspace.meta[item_id] = Record(*fields)
        keyspace.counters = {name.encode(): count for name, count in self.counters.items() if count}
        return keyspace

    @classmethod
    def load(cls, keyspace: Keyspace) -> Queue:
        """The queue that is stored in these sound keys."""
        queue = cls(wake=keyspace.wake)
        queue.counters.update({name.decode(): count for name, count in keyspace.counters.items()})
        require(not isinstance(keyspace.state, bytes), "FORMAT")
        queue.state = copy.copy(keyspace.state) if isinstance(keyspace.state, State) else None
        for item_id, data in keyspace.items.items():
            (where,) = keyspace.where(item_id)
            record = keyspace.meta.get(item_id)
            if isinstance(record, bytes):
                raise RefusedError("LEASEQ_FORMAT")
            score = keyspace.zsets()[where][item_id]
            known = record or Record(0, 0, place_time(score))
            queue.items[item_id] = Item(data, where, score, known.created, record is not None)
            item = queue.items[item_id]
            item.attempt, item.token, _, item.priority, item.max_attempts = known
        return queue

    # What the operations share

    def _state(self) -> State:
        return copy.copy(self.state) if self.state else lost_state(len(self.items))

    def _open(self, now: int) -> State:
        require(EPOCH <= now < END, "CLOCK")
        return self._state()

    def _in(self, where: str) -> list[tuple[bytes, Item]]:
        """The items of one state in order."""
        found = [(item_id, item) for item_id, item in self.items.items() if item.where == where]
        return sorted(found, key=lambda pair: (pair[1].score, pair[0]))

    def _held(self, item_id: bytes, token: int) -> Item | None:
        """The item if the token is that of its current lease."""
        item = self.items.get(item_id)
        return item if item and item.recorded and item.where == "leased" and item.token == token else None

    @staticmethod
    def _to_ready(item: Item, clock: int) -> None:
        item.move("ready", clock - EPOCH - item.priority * LEVEL)
        if not item.recorded:
            item.created = clock  # nothing but its place says when it was created

    def _sweep(self, state: State, now: int, limit: int) -> tuple[int, int, int]:
        """Promote and reclaim up to `limit` of each; promoted, reclaimed, died."""
        due, late = (
            [pair for pair in self._in(name) if pair[1].score <= now] for name in ("delayed", "leased")
        )
        died = 0
        for _, item in [*due[:limit], *late[:limit]]:
            if item.where == "leased" and item.max_attempts and item.attempt >= item.max_attempts:
                item.move("dead", now)
                died += 1
            else:
                self._to_ready(item, tick(state, now))
        promoted, ended = len(due[:limit]), len(late[:limit])
        self.counters.update(promoted=promoted, reclaimed=ended - died, died=died)
        state.next_due = self.first_due()
        return promoted, ended - died, died

    def first_due(self) -> int:
        """The first due time or deadline."""
        return min(
            (item.score for item in self.items.values() if item.where in {"delayed", "leased"}), default=NEVER
        )

    def _nearer(self, state: State, dues: Sequence[int]) -> None:
        """End add and release: keep the bound, wake when it moved nearer or something is ready."""
        soonest = min([state.next_due, *dues])
        nearer = state.next_due == 0 or soonest < state.next_due
        state.next_due = soonest
        self.state = state
        if nearer or self._in("ready"):
            self._wake()

    def _wake(self) -> None:
        self.wake = self.wake or 1


def _check_id(item_id: bytes) -> None:
    try:
        item_id.decode()
    except UnicodeDecodeError:
        raise RefusedError("LEASEQ_BAD_ID") from None
    require(0 < len(item_id) <= 256 and b"\0" not in item_id, "BAD_ID")


def tick(state: State, now: int) -> int:
    state.clock = max(state.clock + 1, now)
    return state.clock


def _due(entry: Add, now: int) -> int:
    return entry.not_before * 1000 if entry.not_before is not None else now + (entry.delay or 0) * 1000


def _time(item: Item) -> int:
    return place_time(item.score) if item.where == "ready" else item.score


def _wait(next_due: int, now: int) -> int:
    return max(0, next_due - now) if next_due < NEVER else -1


def _many(reply: Reply) -> list[Answer]:
    return reply if isinstance(reply, list) else [reply]


def _answer(answers: list[Answer]) -> Reply:
    return answers[0] if len(answers) == 1 else answers


def lost_state(held: int) -> State:
    """What is taken for the state where it is lost: the most careful of all."""
    return State(added=held, largest=2**32 - 1 if held else 0, next_due=0 if held else NEVER)
