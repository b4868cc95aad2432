# Generated from _aio/waiter.py by python/unasync.py: do not edit.
"""Waits for items beside the main loop, so that ends are told meanwhile."""

import contextlib
from collections.abc import Callable

from leaseq._sync import io
from leaseq._sync.queue import LeasedItem
from leaseq.errors import LeaseqError, QueueClosedError
from leaseq.worker import outage
from leaseq.worker._sync.loop import Loop
from leaseq.worker._sync.source import Source
from leaseq.worker.outage import Outage


class Waiter(Loop):
    """Leases when there is something, after it was asked to.

    `heard` is told of each failure and success, `bring` takes what was leased, with how many were asked for, `ring` wakes
    the main loop.
    """

    def __init__(
        self,
        source: Source,
        trouble: Outage,
        heard: Callable[[LeaseqError | None], None],
        bring: Callable[[list[LeasedItem], int], None],
        ring: Callable[[], None],
    ) -> None:
        super().__init__()
        self._source = source
        self._outage = trouble
        self._heard = heard
        self._bring = bring
        self._ring = ring
        self.asked = 0

    def ask(self, count: int) -> None:
        """Wait for up to so many items."""
        self.asked = count
        self._bell.ring()

    def run(self) -> None:
        """Wait when asked to. Raises QueueClosedError."""
        failures = 0
        while not self._over:
            if not self.asked:
                self._bell.wait(None)
                continue
            try:
                # a wait may be long, and says nothing of a server that is back
                look = self._source.take if failures or self._outage.lasts else self._source.wait
                items = look(self.asked)
            except QueueClosedError:
                raise
            except LeaseqError as error:
                failures += 1
                # one that breaks with a lease in it says so; whether the server is away, the next look tells
                if failures > 1 or error.definite:
                    self._heard(error)
                    io.sleep(outage.pause(failures))
                continue
            failures = 0
            if items and self._over:  # nobody takes them any more
                with contextlib.suppress(LeaseqError):
                    items[0].queue.release_items(items, uncounted=True)
            elif items:
                self._bring(items, self.asked)
                self.asked = 0
                self._ring()
            self._heard(None)
