"""The heartbeat: what may go wrong with a beat, and with the worker that sends them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import servers

import leaseq.aio
from leaseq import Item
from leaseq.flows import REPLY_GRACE, Beats
from leaseq.item import LeasedItemBase

if TYPE_CHECKING:
    import redis
    from colours import Colour
    from faultproxy import FaultProxy


def extends(client: redis.Redis) -> int:
    """How many scripts the server has run since the statistics were reset."""
    stats: dict[str, Any] = client.info("commandstats")
    return sum(stats.get(name, {"calls": 0})["calls"] for name in ("cmdstat_evalsha", "cmdstat_eval"))


@pytest.mark.parametrize("socket_timeout", [None, 5])
def test_a_beat_whose_reply_is_lost_is_sent_again(
    colour: Colour, redis_client: redis.Redis, url: str, proxy: FaultProxy, socket_timeout: float | None
) -> None:
    """LQ-CLIENT-4: the network swallows one answer; the next beat comes before the lease ends."""
    client = colour.client(proxy.url, socket_timeout=socket_timeout)
    queue, other = colour.queue("q", client), colour.queue("q", url)
    queue.add_item(Item(b"x"))
    item = queue.lease(1.5)
    assert item is not None
    assert queue.extend(item, 1.5), "the script is known"
    with item:
        redis_client.config_resetstat()
        proxy.blackhole_down = True
        servers.wait_until(lambda: extends(redis_client) == 1, 5)
        proxy.blackhole_down = False
        assert other.lease(30, timeout=2) is None
        assert not item.lost
    assert other.stats().completed == 1


FORK = """
import os, sys, time, leaseq
queue = leaseq.WorkQueue("q", sys.argv[1])
queue.add_items([leaseq.Item(b"x"), leaseq.Item(b"x")])
with queue.lease(0.6):
    time.sleep(0.3)
    if os.fork() == 0:
        with queue.lease(0.6) as item:
            time.sleep(1.5)
            overdue = leaseq.WorkQueue("q", sys.argv[1]).stats().overdue
        queue.close()
        print("child", overdue, item.lost, flush=True)
        os._exit(0)
    os.wait()
queue.close()
"""


def test_the_child_of_a_fork_has_a_heart(url: str) -> None:
    """LQ-CLIENT-4: it extends what it leases, and closing it does not wait for the threads of its parent."""
    ran = subprocess.run(
        [sys.executable, "-c", FORK, url], capture_output=True, text=True, check=True, timeout=30
    )
    assert ran.stdout == "child 0 False\n"


def test_ended_items_are_dropped() -> None:
    """An item that another queue object completed leaves nothing to wait for: no busy loop."""
    beats, item = Beats(), LeasedItemBase("a", b"", 1, 1, 0.0, 30)
    beats.add(item, 3, now=0)
    assert beats.pause(0) == 1
    item._ended = True
    assert beats.pause(5) is None
    beats.add(item, 3, now=0)
    assert beats.due(5) == []
    assert beats.pause(5) is None


def test_a_beat_waits_no_longer_than_its_items_can() -> None:
    """A ninth of the shortest lease, so that a second try comes in time."""
    item = LeasedItemBase("a", b"", 1, 1, 0.0, 30)
    assert Beats().patience([(item, 9), (item, 90)]) == 1
    assert Beats().patience([(item, 3600)]) == REPLY_GRACE


@pytest.mark.parametrize("seconds", [0, 0.1])
async def test_a_cancelled_heart_is_replaced(url: str, seconds: float) -> None:
    """LQ-CLIENT-4: "cancel all tasks" hits the heart too, maybe before its first step; the next item begins another."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        await queue.add_items([Item(b"x"), Item(b"x")])
        first, second = await queue.lease_items(2, 0.6)
        async with first:
            await asyncio.sleep(seconds)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            async with second:
                await asyncio.sleep(1.4)
                assert (await queue.stats()).overdue == 0


def test_one_damaged_record_does_not_stop_the_others(
    colour: Colour, redis_client: redis.Redis, url: str
) -> None:
    """LQ-EXTEND-1: the server refuses the whole beat; the healthy items are extended all the same."""
    queue = colour.queue("q", url)
    names = ["a", "b", "c", "d", "e"]
    queue.add_items([Item(b"x", id=name) for name in names])
    items = queue.lease_items(5, 0.6)
    for item in items:
        item.__enter__()
    redis_client.hset("leaseq:{q}:q:meta", "b", "zz")
    healthy = [item for item in items if item.id != "b"]
    until = max(item.deadline for item in items) + 0.6

    def extended() -> bool:
        return min(info.time for info in queue.inspect_items([item.id for item in healthy])) > until

    servers.wait_until(extended, 10)
    for item in healthy:
        item.__exit__(None, None, None)
    assert queue.stats().completed == 4
