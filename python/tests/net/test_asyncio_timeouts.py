"""How long asyncio waits for replies: one timer for all who wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from leaseq._aio.watch import Watch

HOUR = 3600.0
PATIENCE = 60.0


class Waiting:
    """Somebody who waits, until it is told that it is late."""

    def __init__(self) -> None:
        self.told = asyncio.Event()

    def be_late(self) -> None:
        assert not self.told.is_set()
        self.told.set()


async def test_who_waits_too_long_is_told_and_nobody_else() -> None:
    watch, patient, hasty, gone = Watch(), Waiting(), Waiting(), Waiting()
    watch.begin(patient, HOUR)
    watch.begin(gone, 0)
    watch.end(gone)
    watch.begin(hasty, 0)
    await asyncio.wait_for(hasty.told.wait(), PATIENCE)
    assert not patient.told.is_set()
    assert not gone.told.is_set()
    watch.end(hasty)
    watch.end(patient)


async def test_the_timer_goes_on_for_who_is_left() -> None:
    watch, first, second = Watch(), Waiting(), Waiting()
    watch.begin(first, 0)
    watch.begin(second, 0.05)
    await asyncio.wait_for(first.told.wait(), PATIENCE)
    await asyncio.wait_for(second.told.wait(), PATIENCE)


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the timers ring that loops set."""
    found: list[float] = []
    call_at = asyncio.BaseEventLoop.call_at

    def counted(self: asyncio.BaseEventLoop, when: float, *arguments: Any) -> asyncio.TimerHandle:
        found.append(when)
        return call_at(self, when, *arguments)

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_at", counted)
    return found


async def test_many_waits_set_one_timer(timers: list[float]) -> None:
    watch, waiting = Watch(), Waiting()
    for _ in range(100):
        watch.begin(waiting, HOUR)
        watch.end(waiting)
    assert len(timers) == 1


def test_another_event_loop_has_another_timer(timers: list[float]) -> None:
    watch = Watch()

    async def wait(seconds: float) -> None:
        watch.begin(Waiting(), seconds)

    asyncio.run(wait(HOUR))
    asyncio.run(wait(2 * HOUR))
    assert len(timers) == 2


class Gone(Waiting):
    """Whose event loop is closed."""

    def be_late(self) -> None:
        raise RuntimeError("Event loop is closed")


def test_who_was_left_in_a_loop_that_is_over_keeps_nobody_from_being_told() -> None:
    watch = Watch()
    over = asyncio.new_event_loop()

    async def leave() -> None:
        watch.begin(Gone(), 0.1)

    async def wait() -> None:
        waiting = Waiting()
        watch.begin(waiting, 0.2)
        await asyncio.wait_for(waiting.told.wait(), PATIENCE)

    over.run_until_complete(leave())
    over.close()
    asyncio.run(wait())
