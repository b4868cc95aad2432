"""The scripts against the reference model where one more decides: limits, pause, and several queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.corruptions import HOUR_MS
from support.queue_driver import QueueDriver, own_queue, queue_beside

from leaseq_conformance.model.base import CAP
from leaseq_conformance.model.calls import Add, Complete, Release

if TYPE_CHECKING:
    from collections.abc import Callable


driver = pytest.fixture(own_queue)
other = pytest.fixture(queue_beside)


# Limits


def test_full_is_judged_entry_by_entry(driver: QueueDriver) -> None:
    """LQ-CONFIG-2: an id that exists answers 0 even then, and dead items take no room."""
    driver.configure(max_items=2)
    assert [answer > 0 for answer in driver.add(Add(b"a"), Add(b"b"))] == [True, True]
    assert driver.add(Add(b"c"), Add(b"a"), Add(b"c", delay=5)) == [-1, 0, -1]
    assert driver.add(Add(b"c")) == -1
    assert driver.add(Add(b"b")) == 0
    driver.lease()
    driver.release(Release(b"a", driver.current(b"a"), dead=True))
    created, *rest = driver.add(Add(b"c"), Add(b"d"), Add(b"a"), Add(b"c"))
    assert created > 0
    assert rest == [-1, 0, 0]
    driver.revive(b"a")
    assert driver.add(Add(b"e")) == -1
    driver.configure(max_items=4)
    assert driver.add(Add(b"e")) > 0
    assert driver.add(Add(b"f")) == -1


@pytest.mark.parametrize("call", ["lease", "complete_and_lease", "light_clean", "settle", "configure"])
@pytest.mark.parametrize("room", [0, 1])
@pytest.mark.parametrize("told", [0, 1])
def test_producers_are_told_of_room(driver: QueueDriver, call: str, room: int, told: int) -> None:
    """LQ-ROOM-1: where there is some, and once."""
    driver.configure(max_items=3)
    driver.pop_room()
    driver.add(*[Add(b"%d" % n) for n in range(3)])
    driver.lease(2)
    driver.pop_room()
    if room:
        driver.complete(Complete(b"0", driver.current(b"0")))
    if told:
        driver.client.rpush(driver.prefix + "room", 1)
        driver.model.room = 1
    calls: dict[str, Callable[[], object]] = {
        "lease": driver.lease,
        "complete_and_lease": lambda: driver.complete_and_lease(1, 1000, Complete(b"z", 1)),
        "light_clean": driver.light_clean,
        "settle": driver.settle,
        "configure": lambda: driver.configure(max_items=3),
    }
    calls[call]()
    assert driver.model.room == max(room, told)


def test_a_limit_that_is_lifted_tells_producers(driver: QueueDriver) -> None:
    """LQ-CONFIG-2: whatever is held."""
    driver.add(Add(b"a"), Add(b"b"))
    driver.configure(max_items=1)
    assert driver.model.room == 0
    driver.configure(max_data=5)
    assert driver.model.room == 0
    driver.configure(max_items=0)
    assert driver.model.room == 1


def test_a_paused_queue_promotes_and_gives_nothing(driver: QueueDriver) -> None:
    """LQ-PAUSE-1, LQ-PAUSE-3: its wait counts only timers; nobody is woken for what is ready; resuming wakes one."""
    driver.add(Add(b"a"), Add(b"e"), Add(b"b", delay=1), Add(b"c", delay=9000), Add(b"over", expires_in=1))
    driver.lease(2, 2)
    driver.configure(paused=1)
    driver.now += 1000
    driver.pop_wake()
    driver.waiters = 0
    assert driver.lease(5)[:3] == [1000, 0, 0]
    assert driver.lease(1)[:3] == [1000, 0, 0]
    assert driver.model.wake == 0
    driver.add(Add(b"d"))
    assert driver.model.wake == 0
    driver.release(Release(b"e", driver.current(b"e")))
    assert driver.model.wake == 0
    driver.now += 1000
    assert driver.light_clean()[1] == 1
    assert driver.model.wake == 0
    assert driver.settle() == 0
    driver.now += 9_000_000 - CAP
    assert driver.settle() == 1
    driver.pop_wake()
    driver.waiters = 0
    driver.configure(paused=0)
    assert driver.model.wake == 1
    driver.drain()


@pytest.mark.parametrize("what", ["ready", "delayed", "nothing"])
def test_resuming_wakes_where_there_is_something(driver: QueueDriver, what: str) -> None:
    """LQ-PAUSE-2, LQ-CONFIG-4: and other settings do not."""
    driver.configure(paused=1)
    if what != "nothing":
        driver.add(Add(b"a", delay=HOUR_MS if what == "delayed" else None))
    driver.pop_wake()
    driver.waiters = 0
    driver.configure(max_data=9)
    assert driver.model.wake == 0
    driver.configure(paused=0, max_items=9)
    assert driver.model.wake == (what != "nothing")


# Several queues


def test_the_order_of_queues_decides(driver: QueueDriver, other: QueueDriver) -> None:
    """LQ-ANY-1 to LQ-ANY-3: the next is asked only where the first has nothing; wait is the least of all."""
    assert driver.lease_any(other) == [0, -1, 0, 0]
    driver.add(Add(b"late", delay=2000))
    other.add(Add(b"later", delay=3000))
    assert driver.lease_any(other) == other.lease_any(driver) == [0, 2_000_000, 0, 0]
    other.add(Add(b"there"))
    for each in (driver, other):
        each.pop_wake()
        each.waiters = 0
    assert driver.lease_any(other)[:1] == [2]
    assert (driver.model.wake, other.model.wake) == (1, 1)
    driver.add(Add(b"here"))
    other.add(Add(b"again"))
    other.pop_wake()
    other.waiters = 0
    assert driver.lease_any(other, count=2)[:5:4] == [1, b"here"]
    assert other.model.wake == 1
    driver.configure(paused=1)
    assert driver.lease_any(other, count=2)[:5:4] == [2, b"again"]


def test_a_queue_that_has_more_to_look_at_is_asked_again_first(
    driver: QueueDriver, other: QueueDriver
) -> None:
    """LQ-ANY-4: expired heads use up a lease: wait is 0, and the order is kept."""
    driver.add(Add(b"over", expires_in=1, dies=True, keep=HOUR_MS), Add(b"x"))
    other.add(Add(b"y"))
    driver.now += 1000
    assert driver.lease_any(other) == [0, 0, 0, 0, -1, b"died", b"over"]
    assert driver.lease_any(other)[:5:4] == [1, b"x"]


def test_the_largest_lease_of_several(driver: QueueDriver, other: QueueDriver) -> None:
    """LQ-ANY-1: lua gives back no more than some 8000 values from one unpack."""
    headers = tuple((b"%d" % n, b"v") for n in range(16))
    for first in range(0, 256, 64):
        other.add(*[Add(b"%d" % n, keep=HOUR_MS, headers=headers) for n in range(first, first + 64)])
    assert driver.lease_any(other, count=256)[:4:3] == [2, 256]
    driver.add(*[Add(b"o%d" % n, keep=HOUR_MS, expires_in=1, dies=True) for n in range(256)])
    driver.now += 1000
    assert len(driver.lease_any(other, count=256)) == 4 + 3 * 256
