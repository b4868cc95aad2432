"""The metrics of the cleaner. docs/cleaner.md explains each; a test compares the page with this file."""

import contextlib
import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from leaseq.keys import RegisteredQueue
from leaseq.results import COUNTERS, MOVES, REPAIRS, STATES, DeepClean, LightClean, QueueStats

QUEUE = ("group", "queue")
STALE_SECS = 120.0
"""Older counts of a queue are not exported: the server or the queue is away."""

CALLS = ("light_clean", "deep_clean", "stats", "registry", "write", "info")
"""The calls of a cleaner."""

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class QueueCounts(Collector):
    """The counts of all queues as they were when they were last looked at."""

    def __init__(self) -> None:
        self._seen: dict[RegisteredQueue, tuple[float, QueueStats]] = {}

    def put(self, queue: RegisteredQueue, stats: QueueStats) -> QueueStats | None:
        """Take in what a queue told. Return what it told before, if anything."""
        _, before = self._seen.get(queue, (0.0, None))
        self._seen[queue] = (time.monotonic(), stats)
        return before

    def drop(self, queue: RegisteredQueue) -> None:
        """Forget a queue."""
        self._seen.pop(queue, None)

    def collect(self) -> Iterator[Metric]:
        """Called by the exporter, in a separate thread."""
        states = GaugeMetricFamily("leaseq_items", "Items by state.", labels=[*QUEUE, "state"])
        events = CounterMetricFamily(
            "leaseq_events", "What happened to items since the queue was created.", labels=[*QUEUE, "event"]
        )
        singles = [GaugeMetricFamily(f"leaseq_{name}", text, labels=QUEUE) for name, text in _SINGLES.items()]
        oldest = time.monotonic() - STALE_SECS
        for queue, (at, stats) in list(self._seen.items()):
            if at < oldest:
                continue
            labels = [queue.group, queue.name]
            for state in STATES:
                states.add_metric([*labels, state], getattr(stats, state))
            for event in COUNTERS:
                events.add_metric([*labels, event], getattr(stats, event))
            unplaced = stats.items - sum(getattr(stats, state) for state in STATES)
            values = (
                *(stats.waited, stats.overdue, stats.due, unplaced, stats.kept, stats.max_items),
                int(stats.paused),
            )
            for family, value in zip(singles, values, strict=True):
                family.add_metric(labels, value)
        yield from (states, events, *singles)


_SINGLES = {
    "next_item_wait_seconds": "How long the next ready item has waited; 0 if none is ready.",
    "overdue_leases": "Leases that have expired and are not reclaimed yet.",
    "due_items": "Delayed items that are due and not promoted yet.",
    "unplaced_items": "Items that are in no state; below 0: that are in several.",
    "kept_outcomes": "Outcomes that are kept.",
    "max_items": "How many items the queue may hold, not counting dead ones; 0 is no limit.",
    "paused": "1 while the queue gives no items.",
}


class Metrics:
    """All metrics of one cleaner, in a separate registry.

    Attributes:
        registry: for `prometheus_client` to export.
        counts: the counts of all queues.
        queues: the gauge of how many queues are looked after.
        up: the gauge of whether the server answers and takes writes.
        restarts: the counter of restarts and failovers of the server.
        errors: the counter of failed calls, by call and error.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.counts = QueueCounts()
        self.registry.register(self.counts)
        given = self.registry
        self.queues = Gauge("leaseq_cleaner_queues", "Queues that this cleaner looks after.", registry=given)
        self.up = Gauge(
            "leaseq_cleaner_server_up",
            "1 while the server answers this cleaner and takes writes.",
            registry=given,
        )
        self.restarts = Counter(
            "leaseq_cleaner_server_restarts",
            "How often this cleaner found its server restarted or replaced.",
            registry=given,
        )
        self._losses = Counter(
            "leaseq_cleaner_losses",
            "How often counts of the queue went back: the server lost what was written last.",
            QUEUE,
            registry=given,
        )
        self._moved = Counter(
            "leaseq_cleaner_moved", "What light cleans of this cleaner did.", [*QUEUE, "what"], registry=given
        )
        self._repairs = Counter(
            "leaseq_cleaner_repairs",
            "Damage that deep cleans of this cleaner repaired.",
            [*QUEUE, "kind"],
            registry=given,
        )
        self._deep = Gauge(
            "leaseq_cleaner_deep_clean_timestamp_seconds",
            "When this cleaner last finished a deep clean of the queue.",
            QUEUE,
            registry=given,
        )
        self._under_way = Gauge(
            "leaseq_cleaner_calls_under_way", "Calls that wait for their reply.", registry=given
        )
        self.errors = Counter(
            "leaseq_cleaner_errors", "Calls of this cleaner that failed.", ["call", "error"], registry=given
        )
        self._calls = Histogram(
            "leaseq_cleaner_call_seconds",
            "How long calls took, as seen here.",
            ["call"],
            buckets=_BUCKETS,
            registry=given,
        )
        for call in CALLS:  # an alert about calls that never come needs their 0
            self._calls.labels(call)
        started = Gauge("leaseq_cleaner_start_time_seconds", "When this cleaner was started.", registry=given)
        started.set_to_current_time()

    @contextlib.contextmanager
    def call(self, name: str) -> Iterator[None]:
        """Measure one call, and count its error."""
        begun = time.perf_counter()
        try:
            with self._under_way.track_inprogress():
                yield
        except Exception as error:
            self.errors.labels(name, type(error).__name__).inc()
            raise
        self._calls.labels(name).observe(time.perf_counter() - begun)

    def take(self, queue: RegisteredQueue, stats: QueueStats) -> bool:
        """Take in what a queue told. Return whether it told more before: the server lost what was written last."""
        before = self.counts.put(queue, stats)
        lost = before is not None and any(getattr(stats, each) < getattr(before, each) for each in COUNTERS)
        if lost:
            self._losses.labels(queue.group, queue.name).inc()
        return lost

    def moved(self, queue: RegisteredQueue, done: LightClean) -> None:
        """Count what a light clean did."""
        for what, count in done.counts.items():
            if count:
                self._moved.labels(queue.group, queue.name, what).inc(count)

    def repaired(self, queue: RegisteredQueue, done: DeepClean) -> None:
        """Count what a page of a deep clean repaired."""
        for kind, count in done.repairs.items():
            self._repairs.labels(queue.group, queue.name, kind).inc(count)

    def awaits_deep_clean(self, queue: RegisteredQueue) -> None:
        """No pass has ended yet: 0, by which an alert sees that none ever does."""
        self._deep.labels(queue.group, queue.name)

    def deep_cleaned(self, queue: RegisteredQueue) -> None:
        """A pass has ended."""
        self._deep.labels(queue.group, queue.name).set_to_current_time()

    def add(self, queue: RegisteredQueue) -> None:
        """Start with 0: otherwise a rate would not show the first event."""
        self._losses.labels(queue.group, queue.name)
        for what in MOVES:
            self._moved.labels(queue.group, queue.name, what)
        for kind in REPAIRS:
            self._repairs.labels(queue.group, queue.name, kind)

    def drop(self, queue: RegisteredQueue) -> None:
        """Forget a queue that is no longer looked after."""
        self.counts.drop(queue)
        labels = (queue.group, queue.name)
        self._deep.remove(*labels)
        self._losses.remove(*labels)
        for what in MOVES:
            self._moved.remove(*labels, what)
        for kind in REPAIRS:
            self._repairs.remove(*labels, kind)
