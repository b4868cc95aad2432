# Generated from _aio/leased.py by python/unasync.py: do not edit.
"""A leased item, and its life inside a `with` block."""

import traceback
from types import TracebackType
from typing import TYPE_CHECKING, Self

from leaseq import flows
from leaseq._sync import io
from leaseq._sync.heart import Heart
from leaseq.commands import Taken
from leaseq.errors import LeaseqError, TooLargeError
from leaseq.item import LeasedItemBase

if TYPE_CHECKING:
    from leaseq._sync.queue import WorkQueue


class LeasedItem(LeasedItemBase):
    """An item that this process holds.

    `id`, `data`, `headers`, `content_type`; `token`; `attempt` (1 for the first lease); `deadline`; `lost`; `keep` (for
    how many seconds its outcome is kept, 0 for none); `queue` (that it was leased from); `result`, which can be set.

    As a context manager it is extended in the background, completed at the end (with `result`), and released with
    exponential backoff when the block raises an exception, which is kept as the last error and then passes on. An
    interruption (KeyboardInterrupt, SystemExit) releases it at once and uncounted. What the block
    completed or released itself is left alone. In asyncio, when the server says that the lease is lost (another worker
    took over, or the item was removed), the task is cancelled where it waits inside the block, and the block ends
    quietly: `lost` is true then. Threads cannot be cancelled: look at `lost` in work that takes long.
    """

    __slots__ = ("_heart", "_stopper", "queue")

    def __init__(
        self, queue: "WorkQueue", heart: Heart, taken: Taken, deadline: float, lease_secs: float, since: float
    ) -> None:
        item_id, data, token, attempt = taken
        super().__init__(item_id, data, token, attempt, deadline, lease_secs, since)
        self.queue = queue
        self._heart = heart
        self._stopper: io.Stopper | None = None

    def __enter__(self) -> Self:
        self._stopper = io.Stopper()
        self._heart.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> io.Swallows:
        self._heart.drop([self])
        stopper, self._stopper = self._stopper, None
        if stopper is not None and stopper.end(error):
            return True
        if self._ended:
            return False
        if error is None:
            self._complete()
        elif not self._lost:
            self._release(error)
        return False

    def _complete(self) -> None:
        try:
            self.queue.complete(self)
        except TooLargeError as error:
            # nothing was done, and it would be the same again: the next attempt comes as after any other failure
            self._release(error)
            raise

    def _release(self, error: BaseException) -> None:
        try:
            if isinstance(error, Exception):
                text = "".join(traceback.format_exception_only(error)).strip()
                self.queue.release(self, delay=flows.backoff(self.attempt), error=text)
            else:
                self.queue.release(self, uncounted=True)
        except LeaseqError as failure:
            # what the block raised passes on, above all an interruption
            error.add_note(
                f"leaseq did not release item {self.id!r}, which waits for its deadline: {failure}"
            )

    def _stop(self) -> None:
        if self._stopper is not None and not self._ending and not self._ended:
            self._stopper.stop()
