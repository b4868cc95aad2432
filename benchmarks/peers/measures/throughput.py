"""Enqueue one by one, enqueue in bulk, drain by one worker and by four: rates, server CPU, commands."""

from __future__ import annotations

import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from peers.bench import SETTLE_SECS, Record, Step, cost, per_item

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench_server import BenchServer
    from peers.bench import Bench
    from peers.libraries import Library
    from peers.processes import Producer

ENQUEUE, BULK, DRAIN, DRAIN4 = "enqueue", "bulk", "drain", "drain-4"
MOST_SINGLES = 4_000
CREW = 4
CROWDS = 1.5
"""A crew of four gets more items than one worker, so that the beginning counts less."""


def steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One for each library in each repetition; the order turns."""
    for repetition in range(1, bench.size.repetitions + 1):
        for name in turned(libraries, repetition):
            yield Step(
                DRAIN,
                (name,),
                repetition,
                0.9 + 1.1 * bench.size.drain_secs,
                partial(life, bench, name, repetition),
            )


def crowd_steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One for each library in each repetition; the order turns."""
    for repetition in range(1, bench.size.repetitions + 1):
        for name in turned(libraries, repetition):
            secs = 4.6 + 2 * bench.size.drain_secs
            yield Step(DRAIN4, (name,), repetition, secs, partial(crowd, bench, name, repetition))


def turned(libraries: Sequence[str], repetition: int) -> list[str]:
    """The same libraries, another one first in every repetition."""
    at = (repetition - 1) * 3 % max(1, len(libraries))
    return [*libraries[at:], *libraries[:at]]


def life(bench: Bench, name: str, repetition: int) -> list[Record]:
    """All three of one library."""
    library = bench.library(name)
    items = bench.items(library)
    bench.empty()
    found = {ENQUEUE: enqueue(bench, library, "one", min(items, MOST_SINGLES), bench.server)}
    if library.bulk:
        bench.empty()
        found[BULK] = enqueue(bench, library, "bulk", items, bench.server)
    else:
        items = min(items, MOST_SINGLES)
    found[DRAIN] = bench.drain(library, items)
    return [Record(measure, name, repetition, values) for measure, values in found.items()]


def enqueue(
    bench: Bench, library: Library, how: str, count: int, server: BenchServer, *, size: int = 100
) -> dict[str, Any]:
    """Enqueue so many: how many in a second, and what they cost the server."""
    with bench.producer(library, server) as producer:
        return enqueue_with(producer, server, how, count, size=size)[0]


def enqueue_with(
    producer: Producer, server: BenchServer, how: str, count: int, *, size: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same with a producer that is there, and what it answered."""
    server.reset()
    before = cost(server)
    answer = producer.enqueue(how, count, size=size)
    spent = per_item(before, cost(server), count)
    return {"per_second": round(count / answer["seconds"], 1), **spent, "items": count}, answer


def crowd(bench: Bench, name: str, repetition: int) -> list[Record]:
    """Four worker processes on one queue. They are stopped while it is filled, so that all begin together."""
    library = bench.library(name)
    items = int(bench.items(library) * CROWDS)
    bench.empty()
    with bench.workers(library, CREW) as (traces, workers):
        for worker in workers:
            worker.wait_idle()
        for worker in workers:
            worker.signal(signal.SIGSTOP)
        bench.fill(library, items)
        bench.server.reset()
        before = cost(bench.server)
        began = time.monotonic_ns()
        for worker in workers:
            worker.signal(signal.SIGCONT)
        _, last = traces.wait_count(items, workers)
        time.sleep(SETTLE_SECS)
        spent = per_item(before, cost(bench.server), items)
    return [Record(DRAIN4, name, repetition, {"per_second": round(items / (last - began) * 1e9, 1), **spent})]
