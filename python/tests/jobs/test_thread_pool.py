"""Threads for jobs that are not asynchronous, and the jobs that wait for a thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import TIMEOUT_SECS, until

from leaseq.jobs.worker import thread_pool
from leaseq.jobs.worker.thread_pool import AdaptiveThreadPool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

HOUR = 3600.0


@pytest.fixture
def all_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a call takes, those behind it are thought to be quick too."""
    monkeypatch.setattr(thread_pool, "QUICK_SECS", HOUR)


@contextlib.asynccontextmanager
async def opened() -> AsyncIterator[AdaptiveThreadPool]:
    pool = AdaptiveThreadPool()
    try:
        yield pool
    finally:
        pool.close()


def started(pool: AdaptiveThreadPool, call: Callable[[], Any]) -> asyncio.Task[Any]:
    return asyncio.create_task(pool.run(call, None))


def no_thread_is_left() -> bool:
    return not any(thread.name == "leaseq job" for thread in threading.enumerate())


@pytest.mark.usefixtures("all_quick")
def test_quick_calls_share_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "RELIEF_SECS", HOUR)

    async def idents() -> list[int]:
        async with opened() as pool:
            found: list[int] = []
            for _ in range(3):
                found += await asyncio.gather(*(started(pool, threading.get_ident) for _ in range(8)))
            return found

    assert len(set(asyncio.run(idents()))) == 1
    until(no_thread_is_left)


def test_calls_that_take_long_have_a_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "QUICK_SECS", -1.0)
    monkeypatch.setattr(thread_pool, "RELIEF_SECS", HOUR)

    async def meet() -> None:
        together = threading.Barrier(8)
        async with opened() as pool:
            for _ in range(3):
                await asyncio.gather(*(started(pool, lambda: together.wait(TIMEOUT_SECS)) for _ in range(8)))
            assert pool._asleep <= 8

    asyncio.run(meet())
    until(no_thread_is_left)


@pytest.mark.usefixtures("all_quick")
def test_what_waits_behind_a_call_that_is_not_quick_gets_threads_of_its_own() -> None:
    async def rescue() -> None:
        rescued = threading.Event()
        async with opened() as pool:
            calls = [started(pool, lambda: rescued.wait(TIMEOUT_SECS)) for _ in range(4)]
            await started(pool, rescued.set)
            assert await asyncio.gather(*calls) == [True] * 4

    asyncio.run(rescue())
    until(no_thread_is_left)


@pytest.mark.usefixtures("all_quick")
def test_an_end_is_told_though_the_next_call_of_the_thread_does_not_end() -> None:
    async def ends() -> None:
        interrupted = threading.Event()
        async with opened() as pool:
            quick, slow = started(pool, lambda: "done"), started(pool, lambda: interrupted.wait(TIMEOUT_SECS))
            assert await quick == "done"
            interrupted.set()
            assert await slow

    asyncio.run(ends())
    until(no_thread_is_left)


def test_beside_a_call_that_was_found_slow_others_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async def beside() -> None:
        begun, over = threading.Event(), threading.Event()

        def long() -> None:
            begun.set()
            over.wait(2 * TIMEOUT_SECS)

        async with opened() as pool:
            slow = started(pool, long)
            await asyncio.to_thread(begun.wait, TIMEOUT_SECS)
            pool._relieve()
            while not pool._slow:
                await asyncio.sleep(0.001)
                pool._relieve()
            monkeypatch.setattr(thread_pool, "QUICK_SECS", HOUR)
            monkeypatch.setattr(thread_pool, "RELIEF_SECS", HOUR)
            assert await asyncio.wait_for(pool.run(lambda: "at once", None), TIMEOUT_SECS) == "at once"
            over.set()
            await slow
            assert pool._slow == 0

    asyncio.run(beside())
    until(no_thread_is_left)


def test_a_call_for_which_no_thread_can_be_started_is_not_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def no_room(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def refused() -> None:
        async with opened() as pool:
            with monkeypatch.context() as patch:
                patch.setattr(threading.Thread, "start", no_room)
                with pytest.raises(RuntimeError, match="can't start new thread"):
                    await pool.run(lambda: made.append("refused"), None)
            await pool.run(lambda: made.append("made"), None)

    asyncio.run(refused())
    assert made == ["made"]
    until(no_thread_is_left)


def test_calls_of_all_kinds_end_once_each_with_what_is_theirs() -> None:
    def perform(number: int) -> int:
        if number % 7 == 0:
            time.sleep(0.002)
        if number % 5 == 0:
            raise ValueError(str(number))
        return number

    async def perform_all() -> list[Any]:
        numbers = iter(range(400))
        results: list[Any] = []

        async def slot(pool: AdaptiveThreadPool) -> None:
            for number in numbers:
                try:
                    results.append((number, await pool.run(partial(perform, number), HOUR)))
                except ValueError as error:
                    results.append((number, str(error)))

        async with opened() as pool:
            await asyncio.gather(*(slot(pool) for _ in range(8)))
            assert not pool._progress
            assert not pool._inbox
        return results

    assert sorted(asyncio.run(perform_all())) == [(n, n if n % 5 else str(n)) for n in range(400)]
    until(no_thread_is_left)
