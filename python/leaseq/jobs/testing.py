"""For tests of programs that have jobs: `at_once` runs them here, as they are enqueued, and its clock can be moved.

pytest has the fixtures `leaseq_url` and `leaseq_jobs` where leaseq is installed (see `leaseq.pytest_plugin`).
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from leaseq._scripts import MAX_ENTRIES
from leaseq.durations import Duration, seconds_of
from leaseq.errors import BadArgumentError
from leaseq.jobs import aio
from leaseq.jobs.app import App
from leaseq.jobs.clients import Server
from leaseq.jobs.cron import schedule_state
from leaseq.jobs.program import Program
from leaseq.jobs.worker.job_worker import JobWorker
from leaseq.jobs.worker.scheduler import Scheduler


@contextlib.contextmanager
def at_once(
    app: App | aio.App, server: Server | None = None, *, clock: "Clock | None" = None
) -> Iterator["Clock"]:
    """Run jobs in this process as they are enqueued, in a `with` block, for tests.

    In the block, `enqueue` and similar calls return when all jobs that are ready have ended. As with workers, jobs go
    through a real server and have their attempts, time limits and results. Jobs with a delay wait, and so do jobs
    that are to be tried again, and the slots of schedules: `advance` of the `Clock` that the block gives runs them. `server`
    (a URL or a client) is used in place of the App's server in the block. `clock` is that of another block, which then moves
    both Apps. In asyncio, close the App before the block ends.
    """
    moved = Clock() if clock is None else clock
    runner = Runner(app.program)
    with moved.moving(runner), app.program.clients.running(runner, server):
        yield moved


class Clock:
    """The clock of jobs in a block of `at_once`: `with at_once(app) as clock: ... clock.advance("1h")`.

    It runs as the server's clock does, ahead of it by what it was advanced. `delay`, `at`, retries, schedules, `ctx.enqueued`
    and `ctx.due` go by it. Time limits, `expires`, leases and the time for which results are kept go by real time.
    """

    def __init__(self) -> None:
        self._runners: list[Runner] = []
        self._ahead = 0.0

    @property
    def aio(self) -> "AsyncClock":
        """The same clock for asyncio: `await clock.aio.advance("1h")`."""
        return AsyncClock(self)

    def now(self) -> float:
        """Return its time, in seconds since 1970."""
        return time.time() + self._ahead

    def advance(self, duration: Duration | str) -> None:
        """Move the clock forward by seconds, a timedelta or text such as "1h". Run what is due by then, in the order of time.

        Each job runs at its time, one after the other: jobs that are due in the same millisecond run side by side. Jobs that
        they enqueue, retries and slots of schedules run too if they are due by then. Raises BadTypeError, and
        BadArgumentError for a negative duration and in a job.
        """
        _in_thread(self._advance_and_close(duration))

    async def _advance_and_close(self, duration: Duration | str) -> None:
        try:
            await self.advance_in_loop(duration)
        finally:
            for runner in self._runners:
                await runner.close_loop()

    async def advance_in_loop(self, duration: Duration | str) -> None:
        """Move the clock forward in this event loop; see `advance`."""
        secs = seconds_of(duration, "the time to advance by")
        if secs < 0:
            raise BadArgumentError(
                f"a clock cannot go back, by {secs:g} s: jobs have run by it; start another block of at_once"
            )
        with contextlib.ExitStack() as alone:
            for runner in self._runners:
                alone.enter_context(runner.alone())
            await self._advance(self._ahead + secs)

    async def _advance(self, ahead: float) -> None:
        """Move the clock until it is ahead of the server by `ahead` seconds."""
        for runner in self._runners:
            await runner.start_schedules()
        await self._run_ready()
        while True:
            due = [each for runner in self._runners for each in await runner.due()]
            moment = min((each.moment for each in due), default=None)
            if moment is None or moment > _ms(time.time() + ahead):
                break
            self._move(max(self._ahead, min(moment / 1000 - time.time(), ahead)))
            for each in due:
                if each.moment == moment:
                    await each.runner.promote(each.queue, each.id)
            await self._run_ready()
        self._move(ahead)

    async def _run_ready(self) -> None:
        """Run what is ready. A job of one App can enqueue jobs of another one."""
        while sum([await runner.burst() for runner in self._runners]) and len(self._runners) > 1:
            pass

    def _move(self, ahead: float) -> None:
        self._ahead = ahead
        for runner in self._runners:
            runner.move(ahead)

    @contextlib.contextmanager
    def moving(self, runner: "Runner") -> Iterator[None]:
        """Let the clock move the App of a runner, in this block."""
        before = runner.move(self._ahead)
        self._runners.append(runner)
        try:
            yield
        finally:
            self._runners.remove(runner)
            runner.move(before)


class AsyncClock:
    """A `Clock` for asyncio."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        """Return its time, in seconds since 1970."""
        return self._clock.now()

    async def advance(self, duration: Duration | str) -> None:
        """Move the clock forward, and run in this event loop what is due by then; see `Clock.advance`."""
        await self._clock.advance_in_loop(duration)


class Due(NamedTuple):
    """A delayed item, and the moment in ms since 1970 at which it is due, by the moved clock."""

    moment: int
    queue: str
    id: str
    runner: "Runner"


class Runner:
    """Runs what is ready. A job that enqueues others does not wait for them: they are run when it has ended, or beside it."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._guard = threading.Lock()
        self._ahead_of: dict[tuple[str, str, float], float] = {}
        """By how much the clock was ahead when a delayed item was put there; it is known by its time on the server."""

    def run(self) -> None:
        """Run what is ready, in a separate thread if this one has an event loop."""
        if not self._guard.acquire(blocking=False):
            return
        try:
            _in_thread(self._burst_and_close())
        finally:
            self._guard.release()

    async def run_in_loop(self) -> None:
        """The same in this event loop."""
        if not self._guard.acquire(blocking=False):
            return
        try:
            await self.burst()
        finally:
            self._guard.release()

    async def _burst_and_close(self) -> None:
        try:
            await self.burst()
        finally:
            await self.close_loop()

    async def burst(self) -> int:
        """Run what is ready, and return how many jobs have ended."""
        return await JobWorker(self._program, burst=True, handle_signals=False).run()

    async def close_loop(self) -> None:
        """Close what was opened in this event loop."""
        await self._program.clients.close_loop()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """In this block, jobs run only by `burst`. Raises BadArgumentError while some run."""
        if not self._guard.acquire(blocking=False):
            raise BadArgumentError("jobs run just now: advance the clock when they have ended, not in a job")
        try:
            yield
        finally:
            self._guard.release()

    def move(self, ahead: float) -> float:
        """Set by how many seconds the App's clock is ahead. Return the former number."""
        settings = self._program.clients.settings
        before, settings.ahead = settings.ahead, ahead
        return before

    async def start_schedules(self) -> None:
        """Enter the App's schedules on the server, as a worker does."""
        await self._scheduler().begin()

    def _scheduler(self) -> Scheduler:
        clients = self._program.clients
        return Scheduler(
            clients.aio.store, self._program.schedules, clients.settings.queues, clients.settings
        )

    async def due(self) -> list[Due]:
        """Return the delayed jobs and the schedules, each with its time. The clock stands as it did when they were delayed."""
        settings = self._program.clients.settings
        found: dict[tuple[str, str, float], float] = {}
        for queue in settings.queues:
            for job_id, moment in await self._delayed(queue):
                key = (queue, job_id, moment)
                found[key] = self._ahead_of.get(key, settings.ahead)
        self._ahead_of = found
        jobs = [
            Due(_ms(moment + ahead), queue, job_id, self) for (queue, job_id, moment), ahead in found.items()
        ]
        return [*await self._slots(), *jobs]

    async def _slots(self) -> list[Due]:
        """Return the App's schedules, each with its next slot: their items also wait for reviews, which come more often."""
        store = self._program.clients.aio.store
        declared = {(schedule_state.queue_of(each.queue), each.name) for each in self._program.schedules}
        found: list[Due] = []
        for queue in self._scheduler().queues:
            names = [name for name, _ in await self._delayed(queue) if (queue, name) in declared]
            for name in names:
                (data,) = await store.data(queue, [name])
                state = schedule_state.read(data)
                if state is not None and state.next:
                    found.append(Due(state.next, queue, name, self))
        return found

    async def _delayed(self, queue: str) -> list[tuple[str, float]]:
        """Return the delayed items of a queue, each with its time on the server."""
        opened = self._program.clients.aio.store.queue(queue)
        found: list[tuple[str, float]] = []
        while True:
            page = await opened.list_items("delayed", offset=len(found), limit=MAX_ENTRIES)
            found += [(each.id, each.time) for each in page.items]
            if len(page.items) < MAX_ENTRIES:
                return found

    async def promote(self, queue: str, item_id: str) -> None:
        """Let a delayed item be ready."""
        await self._program.clients.aio.store.queue(queue).promote(item_id)


def _ms(secs: float) -> int:
    return round(secs * 1000)


def _in_thread(work: Coroutine[Any, Any, Any]) -> None:
    """Run something in a separate event loop, as this thread may have one."""
    with ThreadPoolExecutor(1, "leaseq at once") as thread:
        thread.submit(asyncio.run, work).result()
