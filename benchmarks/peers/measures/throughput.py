"""Enqueue one by one, enqueue in bulk, drain by one worker: rates, server CPU, commands."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from peers.bench import Record, Step, cost, per_item

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench_server import BenchServer
    from peers.bench import Bench
    from peers.libraries import Library
    from peers.processes import Producer

ENQUEUE, BULK, DRAIN = "enqueue", "bulk", "drain"
MAX_SINGLE_CALLS = 4_000


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


def turned(libraries: Sequence[str], repetition: int) -> list[str]:
    """The same libraries, another one first in every repetition."""
    at = (repetition - 1) * 3 % max(1, len(libraries))
    return [*libraries[at:], *libraries[:at]]


def life(bench: Bench, name: str, repetition: int) -> list[Record]:
    """All three of one library."""
    library = bench.library(name)
    items = bench.items(library)
    bench.empty()
    found = {ENQUEUE: enqueue(bench, library, "one", min(items, MAX_SINGLE_CALLS), bench.server)}
    if library.bulk:
        bench.empty()
        found[BULK] = enqueue(bench, library, "bulk", items, bench.server)
    else:
        items = min(items, MAX_SINGLE_CALLS)
    found[DRAIN] = bench.drain(library, items)
    return [Record(measure, name, repetition, values) for measure, values in found.items()]


def enqueue(
    bench: Bench, library: Library, how: str, count: int, server: BenchServer, *, size: int = 100
) -> dict[str, Any]:
    """Enqueue items. Return items per second, and their cost for the server."""
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
