"""A command as a handler of items: each runs in a separate process, whose exit code decides."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field
from typing import IO, Final

from leaseq.aio import LeasedItem
from leaseq.cli.passwords import has_password
from leaseq.cli.stderr_writer import StderrWriter
from leaseq.formatting import plain
from leaseq.worker import Backoff, DeadLetter, Release

BAD_DATA: Final = os.EX_DATAERR
"""The exit code, 65, that says that the item will never do."""

TRY_AGAIN: Final = os.EX_TEMPFAIL
"""The exit code, 75, that says that it was not the item's fault."""

_TERM_SECS: Final = 0.5  # from SIGTERM to SIGKILL; less than what a worker that stops leaves to its handlers
_DRAIN_SECS: Final = 1.0  # how long stderr may go on when the command has ended
_TAIL: Final = 4096  # bytes of stderr; their last line is kept
_CHUNK: Final = 65536  # bytes of stderr that are passed on at a time


@dataclass(frozen=True, slots=True)
class SubprocessHandler:
    """Runs the command for an item, its data on stdin.

    Args:
        command: program and arguments.
        dead_on: exit codes after which the item dies.
        with_result: what the command writes to stdout is the item's result.
        to_stderr: what it writes to stdout goes to stderr.
        stderr: what passes on what the commands write to stderr.

    Attributes:
        starting: items whose commands are being started.
        running: the ids of the processes of commands.
    """

    command: Sequence[str]
    dead_on: Collection[int] = (BAD_DATA,)
    with_result: bool = False
    to_stderr: bool = False
    stderr: StderrWriter = field(default_factory=StderrWriter)
    starting: set[LeasedItem] = field(default_factory=set, init=False)
    running: set[int] = field(default_factory=set, init=False)

    async def __call__(self, item: LeasedItem) -> None:
        """Handle an item. Raises DeadLetter, Release."""
        with tempfile.TemporaryFile() as data, tempfile.TemporaryFile() as result:
            data.write(item.data)
            data.seek(0)
            async with self._stderr() as (stderr, tail):
                self.starting.add(item)
                try:
                    child = await self._start(item, data, result, stderr)
                    self.running.add(child.pid)
                finally:
                    self.starting.discard(item)
                try:
                    code = await _end_of(child)
                finally:
                    self.running.discard(child.pid)
            if self.with_result:
                result.seek(0)
                item.result = result.read()
        self._judge(item, code, _last_line(tail))

    @contextlib.asynccontextmanager
    async def _stderr(self) -> AsyncIterator[tuple[int, bytearray]]:
        """Where a command writes its errors, which are passed on, and the end of what it wrote, complete when this is over."""
        read, write = os.pipe()
        reader, tail = asyncio.StreamReader(), bytearray()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb", buffering=0)
        )
        passing = asyncio.ensure_future(self._pass_on(reader, tail))
        try:
            try:
                yield write, tail
            finally:
                os.close(write)
            # for a limited time: a process that left the command's group can hold it
            await asyncio.wait([passing], timeout=_DRAIN_SECS)
        finally:
            passing.cancel()
            transport.close()

    async def _pass_on(self, reader: asyncio.StreamReader, tail: bytearray) -> None:
        while chunk := await reader.read(_CHUNK):
            tail += chunk
            del tail[:-_TAIL]
            await self.stderr.write(chunk)

    async def _start(self, item: LeasedItem, data: IO[bytes], result: IO[bytes], stderr: int) -> Process:
        # without pipes of asyncio's: its wait() would last until every process has closed them
        return await asyncio.create_subprocess_exec(
            *self.command,
            stdin=data,
            stdout=result if self.with_result else sys.stderr if self.to_stderr else None,
            stderr=stderr,
            env=_own_environment() | environment(item),
            start_new_session=True,  # Ctrl-C is for leaseq, which lets the command finish; a terminal would stop what reads from it
        )

    def _judge(self, item: LeasedItem, code: int, last_line: str) -> None:
        if code == 0:
            return
        how = f"exit code {code}" if code > 0 else f"ended by {_name(-code)}"
        reason = f"{how}: {last_line}" if last_line else how
        if code in self.dead_on:
            raise DeadLetter(reason)
        if code == TRY_AGAIN:
            raise Release(reason, uncounted=True, delay=Backoff()(item.attempt))
        raise Release(reason)


def _own_environment() -> dict[str, str]:
    """The environment of this process. A command gets no password: a URL of the server that has one is left out."""
    return {
        name: value for name, value in os.environ.items() if name != "REDIS_URL" or not has_password(value)
    }


def environment(item: LeasedItem) -> dict[str, str]:
    """Return what the command gets of the item, in addition to its data."""
    return {
        "LEASEQ_QUEUE": item.queue.name,
        "LEASEQ_GROUP": item.queue.group,
        "LEASEQ_ID": item.id,
        "LEASEQ_TOKEN": str(item.token),
        "LEASEQ_ATTEMPT": str(item.attempt),
        "LEASEQ_CONTENT_TYPE": item.content_type or "",
        "LEASEQ_HEADERS": json.dumps(dict(item.headers)),
    }


def _name(number: int) -> str:
    """Of a signal. Most of the real-time ones have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(tail: bytearray) -> str:
    lines = tail.decode(errors="replace").split("\n")
    return next((plain(line.strip()) for line in reversed(lines) if line.strip()), "")


async def _end_of(child: Process) -> int:
    """Wait for the end of the command; answer its exit code. Nothing is left of its process group, however this ends."""
    try:
        return await child.wait()
    except asyncio.CancelledError:
        _signal(child, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(child.wait(), _TERM_SECS)
        raise
    finally:
        _signal(child, signal.SIGKILL)


def _signal(child: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
