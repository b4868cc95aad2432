"""Jobs in a process of their own, seen from the worker."""

import asyncio
import contextlib
import os
import signal
import socket
from collections import deque
from collections.abc import Callable

import msgspec

from leaseq.jobs.context import Report
from leaseq.jobs.errors import JobTimeout
from leaseq.jobs.worker import mother
from leaseq.jobs.worker.desk import Desk, Ending, Lease, Ready
from leaseq.jobs.worker.ear import Ear
from leaseq.jobs.worker.frames import framed
from leaseq.process import fork
from leaseq.worker.hooks import logger
from leaseq.worker.verdicts import Release

KILL_SECS = 5.0
"""How long a process may go on after its time is over, which it was told by an exception; then it is killed."""

_TOO_LATE = (
    "this worker began before there was a function with fork=True, and cannot fork any more: begin it anew"
)


class Forks:
    """Starts a process for each job, ends it where it must, and takes its word for how the job ended."""

    def __init__(self, desk: Desk, lost: Callable[[], None]) -> None:
        """`lost` is called when no more processes can be had: this worker is of no more use."""
        self._desk = desk
        self._lost = lost
        self._is_lost = False
        self._pid = 0
        self._wire: socket.socket | None = None
        self._count = 0
        self._ends: dict[int, asyncio.Future[int]] = {}
        self._outbox: deque[tuple[bytes, socket.socket | None]] = deque()
        self._buffer = b""

    def open(self) -> None:
        """Fork the process from which those of the jobs are forked: now, while this one has no threads of its own."""
        ours, theirs = socket.socketpair()
        mother.flush()  # what is not written yet would be written twice
        self._pid, threads = fork()
        if self._pid == 0:
            ours.close()
            mother.run(theirs, self._desk)
        if threads:
            logger.warning(
                "the processes of jobs are forked from one that has %d other threads: what these had locked stays locked"
                " there; begin the worker before them, or with run_worker",
                threads,
            )
        theirs.close()
        ours.setblocking(False)
        self._wire = ours
        asyncio.get_running_loop().add_reader(ours, self._hear)

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
        await asyncio.to_thread(os.waitpid, self._pid, 0)

    async def run(self, lease: Lease, ready: Ready, report: Report) -> Ending:
        """Run a job. Cancelled, its process is killed. Raises Release where there are no processes any more."""
        if self._is_lost:
            raise Release(uncounted=True)
        if self._wire is None:
            return self._desk.failed(lease, ready, RuntimeError(_TOO_LATE))
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        self._count += 1
        number = self._count
        ended = self._ends[number] = loop.create_future()
        ear = Ear(ours, report)
        try:
            self._order(mother.START, number, theirs)
            limit = None if ready.timeout is None else ready.timeout + KILL_SECS
            async with asyncio.timeout(limit) as scope:
                with contextlib.suppress(ConnectionError):  # it has ended, which is heard
                    await loop.sock_sendall(ours, framed(msgspec.msgpack.encode(lease)))
                await asyncio.wait([ear.ending, ended], return_when=asyncio.FIRST_COMPLETED)
                ending = ear.last_word()
                return ending or self._desk.crashed(lease, ready, _in_words(await ended))
        except TimeoutError:
            if not scope.expired():
                raise
            late = JobTimeout(
                f"took longer than {ready.timeout:g} seconds, and was killed {KILL_SECS:g} later"
            )
            return self._desk.failed(lease, ready, late)
        finally:
            self._order(mother.KILL, number)
            del self._ends[number]
            ear.close()

    def _order(self, what: int, number: int, end: socket.socket | None = None) -> None:
        """Have something done, with an end of a pair that is closed here when it is there: else its end would not be the last."""
        self._outbox.append((mother.ORDER.pack(what, number), end))
        self._send_orders()

    def _send_orders(self) -> None:
        """Send what can be sent: the one that forks may have much to do, and this loop does not wait for it."""
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
            except OSError:  # it is gone, which is heard
                self._drop_orders()
                return
            self._outbox.popleft()
            if end is not None:
                end.close()

    def _drop_orders(self) -> None:
        """Forget what was not sent; nobody will do it."""
        if self._wire is not None:
            asyncio.get_running_loop().remove_writer(self._wire)
        for _, end in self._outbox:
            if end is not None:
                end.close()
        self._outbox.clear()

    def _hear(self) -> None:
        """The ends of processes; the end of the one that forks them is that of all."""
        assert self._wire is not None  # noqa: S101 (no reader without it)
        try:
            heard = self._wire.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        if not heard:
            asyncio.get_running_loop().remove_reader(self._wire)
            self._is_lost = True
            self._drop_orders()
            logger.error("the process that forks those of jobs has ended: this worker stops")
            self._lost()
            for ended in self._ends.values():
                if not ended.done():
                    ended.set_result(-signal.SIGKILL)
            return
        self._buffer += heard
        whole = len(self._buffer) // mother.EXIT.size * mother.EXIT.size
        for number, code in mother.EXIT.iter_unpack(self._buffer[:whole]):
            ended_one = self._ends.get(number)
            if ended_one is not None and not ended_one.done():
                ended_one.set_result(code)
        self._buffer = self._buffer[whole:]


def _in_words(code: int) -> str:
    if code >= 0:
        return f"its process ended with exit code {code}"
    try:
        return f"its process was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"its process was ended by signal {-code}"
