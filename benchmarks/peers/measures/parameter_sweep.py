"""Two sweeps: throughput by size of the data ("payload"), and drains with many handlers that wait ("workers").

`plan.py` says which libraries take part.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from peers.bench import Record, Step
from peers.measures.throughput import enqueue, turned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peers.bench import Bench

PAYLOAD, WORKERS = "payload", "workers"
SHARE: Final = 0.5
"""The share of a drain's items that each case has, since there are many cases."""
MAX_BYTES: Final = 30_000_000
MIN_ITEMS: Final = 20
WAIT_MS: Final = 5
HANDLERS: Final = 20
CASE: Final = f"{HANDLERS} handlers"


def payload_steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """Yield a step for each library and size in each repetition."""
    for repetition in range(1, bench.size.repetitions + 1):
        for size in bench.size.payloads:
            for name in turned(libraries, repetition):
                run = partial(payload, bench, name, repetition, size)
                yield Step(PAYLOAD, (name,), repetition, 1.2, run, f"{size:,} bytes")


def payload(bench: Bench, name: str, repetition: int, size: int) -> list[Record]:
    """Enqueue one by one and drain."""
    library = bench.library(name)
    items = max(MIN_ITEMS, min(int(bench.items(library) * SHARE), 2_000, MAX_BYTES // size))
    bench.empty()
    added = enqueue(bench, library, "one", items, bench.server, size=size)
    drained = bench.drain(library, items)
    values = {
        "enqueue_per_second": added["per_second"],
        "drain_per_second": drained["per_second"],
        "server_us": round(added["server_us"] + drained["server_us"], 3),
    }
    return [Record(PAYLOAD, name, repetition, values, f"{size:,} bytes")]


def workers_steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """Yield a step for each library in each repetition."""
    for repetition in range(1, bench.size.repetitions + 1):
        for name in turned(libraries, repetition):
            yield Step(WORKERS, (name,), repetition, 1.7, partial(workers, bench, name, repetition), CASE)


def workers(bench: Bench, name: str, repetition: int) -> list[Record]:
    """Drain items whose handler waits, with several handlers side by side in one process."""
    library = bench.library(name)
    items = max(MIN_ITEMS, min(bench.items(library), int(HANDLERS * 1000 / WAIT_MS * SHARE)))
    bench.empty()
    bench.fill(library, items)
    drained = bench.drain(library, items, handler="wait", wait_ms=WAIT_MS, concurrency=HANDLERS)
    return [Record(WORKERS, name, repetition, drained, CASE)]
