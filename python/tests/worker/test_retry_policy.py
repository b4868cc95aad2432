"""The worker's decision about an item whose handler failed: retry, release, or dead letter."""

from __future__ import annotations

import pytest

from leaseq.item import LeasedItemBase
from leaseq.worker import Backoff, DeadLetter, Release
from leaseq.worker.retry_policy import Disposition, RetryPolicy

POLICY = RetryPolicy(3, float, (KeyError,))


def item(attempt: int) -> LeasedItemBase:
    return LeasedItemBase("a", b"", 1, attempt, 0.0, 30.0)


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
    assert not policy.exhausted([item(10**6)])


def test_backoff_grows_to_its_end_and_is_spread() -> None:
    backoff = Backoff(2, 60)
    for attempt, longest in [(1, 2), (2, 4), (5, 32), (6, 60), (1000, 60)]:
        delays = {backoff(attempt) for _ in range(100)}
        assert len(delays) > 50
        assert longest / 2 <= min(delays) <= max(delays) <= longest
