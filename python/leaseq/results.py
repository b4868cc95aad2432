"""The answers of the operations, beyond plain values."""

from dataclasses import dataclass, field
from typing import Final, Literal

from leaseq import _scripts

State = Literal["ready", "delayed", "leased", "dead", "none", "absent"]
"""The state of an item. "none" is an item that damage left in no state, which `deep_clean` repairs; "absent" is no item."""

ListState = Literal["ready", "delayed", "leased", "dead", "kept"]
"""A list of items: those in a state, or as `kept` those that have an outcome."""

STATES: Final = ("ready", "delayed", "leased", "dead")
"""The states of items."""

COUNTERS: Final = (
    *("added", "leases", "completed", "promoted", "reclaimed", "released"),
    *("died", "expired", "revived", "purged", "removed", "dropped"),
)
"""The cumulative counters of QueueStats: one of them grows whenever an item comes, goes or moves."""

MOVES: Final = ("promoted", "reclaimed", "died", "expired", "pruned")
"""The counts of a light clean."""

REPAIRS: Final = _scripts.REPAIRS
"""The kinds of damage that a deep clean counts."""

OutcomeState = Literal["result", "failure", "delayed", "ready", "leased", "dead", "none", "absent"]
"""The kind of an outcome, or the state of an item that has none."""

