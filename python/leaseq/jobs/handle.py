"""A job that was enqueued, seen by who waits for it."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from leaseq.jobs import envelope, failure, info
from leaseq.jobs.errors import JobCancelled, JobFailed, ResultNotKept
from leaseq.jobs.info import WAITS
from leaseq.jobs.note import Note
from leaseq.jobs.options import DAY

if TYPE_CHECKING:
    from leaseq.jobs.base import AppBase
    from leaseq.jobs.info import JobInfo, Status
    from leaseq.results import Outcome

T = TypeVar("T")


class Handle(Generic[T]):
    """One job, by its id.

    Attributes:
        id: of the job.
        queue: the name of the queue that it is in; "" for one that is to be found again, before the first call.
        added: for one that was just enqueued: false where a job of this id was there already, which was left as it is.
    """

    __slots__ = ("__weakref__", "_app", "_convert", "added", "id", "queue")

    def __init__(
        self, app: "AppBase", job_id: str, queue: str, convert: Callable[[Any], T], *, added: bool = True
    ) -> None:
        self._app = app
        self._convert = convert
        self.id = job_id
        self.queue = queue
        self.added = added

    def _find(self) -> str:
        """The queue that it is in."""
        if not self.queue:
            self.queue = self._app._store.places(self._app.queues, [self.id])[0]
        return self.queue

    async def _afind(self) -> str:
        """`_find` for asyncio."""
        if not self.queue:
            self.queue = (await self._app._astore.places(self._app.queues, [self.id]))[0]
        return self.queue

    def status(self) -> "Status":
        """Where it is: see `JobInfo.status`."""
        return info.status_of(*self._told())

    async def astatus(self) -> "Status":
        """`status` for asyncio."""
        return info.status_of(*await self._atold())

    def _told(self) -> "tuple[Outcome, Note]":
        """What the server says of it now."""
        return self._app._store.outcome(self._find(), self.id)

    async def _atold(self) -> "tuple[Outcome, Note]":
        """`_told` for asyncio."""
        return await self._app._astore.outcome(await self._afind(), self.id)

    def result(self, timeout: float | None = None) -> T:
        """What the function returned; waits for it without polling, up to `timeout` seconds (0: as it is now; None: for ever).

        Raises JobFailed with the remote traceback, JobCancelled, ResultNotKept where nothing will come, TimeoutError,
        BadEnvelopeError for a result that this App cannot read, and msgspec.ValidationError for one that is not of the
        type that the function names.
        """
        store = self._app._store
        outcome, note = store.outcome(self._find(), self.id)
        if self._waits(outcome, timeout):
            outcome, note = store.outcome(self.queue, self.id, timeout)
        error = store.queue(self.queue).inspect(self.id).error if outcome.state == "dead" else ""
        return self._read(outcome, note, error)

    async def aresult(self, timeout: float | None = None) -> T:
        """`result` for asyncio."""
        store = self._app._astore
        outcome, note = await store.outcome(await self._afind(), self.id)
        if self._waits(outcome, timeout):
            outcome, note = await store.outcome(self.queue, self.id, timeout)
        error = (await store.queue(self.queue).inspect(self.id)).error if outcome.state == "dead" else ""
        return self._read(outcome, note, error)

    def cancel(self) -> bool:
        """Take it out of its queue; whoever runs it learns it at its next heartbeat, and ends it there.

        False where it has ended already, or there is none. Its status is "cancelled" for a day.
        """
        return self._app._store.cancel(self._find(), self.id, _cancelled(), DAY)

    async def acancel(self) -> bool:
        """`cancel` for asyncio."""
        return await self._app._astore.cancel(await self._afind(), self.id, _cancelled(), DAY)

    def info(self) -> "JobInfo":
        """All that is known of it."""
        told = self._app._store.told(self._find(), [self.id])
        return self._app._info(self.queue, told[0])

    async def ainfo(self) -> "JobInfo":
        """`info` for asyncio."""
        told = await self._app._astore.told(await self._afind(), [self.id])
        return self._app._info(self.queue, told[0])

    def _waits(self, outcome: "Outcome", timeout: float | None) -> bool:
        """Whether to wait for an outcome. Raises ResultNotKept where none is to come."""
        if outcome.state not in WAITS:
            return False
        if not outcome.keep:
            raise ResultNotKept(f"job {self.id!r} was enqueued without a result_ttl: no result is kept of it")
        return timeout is None or timeout > 0

    def _read(self, outcome: "Outcome", note: Note, error: str) -> T:
        if outcome.state == "result":
            return self._convert(envelope.read_result(outcome.content, self._app._serializers).result)
        if outcome.state in {"failure", "dead"}:
            failed = failure.read(outcome.error or error)
            raise JobFailed(
                self.id,
                type=failed.type,
                message=failed.message,
                traceback=failed.traceback,
                attempt=outcome.attempt,
            )
        if outcome.state in WAITS:
            raise TimeoutError(f"job {self.id!r} has not ended: it is {info.status_of(outcome, note)}")
        if note.cancelled is not None:
            raise JobCancelled(f"job {self.id!r} was cancelled")
        raise ResultNotKept(
            f"there is no job {self.id!r} in queue {self.queue!r} and no result of it: it expired, its result was not"
            " kept or its time is over, or it never was"
        )

    def __repr__(self) -> str:
        return f"<Handle {self.id!r} in {self.queue or 'a queue'!r}>"


def _cancelled() -> Note:
    return Note(cancelled=round(time.time() * 1000))
