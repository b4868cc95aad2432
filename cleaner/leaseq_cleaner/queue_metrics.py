"""The metrics of queues: those of some queues singly, sums of all and of groups."""

import heapq
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from leaseq.keys import RegisteredQueue
from leaseq.results import COUNTERS, MOVES, REPAIRS, STATES, QueueStats
from leaseq_cleaner.choice import choose
from leaseq_cleaner.record import Counts, QueueRecord

STALE_SECS = 120.0
"""Older counts of a queue are not exported: the server or the queue is away."""

ALL: Final = "*"
"""The label `group` of the sums over all queues: no group is called so."""

MAX_GROUPS: Final = 30
"""Groups whose sums are exported, at most: those with most queues."""

_QUEUE: Final = ("group", "queue")
_GROUP: Final = ("group",)

Gauges = dict[str, tuple[str, Callable[[QueueStats], float]]]
"""For each name its help text, and its value by the counts of a queue."""


_SINGLES: Final[Gauges] = {
    "next_item_wait_seconds": (
        "How long the next ready item has waited; 0 if none is ready.",
        lambda stats: stats.waited,
    ),
    "overdue_leases": (
        "Leases that have expired and are not reclaimed yet.",
        lambda stats: stats.overdue,
    ),
    "due_items": ("Delayed items that are due and not promoted yet.", lambda stats: stats.due),
    "unplaced_items": (
        "Items that are in no state; below 0: that are in several.",
        lambda stats: stats.unplaced,
    ),
    "kept_outcomes": ("Outcomes that are kept.", lambda stats: stats.kept),
    "max_items": (
        "How many items the queue may hold, not counting dead ones; 0 is no limit.",
        lambda stats: stats.max_items,
    ),
    "paused": ("1 while the queue gives no items.", lambda stats: int(stats.paused)),
}

_SUMS: Final[Gauges] = {
    **{name: _SINGLES[name] for name in ("overdue_leases", "due_items", "kept_outcomes")},
    "unplaced_items": ("Items that are in no state or in several.", lambda stats: abs(stats.unplaced)),
    "paused_queues": ("How many of the queues give no items.", lambda stats: int(stats.paused)),
}


class QueueMetrics(Collector):
    """The numbers of all queues, and their export."""

    def __init__(self, limit: int, is_pinned: Callable[[RegisteredQueue], bool]) -> None:
        """`limit` is how many queues are shown singly, at most, in addition to those that `is_pinned` is true of."""
        self.records: dict[RegisteredQueue, QueueRecord] = {}
        self._sums: dict[str, Counts] = {ALL: Counts()}
        """Of all queues, and of each group that has or had several."""
        self._sizes: Counter[str] = Counter()
        self._limit = limit
        self._is_pinned = is_pinned
        self._shown: set[RegisteredQueue] = set()

    def add(self, queue: RegisteredQueue) -> None:
        """Keep the numbers of a queue from now on."""
        if queue in self.records:
            return
        group = queue.group
        self.records[queue] = QueueRecord(time.time(), [self._sums[ALL]])
        self._sizes[group] += 1
        if group in self._sums:
            self.records[queue].sums.append(self._sums[group])
        elif self._sizes[group] > 1:
            self._sums[group] = Counts()
            for name, record in self.records.items():
                if name.group == group:
                    record.sums.append(self._sums[group])

    def drop(self, queue: RegisteredQueue) -> None:
        """Forget a queue. The counters of the sums keep its part."""
        if self.records.pop(queue, None) is None:
            return
        self._sizes[queue.group] -= 1
        if not self._sizes[queue.group]:
            del self._sizes[queue.group]
            self._sums.pop(queue.group, None)

    def collect(self) -> Iterator[Metric]:
        """Called by the exporter, in a separate thread."""
        records = dict(self.records)
        shown = {queue: record for queue, record in records.items() if self._is_pinned(queue)}
        others = {queue: record for queue, record in records.items() if queue not in shown}
        self._shown = choose(others, self._limit, self._shown)
        shown.update((queue, others[queue]) for queue in sorted(self._shown))
        hidden = "Queues that are in sums only; see --metrics-limit."
        yield GaugeMetricFamily("leaseq_cleaner_hidden_queues", hidden, len(records) - len(shown))
        yield from _of_queues(shown)
        yield from self._of_groups(records)

    def _of_groups(self, records: Mapping[RegisteredQueue, QueueRecord]) -> Iterator[Metric]:
        counts = dict(self._sums)
        sized = ((self._sizes[group], group) for group in counts if group != ALL)
        sums = {
            group: _Sum(group) for group in (ALL, *(group for _, group in heapq.nlargest(MAX_GROUPS, sized)))
        }
        oldest = time.monotonic() - STALE_SECS
        for queue, record in records.items():
            for group in (ALL, queue.group):
                if group in sums:
                    sums[group].add(record, record.read_at >= oldest)
        yield from _gauges_of_groups(list(sums.values()))
        of_events = _counter(
            "leaseq_group_events", "What happened to items since this cleaner started.", "event"
        )
        moved = _counter("leaseq_cleaner_group_moved", "What light cleans of this cleaner did.", "what")
        repaired = _counter(
            "leaseq_cleaner_group_repairs", "Damage that deep cleans of this cleaner repaired.", "kind"
        )
        losses = CounterMetricFamily(
            "leaseq_cleaner_group_losses",
            "How often counts of a queue went back: the server lost what was written last.",
            labels=_GROUP,
        )
        for group in sums:
            _add(of_events, (group,), COUNTERS, counts[group].events)
            _add(moved, (group,), MOVES, counts[group].moved)
            _add(repaired, (group,), REPAIRS, counts[group].repaired)
            losses.add_metric((group,), counts[group].losses)
        yield from (of_events, moved, repaired, losses)


