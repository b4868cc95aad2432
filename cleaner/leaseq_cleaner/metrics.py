"""The metrics of the cleaner. docs/metrics.md explains each; a test compares the page with what is exported."""

import contextlib
import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from leaseq.keys import RegisteredQueue
from leaseq.results import DeepClean, LightClean, QueueStats
from leaseq_cleaner.choice import LIMIT
from leaseq_cleaner.queue_metrics import QueueMetrics

CALLS = ("light_clean", "deep_clean", "stats", "registry", "write", "info")
"""The calls of a cleaner."""

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    """All metrics of one cleaner, in a separate registry.

    Attributes:
        registry: for `prometheus_client` to export.
        of_queues: the numbers of queues.
        queues: the gauge of how many queues are looked after.
        up: the gauge of whether the server answers and takes writes.
        restarts: the counter of restarts and failovers of the server.
        errors: the counter of failed calls, by call and error.
    """

    def __init__(
        self, limit: int = LIMIT, is_pinned: Callable[[RegisteredQueue], bool] = lambda _: False
    ) -> None:
        """See `QueueMetrics`."""
        self.registry = CollectorRegistry()
        self.of_queues = QueueMetrics(limit, is_pinned)
        self.registry.register(self.of_queues)
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

    # of queues; what comes after a queue was dropped is ignored

    def add(self, queue: RegisteredQueue) -> None:
        """Keep the numbers of a queue from now on."""
        self.of_queues.add(queue)

    def drop(self, queue: RegisteredQueue) -> None:
        """Forget a queue that is no longer looked after."""
        self.of_queues.drop(queue)

    def take(self, queue: RegisteredQueue, stats: QueueStats) -> bool:
        """Take in what a queue told. Return whether it told more before: the server lost what was written last."""
        record = self.of_queues.records.get(queue)
        return record is not None and record.take(stats)

    def moved(self, queue: RegisteredQueue, done: LightClean) -> None:
        """Count what a light clean did."""
        if (record := self.of_queues.records.get(queue)) is not None:
            record.moved(done)

    def repaired(self, queue: RegisteredQueue, done: DeepClean) -> None:
        """Count what a page of a deep clean repaired."""
        if (record := self.of_queues.records.get(queue)) is not None:
            record.repaired(done)

    def awaits_deep_clean(self, queue: RegisteredQueue) -> None:
        """No pass has ended yet: 0, by which an alert sees that none ever does."""
        if (record := self.of_queues.records.get(queue)) is not None:
            record.deep_cleaned_at = 0.0

    def deep_cleaned(self, queue: RegisteredQueue) -> None:
        """A pass has ended."""
        if (record := self.of_queues.records.get(queue)) is not None:
            record.deep_cleaned_at = time.time()
