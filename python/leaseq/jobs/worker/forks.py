"""Jobs in a process of their own, seen from the worker."""

import asyncio
import contextlib
import os
import signal
import socket
import struct
from collections.abc import Callable
from typing import Any

import msgspec

from leaseq.jobs.context import Report
from leaseq.jobs.errors import JobTimeout
from leaseq.jobs.worker import mother
from leaseq.jobs.worker.desk import Desk, Ending, Lease, Ready
from leaseq.worker.hooks import logger
from leaseq.worker.verdicts import Release

KILL_SECS = 5.0
"""How long a process may go on after its time is over, which it was told by an exception; then it is killed."""

LAST_WORD_SECS = 1.0
"""How long what a process wrote before its end may take to be read."""


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
        self._buffer = b""

    def open(self) -> None:
        """Fork the process from which those of the jobs are forked: now, while this one has no threads of its own."""
        ours, theirs = socket.socketpair()
        mother.flush()  # what is not written yet would be written twice
        self._pid = os.fork()
        if self._pid == 0:
            ours.close()
            mother.run(theirs, self._desk)
        theirs.close()
        ours.setblocking(False)
        self._wire = ours
        asyncio.get_running_loop().add_reader(ours, self._hear)

    async def close(self) -> None:
        """End all processes."""
        if self._wire is None:
            return
        asyncio.get_running_loop().remove_reader(self._wire)
        with contextlib.suppress(OSError):
            self._wire.shutdown(socket.SHUT_RDWR)
        self._wire.close()
        self._wire = None
        await asyncio.to_thread(os.waitpid, self._pid, 0)

    async def run(self, lease: Lease, ready: Ready, report: Report) -> Ending:
        """Run a job. Cancelled, its process is killed. Raises Release where there are no processes any more."""
        if self._is_lost:
            raise Release(uncounted=True)
        self._count += 1
        number = self._count
        ended = self._ends[number] = asyncio.get_running_loop().create_future()
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours, limit=2**30)
        try:
            self._send(mother.START, number, theirs)
            theirs.close()  # else its end would not be the last
            writer.write(mother.framed(msgspec.msgpack.encode(lease)))
            limit = None if ready.timeout is None else ready.timeout + KILL_SECS
            async with asyncio.timeout(limit) as scope:
                return await self._listen(reader, ended, report, lease, ready)
        except TimeoutError:
            if not scope.expired():
                raise
            late = JobTimeout(
                f"took longer than {ready.timeout:g} seconds, and was killed {KILL_SECS:g} later"
            )
            return self._desk.failed(lease, ready, late)
        finally:
            theirs.close()
            self._send(mother.KILL, number)
            del self._ends[number]
            writer.close()

    async def _listen(
        self,
        reader: asyncio.StreamReader,
        ended: asyncio.Future[int],
        report: Report,
        lease: Lease,
        ready: Ready,
    ) -> Ending:
        """What a process says, until it has said how its job ended; or how itself did."""
        saying = asyncio.ensure_future(_said(reader, report))
        either: list[asyncio.Future[Any]] = [saying, ended]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not saying.done():
                await asyncio.wait([saying], timeout=LAST_WORD_SECS)
            if saying.done() and (ending := saying.result()) is not None:
                return ending
            return self._desk.crashed(lease, ready, _in_words(await ended))
        finally:
            saying.cancel()
            await asyncio.wait([saying])

    def _send(self, what: int, number: int, end: socket.socket | None = None) -> None:
        frame = mother.ORDER.pack(what, number)
        with contextlib.suppress(OSError):  # it is gone: what it had is told as ended
            if self._wire is not None:
                socket.send_fds(self._wire, [frame], [] if end is None else [end.fileno()])

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


async def _said(reader: asyncio.StreamReader, report: Report) -> Ending | None:
    """How a job ended; None where its process did not live to say so."""
    try:
        while True:
            (length,) = struct.unpack(">I", await reader.readexactly(4))
            word: Any = msgspec.msgpack.decode(await reader.readexactly(length), type=mother.Word)
            if isinstance(word, mother.Progress):
                report(word.done, word.total)
            else:
                ending: Ending = word.ending
                return ending
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _in_words(code: int) -> str:
    if code >= 0:
        return f"its process ended with exit code {code}"
    try:
        return f"its process was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"its process was ended by signal {-code}"
