# Generated from _aio/tending.py by python/unasync.py: do not edit.
"""Looking after a queue: taking items out, cleaning, limits."""

from collections.abc import Iterable

from leaseq import commands, flows
from leaseq._sync.base import QueueBase
from leaseq.results import DeepClean, LightClean, State


class Tending(QueueBase):
    """The part of a queue that keeps it in order."""

    def remove(self, item_id: str) -> State:
        """Remove an item in any state; answers the state it was in, "absent" if there was none.

        Whoever holds it learns it at its next call: extend says that the lease is lost, complete answers false.
        """
        return (self.remove_items([item_id]))[0]

    def remove_items(self, ids: Iterable[str]) -> list[State]:
        """Remove many items; answers for each, in order."""
        return self._in_chunks(
            flows.chunks(flows.many(ids, "ids")), lambda chunk: commands.remove(self._keys, chunk)
        )

    def light_clean(self) -> LightClean:
        """Requeue all expired leases, promote all due items, end items and outcomes whose time is over.

        In bounded steps. Safe to repeat, at any time.
        """
        done = LightClean()
        while True:
            step = self._transport.run(commands.light_clean(self._keys, 256))
            done = done.plus(step.done)
            self._publish(step.died)
            if step.wait != 0:
                return done

    def deep_clean(self, *, dry_run: bool = False) -> DeepClean:
        """Look through the whole queue for damage and repair it, page by page, while traffic runs (LQ-DEEP-1).

        With `dry_run` nothing is written and the answer says what would be repaired.
        """
        done = DeepClean()
        cursor = "0"
        while True:
            cursor, page = self.deep_clean_page(cursor, dry_run=dry_run)
            done = done.plus(page)
            if cursor == "0":
                return done

    def deep_clean_page(
        self, cursor: str = "0", *, limit: int = 256, dry_run: bool = False
    ) -> tuple[str, DeepClean]:
        """One page of `deep_clean`: the cursor of the next one, "0" after the last, and what was repaired.

        For those who pause between pages. `limit` is about how many entries to look at, 1..256. Safe to repeat with the
        same cursor, at any time, after any error.
        """
        return self._transport.run(commands.deep_clean(self._keys, cursor, limit, dry_run=dry_run))

    def pause(self) -> None:
        """Lease nothing until `resume`, for all clients of the queue. Adding, completing and all else goes on."""
        self._transport.run(commands.configure(self._keys, paused=True))

    def resume(self) -> None:
        """End a pause: waiting workers get items at once."""
        self._transport.run(commands.configure(self._keys, paused=False))

    def configure(
        self, *, max_data: int | None = None, max_items: int | None = None, max_attempts: int | None = None
    ) -> None:
        """Set limits for all clients of the queue; what is not given stays as it is, and so does what is held.

        `max_data` is the largest data of an item in bytes (1 to 512 MiB; 1 MiB until it is set). `max_items` is how
        many items the queue holds at most, dead ones aside (0: any number): `add_item` then raises QueueFullError.
        `max_attempts` is after how many leases an item dies that does not say it itself (0: never).
        """
        command = commands.configure(
            self._keys, max_data=max_data, max_items=max_items, max_attempts=max_attempts
        )
        self._transport.run(command)
