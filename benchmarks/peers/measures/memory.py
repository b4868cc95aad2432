"""The server's memory of a waiting item."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from peers.bench import Record, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peers.bench import Bench

MEMORY: Final = "memory"


def steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One for each library in each repetition."""
    for repetition in range(1, bench.size.repetitions + 1):
        for name in libraries:
            library = bench.library(name)
            secs = 1.3 + bench.size.memory_items / (library.per_second * (3 if library.bulk == "call" else 1))
            yield Step(MEMORY, (name,), repetition, secs, partial(memory, bench, name, repetition))


def memory(bench: Bench, name: str, repetition: int) -> list[Record]:
    """The server's memory, of PostgreSQL the bytes on disk, with items waiting, less that with one item, so that scripts do not count."""
    library, items = bench.library(name), bench.size.memory_items
    how, server = "bulk" if library.bulk else "one", bench.server_of(library)
    bench.empty()
    with bench.producer(library) as producer:
        producer.enqueue(how, items)
        server.delete_items()
        producer.enqueue(how, 1, first=items)
        almost_empty = server.used_memory()
        producer.enqueue(how, items)
        taken = (server.used_memory() - almost_empty) / items
    return [Record(MEMORY, name, repetition, {"bytes_waiting": round(taken, 1)})]
