"""The client of the job layer on one server: it enqueues jobs, waits for them, reads and cancels them."""

import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal, Protocol

from leaseq import commands
from leaseq._aio import concurrency
from leaseq._aio.queue import WorkQueue
from leaseq._scripts import MAX_ENTRIES
from leaseq.durations import NO_TIME, Duration, seconds
from leaseq.errors import BadArgumentError, LeaseqError
from leaseq.jobs import envelope, info
from leaseq.jobs.call import Call
from leaseq.jobs.current_job import current
from leaseq.jobs.envelope import Result
from leaseq.jobs.errors import ResultNotKept
from leaseq.jobs.info import WAITS, JobInfo, Status, unsuccessful
from leaseq.jobs.job_state import JobState
from leaseq.jobs.options import DAY
from leaseq.jobs.settings import Settings
from leaseq.jobs.store._aio.shared_waits import SharedWaits
from leaseq.jobs.store._aio.store import Store
from leaseq.process import THIS
from leaseq.results import Outcome

ListState = Literal["ready", "delayed", "running", "failed", "succeeded"]

_LISTS: dict[str, Literal["ready", "delayed", "leased", "dead", "kept"]] = {
    "ready": "ready",
    "delayed": "delayed",
    "running": "leased",
    "failed": "dead",
    "succeeded": "kept",
}


class Job(Protocol):
    """A job that is looked for.

    Attributes:
        id: of the job.
        queue: the name of its queue; "" until it is found.
    """

    id: str
    queue: str


