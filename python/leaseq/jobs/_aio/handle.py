"""A job that was enqueued, as its caller sees it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from leaseq.durations import Duration
from leaseq.jobs import info

# threads: from leaseq.jobs._aio.handle import Handle as AsyncHandle
from leaseq.jobs.clients import Clients
from leaseq.jobs.info import JobInfo, Status

T = TypeVar("T")


@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
class Handle(Generic[T]):
    """One job, by its id.

    Attributes:
        id: the id of the job.
        queue: the name of its queue; "" before the first call if it was found by its id.
        added: false if a job with this id was in the queue already when this one was enqueued. It may be dead: then its
            status is "failed" and `result` raises its failure; see `revive` and `purge`.
    """

    _clients: Clients
    id: str
    queue: str
    _convert: Callable[[Any], T] | None = None
    added: bool = True

    # threads: @property
    # threads: def aio(self) -> "AsyncHandle[T]":
    # threads:     """The same job for asyncio: `await handle.aio.result()`."""
    # threads:     return AsyncHandle(self._clients, self.id, self.queue, self._convert, self.added)

    async def status(self) -> Status:
        """Return the status of the job, see `JobInfo.status`."""
        return info.status_of(*await self._clients.aio.state_of(self))

    async def result(self, timeout: Duration | None = None) -> T:
        """Return what the function returned. Waits without polling, up to `timeout` seconds (0: not at all; None: without limit).

        Raises JobFailed with the remote traceback, JobCancelled, ResultNotKept if there will be no result, TimeoutError,
        BadEnvelopeError for a result that this App cannot read, and msgspec.ValidationError for a result that does not
        fit the function's annotation.
        """
        value: T = await self._clients.aio.result(self, timeout)
        return value if self._convert is None else self._convert(value)

    async def cancel(self) -> bool:
        """Remove the job from its queue. A worker that runs it ends it at its next heartbeat.

        Returns false if it has ended already, or there is none. Its status is "cancelled" for a day.
        """
        return await self._clients.aio.cancel(self)

    async def revive(self) -> bool:
        """Put the job back if it is dead: it is ready with all its attempts, and with the same arguments.

        Returns false if it is not dead. While it is dead, no other job is enqueued under its id.
        """
        return await self._clients.aio.revive(self)

    async def purge(self) -> bool:
        """Delete the job if it is dead, which frees its id for another job. Return false if it is not dead."""
        return await self._clients.aio.purge(self)

    async def info(self) -> JobInfo:
        """Return all that is known of the job."""
        return (await self._clients.aio.inspect([self]))[0]

    def __repr__(self) -> str:
        return f"<Handle {self.id!r} in {self.queue or 'a queue'!r}>"
