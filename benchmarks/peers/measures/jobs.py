"""Jobs that do nothing, with results off and on: enqueue one by one and in bulk, drain by one worker process.

Beside the figures it is seen, each time, that every job was handled once, that every result can be read where results
are kept, and that nothing stays on the server where they are not.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

from peers.bench import Record, Step
from peers.measures.throughput import MAX_SINGLE_CALLS, enqueue_with, turned
from peers.noise_probe import probe
from peers.processes import AdapterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peers.bench import Bench

OFF: Final = "results-off"
ON: Final = "results-on"
SIZE: Final = 10
"""Bytes of the one argument: a number, which is the result too."""
MIN_JOBS: Final = 200
KEYS_LEFT: Final = 50
"""Keys that a library may leave when all jobs are gone. It is less than `MIN_JOBS`, so that the jobs cannot be among them."""
GONE_SECS: Final = 60.0
POLL_SECS: Final = 0.02


def steps(bench: Bench, libraries: Sequence[str], *, results: bool) -> Iterator[Step]:
    """One for each library in each repetition; the order turns."""
    for repetition in range(1, bench.size.repetitions + 1):
        for name in turned(libraries, repetition):
            secs = (2.5 if results else 1.3) + 2 * bench.size.drain_secs
            run = partial(jobs, bench, name, repetition, results=results)
            yield Step(ON if results else OFF, (name,), repetition, secs, run)


def jobs(bench: Bench, name: str, repetition: int, *, results: bool) -> list[Record]:
    """Rates, and what the server spends on one job from enqueue to done, by either way to enqueue. Raises AdapterError."""
    library = bench.library(name)
    count = min(max(bench.items(library), MIN_JOBS), MAX_SINGLE_CALLS)
    fast = []
    with bench.producer(library, results=results) as producer:
        bench.empty()
        fast.append(probe())
        bulk_figures = (
            enqueue_with(producer, bench.server, "bulk", count, size=SIZE)[0] if library.bulk else {}
        )
        bench.empty()
        fast.append(probe())
        added, answer = enqueue_with(producer, bench.server, "one", count, size=SIZE)
    fast.append(probe())
    with bench.drained(library, count, handler="tally", results=results) as (drained, traces):
        if results:
            with bench.producer(library, results=True) as reader:
                reader.check_results(answer["ids"], size=SIZE)
        else:
            _wait_gone(bench, name)
        traces.check_tally(count)
    found = {
        "enqueue_per_second": added["per_second"],
        "drain_per_second": drained["per_second"],
        "enqueue_server_us": added["server_us"],
        "drain_server_us": drained["server_us"],
        "server_us": round(added["server_us"] + drained["server_us"], 3),
        "commands": round(added["commands"] + drained["commands"], 3),
        "jobs": count,
        "slices": {"probe_ms": fast},
    }
    if bulk_figures:
        found["bulk_per_second"] = bulk_figures["per_second"]
        found["bulk_server_us"] = round(bulk_figures["server_us"] + drained["server_us"], 3)
    return [Record(ON if results else OFF, name, repetition, found)]


def _wait_gone(bench: Bench, name: str) -> None:
    """Wait until the server has no key of the jobs. Raises AdapterError."""
    deadline = time.monotonic() + GONE_SECS
    while (keys := bench.server.client.dbsize()) > KEYS_LEFT:
        if time.monotonic() > deadline:
            raise AdapterError(f"{name}: {keys} keys are left, where no results are to be kept")
        time.sleep(POLL_SECS)
