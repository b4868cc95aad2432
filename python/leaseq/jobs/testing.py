"""For tests of programs that have jobs: `at_once` runs them here, as they are enqueued.

pytest has the fixtures `leaseq_url` and `leaseq_jobs` where leaseq is installed (see `leaseq.pytest_plugin`).
"""

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from leaseq.jobs import aio
from leaseq.jobs.app import App
from leaseq.jobs.clients import Server
from leaseq.jobs.program import Program
from leaseq.jobs.worker.job_worker import JobWorker


@contextlib.contextmanager
def at_once(app: App | aio.App, server: Server | None = None) -> Iterator[None]:
    """Run jobs in this process as they are enqueued, in a `with` block, for tests.

    In the block, `enqueue` and similar calls return when all jobs that are ready have ended. As with workers, jobs go
    through a real server and have their attempts, time limits and results. Jobs with a delay wait, and so do jobs
    that are to be tried again: a later such call runs them if they are due. `server` (a URL or a client) is used in place
    of the App's server in the block. In asyncio, close the App before the block ends.
    """
    runner = Runner(app.program)
    with app.program.clients.running(runner, server):
        yield


class Runner:
    """Runs what is ready. A job that enqueues others does not wait for them: they are run when it has ended, or beside it."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._guard = threading.Lock()

    def run(self) -> None:
        """Run what is ready, in a separate thread if this one has an event loop."""
        if not self._guard.acquire(blocking=False):
            return
        try:
            thread = threading.Thread(target=asyncio.run, args=(self._burst(),), name="leaseq at once")
            thread.start()
            thread.join()
        finally:
            self._guard.release()

    async def run_in_loop(self) -> None:
        """The same in this event loop."""
        if not self._guard.acquire(blocking=False):
            return
        try:
            await JobWorker(self._program, burst=True, handle_signals=False).run()
        finally:
            self._guard.release()

    async def _burst(self) -> None:
        try:
            await JobWorker(self._program, burst=True, handle_signals=False).run()
        finally:
            await self._program.clients.close_loop()
