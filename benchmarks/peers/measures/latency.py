"""From the call that adds an item to its handler, on a worker that has nothing else to do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from peers.bench import Record, Step
from peers.measures.throughput import turned
from peers.stats import percentile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peers.bench import Bench

NAME: Final = "latency"
WARM_UP: Final = 5
MAX_SECS: Final = 5.0
PERCENTILES: Final = {"p50_ms": 50.0, "p99_ms": 99.0, "p99_9_ms": 99.9}


def steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One for each library in each repetition; the order turns."""
    for repetition in range(1, bench.size.repetitions + 1):
        for name in turned(libraries, repetition):
            samples, gap = _samples(bench, name)
            yield Step(
                NAME, (name,), repetition, 2.2 + samples * gap, partial(latency, bench, name, repetition)
            )


def _samples(bench: Bench, name: str) -> tuple[int, float]:
    """Return how many, and the mean seconds between them."""
    gap = sum(bench.library(name).gap_ms) / 2000
    return min(bench.size.samples, int(MAX_SECS / gap)), gap


def latency(bench: Bench, name: str, repetition: int) -> list[Record]:
    """Start both sides, warm up, and send items with pauses."""
    library = bench.library(name)
    samples, _ = _samples(bench, name)
    bench.empty()
    with bench.workers(library, handler="times") as (traces, workers), bench.producer(library) as producer:
        workers[0].wait_idle()
        producer.enqueue("paced", WARM_UP, gap_ms=(20, 40))
        traces.wait_count(WARM_UP, workers)
        sent = producer.enqueue("paced", samples, first=WARM_UP, gap_ms=library.gap_ms)["sent"]
        traces.wait_count(WARM_UP + samples, workers)
        handled = dict(traces.times())
    took = sorted(round((handled[WARM_UP + at] - when) / 1e6, 3) for at, when in enumerate(sent))
    values = {figure: percentile(took, share) for figure, share in PERCENTILES.items()}
    return [Record(NAME, name, repetition, {**values, "max_ms": took[-1], "all_ms": took})]
