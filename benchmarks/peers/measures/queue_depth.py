"""The measure "growth": the cost of an item on a queue in which very many others wait."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Final

from peers.bench import Record, Step, cost, per_item, start_server
from peers.measures.throughput import enqueue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench_server import BenchServer
    from peers.bench import Bench
    from peers.libraries import Library

NAME: Final = "growth"
PASS: Final = 3_000
"""Items added and worked on in one pass: few, so that the number of waiting items stays about the same."""
FILL_PER_SECOND: Final = 50_000
"""In bulk, roughly."""


def steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One for each library, with all sizes and repetitions: filling takes longest, so it is done once."""
    for name in libraries:
        library = bench.library(name)
        fill = sum(bench.size.waiting) / (FILL_PER_SECOND if library.bulk else library.per_second)
        secs = fill + 2.6 * len(bench.size.waiting) * bench.size.repetitions
        yield Step(NAME, (name,), 1, secs, partial(growth, bench, name, bench.size.waiting))


def growth(bench: Bench, name: str, sizes: Sequence[int]) -> list[Record]:
    """A server for each size, filled once; in each repetition a pass on each of them."""
    library = bench.library(name)
    found = []
    with contextlib.ExitStack() as stack:
        servers = {size: stack.enter_context(start_server(bench.server_name)) for size in sizes}
        for size, server in servers.items():
            bench.fill(library, size, first=10_000_000, server=server)
        for repetition in range(1, bench.size.repetitions + 1):
            # the sizes that a target compares take turns to be first
            order = sorted(servers, reverse=repetition % 2 == 0)
            for size, server in [(size, servers[size]) for size in order]:
                values = one_pass(bench, library, server)
                found.append(Record(NAME, name, repetition, values, f"{size:,} waiting"))
    return found


def one_pass(bench: Bench, library: Library, server: BenchServer) -> dict[str, float]:
    """Add some items, then work on about as many."""
    items = min(PASS, bench.items(library))
    added = enqueue(bench, library, "one", items, server)
    server.reset()
    before = cost(server)
    with bench.workers(library, server=server) as (traces, workers):
        traces.wait_count(items, workers, exactly=False)
        after, (done, first, last) = cost(server), traces.count()
    drained = per_item(before, after, done)
    return {
        "enqueue_server_us": added["server_us"],
        "drain_server_us": drained["server_us"],
        "server_us": round(added["server_us"] + drained["server_us"], 3),
        "per_second": round((done - 1) / max(last - first, 1) * 1e9, 1),
    }
