"""A worker in one process and one event loop."""

import asyncio
import contextlib
import inspect
import itertools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, TypedDict, Unpack

from setproctitle import setproctitle

from leaseq import flows
from leaseq.durations import Duration
from leaseq.errors import LeaseqError, TooLargeError
from leaseq.jobs.current_job import SlotWaits
from leaseq.jobs.program import Program
from leaseq.jobs.worker.execution import JobExecution
from leaseq.jobs.worker.executor import Executor
from leaseq.jobs.worker.lease_journal import LeaseJournal
from leaseq.jobs.worker.loop_watch import LoopWatch
from leaseq.jobs.worker.process_pool import JobProcesses
from leaseq.jobs.worker.progress import ProgressReporter
from leaseq.jobs.worker.recycling import RecyclePolicy
from leaseq.jobs.worker.scheduler import Scheduler
from leaseq.jobs.worker.signal_emitter import SignalEmitter
from leaseq.jobs.worker.thread_pool import AdaptiveThreadPool
from leaseq.worker import presence, server_health
from leaseq.worker._aio.presence import PresenceReporter
from leaseq.worker._aio.source import Source
from leaseq.worker.aio import Worker
from leaseq.worker.hooks import Hooks, logger
from leaseq.worker.retry_policy import Release
from leaseq.worker.settings import Readiness, as_hook_list
from leaseq.worker.work_meter import WorkMeter

CONCURRENCY = 8
"""Jobs that one process runs at a time, by default."""

LEASE_SECS = 30.0
"""Seconds of a lease, by default."""

GRACE_SECS = 25.0
"""Seconds that jobs may run after the worker is stopped, by default."""


class WorkerOptions(TypedDict, total=False):
    """The options of a worker. Durations are seconds or a timedelta.

    Attributes:
        queues: the names of the queues that it leases jobs from, in this order; by default those of the App and of its
            functions.
        concurrency: jobs that run at a time, in each process; 8 by default.
        lease_secs: seconds of a lease, 30 by default; it is extended while the job runs. A cancelled job ends within a
            third of it.
        grace_secs: seconds for which jobs may run on after the worker is stopped, 25 by default; then they are released, and
            the attempt does not count.
        burst: return when nothing is ready; false by default.
        max_jobs: jobs after which a process is replaced. None, the default: never.
        max_memory: MiB of memory, at its peak, after which a process is replaced. None, the default: never.
        handle_signals: stop on SIGTERM and SIGINT, if it runs in the main thread; at once on the second one. True by
            default; `run_worker` always does.
        hooks: one object or several, called when something happens to an item, as for `leaseq.worker.Worker`.
    """

    queues: Sequence[str]
    concurrency: int
    lease_secs: Duration
    grace_secs: Duration
    burst: bool
    max_jobs: int | None
    max_memory: float | None
    handle_signals: bool
    hooks: Hooks | Iterable[Hooks] | None


