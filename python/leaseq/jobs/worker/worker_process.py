"""One process of a worker: works until its supervisor says otherwise, or is gone."""

import asyncio
import contextlib
import mmap
import socket
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from leaseq.durations import seconds
from leaseq.jobs.program import Program
from leaseq.jobs.worker import process_life
from leaseq.jobs.worker.estate import Estate
from leaseq.jobs.worker.job_worker import GRACE_SECS, JobWorker, WorkerOptions
from leaseq.jobs.worker.lease_journal import ALIVE, LeaseJournal
from leaseq.jobs.worker.settlement import Settlement
from leaseq.worker.work_counts import WorkCounts
from leaseq.worker.work_meter import WorkMeter

if TYPE_CHECKING:
    from collections.abc import Callable

STOP: Final = b"s"
NOW: Final = b"n"
"""The supervisor's messages; the end of the channel means STOP."""

BEAT_SECS: Final = 1.0
"""Seconds between two signs of life."""

UNWIND_SECS: Final = 1.0
"""Seconds that tasks which jobs and hooks have left may take to end."""

FAILED: Final = 1


class WorkerProcess:
    """Run in the process; with an estate it settles that, and is no worker."""

    def __init__(
        self,
        program: Program,
        wire: socket.socket,
        marks: mmap.mmap,
        options: WorkerOptions,
        estate: Estate | None,
        memory: mmap.mmap | None,
    ) -> None:
        """`memory` receives counts of its work, if anyone reads them."""
        self._program = program
        self._wire = wire
        self._journal = LeaseJournal(wire.sendall, marks)
        self._options: WorkerOptions = {**options, "handle_signals": False}
        self._grace_secs = seconds(options.get("grace_secs", GRACE_SECS), "grace_secs")
        self._estate = estate
        self._meter = None if memory is None else WorkMeter(WorkCounts(memory, self._journal.counts))
        self._on_signal: Callable[[], object] = (
            bool  # before it can listen, the supervisor alone says when to stop
        )

    def run(self) -> NoReturn:
        """Work. The process ends with 0 when it is stopped, or after its number of jobs."""
        code = FAILED
        try:
            process_life.start(lambda _: self._on_signal())
            # the runner is not closed: that would wait for threads
            asyncio.Runner().run(self._work())
            code = 0
        except BaseException:  # noqa: BLE001 (the supervisor starts another)
            sys.excepthook(*sys.exc_info())
        finally:
            process_life.end(code)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        beats = {asyncio.create_task(self._beat(), name="leaseq signs of life")}
        async with contextlib.aclosing(self._program.clients):
            service = self._service()
            if self._meter is not None:
                beats.add(asyncio.create_task(self._look(self._meter, service), name="leaseq counts"))

            def on_command() -> None:
                word = self._wire.recv(1)
                service.stop(at_once=word == NOW)
                if not word:  # the supervisor is gone
                    process_life.end_by_alarm(self._grace_secs + process_life.END_SECS)
                    loop.remove_reader(self._wire)

            loop.add_reader(self._wire, on_command)
            # a terminal and a service manager send them to all processes: once more is not twice
            self._on_signal = lambda: loop.call_soon_threadsafe(service.stop)
            performed = await service.run()
            self._journal.left(performed, stopped=service.stopped)
            loop.remove_reader(self._wire)
        self._on_signal = bool
        await _end_tasks(beats)
        await loop.shutdown_asyncgens()

    def _service(self) -> JobWorker | Settlement:
        if self._estate is None:
            return JobWorker(self._program, self._journal, None, self._meter, **self._options)
        return Settlement(self._program, self._journal, self._estate, self._options, self._meter)

    async def _beat(self) -> None:
        while True:
            with contextlib.suppress(OSError):  # the supervisor stands still, or is gone
                self._wire.send(ALIVE, socket.MSG_DONTWAIT)
            await asyncio.sleep(BEAT_SECS)

    async def _look(self, meter: WorkMeter, service: JobWorker | Settlement) -> None:
        while True:
            meter.look(service)
            await asyncio.sleep(BEAT_SECS)


async def _end_tasks(last: set[asyncio.Task[None]]) -> None:
    """Cancel what jobs and hooks have left running; `last` goes on until that has ended."""
    tasks = asyncio.all_tasks() - {asyncio.current_task(), *last}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=UNWIND_SECS)
    for task in last:
        task.cancel()
    await asyncio.wait(last)
