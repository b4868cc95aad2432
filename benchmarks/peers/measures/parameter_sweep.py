"""The same by size of the data, by handlers side by side, and on other servers; of some libraries unless told."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from peers.bench import Record, Step, start_server
from peers.measures.throughput import enqueue, turned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench_server import BenchServer
    from peers.bench import Bench
    from peers.libraries import Library

PAYLOAD, WORKERS, SERVERS = "payload", "workers", "servers"
SHARE: Final = 0.5
"""Of the items that a drain has: there are many cases."""
MOST_BYTES: Final = 30_000_000
LEAST_ITEMS: Final = 20
WAIT_MS: Final = 5
HANDLERS: Final = 20
AOF: Final = ("--appendonly", "yes", "--appendfsync")


def payload_steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One for each library and size in each repetition."""
    for repetition in range(1, bench.size.repetitions + 1):
        for size in bench.size.payloads:
            for name in turned(libraries, repetition):
                run = partial(payload, bench, name, repetition, size)
                yield Step(PAYLOAD, (name,), repetition, 1.2, run, f"{size:,} bytes")


def payload(bench: Bench, name: str, repetition: int, size: int) -> list[Record]:
    """Enqueue one by one and drain."""
    library = bench.library(name)
    items = max(LEAST_ITEMS, min(int(bench.items(library) * SHARE), 2_000, MOST_BYTES // size))
    bench.empty()
    values = _both(bench, library, items, bench.server, size)
    return [Record(PAYLOAD, name, repetition, values, f"{size:,} bytes")]


def _both(bench: Bench, library: Library, items: int, server: BenchServer, size: int) -> dict[str, float]:
    """Enqueue one by one, then drain."""
    added = enqueue(bench, library, "one", items, server, size=size)
    drained = bench.drain(library, items, server)
    return {
        "enqueue_per_second": added["per_second"],
        "drain_per_second": drained["per_second"],
        "server_us": round(added["server_us"] + drained["server_us"], 3),
    }


def handler_steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One for each library in each repetition, with one number of handlers."""
    yield from workers_steps(bench, libraries, (HANDLERS,))


def workers_steps(bench: Bench, libraries: Sequence[str], counts: Sequence[int] = ()) -> Iterator[Step]:
    """One for each library and number of handlers in each repetition."""
    for repetition in range(1, bench.size.repetitions + 1):
        for count in counts or bench.size.workers:
            for name in turned(libraries, repetition):
                run = partial(workers, bench, name, repetition, count)
                yield Step(WORKERS, (name,), repetition, 1.7, run, f"{count} handlers")


def workers(bench: Bench, name: str, repetition: int, count: int) -> list[Record]:
    """Drain items whose handler waits, with so many handlers side by side in one process."""
    library = bench.library(name)
    items = max(LEAST_ITEMS, min(bench.items(library), int(count * 1000 / WAIT_MS * SHARE)))
    bench.empty()
    bench.fill(library, items)
    drained = bench.drain(library, items, handler="wait", wait_ms=WAIT_MS, concurrency=count)
    return [Record(WORKERS, name, repetition, drained, f"{count} handlers")]


def other_servers(bench: Bench) -> dict[str, tuple[str, tuple[str, ...]]]:
    """By the names of the cases: program and options."""
    return {
        "AOF everysec": (bench.server_name, (*AOF, "everysec")),
        "AOF always": (bench.server_name, (*AOF, "always")),
        "Valkey": ("valkey-9.1.2", ()),
    }


def servers_steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One for each library and server in each repetition."""
    for repetition in range(1, bench.size.repetitions + 1):
        for case, (server, options) in other_servers(bench).items():
            for name in turned(libraries, repetition):
                run = partial(on_server, bench, name, repetition, case, server, options)
                yield Step(SERVERS, (name,), repetition, 1.9, run, case)


def on_server(
    bench: Bench, name: str, repetition: int, case: str, server_name: str, options: Sequence[str]
) -> list[Record]:
    """Enqueue one by one and drain, on another server than the rest."""
    library = bench.library(name)
    items = max(LEAST_ITEMS, min(2_000, int(bench.items(library) * SHARE)))
    with start_server(server_name, options) as server:
        values = _both(bench, library, items, server, 100)
    return [Record(SERVERS, name, repetition, values, case)]
