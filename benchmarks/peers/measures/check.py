"""The measure "check": every adapter handles each enqueued item, as its handlers report to the server."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from peers.bench import Record, Step
from peers.measures.ab_compare import IN_CROWDS
from peers.processes import AdapterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peers.bench import Bench

NAME = "check"
ITEMS = 300
HANDLER = "record"


def steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One for each library."""
    for name in libraries:
        yield Step(NAME, (name,), 1, 1.3, partial(check, bench, name))


def check(bench: Bench, name: str) -> list[Record]:
    """Enqueue one by one and, where the adapter can, in bulk and by a crowd; let handlers name the items in the server."""
    library = bench.library(name)
    bench.empty()
    ways = ["one", *["bulk"] * bool(library.bulk), *["crowd"] * (name in IN_CROWDS)]
    with bench.producer(library) as producer:
        if producer.has_bulk != bool(library.bulk):
            raise AdapterError(f"{name}: whether it has a call for many is said differently in libraries.py")
        for at, how in enumerate(ways):
            producer.enqueue(how, ITEMS, first=at * ITEMS)
    items = ITEMS * len(ways)
    with bench.workers(library, handler=HANDLER) as (traces, workers):
        traces.wait_count(items, workers)
        named = bench.server.client.smembers("effects")
        if {int(number) for number in named} != set(range(items)):
            raise AdapterError(f"{name}: {len(named)} different items were handled where there were {items}")
    return [Record(NAME, name, 1, {"items": items})]