class JobClient:
    """The calls of an App on its server. `server` is a URL or a client, as for WorkQueue.

    `after` is called whenever jobs were enqueued.
    """

    def __init__(
        self,
        server: str | concurrency.Client | None,
        settings: Settings,
        after: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.settings = settings
        self.store = Store(server, settings.group)
        self._after = after
        self._waits: dict[str, SharedWaits] = {}
        THIS.forks(self)

    def after_fork(self) -> None:
        """Forget the waits of threads that do not exist in the child of a fork."""
        self._waits = {}

    async def enqueue(self, call: Call[Any]) -> tuple[str, bool]:
        """Enqueue a call, in one round trip, or in two where the server's time is asked for or an id was chosen.

        Answers the job's id, and whether it was added.
        """
        options = call.options
        queue = self.store.queues.get(options.queue) or self.store.queue(options.queue)
        item = call.item(self.settings.form, self.settings.serializer)
        of_item = options.of_item
        if options.needs_server_time:
            of_item = options.counted_from(await self.store.now(options.queue))
        added = await queue.executor.run(commands.add_one(queue.keys, item, of_item))
        if added is None:
            raise commands.queue_full(queue.name, [None])
        if added and options.id is not None:
            await self._forget_earlier([call])
        if self._after is not None:
            await self._after()
        return item.id, added

    async def enqueue_many(self, calls: Sequence[Call[Any]]) -> list[tuple[str, bool]]:
        """Enqueue calls, in one round trip for each queue and 256 of them; answers as `enqueue`, in order."""
        found: dict[int, tuple[str, bool]] = {}
        for queue, numbers in _by_queue(call.options.queue for call in calls).items():
            chosen = [calls[number] for number in numbers]
            needs_server_time = any(call.options.needs_server_time for call in chosen)
            now = await self.store.now(queue) if needs_server_time else None
            form, serializer = self.settings.form, self.settings.serializer
            entries = [(call.item(form, serializer), call.options.counted_from(now)) for call in chosen]
            answers = await self.store.add(queue, entries)
            await self._forget_earlier(
                [call for call, added in zip(chosen, answers, strict=True) if added and call.options.id]
            )
            for number, (item, _), added in zip(numbers, entries, answers, strict=True):
                found[number] = item.id, added
        await self.enqueued()
        return [found[number] for number in range(len(calls))]

    async def enqueued(self) -> None:
        """Let jobs that were enqueued run, if this App runs them at once."""
        if self._after is not None:
            await self._after()

    async def _forget_earlier(self, calls: Sequence[Call[Any]]) -> None:
        """Delete the states of earlier jobs of these ids, and of the jobs behind them. If that fails, they stay."""
        ids: dict[str, list[str]] = {}
        for call in calls:
            ids.setdefault(call.options.queue, []).append(call.options.id or "")
            for stage in call.then:
                ids.setdefault(stage.queue, []).append(stage.id)
        with contextlib.suppress(LeaseqError):
            for queue, chosen in ids.items():
                await self.store.forget(queue, chosen)

    async def result(self, job: Job, timeout: Duration | None) -> Any:
        """Return the kept result of a job. Raises the errors of `Handle.result`."""
        queue = self.store.queues.get(job.queue) or await self.queue_of(job)
        if timeout in NO_TIME:
            outcome = await queue.outcome(job.id, timeout=0)
        else:
            waits = self._waits.get(job.queue)
            if waits is None or waits.queue is not queue:
                waits = self._waits_of(queue)
            asking = current.get()
            if asking is None:
                outcome = await waits.outcome(job.id, timeout)
            else:
                # threads: asking.refuse_to_block()
                with asking.waiting(self.settings.group, queue.name):
                    outcome = await waits.outcome(job.id, timeout)
        if outcome.state in WAITS and not outcome.keep:
            raise ResultNotKept(f"job {job.id!r} was enqueued without `keep`: no result is kept of it")
        if outcome.state == "result":
            return envelope.read(outcome.content, Result, self.settings.serializers).result
        state = await self._state(job, outcome)
        error = "" if outcome.finished else (await queue.inspect(job.id)).error
        raise unsuccessful(job.id, job.queue, outcome, state, error)

    def _waits_of(self, queue: WorkQueue) -> SharedWaits:
        """The waits of a queue that was not waited for before. Those of queues that the store has dropped are dropped too."""
        for name, waits in list(self._waits.items()):
            if self.store.queues.get(name) is not waits.queue:
                self._waits.pop(name, None)
        return self._waits.setdefault(queue.name, SharedWaits(queue))

    async def revive(self, job: Job) -> bool:
        """Make a dead job ready again. Return false if it is not dead."""
        revived = await (await self.queue_of(job)).revive(job.id)
        await self.enqueued()
        return revived

    async def purge(self, job: Job) -> bool:
        """Delete a dead job. Return false if it is not dead."""
        return await (await self.queue_of(job)).purge(job.id)

    async def state_of(self, job: Job) -> tuple[Outcome, JobState]:
        """Return the outcome of a job now, and the note about a job that is not there."""
        queue = await self.queue_of(job)
        outcome = await queue.outcome(job.id, timeout=0)
        return outcome, await self._state(job, outcome)

    async def _state(self, job: Job, outcome: Outcome) -> JobState:
        return (await self.store.states(job.queue, [job.id]))[0] if outcome.state == "absent" else JobState()

    async def chain_statuses(self, jobs: Sequence[Job]) -> list[Status]:
        """Of each job of a chain, asked from the last to the first: what is handed on meanwhile is seen in one of them."""
        states = [await self.state_of(job) for job in reversed(jobs)]
        return info.statuses_of_chain(states[::-1])

    async def chain_result(self, jobs: Sequence[Job], timeout: Duration | None) -> Any:
        """Return what the last job of a chain returned: one after the other is waited for. Raises as `result`."""
        over = None if timeout is None else concurrency.now() + seconds(timeout, "timeout")
        for number, job in enumerate(jobs[:-1]):
            if set((await self.chain_statuses(jobs))[number + 1 :]) == {"unknown"}:
                await self.result(job, _left(over))
        return await self.result(jobs[-1], _left(over))

    async def cancel(self, job: Job) -> bool:
        """Remove a job from its queue. Return false if it has ended, or there is none."""
        await self.queue_of(job)
        return await self.store.cancel(job.queue, job.id, JobState(cancelled=round(time.time() * 1000)), DAY)

    async def cancel_first(self, jobs: Sequence[Job]) -> bool:
        """Cancel the first of these jobs that can be cancelled. Return false if there was none."""
        cancelled = False
        for job in jobs:
            cancelled = cancelled or await self.cancel(job)
        return cancelled

    async def statuses(self, jobs: Iterable[Job]) -> list[Status]:
        """The status of each: two round trips for each queue and 256 of them, and more to find those without a queue."""
        given = await self._found(jobs)
        found: dict[int, Status] = {}
        for queue, numbers in _by_queue(job.queue for job in given).items():
            outcomes = await self.store.outcomes(queue, [given[number].id for number in numbers])
            found.update(zip(numbers, (info.status_of(*one) for one in outcomes), strict=True))
        return [found[number] for number in range(len(given))]

    async def inspect(self, jobs: Iterable[Job]) -> list[JobInfo]:
        """All that is known of each: four round trips for each queue and 256 of them, and more as `statuses`."""
        given = await self._found(jobs)
        found: dict[int, JobInfo] = {}
        for queue, numbers in _by_queue(job.queue for job in given).items():
            infos = await self._inspect(queue, [given[number].id for number in numbers])
            found.update(zip(numbers, infos, strict=True))
        return [found[number] for number in range(len(given))]

    async def listed(self, state: ListState, queue: str | None, offset: int, limit: int) -> list[JobInfo]:
        """Return one page of the jobs of a queue in one state. Raises BadArgumentError."""
        if state not in _LISTS:
            raise BadArgumentError(f"jobs are listed by state: {', '.join(_LISTS)}; not {state!r}")
        if offset < 0 or limit < 1:
            raise BadArgumentError(f"offset is at least 0 and limit at least 1: not {offset} and {limit}")
        name, limit = queue or self.settings.defaults.queue, min(limit, MAX_ENTRIES)
        if state == "succeeded":
            ids = await self._succeeded(name, offset, limit)
        else:
            ids = await self.store.listed(name, _LISTS[state], offset, limit)
        return await self._inspect(name, ids)

    async def _succeeded(self, queue: str, offset: int, limit: int) -> list[str]:
        """Ids of one page of the jobs whose result is kept: failures are kept in the same list."""
        found: list[str] = []
        first = 0
        while len(found) < offset + limit:
            ids = await self.store.listed(queue, "kept", first, MAX_ENTRIES)
            if not ids:
                break
            first += len(ids)
            found += [one.id for one, _ in await self.store.outcomes(queue, ids) if one.state == "result"]
        return found[offset : offset + limit]

    async def _inspect(self, queue: str, ids: Sequence[str]) -> list[JobInfo]:
        snapshots = await self.store.snapshots(queue, ids)
        return [
            info.info_of(queue, one, self.settings.serializers, self.settings.functions) for one in snapshots
        ]

    async def queue_of(self, job: Job) -> WorkQueue:
        """The queue that a job is in, which it knows from now on."""
        return self.store.queue((await self._found([job]))[0].queue)

    async def _found(self, jobs: Iterable[Job]) -> list[Job]:
        """The same, each knowing its queue: the first that knows it, else the App's own."""
        given = list(jobs)
        lost = [job for job in given if not job.queue]
        names = self.settings.queues if lost else []
        for name in names if len(names) > 1 else ():
            for outcome, state in await self.store.outcomes(name, [job.id for job in lost if not job.queue]):
                if outcome.state != "absent" or state.cancelled is not None:
                    _locate(lost, outcome.id, name)
        for job in lost:
            job.queue = job.queue or names[0]
        return given


def _left(over: float | None) -> float | None:
    return None if over is None else max(0.0, over - concurrency.now())


def _locate(jobs: Iterable[Job], job_id: str, queue: str) -> None:
    """Set the queue of all handles of this id."""
    for job in jobs:
        if job.id == job_id:
            job.queue = queue


def _by_queue(queues: Iterable[str]) -> dict[str, list[int]]:
    """Where in this list each queue stands: what is for one queue goes together."""
    numbers: dict[str, list[int]] = {}
    for number, queue in enumerate(queues):
        numbers.setdefault(queue, []).append(number)
    return numbers