class JobWorker:
    """Runs the jobs of an App's queues until it is stopped. Raises BadTypeError, BadArgumentError."""

    def __init__(
        self,
        program: Program,
        journal: LeaseJournal | None = None,
        source: Source | None = None,
        meter: WorkMeter | None = None,
        /,
        **options: Unpack[WorkerOptions],
    ) -> None:
        """`journal` receives what it holds, `meter` counts. `source` is where jobs come from, in place of the queues."""
        settings = program.clients.settings
        self._program = program
        self._journal = journal
        self._state = ""
        self._stopping = False
        self._draining = False
        self._limits = RecyclePolicy.of(options.get("max_jobs"), options.get("max_memory"))
        self._store = program.clients.aio.store
        names = list(flows.require_iterable(options.get("queues", ()), "names of queues")) or settings.queues
        self._queues = [self._store.queue(name) for name in dict.fromkeys(names)]
        self._scheduler = Scheduler(self._store, program.schedules if source is None else (), names, settings)
        self._threads = AdaptiveThreadPool()
        self._signals = SignalEmitter.of(settings, self._threads)
        self._observers: list[Hooks] = [each for each in (meter, journal, self._signals) if each is not None]
        schedules = [self._store.queue(name) for name in self._scheduler.queues]
        self._worker = Worker(
            [*schedules, *self._queues] if source is None else source,
            self._run,
            concurrency=options.get("concurrency", CONCURRENCY),
            lease_secs=options.get("lease_secs", LEASE_SECS),
            max_attempts=0,  # each job has its own limit
            dead_letter_on=TooLargeError,  # a result that the queue does not take; it would be the same again
            grace_secs=options.get("grace_secs", GRACE_SECS),
            burst=options.get("burst", False),
            hooks=[*as_hook_list(options.get("hooks")), *self._observers],
            handle_signals=options.get("handle_signals", True),
        )
        self._progress = ProgressReporter(self._store, self._worker.id)
        execution = JobExecution(settings, self._worker.id, program.middleware)
        self._forks = JobProcesses(execution, program.fork_shutdown, self.drain)
        waits = SlotWaits(
            options.get("concurrency", CONCURRENCY), [(queue.group, queue.name) for queue in self._queues]
        )
        self._executor = Executor(
            self._store,
            execution,
            self._progress,
            self._threads,
            self._forks,
            self._moved,
            waits,
            self._signals,
            meter,
        )

    @property
    def id(self) -> str:
        """Its name among the live workers."""
        return self._worker.id

    @property
    def readiness(self) -> Readiness:
        """The state of its worker: see `Worker.readiness`."""
        return self._worker.readiness

    @property
    def answered_at(self) -> float | None:
        """When the server last answered, in seconds since 1970."""
        return self._worker.answered_at

    @property
    def stopped(self) -> bool:
        """True if it ends, or has ended, for another reason than that nothing is ready."""
        return self._stopping or self._draining

    async def run(self) -> int:
        """Work until stopped, with `burst` until nothing is ready; returns how many jobs have ended here."""
        self._title("starting")
        if any(each.options.fork for each in self._program.clients.settings.functions.values()):
            self._forks.open()
        try:
            await self._start()
            if self._journal is not None:
                self._journal.began(self._worker.id)
            await self._work()
        finally:
            if self._journal is not None:
                self._journal.over()
            if self._signals is not None:
                await self._signals.close(stopped=self._stopping)
            self._threads.close()
            await self._forks.close()
            # calls the last first; if a hook raises, the others still run
            async with contextlib.AsyncExitStack() as each:
                for hook in self._program.shutdown:
                    each.push_async_callback(_called_last, hook)
        return self._progress.performed

    async def _work(self) -> None:
        self._title("idle")
        logger.info("worker %s: listens to %s", self.id, ", ".join(queue.name for queue in self._queues))
        background_tasks = [asyncio.create_task(self._progress.run(), name="leaseq notes")]
        if self._scheduler.queues:
            background_tasks.append(asyncio.create_task(self._begin_schedules(), name="leaseq schedules"))
        try:
            with LoopWatch(self._executor.on_loop):
                await self._worker.run()
        finally:
            for task in background_tasks:
                task.cancel()
            await asyncio.wait(background_tasks)

    async def _begin_schedules(self) -> None:
        """Add the schedules to the server. If it does not answer yet, try again while the worker runs."""
        for failures in itertools.count(1):
            try:
                await self._scheduler.begin()
            except LeaseqError as error:
                logger.warning("schedules could not start, trying again: %s", error)
                await asyncio.sleep(server_health.pause(failures))
            else:
                return

    async def _start(self) -> None:
        """Call the hooks of the start, which may take long: meanwhile it is among the live workers, as starting."""
        if not self._program.startup:
            return
        presence_reporter = PresenceReporter(
            self._queues[0].executor.client, self._worker.id, self._starting, lambda _wish: None
        )
        with contextlib.suppress(LeaseqError):
            await presence_reporter.announce()
        try:
            async with _renewing(presence_reporter):
                for hook in self._program.startup:
                    await _called(hook)
        except BaseException:
            await presence_reporter.unregister()
            raise
        self._worker.first_announced = presence_reporter.started

    def _starting(self, started: float, reported: float) -> str:
        queues = [(queue.group, queue.name) for queue in self._queues]
        return presence.encode(
            started=started,
            reported=reported,
            stopping=False,
            quiet=False,
            concurrency=0,
            completed=0,
            queues=queues,
            held=(),
            now=0.0,
        )

    def stop(self, *, at_once: bool = False) -> None:
        """Start no more jobs; `run` returns when the running ones have ended, or after the grace time.

        With `at_once` it does not wait for them. A second call changes nothing.
        """
        if at_once or not self._stopping:
            self._stopping = True
            self._worker.stop(at_once=at_once)

    def drain(self) -> None:
        """Start no more jobs; `run` returns when the running ones have ended, however long they take."""
        if not self.stopped:
            self._draining = True
            if self._journal is not None:
                self._journal.drains()
            self._worker.drain()

    async def _run(self, item: Any) -> None:
        if self._draining:  # it was leased ahead, and is for the next process
            raise Release(uncounted=True)
        if self._signals is not None:
            await self._signals.room()
        is_turn = item.queue.name in self._scheduler.queues
        if self._journal is not None and not is_turn:
            self._journal.begun(item)
            self._title("busy")
        try:
            await (self._scheduler(item) if is_turn else self._executor(item))
        finally:
            if self._limits is not None and self._limits.reached(self._progress.performed):
                self.drain()
            if self._journal is not None and not self._progress:
                self._title("idle")
        if item.hold.ended:  # told here, else the worker's loop tells
            for observer in self._observers:
                observer.completed(item)

    def _moved(self, item: Any) -> None:
        """Record that the job of an item goes on in a separate process."""
        if self._journal is not None:
            self._journal.moved(item)

    def _title(self, state: str) -> None:
        """Set the title of this process in the list of processes."""
        if self._journal is not None and state != self._state:
            self._state = state
            setproctitle(f"leaseq worker: {state}, {','.join(queue.name for queue in self._queues)}")


@contextlib.asynccontextmanager
async def _renewing(reporter: PresenceReporter) -> AsyncIterator[None]:
    """Renew the announcement of a worker while a block runs, in a thread: the block may hold up this loop."""
    loop = asyncio.new_event_loop()

    def renew() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(reporter.run())

    renewal = threading.Thread(target=renew, name="leaseq starting")
    renewal.start()
    try:
        yield
    finally:
        with contextlib.suppress(RuntimeError):  # an error that nothing expects has ended the loop before
            loop.call_soon_threadsafe(reporter.end)
        await asyncio.to_thread(renewal.join)  # no report of it comes behind those of the worker


async def _called(hook: Callable[[], Awaitable[Any] | Any]) -> None:
    answer = hook()
    if inspect.isawaitable(answer):
        await answer


async def _called_last(hook: Callable[[], Awaitable[Any] | Any]) -> None:
    """Call a hook of the end. What it raises is logged: the worker has ended well, and is not to be started again for that."""
    try:
        await _called(hook)
    except asyncio.CancelledError:
        raise
    except BaseException:  # noqa: BLE001 (logged, whatever it is)
        logger.exception("the shutdown hook %s failed", getattr(hook, "__qualname__", hook))
