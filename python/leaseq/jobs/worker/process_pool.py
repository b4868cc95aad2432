"""Jobs in separate processes, seen from the worker."""

import asyncio
import contextlib
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from leaseq.jobs.context import Report
from leaseq.jobs.errors import JobTimeout
from leaseq.jobs.worker import forkserver, process_life
from leaseq.jobs.worker.execution import JobExecution, JobResult, LeasedJob, PreparedJob
from leaseq.jobs.worker.framing import frame
from leaseq.jobs.worker.process_life import exit_text
from leaseq.jobs.worker.result_channel import ResultChannel
from leaseq.worker.hooks import logger
from leaseq.worker.retry_policy import Release

KILL_SECS = 5.0
"""Seconds that a process may run after its JobTimeout; then it is killed."""

LOST_SECS = 1.0
"""Seconds that jobs wait which ran together when the process that forks them died."""

_TOO_LATE = (
    "this worker started before there was a function with fork=True, and can no longer fork: restart it"
)


class JobProcesses:
    """Starts a process for each job, ends it where it must, and takes its word for how the job ended."""

    def __init__(
        self, execution: JobExecution, shutdown: Sequence[Callable[[], Any]], lost: Callable[[], None]
    ) -> None:
        """`shutdown` are called in each process after its job.

        `lost` is called when no more processes can be had: this worker is of no more use.
        """
        self._execution = execution
        self._shutdown = shutdown
        self._lost = lost
        self._is_lost = False
        self._pid = 0
        self._wire: socket.socket | None = None
        self._count = 0
        self._ends: dict[int, asyncio.Future[int | None]] = {}
        self._outbox: deque[tuple[bytes, socket.socket | None]] = deque()
        self._buffer = b""

    def open(self) -> None:
        """Fork the process from which those of the jobs are forked: now, while this one has no threads."""
        ours, theirs = socket.socketpair()
        worker = os.getpid()
        self._pid, threads = process_life.fork_process()
        if self._pid == 0:
            ours.close()
            forkserver.run(theirs, self._execution, self._shutdown, worker)
        if threads:
            logger.warning(
                "the processes of jobs are forked from a process with %d other threads: what these had locked stays locked"
                " there; start the worker before them, or with run_worker",
                threads,
            )
        theirs.close()
        ours.setblocking(False)
        self._wire = ours
        asyncio.get_running_loop().add_reader(ours, self._on_readable)

    async def close(self) -> None:
        """End all processes."""
        if self._wire is None:
            return
        asyncio.get_running_loop().remove_reader(self._wire)
        self._drop_orders()
        with contextlib.suppress(OSError):
            self._wire.shutdown(socket.SHUT_RDWR)
        self._wire.close()
        self._wire = None
        with contextlib.suppress(
            ChildProcessError
        ):  # it was waited for: something ignores SIGCHLD, or waits for any child
            await asyncio.to_thread(os.waitpid, self._pid, 0)

    async def run(self, lease: LeasedJob, ready: PreparedJob, report: Report) -> JobResult:
        """Run a job. If it is cancelled, its process is killed. Raises Release if there are no more processes."""
        if self._is_lost:
            raise Release(uncounted=True)
        if self._wire is None:
            return self._execution.failed(lease, ready, RuntimeError(_TOO_LATE))
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        self._count += 1
        number = self._count
        ended = self._ends[number] = loop.create_future()
        channel = ResultChannel(ours, report)
        try:
            self._order(forkserver.START, number, theirs)
            limit = None if ready.timeout is None else ready.timeout + KILL_SECS
            async with asyncio.timeout(limit) as scope:
                with contextlib.suppress(ConnectionError):  # it has ended, which is data
                    await loop.sock_sendall(ours, frame(msgspec.msgpack.encode(lease)))
                await asyncio.wait([channel.ending, ended], return_when=asyncio.FIRST_COMPLETED)
                ending = channel.drain()
                return ending or self._died(lease, ready, await ended)
        except TimeoutError:
            if not scope.expired():
                raise
            late = JobTimeout(
                f"took longer than {ready.timeout:g} seconds, and was killed {KILL_SECS:g} later"
            )
            return self._execution.failed(lease, ready, late)
        finally:
            self._order(forkserver.KILL, number)
            if self._is_lost and channel.pid:  # what the job started outlives both
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(channel.pid, signal.SIGKILL)
            del self._ends[number]
            channel.close()

    def _died(self, lease: LeasedJob, ready: PreparedJob, code: int | None) -> JobResult:
        """Return the end of a job whose process did not report it. Raises Release if that is not known to be the job's doing."""
        if code is None:
            raise Release(uncounted=True, delay=LOST_SECS)
        return self._execution.crashed(lease, ready, f"its process {exit_text(code)}")

    def _order(self, what: int, number: int, end: socket.socket | None = None) -> None:
        """Have something done, with an end of a pair that is closed here when it is there: else its end would not be the last."""
        self._outbox.append((forkserver.ORDER.pack(what, number), end))
        self._send_orders()

    def _send_orders(self) -> None:
        """Send what can be sent: the forking process may be busy, and this loop does not wait for it."""
        if self._wire is None or self._is_lost:
            self._drop_orders()
            return
        loop = asyncio.get_running_loop()
        loop.remove_writer(self._wire)
        while self._outbox:
            frame, end = self._outbox[0]
            try:
                socket.send_fds(self._wire, [frame], [] if end is None else [end.fileno()])
            except BlockingIOError:
                loop.add_writer(self._wire, self._send_orders)
                return
            except OSError:  # it is gone, which is data
                self._drop_orders()
                return
            self._outbox.popleft()
            if end is not None:
                end.close()

    def _drop_orders(self) -> None:
        """Forget what was not sent."""
        if self._wire is not None:
            asyncio.get_running_loop().remove_writer(self._wire)
        for _, end in self._outbox:
            if end is not None:
                end.close()
        self._outbox.clear()

    def _on_readable(self) -> None:
        """Handle the ends of processes; if the forking process ends, all do."""
        assert self._wire is not None  # noqa: S101 (no reader without it)
        try:
            data = self._wire.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._wire)
            self._is_lost = True
            self._drop_orders()
            logger.error("the process that forks those of jobs has ended: this worker stops")
            self._lost()
            running = [ended for ended in self._ends.values() if not ended.done()]
            for ended in running:  # a job that runs alone may have killed it
                ended.set_result(-signal.SIGKILL if len(running) == 1 else None)
            return
        self._buffer += data
        whole = len(self._buffer) // forkserver.EXIT.size * forkserver.EXIT.size
        for number, code in forkserver.EXIT.iter_unpack(self._buffer[:whole]):
            ended_one = self._ends.get(number)
            if ended_one is not None and not ended_one.done():
                ended_one.set_result(code)
        self._buffer = self._buffer[whole:]
