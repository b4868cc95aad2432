"""The heartbeat: what may go wrong with a beat, and with the worker that sends them."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any, cast

import pytest
from support.redis_probe import beat, until
from support.servers import TIMEOUT_SECS

import leaseq.aio
from leaseq import Item
from leaseq.heartbeat_schedule import HeartbeatSchedule
from leaseq.item import LeasedItemBase

if TYPE_CHECKING:
    import redis

    from leaseq_conformance.fault_proxy import Listener


HOUR = 3600
"""A long lease: no test waits for a third of it. Heartbeats come when a test asks for them."""


FORK = """
import os, sys, time, leaseq

def extended(item):
    item.hold.held_until = time.monotonic() + 1800  # leased half an hour ago: a beat is due
    with item:
        first, until = item.deadline, time.monotonic() + 60
        while item.deadline == first and time.monotonic() < until:
            time.sleep(0.01)
        return item.deadline > first and not item.lost

queue = leaseq.WorkQueue("q", sys.argv[1])
queue.add_items([leaseq.Item(b"x"), leaseq.Item(b"x"), leaseq.Item(b"x")])
print("parent", extended(queue.lease(3600)), flush=True)
with queue.lease(3600):
    if os.fork() == 0:
        print("child", extended(queue.lease(3600)), flush=True)
        queue.close()
        os._exit(0)
    os.wait()
queue.close()
"""


def test_the_child_of_a_fork_has_a_heartbeater(url: str) -> None:
    """LQ-CLIENT-4: it extends what it leases, and closing it does not wait for the threads of its parent."""
    ran = subprocess.run(
        [sys.executable, "-c", FORK, url], capture_output=True, text=True, check=True, timeout=240
    )
    assert ran.stdout == "parent True\nchild True\n"


def test_ended_items_are_dropped() -> None:
    """An item that another queue object completed leaves nothing to wait for: no busy loop."""
    beats, item = HeartbeatSchedule(), LeasedItemBase("a", b"", 1, 1, 0.0, 3)
    beats.add(item, now=0)
    assert beats.pause(0) == 1
    item.hold.ended = True
    assert beats.pause(5) is None
    beats.add(item, now=0)
    assert beats.due(5) == []
    assert beats.pause(5) is None


@pytest.mark.parametrize(
    ("later", "joins"), [(0, True), (0.06, True), (0.0834, False), (0.09, False), (0.2, False)]
)
def test_a_beat_takes_no_lease_along_before_a_quarter_of_it(later: float, joins: bool) -> None:
    """LQ-CLIENT-13: leases that follow each other closely are extended together, but none too early."""
    beats = HeartbeatSchedule()
    first, second = (LeasedItemBase(name, b"", number, 1, 0.0, 60) for number, name in enumerate("ab"))
    beats.add(first, now=0)
    beats.add(second, now=60 * later)
    now = beats.pause(0)
    assert now == 20
    assert [item for item, _ in beats.due(now)] == ([first, second] if joins else [first])


@pytest.mark.parametrize("asked_first", [True, False])
@pytest.mark.parametrize("secs", [3, 60])
def test_a_beat_that_overlaps_an_extension_leaves_its_duration(asked_first: bool, secs: float) -> None:
    """LQ-CLIENT-13, 28: what the user asked for counts, and the item is extended again at once, by as much."""
    beats, item = HeartbeatSchedule(), LeasedItemBase("a", b"", 1, 1, 10.0, 10, 0.0)
    beats.add(item, now=0)
    hold = item.hold
    beat, asked = hold.extending(10, 4, asked=False), hold.extending(secs, 4, asked=True)
    hold.extended(*((asked, 4.0 + secs) if asked_first else (beat, 14.0)))
    hold.extended(*((beat, 14.0) if asked_first else (asked, 4.0 + secs)))
    least = min(14, 4 + secs)
    assert (hold.secs, hold.deadline, hold.held_until) == (secs, least, least)
    assert beats.due(5) == [(item, secs)]
    again = [hold.extending(secs, 5, asked=False)]
    beats.record_replies([(item, secs)], again, [5.0 + secs], 6)
    assert (hold.deadline, hold.held_until, beats.pause(5)) == (5 + secs, 5 + secs, secs / 3)


@pytest.mark.parametrize("beat_failed", [True, False])
def test_an_extension_that_failed_beside_another_is_in_doubt(beat_failed: bool) -> None:
    """LQ-CLIENT-28: the server may have taken it last; a beat that fails again waits for its time."""
    beats, item = HeartbeatSchedule(), LeasedItemBase("a", b"", 1, 1, 10.0, 10, 0.0)
    beats.add(item, now=0)
    hold = item.hold
    beat, asked = hold.extending(10, 4, asked=False), hold.extending(60, 4, asked=True)
    hold.extended(*((asked, 64.0) if beat_failed else (beat, 14.0)))
    hold.extension_ended(beat if beat_failed else asked)
    due = beats.due(5)
    assert due == [(item, 60 if beat_failed else 10)]
    hold.extension_ended(hold.extending(due[0][1], 5, asked=False))
    beats.record_failure(due, 5)
    assert beats.due(5) == []


def test_of_two_overlapping_extensions_the_one_that_was_sent_last_counts() -> None:
    """LQ-CLIENT-13: also if its reply comes first. The lease is held until the earlier of both ends."""
    hold = LeasedItemBase("a", b"", 1, 1, 10.0, 10, 0.0).hold
    first, last = hold.extending(20, 4, asked=True), hold.extending(60, 5, asked=True)
    hold.extended(last, 65.0)
    hold.extended(first, 24.0)
    assert (hold.secs, hold.deadline, hold.held_until, hold.in_doubt) == (60, 24, 24, True)


@pytest.mark.parametrize("seconds", [0, 0.1])
async def test_a_cancelled_heartbeater_is_replaced(url: str, seconds: float) -> None:
    """LQ-CLIENT-4: "cancel all tasks" hits the heart too, maybe before its first step; the next item starts another."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        await queue.add_items([Item(b"x"), Item(b"x")])
        first, second = await queue.lease_items(2, HOUR)
        async with first:
            await asyncio.sleep(seconds)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            async with second:
                before = [first.deadline, second.deadline]

                def extended() -> bool:
                    beat(queue)
                    return first.deadline > before[0] and second.deadline > before[1]

                await until(extended)


