# Generated from _aio/handle.py by python/unasync.py: do not edit.
"""A job that was enqueued, seen by who waits for it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from leaseq.jobs import info
from leaseq.jobs._aio.handle import Handle as AsyncHandle
from leaseq.jobs.call import converted
from leaseq.jobs.clients import Clients
from leaseq.jobs.info import JobInfo, Status

T = TypeVar("T")


@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
class Handle(Generic[T]):
    """One job, by its id.

    Attributes:
        id: of the job.
        queue: the name of the queue that it is in; "" for one that is to be found again, before the first call.
        added: for one that was just enqueued: false where a job of this id was there already, which was left as it is.
    """

    _clients: Clients
    id: str
    queue: str
    _convert: Callable[[Any], T] | None = None
    added: bool = True

    @property
    def aio(self) -> "AsyncHandle[T]":
        """The same job for asyncio: `await handle.aio.result()`."""
        return AsyncHandle(self._clients, self.id, self.queue, self._convert, self.added)

    def status(self) -> Status:
        """Where it is: see `JobInfo.status`."""
        return info.status_of(*self._clients.sync.state_of(self))

    def result(self, timeout: float | None = None) -> T:
        """What the function returned; waits for it without polling, up to `timeout` seconds (0: as it is now; None: for ever).

        Raises JobFailed with the remote traceback, JobCancelled, ResultNotKept where nothing will come, TimeoutError,
        BadEnvelopeError for a result that this App cannot read, and msgspec.ValidationError for one that is not of the
        type that the function names.
        """
        return converted(self._clients.sync.result(self, timeout), self._convert)

    def cancel(self) -> bool:
        """Take it out of its queue; whoever runs it learns it at its next heartbeat, and ends it there.

        False where it has ended already, or there is none. Its status is "cancelled" for a day.
        """
        return self._clients.sync.cancel(self)

    def info(self) -> JobInfo:
        """All that is known of it."""
        return (self._clients.sync.inspect([self]))[0]

    def __repr__(self) -> str:
        return f"<Handle {self.id!r} in {self.queue or 'a queue'!r}>"
