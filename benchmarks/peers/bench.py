"""The bench of every measure: a server, adapters on it, and the cost of both."""

from __future__ import annotations

import contextlib
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import redis

from bench_server import BenchServer, free_port
from peers.adapters.common import Orders
from peers.libraries import BY_NAME
from peers.postgres import PostgresServer
from peers.processes import AdapterError, Producer, Traces, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from peers.libraries import Library

FAILURES: Final = (AdapterError, redis.RedisError, RuntimeError, OSError, ValueError)
"""Errors that end one measurement but not the run. They are listed at the end."""

SETTLE_SECS: Final = 0.05
"""Waited after the last handler, until its completion has reached the server."""


@dataclass(frozen=True)
class Record:
    """Figures of one library in one repetition of a measure.

    Attributes:
        case: what else tells repetitions apart, such as a size.
        values: figures by name, units in the names.
    """

    measure: str
    library: str
    repetition: int
    values: dict[str, Any]
    case: str = ""

    def json(self) -> dict[str, Any]:
        """For the results."""
        return asdict(self)


@dataclass(frozen=True)
class Step:
    """A part of a run: the measure, its libraries, roughly its seconds, and the function that runs it."""

    measure: str
    libraries: tuple[str, ...]
    repetition: int
    secs: float
    run: Callable[[], list[Record]]
    case: str = ""

    @property
    def title(self) -> str:
        """For the progress."""
        who = self.libraries[0] if len(self.libraries) == 1 else f"{len(self.libraries)} libraries"
        return " ".join(part for part in (self.measure, who, self.case, f"#{self.repetition}") if part)


@dataclass(frozen=True)
class Size:
    """Counts and times of a run.

    Attributes:
        repetitions: of every measure.
        drain_secs: how long the drain of one worker takes, roughly.
        samples: latencies of one repetition.
        recovery_secs: seconds without a second run after which the result is "never".
        idle_secs: how long idle workers are watched.
        waiting: how many items wait while others are added and worked on.
        payloads: bytes of data.
        memory_items: that wait while memory is weighed; hash tables grow by doubling, so near three quarters of one.
        slices: of each side of a pair that drains, in one repetition; of what has shorter ones, twice as many.
        slice_secs: how long one slice of a drain is.
        slice_singles: items that a slice enqueues one by one.
        slice_crowd: items that a slice enqueues in single calls of many callers at once.
        slice_bulk: items that a slice enqueues in bulk.
        turn_samples: latencies of one turn.
    """

    repetitions: int
    drain_secs: float
    samples: int
    recovery_secs: float
    idle_secs: float
    waiting: tuple[int, ...]
    payloads: tuple[int, ...]
    memory_items: int
    slices: int
    slice_secs: float
    slice_singles: int
    slice_crowd: int
    slice_bulk: int
    turn_samples: int
    quick: bool = False


FULL: Final = Size(
    repetitions=5,
    drain_secs=0.8,
    samples=300,
    recovery_secs=120.0,
    idle_secs=6.0,
    waiting=(1_000, 1_000_000),
    payloads=(10, 1_000, 100_000, 1_000_000),
    memory_items=3_000,
    slices=5,
    slice_secs=0.25,
    slice_singles=2_000,
    slice_crowd=4_000,
    slice_bulk=12_000,
    turn_samples=50,
)
QUICK: Final = Size(
    repetitions=1,
    drain_secs=0.2,
    samples=50,
    recovery_secs=10.0,
    idle_secs=3.0,
    waiting=(1_000, 10_000),
    payloads=(10, 100_000),
    memory_items=1_500,
    slices=2,
    slice_secs=0.1,
    slice_singles=500,
    slice_crowd=1_000,
    slice_bulk=2_000,
    turn_samples=15,
    quick=True,
)


Server = BenchServer | PostgresServer


@dataclass(frozen=True)
class Cost:
    """CPU time, commands and reads of a server so far. PostgreSQL counts no commands."""

    cpu_usec: float
    commands: int = 0
    reads: int = 0


