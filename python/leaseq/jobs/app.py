"""The App of programs without an event loop, and of those that have both kinds of code."""

import threading
from typing import Unpack

from leaseq import commands
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs import aio
from leaseq.jobs._sync import app
from leaseq.jobs.worker.job_worker import WorkerOptions
from leaseq.jobs.worker.supervisor import Supervisor


class App(app.App):
    """Functions that can be enqueued as jobs, which workers run in other processes.

        app = leaseq.jobs.App("redis://localhost")

        @app.job(retries=2)
        async def send(address: str) -> int: ...

        handle = send.enqueue("a@example.org")

    The App, its functions, handles, chains and schedules each have `aio`: the same for asyncio, with the same names,
    awaited: `await send.aio.enqueue("a@example.org")`. If all of your program is asyncio, use `leaseq.jobs.aio.App`.

    `server` is a URL or a redis-py client as for WorkQueue, None: $REDIS_URL; with a client, only the methods of its
    kind (sync or async) work. All queues are in one `group`. Jobs of functions without another queue go to that which
    `routes` has for a pattern of the name (`{"mail.*": "mail"}`, the first that fits), else to the queue that `queue` names.
    Arguments and results are encoded as JSON, with `format="msgpack"` as MessagePack, or by a `serializer`. A `codec`, or
    several in their order, stores them compressed or encrypted: see `leaseq.jobs.codecs`. No connection is opened before
    the first call. With `durable` (leaseq.Replicas or leaseq.Disk) an enqueue returns once that many
    replicas or disks have the job, or raises NotDurableError, whose `answer` is the handle.

    Attributes:
        program: what its workers run.

    Raises BadNameError, BadTypeError, BadArgumentError; the first call raises NoServerError without a server.
    """

    @property
    def aio(self) -> aio.App:
        """The same App for asyncio: `await app.aio.enqueue_many(calls)`."""
        return aio.App.of_program(self.program)

    def run_worker(
        self, *, processes: int | None = None, listen: str | None = None, **options: Unpack[WorkerOptions]
    ) -> int:
        """Run jobs in several processes, which this one supervises, until stopped. Return the number of jobs that have ended.

        `processes` is their number; None: one for each CPU. The options are those of
        `leaseq.jobs.worker.job_worker.WorkerOptions`. After SIGTERM or Ctrl-C running jobs have `grace_secs` to end; a second
        signal releases them; a third kills the processes. A process that dies is replaced, and its jobs can be leased at
        once. The processes are forked: call it in the main thread, before you start other threads. `listen` is a HOST:PORT
        at which this process serves /metrics for Prometheus, /healthz and /readyz, for all processes.

        Raises BadTypeError if the App has a client instead of a URL, BadArgumentError, ModuleNotFoundError for `listen`
        without the extra `cleaner`, and WorkerFailedError if the processes cannot start.
        """
        if not isinstance(self._clients.server, str | None):
            raise BadTypeError(
                "each process of run_worker opens its own connections: give the App its URL, or run one worker"
                " with app.aio.run_worker and a client of asyncio"
            )
        if threading.current_thread() is not threading.main_thread():
            raise BadArgumentError(
                "run_worker handles signals, which only the main thread can: call it there; in another thread, call"
                " asyncio.run(app.aio.run_worker())"
            )
        count = None if processes is None else commands.whole(processes, "processes")
        return Supervisor(self.program, count, options, listen).run()
