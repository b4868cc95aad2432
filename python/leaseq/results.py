"""What the operations answer, beyond plain values."""

from dataclasses import dataclass, field
from typing import Literal

State = Literal["ready", "delayed", "leased", "dead", "none", "absent"]
"""`none` is an item that damage left in no state (deep_clean repairs it); `absent` is no item."""

Released = Literal["ready", "delayed", "dead", "lost"]
"""Where a released item went; `lost` when the lease was no longer current."""


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Counts of one queue at one moment, and its cumulative counters. Times are seconds, sizes bytes."""

    now: float
    items: int
    ready: int
    delayed: int
    leased: int
    dead: int
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
    removed: int
    dropped: int
    largest: int
    max_data: int


@dataclass(frozen=True, slots=True)
class ItemInfo:
    """What is known of an item. `time` is when it took its place, is due, expires or died: seconds since 1970."""

    id: str
    state: State
    time: float
    attempt: int
    token: int
    created: float
    size: int
    priority: int
    max_attempts: int


@dataclass(frozen=True, slots=True)
class ListedItem:
    """An id of a list by state, and when it took its place, is due, expires or died: seconds since 1970."""

    id: str
    time: float


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list by state; `total` counts all items in the state."""

    total: int
    items: list[ListedItem]


@dataclass(frozen=True, slots=True)
class LightClean:
    """What a light clean did: due items promoted, expired leases requeued, items that died of their attempts."""

    promoted: int = 0
    reclaimed: int = 0
    died: int = 0

    def plus(self, other: "LightClean") -> "LightClean":
        """Both together."""
        return LightClean(
            self.promoted + other.promoted, self.reclaimed + other.reclaimed, self.died + other.died
        )


@dataclass(frozen=True, slots=True)
class DeepClean:
    """What a deep clean repaired (or would, in a dry run), by kind of damage (LQ-DEEP-1)."""

    repairs: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many repairs in all."""
        return sum(self.repairs.values())
