"""The metrics that a cleaner exports."""

from __future__ import annotations

from prometheus_client.core import HistogramMetricFamily

from leaseq.keys import RegisteredQueue
from leaseq.results import DeepClean, LightClean, QueueStats
from leaseq_cleaner.metrics import Metrics

QUEUE = RegisteredQueue("q", "g")


def exported_metrics() -> dict[str, set[str]]:
    """Every metric as a cleaner with a queue tells it, with its labels; a histogram under its own name alone."""
    metrics = Metrics()
    metrics.add(QUEUE)
    metrics.take(QUEUE, QueueStats(**dict.fromkeys(QueueStats.__dataclass_fields__, 0)))  # type: ignore[arg-type]
    metrics.moved(QUEUE, LightClean(promoted=1))
    metrics.repaired(QUEUE, DeepClean({"clock": 1}))
    metrics.deep_cleaned(QUEUE)
    with metrics.call("stats"):
        pass
    metrics.errors.labels("stats", "ServerError")
    found: dict[str, set[str]] = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            if sample.name.endswith("_created"):
                continue
            histogram = family.type == HistogramMetricFamily("x", "x").type
            name = family.name if histogram else sample.name
            found.setdefault(name, set()).update(label for label in sample.labels if label != "le")
    return found
