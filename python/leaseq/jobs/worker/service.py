"""A worker in one process and one event loop."""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from leaseq import flows
from leaseq.errors import TooLargeError
from leaseq.jobs.worker.desk import Desk
from leaseq.jobs.worker.executor import Executor
from leaseq.jobs.worker.forks import Forks
from leaseq.jobs.worker.running import Running
from leaseq.jobs.worker.threads import Threads
from leaseq.worker.aio import Worker
from leaseq.worker.hooks import Hooks

if TYPE_CHECKING:
    from leaseq.jobs.app import App

CONCURRENCY = 8
"""Jobs that one process runs at a time, where nobody said otherwise."""


class WorkerOptions(TypedDict, total=False):
    """How a worker works. Seconds.

    Attributes:
        queues: from which it takes jobs, the first that has one; by default those of the App and of its functions.
        concurrency: jobs that run at a time.
        lease_secs: how long a lease is; it is extended while the job runs. A cancelled job learns it within a third.
        grace_secs: how long jobs may go on once the worker is stopped; the rest goes back uncounted.
        burst: end when nothing is ready.
        handle_signals: stop on SIGTERM and SIGINT, where it runs in the main thread; at once on the second.
        hooks: told what happens to items, as for `leaseq.worker.Worker`.
    """

    queues: Sequence[str]
    concurrency: int
    lease_secs: float
    grace_secs: float
    burst: bool
    handle_signals: bool
    hooks: Hooks | Iterable[Hooks] | None


class Service:
    """Runs the jobs of an App's queues until it is stopped. Raises BadTypeError, BadArgumentError."""

    def __init__(self, app: "App", **options: Unpack[WorkerOptions]) -> None:
        self._app = app
        self._store = app._astore
        names = list(flows.many(options.get("queues", ()), "names of queues")) or app.queues
        self._queues = [self._store.queue(name) for name in dict.fromkeys(names)]
        self._threads = Threads()
        self._worker = Worker(
            self._queues,
            self._run,
            concurrency=options.get("concurrency", CONCURRENCY),
            lease_secs=options.get("lease_secs", 30),
            max_attempts=0,  # each job has its own limit
            dead_letter_on=TooLargeError,  # a result that the queue does not take; it would be the same again
            grace_secs=options.get("grace_secs", 25),
            burst=options.get("burst", False),
            hooks=options.get("hooks"),
            handle_signals=options.get("handle_signals", True),
        )
        self._running = Running(self._store, self._worker.id)
        desk = Desk(app.functions, app._serializer, self._worker.id)
        self._forks = Forks(desk, self._worker.stop)
        self._executor = Executor(desk, self._running, self._threads, self._forks)

    @property
    def id(self) -> str:
        """Its name among the live workers."""
        return self._worker.id

    async def run(self) -> int:
        """Work until stopped, with `burst` until nothing is ready; answers how many jobs have ended here, however."""
        if any(each.options.fork for each in self._app.functions.values()):
            self._forks.open()
        async with self._hooked():
            teller = asyncio.create_task(self._running.tell(), name="leaseq notes")
            try:
                await self._worker.run()
            finally:
                teller.cancel()
                await asyncio.wait([teller])
                self._threads.close()
                await self._forks.close()
        return self._running.performed

    def stop(self, *, at_once: bool = False) -> None:
        """Begin no more jobs; `run` returns when those that run have ended, or after the grace time; twice: now."""
        self._worker.stop(at_once=at_once)

    async def _run(self, item: Any) -> None:
        await self._executor(item)

    @contextlib.asynccontextmanager
    async def _hooked(self) -> AsyncIterator[None]:
        for begin in self._app._startup:
            await _called(begin)
        try:
            yield
        finally:
            for end in self._app._shutdown:
                await _called(end)


async def _called(hook: Callable[[], Awaitable[Any] | Any]) -> None:
    answer = hook()
    if inspect.isawaitable(answer):
        await answer
