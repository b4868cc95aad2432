"""The worker's decision about an item whose handler failed: retry, release, or dead letter."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from leaseq.backoff import as_policy
from leaseq.errors import BadArgumentError, BadTypeError
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


@pytest.mark.parametrize(
    ("given", "delays"),
    [
        (10, [10, 10, 10]),
        (timedelta(minutes=1), [60, 60, 60]),
        ("5m", [300, 300, 300]),
        ([1, timedelta(seconds=5), "1m"], [1, 5, 60, 60]),
        ((0,), [0, 0]),
        (lambda attempt: attempt * 2, [2, 4, 6]),
        (lambda attempt: timedelta(seconds=attempt), [1, 2]),
        (partial(pow, 3), [3, 9]),
    ],
)
def test_a_fixed_delay_a_list_and_a_function_are_a_backoff(given: Any, delays: list[float]) -> None:
    policy = as_policy(given)
    assert [policy(attempt) for attempt in range(1, len(delays) + 1)] == delays
    assert as_policy(policy) is policy


@pytest.mark.parametrize("delay", [-1, None, "1h 2", float("inf"), timedelta(days=-1), ZeroDivisionError()])
def test_a_function_that_returns_no_delay_waits_as_by_default(
    delay: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def choose(_: int) -> float:
        if isinstance(delay, Exception):
            raise delay
        chosen: float = delay
        return chosen

    assert 0.5 <= as_policy(choose)(1) <= 1
    assert "a backoff failed after attempt 1: the default delay holds" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((-1,), BadArgumentError, "the first delay of a backoff must be 0 to"),
        ((1, timedelta(days=4000)), BadArgumentError, "the last delay of a backoff must be 0 to"),
        (([1, 2],), BadTypeError, "write backoff="),
        ((lambda _: 1,), BadTypeError, "write backoff="),
        ((None,), BadTypeError, "the first delay of a backoff is a NoneType"),
    ],
)
def test_a_backoff_that_cannot_be_is_refused(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Backoff(*arguments)


def test_a_backoff_takes_timedeltas_and_text_and_waits_for_its_first_delay() -> None:
    assert Backoff(timedelta(minutes=1), "1h") == Backoff(60, 3600)
    assert 300 <= Backoff(600)(1) <= 600


def test_a_delay_of_a_release_may_be_a_timedelta() -> None:
    assert POLICY.judge(item(1), Release(delay=timedelta(minutes=1))) == Disposition(delay=60.0)
    with pytest.raises(BadTypeError, match="delay must be a number of seconds or a timedelta"):
        Release(delay="1m")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "delay", [-5, -0.001, 315_360_000.001, 4e8, timedelta(days=-1), timedelta(days=4000)]
)
def test_a_delay_of_a_release_that_no_queue_takes_is_the_default_one(
    delay: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Passed on, the server would refuse each try to give the item back. The item waits also where it is uncounted."""
    for uncounted in (False, True):
        verdict = POLICY.judge(item(1), Release("later", delay=delay, uncounted=uncounted))
        assert 0.5 <= verdict.delay <= 1
        assert not verdict.dead
        assert verdict.error is not None
        assert verdict.error.endswith("Release: later")
        assert "item 'a' waits for the default time" in caplog.text
        caplog.clear()
    for taken in (0, 315_360_000, timedelta(days=3650)):
        assert POLICY.judge(item(1), Release(delay=taken)).delay == Release(delay=taken).delay


@pytest.mark.parametrize("delay", [-1.0, float("nan"), float("inf"), 4e8, "soon", None])
def test_a_delay_of_any_policy_that_no_queue_takes_is_the_default_one(delay: Any) -> None:
    policy = RetryPolicy(0, lambda _: delay, ())
    for error in (ValueError("x"), Release()):
        assert 0.5 <= policy.judge(item(1), error).delay <= 1
