"""Decisions of a worker: how many items to lease, and when to report ended items. No input or output, no clock."""

from leaseq._scripts import MAX_ENTRIES

AHEAD_SECS = 0.02
"""Seconds of work, as measured, that are leased ahead of the free slots."""

GROUP_SECS = 0.001
"""Seconds that an end waits for others, to be reported in one call."""

HOARD_SECS = 0.1
"""Seconds without an end after which prefetched items are released: the work is not what was measured."""


class Prefetcher:
    """Measured durations and counts of one worker, and the decisions made from them.

    `outstanding` counts the items that were handed to the handlers and have not ended, with those that still wait for
    a slot.
    """

    def __init__(self, concurrency: int, *, ahead: bool = True) -> None:
        self.concurrency = concurrency
        self.outstanding = 0
        self._ahead_secs = AHEAD_SECS if ahead else 0.0
        self._mean: float | None = None
        self._first_end: float | None = None

    def record_durations(self, ended: int, seconds: float) -> None:
        """Record that some handlers took these seconds together. The mean rises at once and falls by halves."""
        if ended <= 0:
            return
        mean = seconds / ended
        self._mean = mean if self._mean is None or mean > self._mean else (mean + self._mean) / 2

    def ahead(self) -> int:
        """Return how many items the handlers would start within AHEAD_SECS, at most 256; none before the first is measured."""
        if self._mean is None:
            return 0
        return int(min(MAX_ENTRIES, self._ahead_secs * self.concurrency / max(self._mean, 1e-6)))

    def fetch_count(self) -> int:
        """Return how many items to lease now: for the free slots, and ahead of them once half of that is used up."""
        ahead = self.ahead()
        missing = self.concurrency + ahead - self.outstanding
        free = self.concurrency - self.outstanding
        return min(MAX_ENTRIES, missing) if free > 0 or missing * 2 >= ahead > 0 else 0

    def note_completion(self, now: float) -> None:
        """Record that an item has ended and is not reported yet."""
        if self._first_end is None:
            self._first_end = now

    def flushed(self) -> None:
        """Record that all ended items have been reported."""
        self._first_end = None

    def pause(self, now: float, ended: int) -> float:
        """Return the seconds until ended items are to be reported; 0 for now.

        It is 0 if no other end can come, or a call is full.
        """
        if self._first_end is None or not self.outstanding or ended >= MAX_ENTRIES:
            return 0.0
        return max(0.0, self._first_end + GROUP_SECS - now)

    def flush_threshold(self) -> int:
        """Return how many ends are reported before their time, because they make room for a lease."""
        return max(1, min(MAX_ENTRIES, self.outstanding - self.concurrency - self.ahead() // 2 + 1))
