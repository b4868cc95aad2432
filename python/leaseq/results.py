"""The answers of the operations, beyond plain values."""

from dataclasses import dataclass, field
from typing import Final, Literal

State = Literal["ready", "delayed", "leased", "dead", "none", "absent"]
"""`none` is an item that damage left in no state (deep_clean repairs it); `absent` is no item."""

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

OutcomeState = Literal["result", "failure", "delayed", "ready", "leased", "dead", "none", "absent"]
"""An outcome, or the state of an item that has none."""

Released = Literal["ready", "delayed", "dead", "lost"]
"""Where a released item went; `lost` when the lease was no longer current."""


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Counts of one queue at one moment, its cumulative counters and its limits. Times are seconds, sizes bytes.

    `kept` counts outcomes. `max_items` and `max_attempts` are 0 without a limit.
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


@dataclass(frozen=True, slots=True)
class ItemInfo:
    """An item without its data.

    `time` is its place, due time, deadline or time of death, in seconds since 1970 like `created` and `expires` (0: it does
    not expire). `max_attempts` is the limit that applies, 0 without one; `keep` is how many seconds its outcome is kept, 0
    for none; `error` is the last error, "" without one.
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an item: the result or failure that is kept of it, else its state.

    `content` is the result, or the text of the error, as bytes. `created` and `ended` are seconds since 1970; `ended`
    is 0 while it has not. `keep` is for how many seconds an item that is still there keeps its outcome, 0 for none.
    """

    id: str
    state: OutcomeState
    created: float
    ended: float
    attempt: int
    keep: float
    content: bytes

    @property
    def finished(self) -> bool:
        """True if there is an outcome: a result or a failure."""
        return self.state in {"result", "failure"}

    @property
    def error(self) -> str | None:
        """The text of the error, for a failure."""
        return self.content.decode(errors="replace") if self.state == "failure" else None


@dataclass(frozen=True, slots=True)
class Completed:
    """The answer of a call that completes an item and adds follow-ups: true if this call completed the item.

    `added` has an answer for each follow-up, in order: true, false (its id exists), or None (not added, because this call
    did not complete the item, or repeats the call that did).
    """

    completed: bool
    added: list[bool | None]

    def __bool__(self) -> bool:
        return self.completed


@dataclass(frozen=True, slots=True)
class ListedItem:
    """An id of a list, and when it took its place, is due, its lease, its outcome or it itself ended: seconds since 1970."""

    id: str
    time: float


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list by state; `total` counts all items in the state."""

    total: int
    items: list[ListedItem]


@dataclass(frozen=True, slots=True)
class LightClean:
    """The counts of one light clean.

    Due items promoted, expired leases requeued, items that died (of their attempts, or of their age where that was
    asked for), items dropped of age, outcomes forgotten. `wait` is how many seconds later, as things are, the next of
    these is due: None for never. It does not count when two answers are compared.
    """

    promoted: int = 0
    reclaimed: int = 0
    died: int = 0
    expired: int = 0
    pruned: int = 0
    wait: float | None = field(default=None, compare=False)

    def plus(self, other: "LightClean") -> "LightClean":
        """Both together; `wait` is the other's, which came later."""
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
    """The repairs of a deep clean (or of a dry run), by kind of damage (LQ-DEEP-1)."""

    repairs: dict[str, int] = field(default_factory=dict)

    def plus(self, other: "DeepClean") -> "DeepClean":
        """Both together."""
        kinds = [*self.repairs, *(kind for kind in other.repairs if kind not in self.repairs)]
        return DeepClean({kind: self.repairs.get(kind, 0) + other.repairs.get(kind, 0) for kind in kinds})

    @property
    def total(self) -> int:
        """The number of repairs in all."""
        return sum(self.repairs.values())
