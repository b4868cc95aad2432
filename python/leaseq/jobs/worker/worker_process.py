"""One process of a worker: works until its supervisor says otherwise, or is gone."""

import asyncio
import contextlib
import mmap
import os
import signal
import socket
import sys
from typing import Final, NoReturn

from leaseq.jobs.program import Program
from leaseq.jobs.worker import forkserver
from leaseq.jobs.worker.job_worker import JobWorker, WorkerOptions
from leaseq.jobs.worker.lease_journal import LeaseJournal

STOP: Final = b"s"
NOW: Final = b"n"
"""What the supervisor says; its end says STOP."""

FAILED: Final = 1


def run(program: Program, wire: socket.socket, marks: mmap.mmap, options: WorkerOptions) -> NoReturn:
    """Work. The process ends with 0 when it is stopped, or after its number of jobs."""
    code = FAILED
    try:
        # threads that hang keep no process from ending here: nothing is waited for behind this
        asyncio.run(_work(program, LeaseJournal(wire.sendall, marks), wire, options))
        code = 0
    except BaseException:  # noqa: BLE001 (the supervisor starts another)
        sys.excepthook(*sys.exc_info())
    finally:
        forkserver.flush()
        os._exit(code)


async def _work(program: Program, journal: LeaseJournal, wire: socket.socket, options: WorkerOptions) -> None:
    loop = asyncio.get_running_loop()
    async with contextlib.aclosing(program.clients):
        own: WorkerOptions = {**options, "handle_signals": False}
        service = JobWorker(program, journal, **own)

        def on_command() -> None:
            word = wire.recv(1)
            service.stop(at_once=word == NOW)
            if not word:
                loop.remove_reader(wire)

        loop.add_reader(wire, on_command)
        for number in (signal.SIGTERM, signal.SIGINT):
            # a terminal and a service manager send them to all processes: once more is not twice
            loop.add_signal_handler(number, service.stop)
        performed = await service.run()
        journal.over(performed, stopped=service.stopped)
        loop.remove_reader(wire)