class _Sum:
    """The gauges of several queues."""

    def __init__(self, group: str) -> None:
        self.labels = (group,)
        self.queues = 0
        self.fresh = 0
        self.states = dict.fromkeys(STATES, 0)
        self.values: dict[str, float] = dict.fromkeys(_SUMS, 0)
        self.wait_secs = 0.0
        self.clean_since = math.inf

    def add(self, record: QueueRecord, is_fresh: bool) -> None:
        """Add a queue."""
        self.queues += 1
        if record.deep_cleaned_at is not None:
            self.clean_since = min(self.clean_since, record.clean_since)
        stats = record.stats
        if stats is None or not is_fresh:
            return
        self.fresh += 1
        for state in STATES:
            self.states[state] += getattr(stats, state)
        for name, (_, value) in _SUMS.items():
            self.values[name] += value(stats)
        self.wait_secs = max(self.wait_secs, record.wait_secs)


def _of_queues(shown: Mapping[RegisteredQueue, QueueRecord]) -> Iterator[Metric]:
    """Yield the metrics of single queues."""
    states = GaugeMetricFamily("leaseq_items", "Items by state.", labels=[*_QUEUE, "state"])
    events = CounterMetricFamily(
        "leaseq_events", "What happened to items since the queue was created.", labels=[*_QUEUE, "event"]
    )
    singles = [
        GaugeMetricFamily(f"leaseq_{name}", text, labels=_QUEUE) for name, (text, _) in _SINGLES.items()
    ]
    moved = CounterMetricFamily(
        "leaseq_cleaner_moved", "What light cleans of this cleaner did.", labels=[*_QUEUE, "what"]
    )
    repaired = CounterMetricFamily(
        "leaseq_cleaner_repairs",
        "Damage that deep cleans of this cleaner repaired.",
        labels=[*_QUEUE, "kind"],
    )
    losses = CounterMetricFamily(
        "leaseq_cleaner_losses",
        "How often counts of the queue went back: the server lost what was written last.",
        labels=_QUEUE,
    )
    deep = GaugeMetricFamily(
        "leaseq_cleaner_deep_clean_timestamp_seconds",
        "When this cleaner last finished a deep clean of the queue.",
        labels=_QUEUE,
    )
    oldest = time.monotonic() - STALE_SECS
    for queue, record in shown.items():
        labels, stats = (queue.group, queue.name), record.stats
        _add(moved, labels, MOVES, record.counts.moved)
        _add(repaired, labels, REPAIRS, record.counts.repaired)
        losses.add_metric(labels, record.counts.losses)
        if record.deep_cleaned_at is not None:
            deep.add_metric(labels, record.deep_cleaned_at)
        if stats is None or record.read_at < oldest:
            continue
        for state in STATES:
            states.add_metric((*labels, state), getattr(stats, state))
        for event in COUNTERS:
            events.add_metric((*labels, event), getattr(stats, event))
        for family, (_, value) in zip(singles, _SINGLES.values(), strict=True):
            family.add_metric(labels, value(stats))
    yield from (states, events, *singles, moved, repaired, losses, deep)


def _gauges_of_groups(sums: list[_Sum]) -> Iterator[Metric]:
    """Yield the gauges of all queues and of groups; those that need counts only where there are some."""
    queues = GaugeMetricFamily("leaseq_group_queues", "Queues of the group.", labels=_GROUP)
    states = GaugeMetricFamily("leaseq_group_items", "Items by state.", labels=[*_GROUP, "state"])
    wait = GaugeMetricFamily(
        "leaseq_group_next_item_wait_seconds",
        "How long the next ready item has waited, in the queue that is not paused and where that is longest.",
        labels=_GROUP,
    )
    values = {
        name: GaugeMetricFamily(f"leaseq_group_{name}", text, labels=_GROUP)
        for name, (text, _) in _SUMS.items()
    }
    deep = GaugeMetricFamily(
        "leaseq_cleaner_group_deep_clean_timestamp_seconds",
        "When this cleaner last finished a deep clean of the queue that has gone longest without, or found it.",
        labels=_GROUP,
    )
    for each in sums:
        queues.add_metric(each.labels, each.queues)
        if each.clean_since < math.inf:
            deep.add_metric(each.labels, each.clean_since)
        if not each.fresh:
            continue
        for state, count in each.states.items():
            states.add_metric((*each.labels, state), count)
        wait.add_metric(each.labels, each.wait_secs)
        for name, value in each.values.items():
            values[name].add_metric(each.labels, value)
    yield from (queues, states, wait, *values.values(), deep)


def _counter(name: str, text: str, label: str) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, labels=[*_GROUP, label])


def _add(
    family: CounterMetricFamily, labels: tuple[str, ...], names: tuple[str, ...], counts: Mapping[str, int]
) -> None:
    """Add a series for each name: also of 0, otherwise a rate would not show the first event."""
    for name in names:
        family.add_metric((*labels, name), counts.get(name, 0))
