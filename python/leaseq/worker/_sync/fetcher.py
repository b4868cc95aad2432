# Generated from _aio/fetcher.py by tools/unasync.py: do not edit.
"""Leases items in a separate loop, so that the main loop completes others while the queues are empty."""

import contextlib
from collections.abc import Callable

from leaseq._sync import concurrency
from leaseq._sync.queue import LeasedItem
from leaseq.errors import LeaseqError, QueueClosedError
from leaseq.worker import server_health
from leaseq.worker._sync.side_loop import SideLoop
from leaseq.worker._sync.source import Source
from leaseq.worker.server_health import ServerHealth


class Fetcher(SideLoop):
    """Waits for items whenever the main loop has requested some.

    Attributes:
        requested: how many items the main loop waits for; 0 once they are delivered.
    """

    def __init__(
        self,
        source: Source,
        server_health: ServerHealth,
        on_result: Callable[[LeaseqError | None], None],
        deliver: Callable[[list[LeasedItem], int], None],
        wake: Callable[[], None],
    ) -> None:
        """Take the source to lease from, and what to call.

        Args:
            source: the queues.
            server_health: whether the server is away; then it is polled, since a blocked call would not show its return.
            on_result: called with each error, and with None after each success.
            deliver: called with the leased items, and how many were requested.
            wake: wakes the main loop after a delivery.
        """
        super().__init__()
        self._source = source
        self._server_health = server_health
        self._on_result = on_result
        self._deliver = deliver
        self._wake = wake
        self.requested = 0

    def request(self, count: int) -> None:
        """Wait for up to `count` items. Called by the main loop."""
        self.requested = count
        self._wake_event.set()

    def run(self) -> None:
        """Serve requests until it is ended. Raises QueueClosedError."""
        failures = 0
        while not self._over:
            if not self.requested:
                self._wake_event.wait(None)
                continue
            try:
                # a long wait does not show that the server is back
                fetch = self._source.probe if failures or self._server_health.is_down else self._source.wait
                items = fetch(self.requested)
            except QueueClosedError:
                raise
            except LeaseqError as error:
                failures += 1
                # a lost lease is reported; the next call shows whether the server is away
                if failures > 1 or error.definite:
                    self._on_result(error)
                    concurrency.sleep(server_health.pause(failures))
                continue
            failures = 0
            if items and self._over:  # the worker has ended
                with contextlib.suppress(LeaseqError):
                    items[0].queue.release_items(items, uncounted=True)
            elif items:
                self._deliver(items, self.requested)
                self.requested = 0
                self._wake()
            self._on_result(None)
