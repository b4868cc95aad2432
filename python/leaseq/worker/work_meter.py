"""Counting the work of a worker, as its hooks see it."""

import time
from typing import Any, Protocol

from leaseq.item import LeasedItemBase
from leaseq.worker.hooks import Hooks
from leaseq.worker.settings import Readiness
from leaseq.worker.work_counts import WorkCounts, WorkKind


class Watched(Protocol):
    """A worker that reports how far it is."""

    @property
    def readiness(self) -> Readiness:
        """The state that the worker is in."""

    @property
    def answered_at(self) -> float | None:
        """When the server last answered, in seconds since 1970."""


class WorkMeter(Hooks):
    """Counts the items of one worker. `begin` and `end` are called by the code that runs them, the others as hooks."""

    def __init__(self, counts: WorkCounts) -> None:
        self.counts = counts
        self._rows: dict[LeasedItemBase, int] = {}
        self._running: dict[LeasedItemBase, tuple[int, float]] = {}

    def begin(self, item: LeasedItemBase, function: str = "", lag_secs: float | None = None) -> None:
        """Count the start of an item's work; `lag_secs` after it was due, if that is known."""
        counts = self.counts
        row = self._rows[item] = self._row(item, function)
        self._running[item] = row, time.perf_counter()
        counts.count(row, "started")
        counts.running(row, 1)
        if lag_secs is not None:
            counts.lagged(row, lag_secs)

    def end(self, item: LeasedItemBase) -> None:
        """Count the end of an item's work."""
        row, since = self._running.pop(item)
        self.counts.running(row, -1)
        self.counts.ran(row, time.perf_counter() - since)

    def completed(self, item: LeasedItemBase) -> None:
        """Count a completed item."""
        self._count(item, "completed")

    def released(self, item: LeasedItemBase, delay: float, error: str | None) -> None:  # noqa: ARG002
        """Count an item that goes back: after a failure, it is tried again."""
        self._failed(item, "released" if error is None or item not in self._rows else "retried")

    def dead_lettered(self, item: LeasedItemBase, error: str | None) -> None:  # noqa: ARG002
        """Count an item that died."""
        self._failed(item, "died")

    def lost(self, item: LeasedItemBase) -> None:
        """Count an item that is no longer this worker's. While its work goes on, that can still complete it."""
        row = self._rows.get(item) if item in self._running else self._rows.pop(item, None)
        self.counts.count(self._row(item, "") if row is None else row, "lost")

    def charged(self, queue: Any, function: str, event: str) -> None:
        """Count a failure of an item whose process died: it is tried again, or died."""
        row = self.counts.row(WorkKind(queue.group, queue.name, function))
        self.counts.count(row, "failed")
        self.counts.count(row, event)

    def look(self, worker: Watched) -> None:
        """Write how far the worker is, and count what is lost without a word of the server."""
        self.counts.look(worker.answered_at, worker.readiness)
        now = time.monotonic()
        for item in [each for each in self._rows if each not in self._running and each.hold.is_over(now)]:
            if item.lost:  # counted while its work went on
                del self._rows[item]
            else:
                self.lost(item)

    def _failed(self, item: LeasedItemBase, event: str) -> None:
        if event != "released" and item in self._rows:
            self.counts.count(self._rows[item], "failed")
        self._count(item, event)

    def _count(self, item: LeasedItemBase, event: str) -> None:
        row = self._rows.pop(item, None)
        self.counts.count(self._row(item, "") if row is None else row, event)

    def _row(self, item: Any, function: str) -> int:
        return self.counts.row(WorkKind(item.queue.group, item.queue.name, function))


class HandlerMeter(WorkMeter):
    """The same for a worker whose handlers are counted by hooks."""

    def started(self, item: LeasedItemBase) -> None:
        """Count the start of a handler."""
        self.begin(item)

    def ended(self, item: LeasedItemBase, seconds: float, error: BaseException | None) -> None:  # noqa: ARG002
        """Count the end of a handler; if its item was completed before, that is all."""
        self.end(item)
        if item.hold.ended and item in self._rows:
            row = self._rows.pop(item)
            if error is not None:
                self.counts.count(row, "failed")
