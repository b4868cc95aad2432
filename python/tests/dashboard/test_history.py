"""The last hour of a queue: samples, rates, an hour at most."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import leaseq
from leaseq import QueueStats
from leaseq.dashboard.history import MAX_SAMPLES, SAMPLE_SECS, QueueHistory
from leaseq.dashboard.sparkline import HEIGHT, WIDTH, points

EMPTY: Any = {field.name: 0 for field in dataclasses.fields(QueueStats)}


def stats(now: float, completed: int = 0, **others: int) -> QueueStats:
    return QueueStats(**{**EMPTY, "now": now, "completed": completed, **others})


def test_rates_are_per_minute_of_the_servers_clock() -> None:
    history = QueueHistory()
    for number in range(4):
        history.add(stats(1000 + number * SAMPLE_SECS, number * 10))
    assert history.rates("completed") == [20.0, 20.0, 20.0]
    assert history.rate(stats(1000 + 3.5 * SAMPLE_SECS, 35), "completed") == 20.0


def test_samples_are_half_a_minute_apart_and_an_hour_at_most() -> None:
    history = QueueHistory()
    for second in range(0, 7200, 2):
        history.add(stats(1000.0 + second, ready=second))
    times = history.levels("now")
    assert len(times) == MAX_SAMPLES
    assert times[-1] - times[0] == 3600
    assert sys.getsizeof(history._values) < 8000


def test_a_clock_that_was_set_back_starts_anew() -> None:
    history = QueueHistory()
    history.add(stats(1000.0, 5))
    history.add(stats(500.0, 5))
    assert history.levels("now") == [500.0]
    assert history.rate(stats(400.0, 9), "completed") == 0.0


@given(st.lists(st.floats(0, 1e12), max_size=130))
def test_a_sparkline_stays_in_its_picture(values: list[float]) -> None:
    pairs = [pair.split(",") for pair in points(values, MAX_SAMPLES).split()]
    assert len(pairs) == len(values)
    assert all(-10 <= float(x) <= WIDTH and 0 <= float(y) <= HEIGHT for x, y in pairs)


@pytest.mark.slow
def test_the_reader_asks_for_at_most_300_calls_a_second(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from leaseq.dashboard import reader
    from leaseq.dashboard.source import Source

    monkeypatch.setattr(reader, "CALLS_PER_SEC", 5)
    for number in range(60):
        with leaseq.WorkQueue(f"q{number:02}", url) as queue:
            queue.add_item(leaseq.Item(b""))
    source = Source(url)
    made = reader.Reader(source)
    read = [0]

    def counted() -> int:
        return sum(record.stats is not None for record in made.records())

    made.view([])
    read.append(counted())
    assert 0 < read[-1] <= 50
    from support.servers import wait_until

    wait_until(lambda: counted() == 60)
    made.close()
    source.close()
