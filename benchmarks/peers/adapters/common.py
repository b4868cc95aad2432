"""Code that all adapters share: their orders, the handlers, and the producer's loop.

Runs in the environment of every library, so it imports the standard library only. An adapter reads its orders from the
environment variable LEASEQ_BENCH (see Orders). A worker runs until it is killed; its handlers leave traces in a folder:

    <pid>.count    24 bytes: handled (u64), first and last time (ns of the monotonic clock)
    <pid>.times    16 bytes for each handled item: its number, the time
    <pid>.delays   24 bytes for each item with a time: its number, and what has held up the process so far (see delays)
    <pid>.tally    a byte for each number below 65536: how often it was handled
    held           the process whose handler holds its item
"""

from __future__ import annotations

import asyncio
import gc
import json
import mmap
import os
import random
import socket
import struct
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

HOLD_SECS: Final = 3600
COUNT: Final = struct.Struct("<QQQ")
TIME: Final = struct.Struct("<QQ")
DELAYS: Final = struct.Struct("<QQQ")
NUMBERS: Final = 1 << 16
"""The count of different numbers that the handler "tally" can record."""
DAY: Final = 86_400
RESULT_SECS: Final = 60.0
RESULT_POLL_SECS: Final = 0.02


class Job(NamedTuple):
    """A job to enqueue: an id for the libraries that take one, and the data, which starts with the number."""

    id: str
    data: str


@dataclass(frozen=True)
class Orders:
    """Orders to an adapter.

    Attributes:
        role: "produce" or "work".
        port: of the server on 127.0.0.1.
        folder: where handlers leave their traces.
        handler: "count", "times", "record" (also in the server: SADD effects NUMBER), "tally" (how often
            each number was), "wait" or "hold".
        wait_ms: how long the handler "wait" takes.
        concurrency: handlers at a time; 0 is what the adapter thinks best for work that needs no time.
        recovery: "default", or "quickest": set so that an abandoned item runs again as soon as the library can.
        variant: which of the adapter's ways to work, where it has several.
        results: whether handlers return their data, which is kept for a day; the producer can be asked for it.
        database: of the server, so that several libraries share one server and no key.
        server_pid: its process, 0 where nothing is asked of that.
        postgres_port: of the PostgreSQL server on 127.0.0.1, for a library that works on it; 0 for others.
    """

    role: str
    port: int
    folder: str
    handler: str = "count"
    wait_ms: int = 0
    concurrency: int = 0
    recovery: str = "default"
    variant: str = ""
    results: bool = False
    database: int = 0
    server_pid: int = 0
    postgres_port: int = 0

    @property
    def url(self) -> str:
        """The server, as redis-py takes it."""
        return f"redis://127.0.0.1:{self.port}/{self.database}"

    @property
    def quickest(self) -> bool:
        """True if recovery is to be as quick as it goes."""
        return self.recovery == "quickest"

    @property
    def as_shipped(self) -> bool:
        """True if a worker polls as by default: where it is measured how soon it recovers by its defaults."""
        return self.handler == "hold" and not self.quickest


ORDERS: Final = Orders(**json.loads(os.environ.get("LEASEQ_BENCH", '{"role": "", "port": 0, "folder": "."}')))


class _Collector:
    """Measures the time that garbage collection has taken in this process, in ns."""

    def __init__(self) -> None:
        self.took = 0
        self._began = 0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, _: dict[str, int]) -> None:
        now = time.monotonic_ns()
        if phase == "start":
            self._began = now
        else:
            self.took += now - self._began


