"""The metrics of workers for Prometheus. docs/metrics.md explains each; a test compares the page with this file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from leaseq.worker.work_counts import BUCKETS_SECS, EVENTS, WorkKind, WorkRow

_ENDS = (*(f"{each:g}" for each in BUCKETS_SECS), "+Inf")


class WorkCollector(Collector):
    """Exports counts of work, and how the server is, as they are at a scrape.

    `totals` returns the counts, `answered_at` when the server last answered, in seconds since 1970 (0: not yet), and
    `server_up` whether it does.
    """

    def __init__(
        self,
        totals: Callable[[], Mapping[WorkKind, WorkRow]],
        answered_at: Callable[[], float],
        server_up: Callable[[], bool],
    ) -> None:
        self._totals = totals
        self._answered_at = answered_at
        self._server_up = server_up
        self.registry = CollectorRegistry()
        self.registry.register(self)
        started = Gauge(
            "leaseq_worker_start_time_seconds", "When this worker was started.", registry=self.registry
        )
        started.set_to_current_time()

    def collect(self) -> Iterator[Metric]:
        """Called by the exporter."""
        kind = list(WorkKind._fields)
        events = CounterMetricFamily(
            "leaseq_worker_events", "What happened to items in this worker.", labels=[*kind, "event"]
        )
        running = GaugeMetricFamily("leaseq_worker_in_flight", "Items that are worked on.", labels=kind)
        run = HistogramMetricFamily(
            "leaseq_worker_run_seconds", "How long the work on an item took.", labels=kind
        )
        lag = HistogramMetricFamily(
            "leaseq_worker_lag_seconds",
            "From when a job was due to the start of its first attempt.",
            labels=kind,
        )
        for labels, row in sorted(self._totals().items()):
            for event, count in zip(EVENTS, row.events, strict=True):
                events.add_metric([*labels, event], count)
            running.add_metric(labels, row.running)
            run.add_metric(labels, _buckets(row.run), row.run[0])
            lag.add_metric(labels, _buckets(row.lag), row.lag[0])
        yield from (events, running, run, lag)
        yield GaugeMetricFamily(
            "leaseq_worker_server_up",
            "1 while the server answers this worker and takes its calls.",
            value=float(self._server_up()),
        )
        yield GaugeMetricFamily(
            "leaseq_worker_server_answer_timestamp_seconds",
            "When the server last answered this worker.",
            value=self._answered_at(),
        )


def _buckets(span: Sequence[float]) -> list[tuple[str, float]]:
    return list(zip(_ENDS, accumulate(span[1:]), strict=True))