Released = Literal["ready", "delayed", "dead", "lost"]
"""The new state of a released item; "lost" if the lease was no longer current."""


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Counts of one queue at one moment, its cumulative counters and its limits. Times are in seconds, sizes in bytes.

    Attributes:
        now: the server's time, in seconds since 1970.
        items: items in any state.
        ready: items that can be leased now.
        delayed: items that wait for their time, including those that are due and not made ready yet.
        leased: items with a lease, including those whose lease has expired and is not reclaimed yet.
        dead: dead letters.
        kept: outcomes that are kept, including expired ones that `light_clean` has not removed yet.
        overdue: leased items whose lease has expired.
        due: delayed items whose time has come.
        waited: seconds for which the next ready item has been ready; 0 without one.
        added: items ever added.
        leases: leases ever given.
        completed: items ever completed.
        promoted: delayed items that became ready.
        reclaimed: leases that ended by their deadline, including those whose item then died.
        released: leases that were given back, including those whose item then died.
        died: items that became dead letters.
        expired: items that were deleted because no worker leased them in time.
        revived: dead items that were made ready again.
        purged: dead items that were deleted.
        removed: items that were removed.
        dropped: ids without data (damage) that `lease` or `deep_clean` deleted.
        largest: an upper limit of the length of any item's data, in bytes; 4294967295 if it is not known.
        max_data: the longest data that an item may have, in bytes.
        max_items: the most items that the queue holds, not counting dead ones; 0: no limit.
        max_attempts: leases after which an item becomes a dead letter, unless it has its own limit; 0: no limit.
        paused: true while the queue is paused.
    """

    now: float
    items: int
    ready: int
    delayed: int
    leased: int
    dead: int
    kept: int
    overdue: int
    due: int
    waited: float
    added: int
    leases: int
    completed: int
    promoted: int
    reclaimed: int
    released: int
    died: int
    expired: int
    revived: int
    purged: int
    removed: int
    dropped: int
    largest: int
    max_data: int
    max_items: int
    max_attempts: int
    paused: bool

    @property
    def unplaced(self) -> int:
        """The number of items in no state; below 0, the number of those in several. `deep_clean` repairs both."""
        return self.items - self.ready - self.delayed - self.leased - self.dead


@dataclass(frozen=True, slots=True)
class ItemInfo:
    """An item without its data. Times are seconds since 1970. If the state is "absent", the numbers are 0.

    Attributes:
        id: the id that was asked for.
        state: its state.
        time: when it became ready, is due (delayed), when its lease ends (leased) or when it died.
        attempt: the number of leases since it was added or revived, without uncounted ones.
        token: the token of its last lease; 0 before the first.
        created: when it was added.
        size: the length of its data, in bytes.
        priority: -7 to 7, higher first.
        max_attempts: leases after which it becomes a dead letter, by its own limit or the queue's; 0: no limit.
        keep: seconds for which its outcome is kept after its end; 0: it is not kept.
        expires: when it is deleted, or dies, if it is not leased before; 0 if it does not expire.
        error: the last error; "" without one.
    """

    id: str
    state: State
    time: float
    attempt: int
    token: int
    created: float
    size: int
    priority: int
    max_attempts: int
    keep: float
    expires: float
    error: str


WAITS = frozenset({"ready", "delayed", "leased"})
"""States from which an outcome may come."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an item: the result or failure that is kept of it, else its state.

    Attributes:
        id: the id that was asked for.
        state: "result" or "failure"; without an outcome the state of the item, or "absent".
        created: when the item was added: seconds since 1970.
        ended: when it was completed or died: seconds since 1970; 0 before.
        attempt: the number of leases that it had.
        keep: seconds for which the outcome of an item that is still there will be kept; 0: not at all, or it is gone.
        content: the result, or the text of the error in UTF-8; empty without an outcome.
        pending: true if an outcome can still come: the item is there, may be completed, and keeps its outcome.
    """

    id: str
    state: OutcomeState
    created: float
    ended: float
    attempt: int
    keep: float
    content: bytes
    pending: bool = False

    @property
    def finished(self) -> bool:
        """True if there is an outcome: a result or a failure."""
        return self.state in {"result", "failure"}

    @property
    def error(self) -> str | None:
        """The text of the error of a failure, else None."""
        return self.content.decode(errors="replace") if self.state == "failure" else None


@dataclass(frozen=True, slots=True)
class Completed:
    """The answer to a call that completes an item and adds follow-ups. Its truth value is `completed`.

    Attributes:
        completed: true if this call completed the item.
        added: an answer for each follow-up, in order: true, false (its id exists), or None (not added, because this call
            did not complete the item, or repeats the call that did).
    """

    completed: bool
    added: list[bool | None]

    def __bool__(self) -> bool:
        return self.completed


@dataclass(frozen=True, slots=True)
class ListedItem:
    """One entry of a `Page`.

    Attributes:
        id: the id of the item.
        time: when it became ready, is due (delayed), when its lease ends (leased), when it died, or when its outcome ends (kept):
            seconds since 1970.
    """

    id: str
    time: float


@dataclass(frozen=True, slots=True)
class Page:
    """One page of `list_items`.

    Attributes:
        total: the number of entries in the state, on all pages.
        items: the entries of this page.
    """

    total: int
    items: list[ListedItem]


@dataclass(frozen=True, slots=True)
class LightClean:
    """The counts of one light clean. `==` ignores `wait`.

    Attributes:
        promoted: due items that became ready.
        reclaimed: expired leases whose items became ready.
        died: items that died, because their attempts are used up or because they expired.
        expired: items that were deleted because no worker leased them in time.
        pruned: expired outcomes whose ids were removed from the "kept" list.
        wait: seconds until the next item, lease or outcome is due; None: nothing will be.
    """

    promoted: int = 0
    reclaimed: int = 0
    died: int = 0
    expired: int = 0
    pruned: int = 0
    wait: float | None = field(default=None, compare=False)

    def plus(self, other: "LightClean") -> "LightClean":
        """Return the sum of both. `wait` is that of `other`, the later one."""
        counts = {name: count + getattr(other, name) for name, count in self.counts.items()}
        return LightClean(**counts, wait=other.wait)

    @property
    def counts(self) -> dict[str, int]:
        """The counts, by name."""
        return {name: getattr(self, name) for name in MOVES}

    @property
    def total(self) -> int:
        """The sum of the counts."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class DeepClean:
    """The repairs of a deep clean, or of a dry run (LQ-DEEP-1).

    Attributes:
        repairs: the number of repairs, by kind of damage.
    """

    repairs: dict[str, int] = field(default_factory=dict)

    def plus(self, other: "DeepClean") -> "DeepClean":
        """Return the sum of both."""
        kinds = [*self.repairs, *(kind for kind in other.repairs if kind not in self.repairs)]
        return DeepClean({kind: self.repairs.get(kind, 0) + other.repairs.get(kind, 0) for kind in kinds})

    @property
    def total(self) -> int:
        """The number of repairs in all."""
        return sum(self.repairs.values())
