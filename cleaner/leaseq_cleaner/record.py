"""The numbers that a cleaner keeps of each queue, and their sums."""

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from leaseq.results import COUNTERS, DeepClean, LightClean, QueueStats

TROUBLE: Final = ("reclaimed", "died", "expired", "dropped")
"""The events after which a queue is worth a look."""

TROUBLE_HALVES_SECS: Final = 600.0
"""Seconds in which half of a queue's trouble is forgotten."""


@dataclass(slots=True)
class Counts:
    """Counters that only grow, of a queue or of many.

    Attributes:
        events: what happened to items, by event.
        moved: what light cleans did.
        repaired: what deep cleans repaired, by kind.
        losses: how often counts of a queue went back.
    """

    events: dict[str, int] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    losses: int = 0


def add(counts: dict[str, int], more: Iterable[tuple[str, int]]) -> None:
    """Add to counts; what is 0 stays out."""
    for name, count in more:
        if count:
            counts[name] = counts.get(name, 0) + count


@dataclass(slots=True)
class QueueRecord:
    """One queue, as it was when it was last looked at. Times are seconds since 1970, but for `read_at`.

    Attributes:
        found_at: when the cleaner found it.
        sums: the sums that it is part of: those of all queues, and those of its group if that has others.
        counts: what this cleaner did there; its events are those of `stats`.
        stats: its counts, None before the first look.
        read_at: when they were read, on `time.monotonic`.
        deep_cleaned_at: when a deep clean ended; 0 before the first, None if there are none.
    """

    found_at: float
    sums: list[Counts]
    counts: Counts = field(default_factory=Counts)
    stats: QueueStats | None = None
    read_at: float = -math.inf
    deep_cleaned_at: float | None = None
    _trouble: float = 0.0
    _trouble_at: float = 0.0

    def take(self, stats: QueueStats) -> bool:
        """Take in its counts. Return whether they went back: the server lost what was written last."""
        before, now = self.stats, time.monotonic()
        self.stats, self.read_at = stats, now
        if before is None:
            return False
        grown = [(event, getattr(stats, event) - getattr(before, event)) for event in COUNTERS]
        for sums in self.sums:
            add(sums.events, ((event, count) for event, count in grown if count > 0))
        lost = any(count < 0 for _, count in grown)
        if lost:
            for counts in (self.counts, *self.sums):
                counts.losses += 1
        self._worry(sum(count for event, count in grown if event in TROUBLE and count > 0) + lost, now)
        return lost

    def moved(self, done: LightClean) -> None:
        """Take in what a light clean did."""
        for counts in (self.counts, *self.sums):
            add(counts.moved, done.counts.items())

    def repaired(self, done: DeepClean) -> None:
        """Take in what a page of a deep clean repaired."""
        for counts in (self.counts, *self.sums):
            add(counts.repaired, done.repairs.items())
        self._worry(done.total, time.monotonic())

    def _worry(self, count: int, now: float) -> None:
        if count:
            self._trouble, self._trouble_at = self.trouble(now) + count, now

    # how urgent it is: each is 0 if there is nothing to see

    def trouble(self, now: float) -> float:
        """Return how much went wrong lately, `now` on `time.monotonic`."""
        if not self._trouble:
            return 0.0
        return float(self._trouble * 0.5 ** ((now - self._trouble_at) / TROUBLE_HALVES_SECS))

    @property
    def wait_secs(self) -> float:
        """Seconds that the next item has waited, unless the queue is paused."""
        return 0.0 if self.stats is None or self.stats.paused else self.stats.waited

    @property
    def late(self) -> int:
        """Expired leases and due items that are still in their place."""
        return 0 if self.stats is None else self.stats.overdue + self.stats.due

    @property
    def fullness(self) -> float:
        """The part of its limit that a queue holds; 0 without a limit."""
        stats = self.stats
        return (stats.items - stats.dead) / stats.max_items if stats is not None and stats.max_items else 0.0

    @property
    def clean_since(self) -> float:
        """The time since which no deep clean has ended: seconds since 1970."""
        return max(self.found_at, self.deep_cleaned_at or 0.0)