def cost(server: Server) -> Cost:
    """Return what the server has spent since it was asked to count anew; its CPU time since it started."""
    if isinstance(server, PostgresServer):
        return Cost(server.cpu_usec())
    reads: dict[str, Any] = server.client.info("stats")
    return Cost(server.cpu_usec(), sum(server.calls().values()), reads["total_reads_processed"])


def per_item(before: Cost, after: Cost, items: int) -> dict[str, float]:
    """Server CPU time in us, commands (those inside scripts too) and reads from sockets, per item."""
    return {
        "server_us": round((after.cpu_usec - before.cpu_usec) / items, 3),
        "commands": round((after.commands - before.commands) / items, 3),
        "reads": round((after.reads - before.reads) / items, 3),
    }


def start_server(name: str, options: Sequence[str] = ()) -> BenchServer:
    """Start a server that adapters reach."""
    return BenchServer(name, free_port(), options)


@dataclass
class Bench:
    """A run: its size, its server, and what it has found so far."""

    size: Size
    server_name: str
    server: BenchServer
    postgres: PostgresServer | None = None
    records: list[Record] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def server_of(self, library: Library) -> Server:
        """Return the server that a library works on."""
        if not library.on_postgres:
            return self.server
        if self.postgres is None:
            raise RuntimeError("no PostgreSQL server was started")
        return self.postgres

    def _postgres_port(self, library: Library) -> int:
        return self.server_of(library).port if library.on_postgres else 0

    def library(self, name: str) -> Library:
        """By its name."""
        return BY_NAME[name]

    def items(self, library: Library) -> int:
        """Return how many items one worker drains in the time meant for it."""
        return max(100, int(library.per_second * self.size.drain_secs))

    def producer(self, library: Library, server: BenchServer | None = None, **orders: Any) -> Producer:
        """Start one."""
        on = server or self.server
        orders = {
            "variant": library.variant,
            "server_pid": on.pid,
            "postgres_port": self._postgres_port(library),
            **orders,
        }
        return Producer(library, Orders("produce", on.port, "", **orders))

    def worker(
        self, library: Library, traces: Traces, server: BenchServer | None = None, **orders: Any
    ) -> Worker:
        """Start one."""
        port = (server or self.server).port
        orders = {"variant": library.variant, "postgres_port": self._postgres_port(library), **orders}
        return Worker(library, Orders("work", port, str(traces.path), **orders))

    @contextlib.contextmanager
    def workers(
        self, library: Library, count: int = 1, **orders: Any
    ) -> Iterator[tuple[Traces, list[Worker]]]:
        """Start workers, with a folder for their traces."""
        with contextlib.ExitStack() as stack:
            traces = stack.enter_context(Traces())
            yield traces, [stack.enter_context(self.worker(library, traces, **orders)) for _ in range(count)]

    def fill(
        self,
        library: Library,
        count: int,
        *,
        first: int = 0,
        size: int = 100,
        server: BenchServer | None = None,
    ) -> None:
        """Enqueue items in the fastest way there is."""
        with self.producer(library, server) as producer:
            producer.enqueue("bulk" if library.bulk else "one", count, first=first, size=size)

    def drain(
        self, library: Library, count: int, server: BenchServer | None = None, **orders: Any
    ) -> dict[str, float]:
        """Let one worker handle the `count` items that wait. Return items per second, and their cost for the server."""
        with self.drained(library, count, server, **orders) as (found, _):
            return found

    @contextlib.contextmanager
    def drained(
        self, library: Library, count: int, server: BenchServer | None = None, **orders: Any
    ) -> Iterator[tuple[dict[str, float], Traces]]:
        """Drain with one worker; give its figures and traces, with the worker still running so that it can end its calls."""
        on = server or self.server_of(library)
        on.reset()
        before = cost(on)
        with self.workers(library, server=server, **orders) as (traces, workers):
            first, last = traces.wait_count(count, workers)
            time.sleep(SETTLE_SECS)
            after = cost(on)
            # the first item marks the start, so one less was done in that time
            rate = round((count - 1) / max(last - first, 1) * 1e9, 1)
            yield {"per_second": rate, **per_item(before, after, count)}, traces

    def empty(self) -> None:
        """Delete everything on the servers."""
        self.server.client.flushall()
        self.server.reset()
        if self.postgres:
            self.postgres.empty()
