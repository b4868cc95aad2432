"""The measures of the targets: two libraries on one machine, in short slices by turns.

A machine can be a third slower for seconds at a time, so that two figures that are seconds apart are of two machines.
Here both sides are started, on one server in separate databases, and take turns in slices of a fraction of a second:
A B, B A, A B, and so on. Each couple of slices gives one ratio. The first slice of each side is thrown away.

To enqueue, a side gets a number of items and is idle between slices; the database is emptied after each slice. To drain, a
side is a worker process that is stopped (SIGSTOP) but for its slices. Its queue is filled up to the same number of
items before each, so that it never runs dry. What counts is what was handled from the signal that continues it to the
signal that stops it, in the time until the server, too, has done the worker's commands.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import redis

from peers.bench import Record, Step
from peers.measures.latency import PERCENTILES
from peers.noise_probe import probe
from peers.processes import Traces
from peers.stats import percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from peers.bench import Bench

ENQUEUE, CROWD, BULK = "pairs-enqueue", "pairs-crowd", "pairs-bulk"
DRAIN, LATENCY = "pairs-drain", "pairs-latency"
DEPTH: Final = 3.0
"""Factor for the items that wait before each slice: roughly this many times as many as a side drains in it."""
WARM_UP: Final = 2
"""Items at the beginning of a turn whose latency is not counted: the worker was stopped."""
COOL_DOWN: Final = 1
"""Likewise at its end: after the last the producer answers, and this process wakes on the same CPU."""
SETTLE_SECS: Final = 0.02
"""Before each slice, for what a producer still clears away after its answer, and for the server."""
SLOW_USEC: Final = 500
"""A command that takes the server this long is in its slow log."""
SLOWEST: Final = 100
"""The causes of delay are kept of the slowest item in a group of this size. That includes the slowest in a thousand of a run."""
SHORT: Final = 2
"""Factor for the number of slices of enqueueing and latency: these slices are shorter than those of a drain."""


class Pair(NamedTuple):
    """Two libraries that a target compares."""

    one: str
    other: str

    @property
    def case(self) -> str:
        """Name of the pair in records."""
        return f"{self.one} : {self.other}"


PAIRS: Final[dict[str, tuple[Pair, ...]]] = {
    ENQUEUE: (Pair("leaseq", "redis-work-queue"), Pair("leaseq", "huey")),
    CROWD: (),
    BULK: (Pair("leaseq", "redis-work-queue"),),
    DRAIN: (
        Pair("leaseq", "bullmq-node"),
        Pair("leaseq-two-calls", "redis-work-queue"),
        Pair("leaseq-fused", "redis-work-queue"),
        Pair("leaseq", "redis-work-queue"),
    ),
    LATENCY: (Pair("leaseq", "huey"), Pair("leaseq-asyncio", "huey")),
}


NODE_PAIRS: Final = (Pair("leaseq-node", "bullmq-node"), Pair("leaseq-jobs-node", "bullmq-node"))
"""TypeScript beside TypeScript: items, and functions beside functions."""
GO_PAIRS: Final = (
    Pair("leaseq-go", "asynq"),
    Pair("leaseq-jobs-go", "asynq"),
    Pair("leaseq-go", "river"),
    Pair("leaseq-jobs-go", "river"),
)
RUST_PAIRS: Final = (Pair("leaseq-rust", "apalis"), Pair("leaseq-jobs-rust", "apalis"))
BY_LANGUAGE: Final = {"node": NODE_PAIRS, "go": GO_PAIRS, "rust": RUST_PAIRS}
"""By suite."""


def among(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """The libraries that these pairs have."""
    return tuple(dict.fromkeys(name for pair in pairs for name in pair))


IN_CROWDS: Final = among([pair for pairs in BY_LANGUAGE.values() for pair in pairs])
"""The libraries whose adapters enqueue by a crowd."""


@dataclass
class Slice:
    """One slice of one side: its items and seconds, and the CPU time of server and client.

    `busy` is the share of the CPU that both had together: what is missing was taken by other programs.
    """

    items: int
    seconds: float
    server_us: float
    client_us: float

    def figures(self) -> dict[str, float]:
        """A figure of each kind."""
        return {
            "per_second": round(self.items / self.seconds, 1),
            "server_us": round(self.server_us / self.items, 3),
            "client_us": round(self.client_us / self.items, 3),
            "busy": round((self.server_us + self.client_us) / self.seconds / 1e6, 4),
        }


class Side(Protocol):
    """One library of a pair, started."""

    def prepare(self) -> None:
        """Do what a slice needs, outside of its time."""

    def slice(self) -> Slice:
        """Work for one slice."""


class Database:
    """One of the server's databases, of one library. A library on PostgreSQL has the whole server."""

    def __init__(self, bench: Bench, name: str, number: int) -> None:
        self.bench, self.library, self.number = bench, bench.library(name), number
        self.server = bench.server_of(self.library)

    def empty(self) -> None:
        """Delete everything in it."""
        if self.library.on_postgres:
            self.server.delete_items()
            return
        with redis.Redis.from_url(f"{self.bench.server.url}?db={self.number}") as client:
            client.flushdb()


