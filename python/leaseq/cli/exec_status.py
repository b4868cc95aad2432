"""The metrics and the health of `leaseq exec --listen`."""

import asyncio
import time
from typing import Final

from leaseq.aio import WorkQueue
from leaseq.status_server import Status, StatusServer
from leaseq.worker.aio import Worker
from leaseq.worker.work_counts import WorkCounts, WorkKind, WorkTotals
from leaseq.worker.work_meter import HandlerMeter
from leaseq.worker.work_metrics import WorkCollector

LOOK_SECS: Final = 1.0
"""Seconds between two looks at the worker."""

ALIVE_SECS: Final = 10.0
"""Seconds without a turn of its loop after which the program counts as hanging."""

UNREADY: Final = {
    "starting": "the server has not answered yet",
    "leasing": "",
    "away": "the server does not answer, or refuses",
    "stopping": "the worker stops",
    "quiet": "",
}


class ExecStatus:
    """Counts the work of one worker, and serves that.

    Attributes:
        meter: hooks for the worker.
        server: to be entered.
    """

    def __init__(self, queue: WorkQueue, address: str) -> None:
        """Raises BadArgumentError if it cannot listen there."""
        self._counts = WorkCounts()
        self._counts.row(
            WorkKind(queue.group, queue.name, "")
        )  # from 0: else a rate would not show the first item
        self._turned_at = time.monotonic()
        self.meter = HandlerMeter(self._counts)
        registry = WorkCollector(self._totals, lambda: self._counts.answered_at, self._server_up).registry
        self.server = StatusServer(Status(registry, self._unhealthy, self._unready), address)

    async def watch(self, worker: Worker) -> None:
        """Look at the worker now and then, for as long as its loop turns."""
        while True:
            self._turned_at = time.monotonic()
            self.meter.look(worker)
            await asyncio.sleep(LOOK_SECS)

    def _totals(self) -> WorkTotals:
        totals = WorkTotals()
        totals.add(self._counts)
        return totals

    def _server_up(self) -> bool:
        return self._counts.readiness != "away" and self._counts.answered_at > 0

    def _unhealthy(self) -> str:
        return "" if time.monotonic() - self._turned_at < ALIVE_SECS else "the event loop hangs"

    def _unready(self) -> str:
        return self._unhealthy() or UNREADY[self._counts.readiness]