async def held(
    queue: leaseq.aio.WorkQueue, *ids: str, lease_secs: float = HOUR
) -> list[leaseq.aio.LeasedItem]:
    """New items, leased."""
    await queue.add_items([Item(b"x", id=item_id) for item_id in ids])
    return await queue.lease_items(len(ids), lease_secs)


def cancelling() -> int:
    """Return how many cancellations of this task have been asked for and not been taken back."""
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


@pytest.mark.parametrize("how", ["removed", "superseded", "completed"])
async def test_a_lost_lease_ends_the_block(url: str, how: str) -> None:
    """LQ-CLIENT-4: the task is cancelled where it waits, the block ends quietly, and the worker goes on."""
    async with leaseq.aio.WorkQueue("q", url) as queue, leaseq.aio.WorkQueue("q", url) as other:
        (item,) = await held(queue, "a")
        if how != "removed":
            await queue.extend(item, 0.001)  # from here on it is extended by no more, which is at once
            taken = await other.lease(HOUR, timeout=HOUR)
            assert taken is not None
            if how == "completed":
                assert await other.complete(taken)
        async with item:
            if how == "removed":
                assert await other.remove("a") == "leased"
            beat(queue)
            await asyncio.sleep(HOUR)
            pytest.fail("the block went on")
        assert item.lost
        assert cancelling() == 0
        assert (await queue.inspect("a")).state == ("leased" if how == "superseded" else "absent")
        await asyncio.sleep(0)


