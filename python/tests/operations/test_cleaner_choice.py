"""The queues that a cleaner shows singly, and the sums of all: what alerts need stays in sight, in bounded space."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import generate_latest

import leaseq
from leaseq.keys import RegisteredQueue
from leaseq.results import DeepClean, LightClean, QueueStats
from leaseq_cleaner import Cleaner
from leaseq_cleaner.choice import LIMIT, UNCLEANED_SECS, choose
from leaseq_cleaner.metrics import Metrics
from leaseq_cleaner.queue_metrics import ALL, MAX_GROUPS
from leaseq_cleaner.record import TROUBLE_HALVES_SECS, QueueRecord
from leaseq_cleaner.selector import QueueSelector

EMPTY = QueueStats(**dict.fromkeys(QueueStats.__dataclass_fields__, 0))  # type: ignore[arg-type]
URGENT: dict[str, dict[str, Any]] = {
    "waits": {"items": 1, "ready": 1, "waited": 1.0},
    "overdue": {"items": 1, "leased": 1, "overdue": 1},
    "due": {"items": 1, "delayed": 1, "due": 1},
    "unplaced": {"items": 1},
    "twice": {"items": 1, "ready": 2},
    "full": {"items": 1, "ready": 1, "max_items": 1},
    "paused": {"paused": True},
}
"""The counts of queues that an alert may be about."""


def named(name: str, group: str | None = None) -> RegisteredQueue:
    return RegisteredQueue(name, group or name)


def record(**counts: Any) -> QueueRecord:
    made = QueueRecord(time.time(), [])
    made.take(replace(EMPTY, **counts))
    return made


def crowd(count: int, *, items: int = 1000) -> dict[RegisteredQueue, QueueRecord]:
    """Queues that are larger than all that is urgent, with nothing else to report."""
    return {named(f"large-{n:04}"): record(items=items + n, ready=items + n) for n in range(count)}


def kept(metrics: Metrics, count: int, *, group: str | None = None) -> list[RegisteredQueue]:
    """Queues that a cleaner looks after and has seen empty."""
    queues = [named(f"queue-{number:05}", group) for number in range(count)]
    for queue in queues:
        metrics.add(queue)
        metrics.take(queue, EMPTY)
    return queues


def series(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Return what is exported: values by name, group, queue and the other label."""
    found = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            labels = dict(sample.labels)
            first = [labels.pop(name) for name in ("group", "queue") if name in labels]
            found[sample.name, *first, *labels.values()] = sample.value
    return found


def shown(metrics: Metrics) -> set[str]:
    """The names of the queues that are exported singly."""
    return {key[2] for key in series(metrics) if key[0] == "leaseq_cleaner_losses_total"}


class TestChoice:
    def test_few_queues_are_all_chosen(self) -> None:
        queues = crowd(5)
        assert choose(queues, 5, set()) == set(queues)

    @pytest.mark.parametrize("name", URGENT)
    def test_what_an_alert_may_be_about(self, name: str) -> None:
        queues = crowd(1000) | {named(name): record(**URGENT[name])}
        assert named(name) in choose(queues, 8, set())

    def test_each_kind_has_its_place(self) -> None:
        urgent = {named(f"{name}-{n:02}"): record(**URGENT[name]) for name in URGENT for n in range(50)}
        chosen = choose(crowd(1000) | urgent, 32, set())
        assert len(chosen) == 32
        kinds = {queue.name.partition("-")[0] for queue in chosen}
        assert kinds >= {"waits", "overdue", "full", "paused", "large"}
        assert kinds & {"unplaced", "twice"}
        assert named("large-0999") in chosen, "the largest"

    def test_the_wait_of_a_paused_queue_does_not_count(self) -> None:
        paused = {named(f"paused-{n}"): record(paused=True, ready=1, items=1, waited=9e9) for n in range(50)}
        chosen = choose(crowd(100) | paused | {named("waits"): record(**URGENT["waits"])}, 8, set())
        assert named("waits") in chosen

    def test_trouble_is_shown_and_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        queues = crowd(100)
        troubled = queues[named("troubled")] = record()
        troubled.repaired(DeepClean({"unplaced": 1}))
        assert named("troubled") in choose(queues, 8, set())
        now = time.monotonic()
        assert troubled.trouble(now + TROUBLE_HALVES_SECS) == pytest.approx(troubled.trouble(now) / 2)
        troubled.take(replace(EMPTY, died=4))
        assert troubled.trouble(now) > 4

    def test_a_queue_without_deep_clean(self) -> None:
        queues = crowd(100)
        forgotten = queues[named("forgotten")] = record()
        forgotten.deep_cleaned_at = 0.0
        assert named("forgotten") not in choose(queues, 8, set())
        forgotten.found_at = time.time() - UNCLEANED_SECS - 60
        assert named("forgotten") in choose(queues, 8, set())

    def test_what_is_shown_stays_until_another_is_twice_as_urgent(self) -> None:
        queues = {named(f"q-{n}"): record(items=1, ready=1, waited=100.0 + n) for n in range(10)}
        chosen = choose(queues, 2, set())
        for queue in queues:
            queues[queue] = record(items=1, ready=1, waited=150.0 if queue in chosen else 200.0)
        assert choose(queues, 2, chosen) == chosen, "an alert with `for` would start anew"
        queues[named("late")] = record(items=1, ready=1, waited=301.0)
        assert named("late") in choose(queues, 2, chosen)

    def test_none(self) -> None:
        assert choose(crowd(5), 0, set()) == set()


