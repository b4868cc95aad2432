"""What a worker decides without any server: how much to lease, when to tell, what a failure means; and bad settings."""

from __future__ import annotations

from typing import Any

import pytest

import leaseq
import leaseq.aio
import leaseq.worker.aio
from leaseq.item import LeasedItemBase
from leaseq.worker import Backoff, DeadLetter, Release, Worker, server_health
from leaseq.worker.prefetch import AHEAD_SECS, GROUP_SECS, Prefetcher
from leaseq.worker.retry_policy import Disposition, RetryPolicy
from leaseq.worker.server_health import ServerHealth

POLICY = RetryPolicy(3, float, (KeyError,))


def item(attempt: int) -> LeasedItemBase:
    return LeasedItemBase("a", b"", 1, attempt, 0.0, 30.0)


def test_nothing_is_leased_ahead_of_what_was_not_measured() -> None:
    prefetcher = Prefetcher(10)
    assert prefetcher.want() == 10
    prefetcher.outstanding = 10
    assert prefetcher.want() == 0


@pytest.mark.parametrize(
    ("mean", "ahead"), [(1e-7, 256), (1e-3, 200), (AHEAD_SECS, 10), (0.1, 2), (1.0, 0), (3600.0, 0)]
)
def test_what_is_leased_ahead_is_about_20_ms_of_work(mean: float, ahead: int) -> None:
    prefetcher = Prefetcher(10)
    prefetcher.measured(10, 10 * mean)
    assert prefetcher.ahead() == ahead
    assert prefetcher.want() == min(256, 10 + ahead)


def test_the_mean_rises_at_once_and_falls_by_halves() -> None:
    prefetcher = Prefetcher(1)
    prefetcher.measured(1, 0.0001)
    assert prefetcher.ahead() == 200
    prefetcher.measured(1, 1.0)
    assert prefetcher.ahead() == 0
    for _ in range(20):
        prefetcher.measured(1, 0.0001)
    assert 150 < prefetcher.ahead() <= 200


def test_items_ahead_are_leased_once_half_of_them_is_used_up() -> None:
    prefetcher = Prefetcher(10)
    prefetcher.measured(100, 100 * 0.001)
    prefetcher.outstanding = 210
    assert prefetcher.want() == 0
    prefetcher.outstanding = 111
    assert prefetcher.want() == 0
    prefetcher.outstanding = 110
    assert prefetcher.want() == 100


def test_who_completes_first_leases_nothing_ahead() -> None:
    prefetcher = Prefetcher(10, ahead=False)
    prefetcher.measured(10, 0.0)
    assert prefetcher.ahead() == 0


def test_ends_wait_a_millisecond_for_others_where_others_can_come() -> None:
    prefetcher = Prefetcher(10)
    prefetcher.outstanding = 5
    prefetcher.note_completion(100.0)
    prefetcher.note_completion(100.0005)
    assert prefetcher.pause(100.0005, 2) == pytest.approx(GROUP_SECS / 2)
    assert prefetcher.pause(100.1, 2) == 0
    assert prefetcher.pause(100.0, 256) == 0, "a call is full"
    prefetcher.outstanding = 0
    assert prefetcher.pause(100.0, 1) == 0, "nobody else can end"
    alone = Prefetcher(10, group=False)
    alone.outstanding = 5
    alone.note_completion(100.0)
    assert alone.pause(100.0, 1) == 0


@pytest.mark.parametrize(
    ("error", "attempt", "verdict"),
    [
        (ValueError("x"), 1, Disposition(delay=1.0, error="ValueError: x")),
        (ValueError("x"), 3, Disposition(dead=True, error="ValueError: x")),
        (KeyError("x"), 1, Disposition(dead=True, error="KeyError: 'x'")),
        (DeadLetter("why"), 1, Disposition(dead=True, error="why")),
        (DeadLetter(), 1, Disposition(dead=True)),
        (Release("why", delay=7), 2, Disposition(delay=7, error="why")),
        (Release(), 2, Disposition(delay=2.0)),
        (Release(), 3, Disposition(dead=True)),
        (Release(uncounted=True), 3, Disposition(uncounted=True)),
    ],
)
def test_what_a_failure_means(error: BaseException, attempt: int, verdict: Disposition) -> None:
    assert POLICY.judge(item(attempt), error) == verdict


def test_without_a_limit_nothing_dies_of_attempts() -> None:
    policy = RetryPolicy(0, lambda _: 1.0, ())
    assert policy.judge(item(10**6), ValueError()).dead is False
    assert not policy.spent([item(10**6)])


def test_backoff_grows_to_its_end_and_is_spread() -> None:
    backoff = Backoff(2, 60)
    for attempt, longest in [(1, 2), (2, 4), (5, 32), (6, 60), (1000, 60)]:
        delays = {backoff(attempt) for _ in range(100)}
        assert len(delays) > 50
        assert longest / 2 <= min(delays) <= max(delays) <= longest


def test_an_outage_is_told_once() -> None:
    watch = ServerHealth()
    assert watch.ends(0.0) is None
    assert [watch.begins(float(second)) for second in range(3)] == [True, False, False]
    assert watch.lasts
    assert watch.ends(10.0) == 10.0
    assert (watch.lasts, watch.ends(11.0)) == (False, None)
    assert all(server_health.pause(failures) <= server_health.pause.last for failures in (1, 5, 50, 5000))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"concurrency": 0}, leaseq.BadArgumentError, "concurrency must be 1 to"),
        ({"concurrency": "2"}, leaseq.BadTypeError, "concurrency must be an int"),
        ({"lease_secs": 0}, leaseq.BadArgumentError, "lease_secs must be"),
        ({"max_attempts": -1}, leaseq.BadArgumentError, "max_attempts"),
        ({"backoff": 3}, leaseq.BadTypeError, "backoff"),
        ({"dead_letter_on": "ValueError"}, leaseq.BadTypeError, "exceptions"),
        ({"dead_letter_on": [3]}, leaseq.BadTypeError, "classes of exceptions"),
        ({"time_limit": 0}, leaseq.BadArgumentError, "time_limit"),
        ({"grace_secs": -1}, leaseq.BadArgumentError, "grace_secs"),
        ({"hooks": 3}, leaseq.BadTypeError, "hooks"),
        ({"hooks": [3]}, leaseq.BadTypeError, "leaseq.worker.Hooks"),
        ({"handler": None}, leaseq.BadTypeError, "a handler is called"),
        ({"queues": "q"}, leaseq.BadTypeError, "queues"),
        ({"queues": []}, leaseq.BadArgumentError, "needs a queue"),
        ({"queues": [3]}, leaseq.BadTypeError, "WorkQueue"),
    ],
)
@pytest.mark.parametrize("worker", [Worker, leaseq.worker.aio.Worker], ids=["threads", "asyncio"])
def test_bad_settings_are_refused_by_name(
    worker: Any, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with leaseq.WorkQueue("q", "redis://127.0.0.1:1") as queue:
        given = {"queues": queue, "handler": lambda _: None, **options}
        if worker is not Worker and "queues" not in options:
            given["queues"] = leaseq.aio.WorkQueue("q", "redis://127.0.0.1:1")
        with pytest.raises(error, match=text):
            worker(**given)


def test_queues_of_the_other_flavour_are_refused() -> None:
    with leaseq.WorkQueue("q", "redis://127.0.0.1:1") as queue, pytest.raises(leaseq.BadTypeError):
        leaseq.worker.aio.Worker(queue, lambda _: None)  # type: ignore[arg-type, return-value]