async def test_one_beat_extends_the_leases_beside_a_damaged_record(
    url: str, redis_client: redis.Redis
) -> None:
    """LQ-CLIENT-15: the server refuses the call for all of them."""
    async with leaseq.aio.WorkQueue("q", url) as queue, contextlib.AsyncExitStack() as blocks:
        items = await held(queue, "a", "b", "c", "d", "e")
        for item in items:
            await blocks.enter_async_context(item)
        record = redis_client.hget("leaseq:{q}:q:meta", "b")
        redis_client.hset("leaseq:{q}:q:meta", "b", "damaged")
        before = [item.deadline for item in items]
        beat(queue)

        def extended() -> bool:
            longer = [item.deadline > old for item, old in zip(items, before, strict=True)]
            return longer == [True, False, True, True, True]

        await until(extended)
        redis_client.hset("leaseq:{q}:q:meta", "b", cast("bytes", record))


async def test_every_block_ends_whose_lease_one_beat_finds_lost(url: str) -> None:
    """LQ-CLIENT-4: both are extended in one call."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        items = await held(queue, "a", "b")
        entered = asyncio.Event()

        async def work(item: Any) -> str:
            async with item:
                if item is items[-1]:
                    entered.set()
                await asyncio.sleep(HOUR)
            return str(item.id)

        tasks = [asyncio.create_task(work(item)) for item in items]
        await entered.wait()
        await queue.remove_items(["a", "b"])
        beat(queue)
        async with asyncio.timeout(TIMEOUT_SECS):
            assert await asyncio.gather(*tasks) == ["a", "b"]


async def test_only_the_block_that_lost_its_lease_ends(url: str) -> None:
    """LQ-CLIENT-4: of nested blocks the inner one, and the outer one goes on; the outer one, and the inner item goes back."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        outer, inner = await held(queue, "outer", "inner")
        went_on = False
        async with outer:
            async with inner:
                await queue.remove("inner")
                beat(queue)
                await asyncio.sleep(HOUR)
            assert (inner.lost, outer.lost, cancelling()) == (True, False, 0)
            await asyncio.sleep(0)
            went_on = True
        assert went_on
        assert (await queue.stats()).completed == 1
        outer, inner = await held(queue, "outer", "inner")
        async with outer, inner:
            await queue.remove("outer")
            beat(queue)
            await asyncio.sleep(HOUR)
        assert (inner.lost, outer.lost, cancelling()) == (False, True, 0)
        info = await queue.inspect("inner")
        assert (info.state, info.attempt) == ("ready", 0)
        both = await held(queue, "outer") + await queue.lease_items(1, HOUR)
        async with both[0]:
            async with both[1]:
                await queue.remove_items(["outer", "inner"])
                beat(queue)
                await asyncio.sleep(HOUR)
            pytest.fail("the outer block went on")
        assert (both[0].lost, both[1].lost, cancelling()) == (True, True, 0)


