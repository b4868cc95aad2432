"""leaseq.jobs for asyncio: the same names and signatures as `leaseq.jobs`, with `await` and `async with`."""

from typing import Unpack

from leaseq.jobs._aio import app
from leaseq.jobs._aio.chain import Chain, ChainHandle
from leaseq.jobs._aio.function import JobFunction
from leaseq.jobs._aio.handle import Handle
from leaseq.jobs._aio.schedules import Schedules
from leaseq.jobs.worker.job_worker import JobWorker, WorkerOptions

__all__ = ["App", "Chain", "ChainHandle", "Handle", "JobFunction", "Schedules"]


class App(app.App):
    """Functions that can be enqueued as jobs, and waited for, in an event loop.

        app = leaseq.jobs.aio.App("redis://localhost")

        @app.job(retries=2)
        async def send(address: str) -> int: ...

        handle = await send.enqueue("a@example.org")

    The arguments are those of `leaseq.jobs.App`. `leaseq worker` runs the jobs of both in several processes.
    """

    async def run_worker(self, **options: Unpack[WorkerOptions]) -> int:
        """Run jobs in this event loop until stopped (SIGTERM, SIGINT; a second one ends it at once).

        Returns the number of jobs that have ended in this process. For the options see
        `leaseq.jobs.worker.job_worker.WorkerOptions`. Raises BadTypeError, BadArgumentError.
        """
        return await JobWorker(self.program, **options).run()
