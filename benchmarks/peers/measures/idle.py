"""The measure "idle": commands that idle workers send, all libraries at once, each on its server."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

from peers.bench import Record, Step, cost
from peers.measures.recovery import CONCURRENT_CASES, own_server, side_by_side
from peers.processes import Traces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peers.bench import Bench

IDLE: Final = "idle"
OWN_READS: Final = 3
"""Between two looks at what a server has spent: the rest of the first, the beginning of the second."""


def steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One for all repetitions of all libraries."""
    if libraries:
        secs = bench.size.idle_secs * bench.size.repetitions + 15
        yield Step(IDLE, tuple(libraries), 1, secs, partial(idle, bench, libraries))


def idle(bench: Bench, libraries: Sequence[str]) -> list[Record]:
    """Commands that run for one worker while there is nothing to do, those inside scripts too, and its requests."""

    def watched(name: str) -> list[Record]:
        library = bench.library(name)
        found = []
        with own_server(bench) as server, Traces() as traces:
            with CONCURRENT_CASES:
                worker = bench.worker(library, traces, server)
            with worker:
                worker.wait_idle()
                for repetition in range(1, bench.size.repetitions + 1):
                    server.reset()
                    before, began = cost(server), time.monotonic()
                    time.sleep(bench.size.idle_secs)
                    after, secs = cost(server), time.monotonic() - began
                    reads = after.reads - before.reads - OWN_READS
                    values = {
                        "commands_per_second": round((after.commands - before.commands) / secs, 3),
                        "requests_per_second": round(reads / secs, 3),
                    }
                    found.append(Record(IDLE, name, repetition, values))
        return found

    nested: list[list[Record]] = side_by_side(bench, [partial(watched, name) for name in libraries])
    return [record for several in nested for record in several]
