"""The number of items that a worker leases ahead, and the time that completions wait to be sent together."""

from __future__ import annotations

import pytest

from leaseq.worker.prefetch import AHEAD_SECS, GROUP_SECS, Prefetcher


def test_nothing_is_leased_ahead_of_what_was_not_measured() -> None:
    prefetcher = Prefetcher(10)
    assert prefetcher.fetch_count() == 10
    prefetcher.outstanding = 10
    assert prefetcher.fetch_count() == 0


@pytest.mark.parametrize(
    ("mean", "ahead"), [(1e-7, 256), (1e-3, 200), (AHEAD_SECS, 10), (0.1, 2), (1.0, 0), (3600.0, 0)]
)
def test_what_is_leased_ahead_is_about_20_ms_of_work(mean: float, ahead: int) -> None:
    prefetcher = Prefetcher(10)
    prefetcher.record_durations(10, 10 * mean)
    assert prefetcher.ahead() == ahead
    assert prefetcher.fetch_count() == min(256, 10 + ahead)


def test_the_mean_rises_at_once_and_falls_by_halves() -> None:
    prefetcher = Prefetcher(1)
    prefetcher.record_durations(1, 0.0001)
    assert prefetcher.ahead() == 200
    prefetcher.record_durations(1, 1.0)
    assert prefetcher.ahead() == 0
    for _ in range(20):
        prefetcher.record_durations(1, 0.0001)
    assert 150 < prefetcher.ahead() <= 200


def test_items_ahead_are_leased_once_half_of_them_is_used_up() -> None:
    prefetcher = Prefetcher(10)
    prefetcher.record_durations(100, 100 * 0.001)
    prefetcher.outstanding = 210
    assert prefetcher.fetch_count() == 0
    prefetcher.outstanding = 111
    assert prefetcher.fetch_count() == 0
    prefetcher.outstanding = 110
    assert prefetcher.fetch_count() == 100


def test_who_completes_first_leases_nothing_ahead() -> None:
    prefetcher = Prefetcher(10, ahead=False)
    prefetcher.record_durations(10, 0.0)
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
    assert prefetcher.pause(100.0, 1) == 0, "no other handler can end"