class Enqueues:
    """A producer that enqueues the same number of items in each slice."""

    def __init__(self, database: Database, stack: contextlib.ExitStack, how: str, items: int) -> None:
        self._database, self._how, self._items = database, how, items
        self._producer = stack.enter_context(
            database.bench.producer(database.library, database=database.number)
        )

    def prepare(self) -> None:
        """Delete what the slice before has left."""
        self._database.empty()

    def slice(self) -> Slice:
        """Enqueue."""
        server = self._database.server
        before = server.cpu_usec()
        took = self._producer.enqueue(self._how, self._items)
        return Slice(self._items, took["seconds"], server.cpu_usec() - before, took["cpu"] * 1e6)


class Works:
    """A worker process that is stopped between its slices, and a producer that fills its queue."""

    def __init__(
        self, database: Database, stack: contextlib.ExitStack, handler: str = "count", *, slices: int = 1
    ) -> None:
        bench, library = database.bench, database.library
        self._server, self._secs, self._bulk = (
            database.server,
            bench.size.slice_secs * slices,
            bool(library.bulk),
        )
        self._level = int(library.per_second * self._secs * DEPTH)
        self.filled = 0
        self.traces = stack.enter_context(Traces())
        self.worker = stack.enter_context(
            bench.worker(library, self.traces, database=database.number, handler=handler)
        )
        self.producer = stack.enter_context(bench.producer(library, database=database.number))
        self.worker.wait_idle()
        # looked for once: in a slice there is no time for it
        self._members = self.worker.members()
        self.signal(signal.SIGSTOP)

    def signal(self, number: int) -> None:
        """Stop or continue the worker."""
        for pid in self._members:
            os.kill(pid, number)

    def prepare(self) -> None:
        """Fill the queue up."""
        missing = self._level - self._left()
        if missing > 0:
            self.producer.enqueue("bulk" if self._bulk else "one", missing, first=self.filled)
            self.filled += missing

    def _left(self) -> int:
        return self.filled - self.traces.count()[0]

    def slice(self) -> Slice:
        """Drain for as long as a slice is; longer where nothing was handled yet."""
        count, client, server = self.traces.count()[0], self._client_usec(), self._server.cpu_usec()
        began = time.monotonic_ns()
        self.signal(signal.SIGCONT)
        time.sleep(self._secs)
        self.traces.wait_count(count + 1, [self.worker], exactly=False)
        self.signal(signal.SIGSTOP)
        # the server answers after what the worker had sent, so the slice has the time of that too
        server = self._server.cpu_usec() - server
        took = (self._until(time.monotonic_ns()) - began) / 1e9
        handled = self.traces.count()[0] - count
        return Slice(handled, took, server, self._client_usec() - client)

    def _until(self, ended: int) -> int:
        """When the slice was over: where this process was held up until nothing was left, at the last item."""
        return ended if self._left() else self.traces.count()[2]

    def _client_usec(self) -> float:
        """CPU time of the worker's threads so far."""
        tasks = [task for pid in self._members for task in Path(f"/proc/{pid}/task").iterdir()]
        spent = 0
        for task in tasks:
            with contextlib.suppress(OSError):  # a thread that has ended
                spent += int((task / "schedstat").read_text().split()[0])
        return spent / 1000


def steps_of(measure: str, pairs: Sequence[Pair]) -> Callable[[Bench, Sequence[str]], Iterator[Step]]:
    """The steps of one of the four measures: one for each pair that has one of the libraries, in each repetition."""

    def steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
        for repetition in range(1, bench.size.repetitions + 1):
            for pair in pairs:
                if set(pair) & set(libraries):
                    run = partial(RUNS[measure], bench, measure, pair, repetition)
                    yield Step(measure, tuple(pair), repetition, _secs(bench, measure, pair), run, pair.case)

    return steps


def _secs(bench: Bench, measure: str, pair: Pair) -> float:
    size = bench.size
    if measure == LATENCY:
        return 2.5 + 2 * (SHORT * size.slices + 1) * (size.turn_samples + WARM_UP) * 0.0065
    if measure == DRAIN:
        secs = size.slice_secs * max(bench.library(name).slices for name in pair)
        return 2.5 + 2 * (size.slices + 1) * (secs + 0.15)
    return 0.8 + 2 * (SHORT * size.slices + 1) * 0.12


def turns(slices: int, repetition: int) -> Iterator[tuple[int, int]]:
    """The order of the sides: A B, B A, A B. The next repetition starts with the other side."""
    for at in range(slices):
        yield (0, 1) if (at + repetition) % 2 else (1, 0)


def enqueue(how: str, bench: Bench, measure: str, pair: Pair, repetition: int) -> list[Record]:
    """Both enqueue the same number of items in each slice."""
    size = bench.size
    items = {"one": size.slice_singles, "crowd": size.slice_crowd, "bulk": size.slice_bulk}[how]
    bench.empty()
    with contextlib.ExitStack() as stack:
        sides = [
            Enqueues(Database(bench, name, number), stack, how, items) for number, name in enumerate(pair)
        ]
        return _sliced(measure, pair, repetition, sides, bench.size.slices * SHORT)


