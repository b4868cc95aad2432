"""The client of the job layer on one server: what is asked of many jobs, and what handles share."""

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, TypeVar

from leaseq import commands
from leaseq._aio import concurrency
from leaseq._aio.queue import WorkQueue
from leaseq._scripts import MAX_ENTRIES
from leaseq.errors import BadArgumentError, LeaseqError
from leaseq.item import Item
from leaseq.jobs import info
from leaseq.jobs.call import Call
from leaseq.jobs.info import JobInfo, JobSnapshot, Status
from leaseq.jobs.job_state import JobState
from leaseq.jobs.settings import Settings
from leaseq.jobs.store._aio.shared_waits import SharedWaits
from leaseq.jobs.store._aio.store import Store
from leaseq.process import THIS
from leaseq.results import Outcome

T = TypeVar("T")

ListState = Literal["ready", "delayed", "running", "failed", "succeeded"]

_LISTS: dict[str, Literal["ready", "delayed", "leased", "dead", "kept"]] = {
    "ready": "ready",
    "delayed": "delayed",
    "running": "leased",
    "failed": "dead",
    "succeeded": "kept",
}


Found = dict[int, tuple[str, bool]]
"""By the number of a call: the id of its job, and whether it was added."""


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
        self.after = after
        self.waits: dict[str, SharedWaits] = {}
        self.watching: set[object] = set()
        """The watches that block now."""
        THIS.forks(self)

    def after_fork(self) -> None:
        """Forget the waits of threads that do not exist in the child of a fork."""
        self.waits, self.watching = {}, set()

    async def enqueue_many(self, calls: Sequence[Call[Any]]) -> list[tuple[str, bool]]:
        """Enqueue calls, in one round trip for each queue and 256 of them, and one more where the server's time is asked for.

        Answers for each, in order, the job's id, and whether it was added.
        """
        if self.settings.headers:
            calls = [call.with_headers(self.settings.headers) for call in calls]
        calls = await self.identified(calls)
        items = [call.item(self.settings) for call in calls]  # before anything is added: one may be refused
        found: Found = {}
        for queue, of_queue in _by_queue(call.options.queue for call in calls).items():
            for number in await self._held_back(queue, calls, of_queue, found):
                found[number] = items[number].id, False
            numbers = [number for number in of_queue if number not in found]
            chosen = [calls[number] for number in numbers]
            entries = await self._entries(queue, chosen, [items[number] for number in numbers])
            try:
                answers = await self.store.add(queue, entries, self.settings.durable)
            except LeaseqError as error:
                await self._give_slots_back(queue, chosen, error)
                error.answers = _by_call(found, numbers, error.answers)
                raise
            await self.forget_earlier(
                [call for call, added in zip(chosen, answers, strict=True) if added and call.chosen_id]
            )
            for number, added in zip(numbers, answers, strict=True):
                found[number] = items[number].id, added
                if added and self.settings.receivers.by_signal:
                    self.settings.receivers.call(calls[number].event(items[number]))
        await self.enqueued()
        return [found[number] for number in range(len(calls))]

    async def queue_in(self, pipe: Any, calls: Sequence[Call[Any]]) -> list[str]:
        """Queue the additions of calls in a pipeline. Return the ids of their jobs. Raises BadArgumentError, and then queues nothing."""
        concurrency.check_pipe(pipe, self.settings.durable)
        if any(call.options.id is not None or call.options.once for call in calls):
            raise BadArgumentError(
                "a job in a pipeline has an id by chance: whether the id of another one is free is only known when it runs;"
                " enqueue it without pipe, or leave out id, unique and throttle"
            )
        if self.settings.headers:
            calls = [call.with_headers(self.settings.headers) for call in calls]
        items = [call.item(self.settings) for call in calls]
        due: list[commands.Command[Any]] = []
        for queue, numbers in _by_queue(call.options.queue for call in calls).items():
            of_queue = [calls[number] for number in numbers], [items[number] for number in numbers]
            due += self.store.additions(queue, await self._entries(queue, *of_queue))
        for command in due:
            pipe.execute_command(*command.eval())
        return [item.id for item in items]

    async def _entries(
        self, queue: str, calls: Sequence[Call[Any]], items: Sequence[Item]
    ) -> list[tuple[Item, commands.additions.Options]]:
        """Return items, each with its options. Asks for the server's time if they depend on it."""
        ahead = self.settings.ahead
        needs_server_time = ahead or any(call.options.needs_server_time for call in calls)
        now = await self.store.now(queue) if needs_server_time else None
        return [
            (item, call.options.counted_from(now, ahead)) for call, item in zip(calls, items, strict=True)
        ]

    async def identified(self, calls: Sequence[Call[T]]) -> list[Call[T]]:
        """Return the calls; those that are unique or throttled have their ids. Asks for the server's time if one is throttled."""
        times: dict[str, float] = {}
        found: list[Call[T]] = []
        for call in calls:
            if call.derived or not call.options.once:
                found.append(call)
                continue
            queue = call.options.queue
            if call.options.throttle is not None and queue not in times:
                times[queue] = await self.store.now(queue) + self.settings.ahead
            found.append(call.identified(times.get(queue, 0.0)))
        return found

    async def _held_back(
        self, queue: str, calls: Sequence[Call[Any]], numbers: Sequence[int], found: Found
    ) -> list[int]:
        """Return the numbers of calls whose result is kept or whose slot has its job. The slots of the others are taken."""
        unique = [number for number in numbers if calls[number].options.unique]
        throttled = [number for number in numbers if calls[number].options.throttle is not None]
        try:
            ids = [calls[number].derived for number in unique]
            outcomes = {each.id: each.state for each in await self.store.queue(queue).outcomes(set(ids))}
            slots = [(calls[number].derived, calls[number].options.throttle or 0.0) for number in throttled]
            taken = await self.store.take_slots(queue, slots)
        except LeaseqError as error:
            error.answers, error.in_doubt = _by_call(found, (), ()), 0
            raise
        kept = [number for number in unique if outcomes[calls[number].derived] == "result"]
        return kept + [number for number, first in zip(throttled, taken, strict=True) if not first]

    async def _give_slots_back(self, queue: str, calls: Sequence[Call[Any]], error: LeaseqError) -> None:
        """Free the slots of throttled calls that were not added for certain. If that fails, they stay taken."""
        doubtful = 0 if error.definite else error.in_doubt
        answers = [*error.answers, *[True] * doubtful]
        free = [
            call.derived
            for number, call in enumerate(calls)
            if call.options.throttle is not None and (number >= len(answers) or answers[number] is None)
        ]
        with contextlib.suppress(LeaseqError):
            await self.store.free_slots(queue, free)

    async def enqueued(self) -> None:
        """Let jobs that were enqueued run, if this App runs them at once."""
        if self.after is not None:
            await self.after()

    async def forget_earlier(self, calls: Sequence[Call[Any]]) -> None:
        """Delete the states of earlier jobs of these ids, and of the jobs behind them. If that fails, they stay."""
        ids: dict[str, list[str]] = {}
        for call in calls:
            ids.setdefault(call.options.queue, []).append(call.chosen_id)
            for stage in call.then:
                ids.setdefault(stage.queue, []).append(stage.id)
        with contextlib.suppress(LeaseqError):
            for queue, chosen in ids.items():
                await self.store.forget(queue, chosen)

    def waits_of(self, queue: WorkQueue) -> SharedWaits:
        """The waits of a queue that was not waited for before. Those of queues that the store has dropped are dropped too."""
        for name, waits in list(self.waits.items()):
            if self.store.queues.get(name) is not waits.queue:
                self.waits.pop(name, None)
        return self.waits.setdefault(queue.name, SharedWaits(queue))

    async def state_of(self, job: Job) -> tuple[Outcome, JobState]:
        """Return the outcome of a job now, and the note about a job that is not there."""
        queue = await self.queue_of(job)
        outcome = await queue.outcome(job.id, timeout=0)
        return outcome, await self.state_of_absent(job, outcome)

    async def state_of_absent(self, job: Job, outcome: Outcome) -> JobState:
        """Return the note about a job, if it is not there."""
        return (await self.store.states(job.queue, [job.id]))[0] if outcome.state == "absent" else JobState()

    async def statuses(self, jobs: Iterable[Job]) -> list[Status]:
        """The status of each: two round trips for each queue and 256 of them, and more to find those without a queue."""
        return [info.status_of(*one) for one in await self._ask(jobs, self.store.outcomes)]

    async def inspect(self, jobs: Iterable[Job]) -> list[JobInfo]:
        """All that is known of each: four round trips for each queue and 256 of them, and more as `statuses`."""
        return await self._ask(jobs, self._inspect)

    async def _ask(self, jobs: Iterable[Job], ask: Callable[[str, list[str]], Awaitable[list[T]]]) -> list[T]:
        """Ask each queue about its jobs. Return the answers in the order of the jobs."""
        given = await self._found(jobs)
        found: dict[int, T] = {}
        for queue, numbers in _by_queue(job.queue for job in given).items():
            found.update(zip(numbers, await ask(queue, [given[each].id for each in numbers]), strict=True))
        return [found[number] for number in range(len(given))]

    async def listed(self, state: ListState, queue: str | None, offset: int, limit: int) -> list[JobInfo]:
        """Return one page of the jobs of a queue in one state. Raises BadArgumentError."""
        if state not in _LISTS:
            raise BadArgumentError(f"jobs are listed by state: {', '.join(_LISTS)}; not {state!r}")
        if offset < 0 or not 1 <= limit <= MAX_ENTRIES:
            raise BadArgumentError(
                f"offset is at least 0 and limit 1 to {MAX_ENTRIES}: not {offset} and {limit}"
            )
        name = queue or self.settings.defaults.queue
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
        return [self.info_of(queue, one) for one in await self.store.snapshots(queue, ids)]

    def info_of(self, queue: str, snapshot: JobSnapshot) -> JobInfo:
        """Return what is known of a job, in the words of this App."""
        return info.info_of(queue, snapshot, self.settings.serializers, self.settings.functions)

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


def _locate(jobs: Iterable[Job], job_id: str, queue: str) -> None:
    """Set the queue of all handles of this id."""
    for job in jobs:
        if job.id == job_id:
            job.queue = queue


def _by_call(found: Found, numbers: Sequence[int], answers: Sequence[bool]) -> list[bool | None]:
    """Return the answers in the order of the calls: those that were found, and those of the queue that failed."""
    known = {number: added for number, (_, added) in found.items()}
    known.update(zip(numbers, answers, strict=False))
    return [known.get(number) for number in range(max(known, default=-1) + 1)]


def _by_queue(queues: Iterable[str]) -> dict[str, list[int]]:
    """Where in this list each queue stands: what is for one queue goes together."""
    numbers: dict[str, list[int]] = {}
    for number, queue in enumerate(queues):
        numbers.setdefault(queue, []).append(number)
    return numbers
