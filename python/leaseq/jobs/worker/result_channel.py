"""The messages of a job's process to the worker."""

import asyncio
import socket

import msgspec

from leaseq.jobs.context import Report
from leaseq.jobs.worker import forkserver
from leaseq.jobs.worker.execution import JobResult
from leaseq.jobs.worker.framing import iter_frames

READ_BYTES = 1 << 20


class ResultChannel:
    """Reads the worker's end of a pair of sockets. A process that the job started can keep the other end open."""

    def __init__(self, end: socket.socket, report: Report) -> None:
        """Listen; `report` is called with the progress of the job. In an event loop."""
        self._end = end
        self._report = report
        self._buffer = bytearray()
        self._loop = asyncio.get_running_loop()
        self.pid = 0
        """The process that runs the job, 0 before it has said so."""
        self.ending: asyncio.Future[JobResult | None] = self._loop.create_future()
        """The end of the job; None if its process died before it reported that."""
        end.setblocking(False)
        self._loop.add_reader(end, self._on_readable)

    def drain(self) -> JobResult | None:
        """Return the end of the job, after reading all that its ended process wrote."""
        while self._on_readable():
            pass
        return self.ending.result() if self.ending.done() else None

    def close(self) -> None:
        """Listen no more."""
        self._loop.remove_reader(self._end)
        self._end.close()

    def _on_readable(self) -> bool:
        """Read what is there; false if there is no more."""
        if self.ending.done():
            return False
        try:
            received = self._end.recv(READ_BYTES)
        except BlockingIOError:
            return False
        except ConnectionError:
            received = b""
        self._buffer += received
        try:
            ending = self._read()
        except Exception as error:  # noqa: BLE001 (raised where it is waited for)
            self._loop.remove_reader(self._end)
            self.ending.set_exception(error)
            return False
        if ending is not None or not received:
            self._loop.remove_reader(self._end)
            self.ending.set_result(ending)
            return False
        return True

    def _read(self) -> JobResult | None:
        """Report what is whole, up to the end of the job."""
        for content in iter_frames(self._buffer):
            word: forkserver.Message = msgspec.msgpack.decode(content, type=forkserver.Message)
            if isinstance(word, forkserver.Ended):
                return word.ending
            if isinstance(word, forkserver.Started):
                self.pid = word.pid
            else:
                self._report(word.done, word.total)
        return None