async def test_a_cancellation_of_somebody_else_passes_on(url: str) -> None:
    """LQ-CLIENT-4: before, after and together with ours; and where the item is fine, it goes back uncounted."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        for number, order in enumerate([("ours", "theirs"), ("theirs", "ours"), ("theirs",)]):
            (item,) = await held(queue, str(number), lease_secs=HOUR)

            async def work(item: leaseq.aio.LeasedItem = item) -> None:
                async with item:
                    await asyncio.sleep(HOUR)

            task = asyncio.create_task(work())
            await asyncio.sleep(0)
            for whose in order:
                item.stop() if whose == "ours" else task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert task.cancelled()
        assert (await queue.inspect("2")).state == "ready"


async def test_a_block_with_a_timeout_and_a_group_of_tasks(url: str) -> None:
    """LQ-CLIENT-4: what else cancels tasks tells its own cancellation from ours."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        a, b, c = await held(queue, "a", "b", "c", lease_secs=HOUR)
        loop = asyncio.get_running_loop()
        ended: list[str] = []

        async def child() -> None:
            try:
                await asyncio.sleep(HOUR)
            finally:
                ended.append("child")

        async with asyncio.timeout(120), a:
            loop.call_soon(a.stop)
            async with asyncio.timeout(120):
                async with asyncio.TaskGroup() as group:
                    group.create_task(child())
        assert (ended, cancelling()) == (["child"], 0)
        async with asyncio.timeout(120) as too_long:

            async def inner() -> None:
                async with b, asyncio.timeout(0.01):
                    await asyncio.sleep(HOUR)

            with pytest.raises(TimeoutError):
                await inner()
        assert not too_long.expired()
        assert (await queue.inspect("b")).state == "delayed"

        async def outer() -> None:
            async with asyncio.timeout(0.01), c:
                await asyncio.sleep(HOUR)

        with pytest.raises(TimeoutError):
            await outer()
        assert (await queue.inspect("c")).state == "ready"
        assert cancelling() == 0


@pytest.mark.parametrize("ours_first", [True, False])
async def test_a_timeout_at_the_same_moment(url: str, ours_first: bool) -> None:
    """LQ-CLIENT-4: two cancellations arrive as one; each side takes its own back."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        (item,) = await held(queue, "a", lease_secs=HOUR)
        loop = asyncio.get_running_loop()
        timeout = asyncio.timeout(None)

        def both() -> None:
            if ours_first:
                loop.call_soon(item.stop)
            timeout.reschedule(loop.time())
            if not ours_first:
                loop.call_soon(item.stop)

        async def work() -> None:
            async with timeout, item:
                loop.call_soon(both)
                await asyncio.sleep(HOUR)

        with pytest.raises(TimeoutError):
            await work()
        assert cancelling() == 0


async def test_a_block_that_does_not_stop(url: str) -> None:
    """LQ-COMPLETE-2: it catches the cancellation and finishes, or raises another error: that is what counts."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        a, b = await held(queue, "a", "b", lease_secs=HOUR)
        loop = asyncio.get_running_loop()
        async with a:
            loop.call_soon(a.stop)
            try:
                await asyncio.sleep(HOUR)
            except asyncio.CancelledError:
                done = True
        assert done
        assert cancelling() == 0
        assert (await queue.inspect("a")).state == "absent", "the work was done"

        async def work() -> None:
            async with b:
                loop.call_soon(b.stop)
                try:
                    await asyncio.sleep(HOUR)
                finally:
                    raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await work()
        assert cancelling() == 0


async def test_a_lease_that_ends_by_the_blocks_own_call(url: str, proxy: Listener) -> None:
    """LQ-CLIENT-4: a beat that overtakes the answer of complete says "lost"; the call is not interrupted for it."""
    async with leaseq.aio.WorkQueue("q", proxy.url) as queue:
        (item,) = await held(queue, "a", lease_secs=HOUR)
        assert not await queue.complete_items([])
        proxy.hold_replies_after = 0
        async with item:
            call = asyncio.create_task(queue.complete(item))
            await asyncio.sleep(0)
            item.stop()
            proxy.hold_replies_after = None
            answers = [await call]
            item.stop()
            await asyncio.sleep(0)
            answers.append(True)
        assert answers == [True, True]
        assert cancelling() == 0


async def test_an_item_that_is_entered_in_one_task_and_left_in_another(url: str) -> None:
    """LQ-CLIENT-4: the task that entered is over; no other task is cancelled in its place."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        (item,) = await held(queue, "a", lease_secs=HOUR)
        await asyncio.create_task(item.__aenter__())
        item.stop()
        await asyncio.sleep(0)
        assert await item.__aexit__(None, None, None) is False
        assert (await queue.inspect("a")).state == "absent"
