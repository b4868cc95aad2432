"""The base of the reference model: the items of a queue, its clock, its wake-ups, and its stored form."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

from leaseq_conformance.model.codec import (
    EPOCH,
    EXTRA,
    LEVEL,
    OUTCOMES,
    UNLIMITED,
    Extra,
    Outcome,
    Record,
    State,
    place_time,
)
from leaseq_conformance.model.keyspace import Keyspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaseq_conformance.model.calls import Answer, Reply

END: Final = 2_840_140_800_000_000
"""2060-01-01; times are taken from 2025 until then."""
NEVER: Final = 2**53
CAP: Final = 4_000_000
BUDGET: Final = 1_048_576


class RefusedError(Exception):
    """A call that changes nothing; the text is the code."""


def require(condition: bool, code: str = "BAD_ARGUMENT") -> None:
    if not condition:
        raise RefusedError(f"LEASEQ_{code}")


@dataclass
class Item:
    """An item; `score` is its place, due time, deadline or time of death, whichever its state makes it.

    `recorded` says whether it has a record, `options` what kind of one; `max_attempts` is that of the record, where 0 and
    65535 have special meanings; `indexed` is whether it is in `expiry`.
    """

    data: bytes
    where: str
    score: int
    created: int
    recorded: bool = False
    attempt: int = 0
    token: int = 0
    priority: int = 0
    max_attempts: int = 0
    keep: int = 0
    expires: int = 0
    options: int = 0
    extra: Extra | None = None
    indexed: bool = False

    def had(self, token: int) -> bool:
        """Return whether the item was ever leased under the token."""
        return self.recorded and self.created < token <= self.token

    def move(self, where: str, score: int) -> None:
        """Put the item in another state."""
        self.where, self.score = where, score

    def failed(self, error: bytes) -> None:
        """Note the last error; from then on the item has an extra."""
        self.options |= EXTRA | 1
        self.recorded = True
        self.extra = Extra(error, self.extra.pairs if self.extra else ())


@dataclass
class Base:
    """A queue: what is stored of it, and what its operations share."""

    items: dict[bytes, Item] = field(default_factory=dict)
    counters: Counter[str] = field(default_factory=Counter)
    state: State | None = None
    wake: int = 0
    room: int = 0
    kept: dict[bytes, int] = field(default_factory=dict)
    results: dict[bytes, Outcome] = field(default_factory=dict)
    ttls: dict[bytes, int] = field(default_factory=dict)
    finished: int = 0
    """Items completed so far, by the answers. No key has this number."""

    # The stored form

    def keyspace(self) -> Keyspace:
        """The keys as they must be stored."""
        keyspace = Keyspace(state=copy.copy(self.state), wake=self.wake, room=self.room)
        for item_id, item in self.items.items():
            keyspace.items[item_id] = item.data
            keyspace.zsets()[item.where][item_id] = item.score
            if item.recorded:
                numbers = (item.attempt, item.token, item.created, item.priority, item.max_attempts)
                keyspace.meta[item_id] = Record(*numbers, item.keep, item.expires, item.options)
            if item.extra is not None:
                keyspace.extras[item_id] = item.extra
            if item.indexed:
                keyspace.expiry[item_id] = item.expires
        keyspace.counters = {name.encode(): count for name, count in self.counters.items() if count}
        keyspace.kept = dict(self.kept)
        keyspace.results = dict(self.results)
        keyspace.ttls = {item_id: self.ttls[item_id] for item_id in self.results if item_id in self.ttls}
        return keyspace

    @classmethod
    def load(cls, keyspace: Keyspace) -> Self:
        """The queue that is stored in these sound keys."""
        queue = cls(wake=keyspace.wake, room=keyspace.room, kept=dict(keyspace.kept))
        queue.counters.update({name.decode(): count for name, count in keyspace.counters.items()})
        require(not isinstance(keyspace.state, bytes), "FORMAT")
        queue.state = copy.copy(keyspace.state) if isinstance(keyspace.state, State) else None
        for item_id, data in keyspace.items.items():
            (where,) = keyspace.where(item_id)
            record, extra = keyspace.meta.get(item_id), keyspace.extras.get(item_id)
            if isinstance(record, bytes) or isinstance(extra, bytes):
                raise RefusedError("LEASEQ_FORMAT")
            score = keyspace.zsets()[where][item_id]
            known = record or Record(0, 0, place_time(score))
            queue.items[item_id] = item = Item(data, where, score, known.created, record is not None)
            item.attempt, item.token, _, item.priority, item.max_attempts = known[:5]
            item.keep, item.expires, item.options = known[5:]
            item.extra, item.indexed = extra, item_id in keyspace.expiry
        for item_id, outcome in keyspace.results.items():
            if isinstance(outcome, Outcome):
                queue.results[item_id] = outcome
        return queue

    # What the operations share

    def _state(self) -> State:
        return copy.copy(self.state) if self.state else lost_state(len(self.items))

    def _open(self, now: int) -> State:
        require(EPOCH <= now < END, "CLOCK")
        return self._state()

    def _open_to_add(self, now: int) -> State:
        """Where the state is lost, what is kept says whether there are outcomes."""
        state = self._open(now)
        if not self.state and self.kept:
            state.flags |= OUTCOMES
        return state

    def _in(self, where: str) -> list[tuple[bytes, Item]]:
        """The items of one state in order."""
        found = [(item_id, item) for item_id, item in self.items.items() if item.where == where]
        return sorted(found, key=lambda pair: (pair[1].score, pair[0]))

    def _held(self, item_id: bytes, token: int) -> Item | None:
        """The item if the token is that of its current lease."""
        item = self.items.get(item_id)
        return item if item and item.where == "leased" and item.recorded and item.token == token else None

    def _to_ready(self, item: Item, clock: int) -> None:
        item.move("ready", clock - EPOCH - item.priority * LEVEL)
        if not item.recorded:
            item.created = clock  # nothing but its place says when it was created

    def _spent(self, state: State, item: Item) -> bool:
        """Return whether the attempts of an item are used up."""
        limit = limit_of(state, item)
        return 0 < limit <= item.attempt

    def _sweep(self, state: State, now: int, limit: int, died: list[bytes]) -> tuple[int, int, int]:
        """Promote and reclaim up to `limit` of each; promoted, reclaimed, died. `died` gets those with keep."""
        due, late = (
            [pair for pair in self._in(name) if pair[1].score <= now] for name in ("delayed", "leased")
        )
        deaths = 0
        for item_id, item in [*due[:limit], *late[:limit]]:
            if item.where == "leased" and self._spent(state, item):
                item.move("dead", now)
                deaths += 1
                died += [item_id] * bool(item.keep)
            else:
                self._to_ready(item, tick(state, now))
        promoted, ended = len(due[:limit]), len(late[:limit])
        self.counters.update(promoted=promoted, reclaimed=ended - deaths, died=deaths)
        state.next_due = self.first_due()
        return promoted, ended - deaths, deaths

    def first_due(self) -> int:
        """The first due time or deadline; one below 0, which no clock gave, counts as 0."""
        dues = (item.score for item in self.items.values() if item.where in {"delayed", "leased"})
        return max(0, min(dues, default=NEVER))

    def _attended(self, state: State) -> bool:
        """Return whether something can be leased, so that a waiter must be awake for it."""
        return not state.paused and bool(self._in("ready"))

    def _nearer(self, state: State, dues: Sequence[int]) -> None:
        """End add and release: keep the bound, wake when it moved nearer or something is ready."""
        soonest = min([state.next_due, *dues])
        nearer = state.next_due == 0 or soonest < state.next_due
        state.next_due = soonest
        self.state = state
        if nearer or self._attended(state):
            self._wake()

    def _wake(self) -> None:
        self.wake = self.wake or 1

    def _has_room(self, state: State) -> bool:
        held = sum(item.where != "dead" for item in self.items.values())
        return held < state.max_items

    def _signal_room(self, state: State) -> bool:
        """Wake a producer where there is room and a limit."""
        signalled = not self.room and self._has_room(state)
        self.room += signalled
        return signalled

    def _keep(self, state: State, now: int, item_id: bytes, outcome: Outcome, ttl: int) -> None:
        """Publish an outcome."""
        self.results[item_id] = outcome
        self.ttls[item_id] = ttl
        self.kept[item_id] = now + ttl * 1000
        if not state.flags & OUTCOMES:
            state.flags |= OUTCOMES
            self.state = state


def check_id(item_id: bytes) -> None:
    try:
        item_id.decode()
    except UnicodeDecodeError:
        raise RefusedError("LEASEQ_BAD_ID") from None
    require(0 < len(item_id) <= 256 and b"\0" not in item_id, "BAD_ID")


def tick(state: State, now: int) -> int:
    state.clock = max(state.clock + 1, now)
    return state.clock


def limit_of(state: State, item: Item) -> int:
    """The limit of attempts that applies; 0 is none."""
    return {0: state.max_attempts, UNLIMITED: 0}.get(item.max_attempts, item.max_attempts)


def time_of(item: Item) -> int:
    return place_time(item.score) if item.where == "ready" else item.score


def until(next_time: int, now: int) -> int:
    return max(0, next_time - now) if next_time < NEVER else -1


def listed(reply: Reply) -> list[Answer]:
    return reply if isinstance(reply, list) else [reply]


def bare(answers: list[Answer]) -> Reply:
    return answers[0] if len(answers) == 1 else answers


def lost_state(held: int) -> State:
    """Return what is taken for the state where it is lost: the most careful of all."""
    return State(added=held, largest=2**32 - 1 if held else 0, next_due=0 if held else NEVER)