def drain(bench: Bench, measure: str, pair: Pair, repetition: int) -> list[Record]:
    """Both drain for the same time in each slice."""
    bench.empty()
    with contextlib.ExitStack() as stack:
        longest = max(bench.library(name).slices for name in pair)
        sides = [
            Works(Database(bench, name, number), stack, slices=longest) for number, name in enumerate(pair)
        ]
        return _sliced(measure, pair, repetition, sides, bench.size.slices)


def _sliced(measure: str, pair: Pair, repetition: int, sides: Sequence[Side], slices: int) -> list[Record]:
    """All slices of both, by turns."""
    found: tuple[list[dict[str, float]], ...] = ([], [])
    for both in turns(slices + 1, repetition):
        for at in both:
            sides[at].prepare()
        for at in both:
            time.sleep(SETTLE_SECS)
            fast = probe()
            found[at].append({**sides[at].slice().figures(), "probe_ms": fast})
    return [
        Record(measure, name, repetition, _values(figures[1:]), pair.case)
        for name, figures in zip(pair, found, strict=True)
    ]


def _values(slices: Sequence[dict[str, float]]) -> dict[str, Any]:
    """The median of each figure, and the figures of each slice."""
    by_figure = {name: [each[name] for each in slices] for name in slices[0]}
    medians = {name: round(median(of), 4) for name, of in by_figure.items()}
    return {**medians, "slices": by_figure}


def latency(bench: Bench, measure: str, pair: Pair, repetition: int) -> list[Record]:
    """Both have an idle worker, which is stopped in the other's turns."""
    bench.empty()
    bench.server.client.config_set("slowlog-log-slower-than", SLOW_USEC)
    took: tuple[list[list[Waited]], ...] = ([], [])
    fast: tuple[list[float], ...] = ([], [])
    with contextlib.ExitStack() as stack:
        sides = [Works(Database(bench, name, number), stack, "times") for number, name in enumerate(pair)]
        for both in turns(bench.size.slices * SHORT + 1, repetition):
            for at in both:
                time.sleep(SETTLE_SECS)
                fast[at].append(probe())
                took[at].append(_turn(bench, sides[at]))
    return [
        Record(measure, name, repetition, _latencies(took[at][1:], fast[at][1:]), pair.case)
        for at, name in enumerate(pair)
    ]


Waited = dict[str, Any]
"""The latency of one item as `ms`, and what held up each process meanwhile."""


def _turn(bench: Bench, side: Works) -> list[Waited]:
    """The items of one turn in their order."""
    samples, first = bench.size.turn_samples + WARM_UP + COOL_DOWN, side.filled
    bench.server.client.slowlog_reset()
    side.signal(signal.SIGCONT)
    answer = side.producer.enqueue("paced", samples, first=first, gap_ms=side.worker.library.gap_ms)
    side.filled += samples
    side.traces.wait_count(side.filled, [side.worker])
    side.signal(signal.SIGSTOP)
    handled, worker = dict(side.traces.times()), side.traces.delays()
    slow = [round(each["duration"] / 1000, 3) for each in bench.server.client.slowlog_get()]
    found = []
    for at in range(WARM_UP, samples - COOL_DOWN):
        ms = (handled[first + at] - answer["sent"][at]) / 1e6
        # a process's delay is what it had at this item less what it had at the one before; the producer and
        # the server are read before an item is sent, so theirs show at the next
        own = _less(worker[first + at], worker[first + at - 1])
        others = _less(answer["delays"][at + 1], answer["delays"][at])
        names = ("worker_cpu", "worker_gc", "producer_cpu", "producer_gc", "server_cpu")
        held = dict(zip(names, (*own, *others), strict=True))
        found.append({"ms": round(ms, 3), "waited_ms": held, "slow_commands_in_turn_ms": slow})
    return found


def _less(late: Sequence[int], early: Sequence[int]) -> list[float]:
    """Return what was added, in ms."""
    return [round((after - before) / 1e6, 3) for after, before in zip(late, early, strict=True)]


def _latencies(turns: Sequence[Sequence[Waited]], fast: Sequence[float]) -> dict[str, Any]:
    """The percentiles of all turns, the median of each, every latency, and what held up the slowest items."""
    items = sorted((each for turn in turns for each in turn), key=lambda each: float(each["ms"]))
    everything = [each["ms"] for each in items]
    slices = {
        "p50_ms": [round(median(each["ms"] for each in turn), 3) for turn in turns],
        "probe_ms": list(fast),
    }
    shares = {figure: percentile(everything, share) for figure, share in PERCENTILES.items()}
    slowest = items[-max(1, len(items) // SLOWEST) :]
    return {**shares, "max_ms": everything[-1], "all_ms": everything, "slowest": slowest, "slices": slices}


RUNS: Final[dict[str, Callable[[Bench, str, Pair, int], list[Record]]]] = {
    ENQUEUE: partial(enqueue, "one"),
    CROWD: partial(enqueue, "crowd"),
    BULK: partial(enqueue, "bulk"),
    DRAIN: drain,
    LATENCY: latency,
}
