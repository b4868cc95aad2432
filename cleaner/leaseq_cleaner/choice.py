"""The queues that /metrics shows singly: those that the operator names, the most urgent ones, the largest ones."""

import heapq
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Final

from leaseq.keys import RegisteredQueue
from leaseq_cleaner.record import QueueRecord

LIMIT: Final = 150
"""Queues that are shown singly by default, at most: with the longest names they take 1.7 MB."""

UNCLEANED_SECS: Final = 43_200.0
"""Seconds without a deep clean after which a queue is urgent: half of what the alert allows."""

HOLD: Final = 2.0
"""A queue that is shown counts as this many times as urgent: a queue that replaces it must be far more so.

An alert that waits with `for` needs the series of one queue to stay.
"""

Measure = Callable[[QueueRecord], float]


def measures(now: float, wall: float) -> tuple[Measure, ...]:
    """Return the measures of urgency; each is read by an alert. The last is the size."""
    return (
        lambda record: record.wait_secs,
        lambda record: record.late,
        lambda record: 0 if record.stats is None else abs(record.stats.unplaced),
        lambda record: record.trouble(now),
        lambda record: record.fullness,
        lambda record: 0 if record.stats is None else record.stats.paused,
        lambda record: (
            0 if record.deep_cleaned_at is None else max(0.0, wall - record.clean_since - UNCLEANED_SECS)
        ),
        lambda record: 0 if record.stats is None else record.stats.items + 1,
    )


def choose(
    records: Mapping[RegisteredQueue, QueueRecord], limit: int, shown: set[RegisteredQueue]
) -> set[RegisteredQueue]:
    """Return at most `limit` queues: by turns the next most urgent by each measure, and the next largest. `shown` are those so far."""
    if len(records) <= limit:
        return set(records)
    ranked = [_ranked(records, limit, measure, shown) for measure in measures(time.monotonic(), time.time())]
    chosen: set[RegisteredQueue] = set()
    for turn in itertools.zip_longest(*ranked):
        for queue in turn:
            if len(chosen) == limit:
                return chosen
            if queue is not None:
                chosen.add(queue)
    return chosen


def _ranked(
    records: Mapping[RegisteredQueue, QueueRecord], limit: int, measure: Measure, shown: set[RegisteredQueue]
) -> list[RegisteredQueue]:
    """Return the queues that have most of a measure, and none that has nothing."""
    valued = (
        (value * HOLD if queue in shown else value, queue)
        for queue, record in records.items()
        if (value := measure(record)) > 0
    )
    return [queue for _, queue in heapq.nlargest(limit, valued)]
