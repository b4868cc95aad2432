# Generated from _aio/handle.py by tools/unasync.py: do not edit.
"""A job that was enqueued, as its caller sees it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from leaseq.durations import NO_TIME, Duration
from leaseq.jobs import envelope, info
from leaseq.jobs._aio.handle import Handle as AsyncHandle
from leaseq.jobs.clients import Clients
from leaseq.jobs.current_job import current
from leaseq.jobs.envelope import Result
from leaseq.jobs.errors import ResultNotKept
from leaseq.jobs.info import JobInfo, Status
from leaseq.jobs.signals import JobEvent
from leaseq.jobs.store._sync.watch import watched
from leaseq.results import WAITS

T = TypeVar("T")


@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
class Handle(Generic[T]):
    """One job, by its id.

    Attributes:
        id: the id of the job.
        queue: the name of its queue; "" before the first call if the handle was made from an id alone.
        added: false if a job with this id was in the queue already, so that this one was not enqueued. That job may be dead:
            then its status is "failed" and `result` raises its failure; see `revive` and `purge`. Also false if the result of
            a job with `unique` is kept, or if the slot of a job with `throttle` has its job.
    """

    _clients: Clients
    id: str
    queue: str
    _convert: Callable[[Any], T] | None = None
    added: bool = True
    _by_id: bool = False

    @property
    def aio(self) -> "AsyncHandle[T]":
        """The same job for asyncio: `await handle.aio.result()`."""
        return AsyncHandle(self._clients, self.id, self.queue, self._convert, self.added, self._by_id)

    def status(self) -> Status:
        """Return the status of the job; see `JobInfo.status` for the values."""
        return info.status_of(*self._clients.sync.state_of(self))

    def result(self, timeout: Duration | None = None) -> T:
        """Return the function's return value. Waits up to `timeout` seconds (0: not at all; None: without limit), without polling.

        Raises JobFailed with the remote traceback, JobCancelled, ResultNotKept if there will be no result, TimeoutError if
        the job has not ended by then, BadEnvelopeError for a result that this App cannot read, and msgspec.ValidationError
        for a result that does not fit the function's annotation.
        """
        client = self._clients.sync
        queue = client.store.queues.get(self.queue) or client.queue_of(self)
        if timeout in NO_TIME:
            outcome = queue.outcome(self.id, timeout=0)
        else:
            waits = client.waits.get(self.queue)
            if waits is None or waits.queue is not queue:
                waits = client.waits_of(queue)
            asking = current.get()
            if asking is None:
                outcome = waits.outcome(self.id, timeout)
            else:
                instead = "await handle.aio.result(), or result(timeout=0), which does not wait"
                asking.refuse_to_block("result()", instead)
                with asking.waiting(queue.group, queue.name):
                    outcome = waits.outcome(self.id, timeout)
        if outcome.state == "result":
            found = envelope.read(outcome.content, Result, client.settings.serializers)
            value: T = info.result_of(found, client.settings.functions) if self._by_id else found.result
            return value if self._convert is None else self._convert(value)
        if outcome.state in WAITS and not outcome.keep:
            raise ResultNotKept(f"job {self.id!r} was enqueued without `keep`: no result is kept of it")
        state = client.state_of_absent(self, outcome)
        is_dead = outcome.state in {"failure", "dead"}
        (data,) = client.store.data(self.queue, [self.id]) if is_dead else (None,)
        snapshot = info.JobSnapshot(outcome, queue.inspect(self.id), data, state)
        raise info.unsuccessful(self.id, self.queue, snapshot)

    def watch(self, timeout: Duration | None = None) -> Iterator[JobInfo]:
        """Yield all that is known of the job: now, and whenever its status, attempt or progress changes; the last is its end.

        Waits without polling, for up to `timeout` seconds in all (None: without limit), and then raises TimeoutError. A worker
        publishes the reports of its job every 0.25 s at most. A change that is not published, such as the end of a delay or
        the death of a worker, is seen within 4 s. The job has ended when its status is "succeeded", "failed", "cancelled" or
        "unknown"; no exception is raised for that. A watch waits on two connections; from the 17th on that an App has at a
        time, a watch has none and looks four times a second.
        """
        return watched(self._clients.sync, self, timeout)

    def cancel(self) -> bool:
        """Remove the job from its queue. A worker that runs it ends it at its next heartbeat, within a third of the lease.

        Returns false if it has ended already, or if there is no such job. Its status is "cancelled" for a day.
        """
        client = self._clients.sync
        client.queue_of(self)
        cancelled = client.store.cancel(self.queue, self.id)
        if cancelled and client.settings.receivers.by_signal:
            client.settings.receivers.call(JobEvent(signal="cancelled", id=self.id, queue=self.queue))
        return cancelled

    def revive(self) -> bool:
        """Put the job back if it is dead: it is ready with all its attempts, and with the same arguments.

        Returns false if it is not dead. While it is dead, no other job can be enqueued with its id.
        """
        client = self._clients.sync
        revived = (client.queue_of(self)).revive(self.id)
        client.enqueued()
        return revived

    def promote(self) -> bool:
        """Let a job that is delayed, until its time or its next attempt, run now. Return false if it is not delayed."""
        client = self._clients.sync
        promoted = (client.queue_of(self)).promote(self.id)
        client.enqueued()
        return promoted

    def purge(self) -> bool:
        """Delete the job if it is dead, which frees its id for another job. Return false if it is not dead."""
        return (self._clients.sync.queue_of(self)).purge(self.id)

    def info(self) -> JobInfo:
        """Return all that is known of the job."""
        return (self._clients.sync.inspect([self]))[0]

    def __repr__(self) -> str:
        return f"<Handle {self.id!r} in {self.queue or 'a queue'!r}>"
