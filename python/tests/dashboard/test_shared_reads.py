"""Viewers share reads: one of each kind at a time, for a while; old answers are dropped."""

from __future__ import annotations

import threading
import time

import pytest

from leaseq.dashboard.shared_reads import MAX_READS, SharedReads


def test_many_viewers_wait_for_one_read() -> None:
    reads, calls, answers = SharedReads(), [0], []

    def read() -> int:
        calls[0] += 1
        time.sleep(0.2)
        return calls[0]

    viewers = [threading.Thread(target=lambda: answers.append(reads.get("a", 60, read))) for _ in range(50)]
    for each in viewers:
        each.start()
    for each in viewers:
        each.join()
    assert answers == [1] * 50


def test_an_answer_is_read_again_when_it_is_too_old_or_forgotten() -> None:
    reads = SharedReads()
    assert reads.get("a", 60, lambda: 1) == 1
    assert reads.get("a", 60, lambda: 2) == 1
    reads.forget()
    assert reads.get("a", 0, lambda: 3) == 3
    assert reads.get("a", 0, lambda: 4) == 4


def test_an_error_is_no_answer() -> None:
    reads = SharedReads()

    def fail() -> int:
        raise LookupError("away")

    with pytest.raises(LookupError, match="away"):
        reads.get("a", 60, fail)
    assert reads.get("a", 60, lambda: 1) == 1


def test_answers_that_are_too_old_or_too_many_are_dropped() -> None:
    reads = SharedReads()
    for number in range(10):
        reads.get(("old", number), 0, lambda: 0)
    for number in range(2 * MAX_READS):
        reads.get(number, 60, lambda: 0)
    assert len(reads._reads) == MAX_READS
    assert 2 * MAX_READS - 1 in reads._reads
