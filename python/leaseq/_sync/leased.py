# Generated from _aio/leased.py by python/unasync.py: do not edit.
"""A leased item, and its life inside a `with` block."""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from leaseq import flows
from leaseq._sync.heart import Heart
from leaseq.errors import LeaseqError
from leaseq.item import LeasedItemBase

if TYPE_CHECKING:
    from leaseq._sync.queue import WorkQueue


class LeasedItem(LeasedItemBase):
    """An item that this process holds: `id`, `data`, `token`, `attempt` (1 for the first lease), `deadline`, `lost`.

    As a context manager it is extended in the background, completed at the end, and released with exponential backoff
    when the block raises an exception, which then passes on. An interruption (KeyboardInterrupt,
    SystemExit) releases it at once and uncounted. What the block completed or released itself is left alone.
    """

    __slots__ = ("_heart", "_queue")

    def __init__(self, queue: "WorkQueue", heart: Heart, *fields: Any) -> None:
        super().__init__(*fields)
        self._queue = queue
        self._heart = heart

    def __enter__(self) -> Self:
        self._heart.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._heart.drop(self)
        if self._ended:
            return
        if error is None:
            self._queue.complete(self)
        elif not self._lost:
            try:
                if isinstance(error, Exception):
                    self._queue.release(self, delay=flows.backoff(self.attempt))
                else:
                    self._queue.release(self, uncounted=True)
            except LeaseqError as failure:
                # what the block raised passes on, above all an interruption
                error.add_note(
                    f"leaseq did not release item {self.id!r}, which waits for its deadline: {failure}"
                )