class TestExport:
    @pytest.mark.slow
    def test_a_page_is_bounded_whatever_names_there_are(self) -> None:
        """2 MB by default, also of 10,000 queues with the longest names, in the most groups."""
        metrics = Metrics()
        for number in range(10_000):
            queue = named(f"{number:05}".ljust(100, "q"), f"{number // 10:05}".ljust(100, "g"))
            metrics.add(queue)
            metrics.awaits_deep_clean(queue)
            metrics.take(queue, replace(EMPTY, added=10**12, leases=10**12, completed=10**12))
        begun = time.process_time()
        page = generate_latest(metrics.registry)
        assert time.process_time() - begun < 1.0
        assert len(page) < 2_000_000
        found = series(metrics)
        assert len(shown(metrics)) == LIMIT
        assert found["leaseq_cleaner_hidden_queues",] == 10_000 - LIMIT
        assert found["leaseq_group_queues", ALL] == 10_000
        assert sum(key[0] == "leaseq_group_queues" for key in found) == MAX_GROUPS + 1

    def test_named_queues_are_always_shown(self) -> None:
        metrics = Metrics(2, QueueSelector(["mail-*", "shop/orders"]).has)
        kept(metrics, 20)
        always = {named("mail-a"), named("mail-b"), named("orders", "shop")}
        for queue in always:
            metrics.add(queue)
        assert {queue.name for queue in always} < shown(metrics)
        assert len(shown(metrics)) == 5

    def test_sums(self) -> None:
        metrics = Metrics(1)
        queues = kept(metrics, 3, group="shop") + kept(metrics, 1)
        metrics.take(queues[0], replace(EMPTY, items=4, waited=5.0, dead=1, ready=2))
        metrics.take(queues[1], replace(EMPTY, items=2, waited=3.0, ready=1))
        metrics.take(queues[2], replace(EMPTY, items=1, waited=9.0, paused=True))
        found = series(metrics)
        assert found["leaseq_group_queues", ALL] == 4
        assert found["leaseq_group_queues", "shop"] == 3
        assert ("leaseq_group_queues", queues[3].group) not in found, "the same as its only queue"
        assert (found["leaseq_group_items", "shop", "ready"], found["leaseq_group_items", ALL, "dead"]) == (
            3,
            1,
        )
        assert found["leaseq_group_unplaced_items", "shop"] == 3
        assert found["leaseq_group_paused_queues", ALL] == 1
        assert found["leaseq_group_next_item_wait_seconds", ALL] == 5.0

    def test_counters_of_sums_never_go_back(self) -> None:
        """Neither when a queue is shown or hidden, nor when it goes or loses its counts: a rate would show a peak."""
        metrics = Metrics(1)
        queues = kept(metrics, 3, group="shop")
        seen = 0.0
        for died, queue in ((5, queues[0]), (9, queues[1]), (20, queues[0]), (1, queues[0]), (7, queues[0])):
            metrics.take(queue, replace(EMPTY, died=died, items=died, dead=died))
            total = series(metrics)["leaseq_group_events_total", ALL, "died"]
            assert total >= seen
            seen = total
        assert seen == 5 + 9 + 15 + 0 + 6
        assert series(metrics)["leaseq_cleaner_group_losses_total", "shop"] == 1
        metrics.moved(queues[2], LightClean(reclaimed=2))
        metrics.drop(queues[0])
        found = series(metrics)
        assert found["leaseq_group_events_total", ALL, "died"] == seen
        assert found["leaseq_cleaner_group_moved_total", "shop", "reclaimed"] == 2
        for queue in queues:
            metrics.drop(queue)
        metrics.moved(queues[0], LightClean(reclaimed=1))  # a call that was under way
        found = series(metrics)
        assert ("leaseq_group_queues", "shop") not in found
        assert found["leaseq_group_queues", ALL] == 0

    def test_counts_before_the_first_look_are_no_events(self) -> None:
        metrics = Metrics()
        metrics.add(named("q"))
        metrics.take(named("q"), replace(EMPTY, died=100))
        assert series(metrics)["leaseq_group_events_total", ALL, "died"] == 0


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"metrics_limit": -1}, "metrics_limit is at least 0"),
            ({"metrics_queues": ["a b"]}, "names no queue"),
            ({"metrics_queues": ["*/"]}, "is no pattern"),
        ],
    )
    def test_what_is_refused(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(leaseq.BadArgumentError, match=message):
            Cleaner("redis://h", **settings)

    def test_they_reach_the_metrics(self) -> None:
        cleaner = Cleaner("redis://h", metrics_limit=1, metrics_queues=["queue-00003"])
        kept(cleaner.metrics, 9)
        assert len(shown(cleaner.metrics)) == 2
        assert "queue-00003" in shown(cleaner.metrics)
