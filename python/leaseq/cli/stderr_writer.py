"""Writes to stderr beside the event loop: a reader that does not read stops neither heartbeats nor signals."""

import asyncio
import contextlib
import os
import queue
import select
import sys
import threading
from functools import partial

STALL_SECS = 5.0
"""Seconds that a reader may take to read a chunk; then what follows is dropped until it has."""


END_SECS = 1.0
"""Seconds that the last lines of a program may take."""


class StderrWriter:
    """One for a program.

    Attributes:
        unwritten: bytes that could not be written.
    """

    def __init__(self) -> None:
        self.unwritten = 0
        self._chunks: queue.SimpleQueue[tuple[bytes, asyncio.Future[int]]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._stalled: asyncio.Future[int] | None = None

    @property
    def is_stalled(self) -> bool:
        """True if a chunk waits for a reader."""
        return self._stalled is not None and not self._stalled.done()

    async def write(self, chunk: bytes, seconds: float = STALL_SECS) -> None:
        """Write, and wait until that is done, for at most `seconds`."""
        future = self.send(chunk)
        if future is not None:
            await asyncio.wait([future], timeout=seconds)
            if not future.done():
                self._stalled = future

    def send(self, chunk: bytes) -> "asyncio.Future[int] | None":
        """Write after what was sent before, without waiting; None if the reader is stalled, and it is dropped."""
        self.unwritten += len(chunk)
        if self.is_stalled:
            return None
        if self._thread is None:
            # a daemon: a reader that does not read keeps no program from ending
            self._thread = threading.Thread(target=self._run, name="leaseq stderr", daemon=True)
            self._thread.start()
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._chunks.put((chunk, future))
        return future

    def _run(self) -> None:
        while True:
            chunk, future = self._chunks.get()
            count = _write(chunk)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                future.get_loop().call_soon_threadsafe(partial(self._written, count, future))

    def _written(self, count: int, future: "asyncio.Future[int]") -> None:
        self.unwritten -= count
        if not future.done():
            future.set_result(count)


def _write(chunk: bytes) -> int:
    """Write to stderr; returns how many bytes were written."""
    descriptor, written = sys.stderr.fileno(), 0
    with contextlib.suppress(OSError):  # a closed pipe, a full disk
        while written < len(chunk):
            try:
                written += os.write(descriptor, chunk[written:])
            except BlockingIOError:
                select.select([], [descriptor], [])
    return written
