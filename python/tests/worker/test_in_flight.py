"""The items that a worker holds: their ends, as hooks receive them, and the calls that report these."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from support.background_worker import RecordingHooks

from leaseq import flows
from leaseq.item import LeasedItemBase
from leaseq.worker.hooks import Hooks, SafeHooks
from leaseq.worker.in_flight import InFlight
from leaseq.worker.prefetch import Prefetcher
from leaseq.worker.retry_policy import DeadLetter, Release
from leaseq.worker.settings import Settings, checked_policy

HOUR = 3600.0


class Item(LeasedItemBase):
    """Of a queue that is only compared."""

    __slots__ = ("queue",)

    def __init__(self, item_id: str, queue: object) -> None:
        super().__init__(item_id, b"", 1, 1, 0.0, HOUR, 0.0)
        self.queue = queue


class Durations(Hooks):
    """Keeps how long each handler took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def ended(self, item: Any, seconds: float, error: BaseException | None) -> None:
        self.seconds[item.id] = seconds


def in_flight(*hooks: Hooks, **options: Any) -> InFlight:
    settings: dict[str, Any] = {
        "concurrency": 10,
        "lease_secs": HOUR,
        "policy": checked_policy(25, lambda _: 7.0, ()),
        "time_limit": 5.0,
        "at_most_once": False,
        "burst": False,
        "grace_secs": 0.0,
        "handle_signals": False,
        "announce": False,
        **options,
    }
    return InFlight(Settings(**settings), Prefetcher(10), SafeHooks(hooks), contextlib.nullcontext())


def test_a_hook_hears_how_long_each_handler_took() -> None:
    durations = Durations()
    held = in_flight(durations)
    items = held.leased([Item(name, "q") for name in "abc"], 0.0)
    held.collect(
        [
            (item, None, seconds, "returned", True)
            for item, seconds in zip(items, (1.0, 2.0, 4.0), strict=True)
        ],
        10.0,
    )
    assert durations.seconds == {"a": 1.0, "b": 2.0, "c": 4.0}


def test_a_handler_that_did_not_start_has_not_ended() -> None:
    recorded = RecordingHooks()
    held = in_flight(recorded)
    gone, withdrawn = held.leased([Item("gone", "q"), Item("withdrawn", "q")], 0.0)
    gone.hold.lost = True
    held.collect([(gone, None, 0.0, "gone", True), (withdrawn, None, 0.0, "withdrawn", True)], 0.0)
    assert recorded.of("ended") == []
    (request,) = held.next_returns()
    assert (request.item, request.uncounted, request.error) == (withdrawn, True, None)
    assert held.held() == [withdrawn]


def test_hooks_hear_where_each_item_went_and_when_it_comes_again() -> None:
    recorded = RecordingHooks()
    held = in_flight(recorded)
    failures: dict[str, BaseException] = {
        "fails": ValueError("no"),
        "later": Release("wait", delay=60),
        "uncounted": Release("put off", delay=30, uncounted=True),
        "dies": DeadLetter("for a person"),
        "last": ValueError("never"),
        "lost": ValueError("late"),
    }
    items = held.leased([Item(name, "q") for name in failures], 0.0)
    held.collect([(item, failures[item.id], 1.0, "raised", True) for item in items], 0.0)
    requests = held.next_returns()
    held.returned(requests, ["delayed", "delayed", "delayed", "dead", "dead", "lost"])
    assert recorded.of("released") == [
        ("fails", 7.0, "ValueError: no"),
        ("later", 60.0, "wait"),
        ("uncounted", 30.0, "put off"),
    ]
    assert recorded.of("dead_lettered") == [("dies", "for a person"), ("last", "ValueError: never")]
    assert recorded.of("lost") == ["lost"]
    assert held.count == 0


def test_an_item_whose_answer_was_lost_once_is_lost_where_a_later_call_says_so() -> None:
    """That a false is no loss is known of the items of the call whose answer was lost, and of no others."""
    recorded = RecordingHooks()
    held = in_flight(recorded)
    unsure, other = held.leased([Item("unsure", "q"), Item("other", "q")], 0.0)
    held.collect([(item, None, 1.0, "returned", True) for item in (unsure, other)], 0.0)
    held.completions.popleft()
    held.completions.popleft()
    held.requeue_completions([unsure], definite=False, now=0.0)
    held.requeue_completions([other], definite=True, now=0.0)
    batch = held.next_completions()
    held.completed(batch, [False] * len(batch))
    assert (recorded.of("completed"), recorded.of("lost")) == (["unsure"], ["other"])
    assert held._unconfirmed == set()


def test_one_call_completes_no_more_than_it_carries() -> None:
    held = in_flight()
    queue, other = "q", "other"
    items = held.leased([*(Item(str(number), queue) for number in range(3)), Item("3", other)], 0.0)
    for item in items[:3]:
        item.result = b"x" * (flows.CHUNK_BYTES // 2)
    held.collect([(item, None, 1.0, "returned", True) for item in items], 0.0)
    assert [[item.id for item in held.next_completions()] for _ in range(3)] == [["0", "1"], ["2"], ["3"]]


@pytest.mark.parametrize("kind", ["completions", "returns"])
def test_one_call_reports_256_of_one_queue(kind: str) -> None:
    held = in_flight()
    items = held.leased([Item(str(number), "q") for number in range(300)], 0.0)
    error = None if kind == "completions" else Release("no")
    end: Any = "raised" if error else "returned"
    held.collect([(item, error, 1.0, end, True) for item in items], 0.0)
    take = held.next_completions if kind == "completions" else held.next_returns
    assert [len(take()) for _ in range(2)] == [256, 44]


def test_work_that_is_done_in_a_thread_past_its_time_counts() -> None:
    recorded = RecordingHooks()
    held = in_flight(recorded)
    (item,) = held.leased([Item("a", "q")], 0.0)
    held.collect([(item, None, 5.0, "late", False)], 0.0)
    (request,) = held.next_returns()
    assert (request.delay, request.error) == (7.0, "TimeoutError: took longer than 5 seconds")
    held.returned([request], ["delayed"])
    item.hold.ended = True
    assert recorded.of("ended") == []  # its thread runs on
    held.collect([(item, None, 9.0, "returned", True)], 0.0)
    assert list(held.completions) == [item]
    assert recorded.of("ended") == [("a", None)]