def waited(pid: int | str = "self") -> int:
    """Return how long all threads of a process have waited for a CPU so far, in ns; 0 where the system does not say."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 (quicker)
    except OSError:
        return 0
    total = 0
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat", "rb") as file:  # noqa: PTH123 (quicker)
                total += int(file.read().split()[1])
        except (OSError, IndexError):  # a thread that has ended
            continue
    return total


class _Count:
    """The number of items that this process has handled, in a file: the harness reads it without asking the server."""

    def __init__(self) -> None:
        path = Path(ORDERS.folder, f"{os.getpid()}.count")
        path.write_bytes(bytes(COUNT.size))
        with path.open("r+b") as file:
            self._seen = mmap.mmap(file.fileno(), COUNT.size)
        self._lock = threading.Lock()
        self._count = 0
        self._first = 0

    def add(self) -> None:
        """Count one more item."""
        now = time.monotonic_ns()
        with self._lock:
            self._count += 1
            self._first = self._first or now
            COUNT.pack_into(self._seen, 0, self._count, self._first, now)


class _Tally:
    """A count for each number that this process has handled, in a file: the harness reads it without asking the server."""

    def __init__(self) -> None:
        path = Path(ORDERS.folder, f"{os.getpid()}.tally")
        path.write_bytes(bytes(NUMBERS))
        with path.open("r+b") as file:
            self._seen = mmap.mmap(file.fileno(), NUMBERS)

    def add(self, number: int) -> None:
        """Count the number once more."""
        self._seen[number] = min(255, self._seen[number] + 1)


class _Traces:
    """Files in which handlers leave traces. Made at the first item, in the process that handles it: several libraries fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count: _Count | None = None
        self._tally: _Tally | None = None
        self._times = self._delays = -1
        self._collector: _Collector | None = None
        self._server: socket.socket | None = None

    def count(self) -> None:
        """Count one item."""
        (self._count or self._begun_count()).add()

    def _begun_count(self) -> _Count:
        with self._lock:
            if self._count is None:
                self._count = _Count()
            return self._count

    def tally(self, number: int) -> None:
        """Count one number."""
        with self._lock:
            if self._tally is None:
                self._tally = _Tally()
            self._tally.add(number)

    def time(self, number: int) -> None:
        """Note when an item was handled."""
        with self._lock:
            now = time.monotonic_ns()
            if self._collector is None:
                self._collector = _Collector()
                self._times, self._delays = (
                    os.open(
                        Path(ORDERS.folder, f"{os.getpid()}.{name}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND
                    )
                    for name in ("times", "delays")
                )
            # first: who sees the time finds the delays
            os.write(self._delays, DELAYS.pack(number, waited(), self._collector.took))
            os.write(self._times, TIME.pack(number, now))

    def record(self, number: int) -> None:
        """Put the number into the server, over a separate connection."""
        with self._lock:
            if self._server is None:
                self._server = socket.create_connection(("127.0.0.1", ORDERS.port))
            self._server.sendall(b"SADD effects %d\r\n" % number)
            if self._server.recv(64)[:1] != b":":
                raise RuntimeError("SADD failed")


_traces: Final = _Traces()


def _holds() -> bool:
    """Return whether this is the first handler of all: it holds its item; those that run again do not."""
    own = Path(ORDERS.folder, f"{os.getpid()}.holder")
    own.write_text(str(os.getpid()))
    try:
        os.link(own, Path(ORDERS.folder, "held"))  # appears with its content
    except FileExistsError:
        return False
    return True


def _leave_traces(data: str | bytes) -> None:
    if ORDERS.handler in {"times", "hold"}:
        _traces.time(int(data[:10]))
    elif ORDERS.handler == "record":
        _traces.record(int(data[:10]))
    elif ORDERS.handler == "tally":
        _traces.tally(int(data[:10]))
    _traces.count()


def handle(data: str | bytes) -> str | bytes | None:
    """Do what every handler does, in threads, and return its result."""
    if ORDERS.handler == "count":
        _traces.count()
        return None
    if ORDERS.handler == "wait":
        time.sleep(ORDERS.wait_ms / 1000)
    elif ORDERS.handler == "hold" and _holds():
        time.sleep(HOLD_SECS)
    _leave_traces(data)
    return data if ORDERS.results else None


async def handle_async(data: str | bytes) -> str | bytes | None:
    """Do what every handler does, on an event loop, and return its result."""
    if ORDERS.handler == "count":
        _traces.count()
        return None
    if ORDERS.handler == "wait":
        await asyncio.sleep(ORDERS.wait_ms / 1000)
    elif ORDERS.handler == "hold" and _holds():
        await asyncio.sleep(HOLD_SECS)
    _leave_traces(data)
    return data if ORDERS.results else None


def concurrency(best: int) -> int:
    """Return how many handlers run at a time."""
    return ORDERS.concurrency or best


def _jobs(order: dict[str, Any]) -> list[Job]:
    size, first = order["size"], order["first"]
    return [
        Job(f"item-{number:010d}", f"{number:010d}".ljust(size, "x"))
        for number in range(first, first + order["count"])
    ]


def _answer(**reply: Any) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def _gaps(order: dict[str, Any]) -> list[float]:
    chance = random.Random(order["first"])  # the same for every library
    low, high = order["gap_ms"]
    return [chance.uniform(low, high) / 1000 for _ in range(order["count"])]


def _check_result(job: Job, job_id: str, result: Callable[[str], object]) -> None:
    deadline = time.monotonic() + RESULT_SECS
    value = result(job_id)
    while value is None and time.monotonic() < deadline:
        time.sleep(RESULT_POLL_SECS)
        value = result(job_id)
    _check_value(job, job_id, value)


async def _check_result_async(job: Job, job_id: str, result: Callable[[str], Awaitable[object]]) -> None:
    deadline = time.monotonic() + RESULT_SECS
    value = await result(job_id)
    while value is None and time.monotonic() < deadline:
        await asyncio.sleep(RESULT_POLL_SECS)
        value = await result(job_id)
    _check_value(job, job_id, value)


def _check_value(job: Job, job_id: str, value: object) -> None:
    if value != job.data:
        raise RuntimeError(f"the result of {job_id!r}, which is to be {job.data!r}, is {value!r}")


def produce(
    one: Callable[[Job], object],
    bulk: Callable[[Sequence[Job]], object] | None = None,
    result: Callable[[str], object] | None = None,
) -> None:
    """Enqueue as told on standard input, one order a line: one by one, in bulk, or one by one with pauses.

    `bulk` is None where the library has no call for many. Where results are kept, `one` answers the id that `result`
    finds it by, None while it is not there; with the order "results" each result is compared, and a wrong result ends
    the adapter with an error.
    """
    collector = _Collector()
    _answer(ready=True, bulk=bulk is not None)
    for line in sys.stdin:
        order = json.loads(line)
        jobs = _jobs(order)
        sent: list[int] = []
        ids: list[Any] = []
        delays: list[tuple[int, ...]] = []
        began, spent = time.perf_counter(), time.process_time()
        if order["how"] == "bulk" and bulk is not None:
            bulk(jobs)
        elif order["how"] == "results" and result is not None:
            for job, job_id in zip(jobs, order["ids"], strict=True):
                _check_result(job, job_id, result)
        elif order["how"] == "paced":
            for job, gap in zip(jobs, _gaps(order), strict=True):
                time.sleep(gap)
                # before it is sent: on one CPU, what follows it would hold up the worker
                delays.append((waited(), collector.took, waited(ORDERS.server_pid)))
                sent.append(time.monotonic_ns())
                one(job)
        elif ORDERS.results:
            ids = [one(job) for job in jobs]
        else:
            for job in jobs:
                one(job)
        _answer(
            seconds=time.perf_counter() - began,
            cpu=time.process_time() - spent,
            sent=sent,
            ids=ids,
            delays=delays,
        )


async def produce_async(
    one: Callable[[Job], Awaitable[object]],
    bulk: Callable[[Sequence[Job]], Awaitable[object]] | None = None,
    result: Callable[[str], Awaitable[object]] | None = None,
) -> None:
    """Do as `produce`, for libraries of asyncio."""
    collector = _Collector()
    _answer(ready=True, bulk=bulk is not None)
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        jobs = _jobs(order)
        sent: list[int] = []
        ids: list[Any] = []
        delays: list[tuple[int, ...]] = []
        began, spent = time.perf_counter(), time.process_time()
        if order["how"] == "bulk" and bulk is not None:
            await bulk(jobs)
        elif order["how"] == "results" and result is not None:
            for job, job_id in zip(jobs, order["ids"], strict=True):
                await _check_result_async(job, job_id, result)
        elif order["how"] == "paced":
            for job, gap in zip(jobs, _gaps(order), strict=True):
                await asyncio.sleep(gap)
                # before it is sent: on one CPU, what follows it would hold up the worker
                delays.append((waited(), collector.took, waited(ORDERS.server_pid)))
                sent.append(time.monotonic_ns())
                await one(job)
        elif ORDERS.results:
            ids = [await one(job) for job in jobs]
        else:
            for job in jobs:
                await one(job)
        _answer(
            seconds=time.perf_counter() - began,
            cpu=time.process_time() - spent,
            sent=sent,
            ids=ids,
            delays=delays,
        )


def gathered(one: Callable[[Job], Awaitable[object]], width: int = 100) -> Callable[[Sequence[Job]], Any]:
    """Many single calls at once, for libraries of asyncio that have no call for many."""

    async def bulk(jobs: Sequence[Job]) -> None:
        for at in range(0, len(jobs), width):
            await asyncio.gather(*(one(job) for job in jobs[at : at + width]))

    return bulk


def become(program: str, *arguments: str) -> None:
    """Turn into a program of this adapter's environment: for libraries whose worker is a command."""
    path = str(Path(sys.executable).with_name(program))
    os.execv(path, [path, *arguments])  # noqa: S606 (no shell is wanted)
