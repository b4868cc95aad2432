"""Cancelled tasks and interrupted threads: no item, attempt, wake-up or connection is lost, whenever it happens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
import redis
import redis.asyncio
from support import servers
from support.client_flavours import connections_in_use
from support.redis_probe import WAKE_UP, blocked, count_blocked, is_sending, load, until
from support.servers import TIMEOUT_SECS

import leaseq
import leaseq.aio
from leaseq import Item

if TYPE_CHECKING:
    from leaseq_conformance.fault_proxy import Listener

pytestmark = pytest.mark.usefixtures("cap_of_an_hour")

STEPS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22)
"""Turns of the event loop, through connecting and asking."""


@pytest.mark.promise("G22")
@pytest.mark.parametrize("socket_timeout", [None, 5])
async def test_a_cancelled_lease_loses_nothing(
    url: str, redis_client: redis.Redis, socket_timeout: float | None
) -> None:
    """LQ-BLOCK-6: cancelled anywhere between connecting and the reply, with an item there: another gets it, attempt 1."""
    del redis_client  # the server is empty
    async with leaseq.aio.WorkQueue("q", url) as other:
        for steps in STEPS:
            client = redis.asyncio.Redis.from_url(url, socket_timeout=socket_timeout)
            async with client, leaseq.aio.WorkQueue("q", client) as queue:
                await other.add_item(Item(b"x", id="a"))
                task = asyncio.create_task(queue.lease(60))
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    taken = await task
                    assert await other.release(taken, uncounted=True) == "ready"  # type: ignore[arg-type]
                item = await other.lease(60, timeout=TIMEOUT_SECS)
                assert item is not None
                assert item.attempt == 1, steps
                await until(lambda client=client: connections_in_use(client) == 0)  # type: ignore[misc]
                assert await other.complete(item)


@pytest.mark.promise("G1", "G22")
@pytest.mark.parametrize("latency", [0.0, 0.02])
async def test_cancelling_at_any_moment_around_a_wake_up(
    url: str, redis_client: redis.Redis, proxy: Listener, latency: float
) -> None:
    """LQ-BLOCK-6, LQ-FAIL-3: cancelled while blocked, woken, or with the reply on its way (the network delays it).

    A second waiter gets the item long before the cap, attempt 1, and no connection stays lent.
    """
    client = redis.asyncio.Redis.from_url(proxy.url)
    async with client, leaseq.aio.WorkQueue("q", client) as queue, leaseq.aio.WorkQueue("q", url) as other:
        for round_number in range(14):
            task = asyncio.create_task(queue.lease(60))
            await until(lambda: count_blocked(redis_client) >= 1)
            second = asyncio.create_task(other.lease(60))
            await until(lambda: count_blocked(redis_client) >= 2)
            proxy.latency = latency
            await other.add_item(Item(b"x", id=str(round_number)))
            if latency:
                await asyncio.sleep(latency * round_number / 3)
            else:
                for _ in range(round_number):
                    await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                item = await task
                await other.release(item, uncounted=True)  # type: ignore[arg-type]
            item = await second
            assert item is not None
            assert item.attempt == 1
            assert await other.complete(item)
            proxy.latency = 0.0
        await until(lambda: connections_in_use(client) == 0)
        # no more than were ever used at once: the waiter's, and those that passed something on
        assert len(redis_client.client_list()) <= 20


@pytest.mark.promise("G22")
async def test_cancelling_many_waiters_leaves_no_connection(url: str, redis_client: redis.Redis) -> None:
    """LQ-BLOCK-6: the pool and the server's list are as before, and the queue works on."""
    pool = redis.asyncio.BlockingConnectionPool.from_url(url, max_connections=10, timeout=5)
    client = redis.asyncio.Redis.from_pool(pool)
    async with client, leaseq.aio.WorkQueue("q", client) as queue:
        for _ in range(3):
            tasks = [asyncio.create_task(queue.lease(60)) for _ in range(10)]
            await until(lambda: count_blocked(redis_client) >= 10)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await until(lambda: connections_in_use(client) == 0)
        assert await queue.add_item(Item(b"x"))
        assert len(redis_client.client_list()) <= 11
    await until(lambda: len(redis_client.client_list()) == 1)


async def test_closing_after_cancelling_loses_nothing(
    url: str, redis_client: redis.Redis, proxy: Listener
) -> None:
    """LQ-BLOCK-6: the usual shutdown, workers cancelled and the queue closed at once, while an item is on its way."""
    async with leaseq.aio.WorkQueue("q", url) as other:
        for round_number in range(4):
            queue = leaseq.aio.WorkQueue("q", proxy.url)
            task = asyncio.create_task(queue.lease(60))
            await until(lambda: count_blocked(redis_client) >= 1)
            proxy.latency = 0.05
            await other.add_item(Item(b"x", id=str(round_number)))
            await asyncio.sleep(0.04 * round_number)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                item = await task
                await other.release(item, uncounted=True)  # type: ignore[arg-type]
            proxy.latency = 0.0
            await queue.close()
            item = await other.lease(60, timeout=TIMEOUT_SECS)
            assert item is not None
            assert item.attempt == 1
            assert await other.complete(item)


async def test_a_timeout_around_a_lease(url: str) -> None:
    """LQ-BLOCK-6: asyncio.timeout is how people bound a wait."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await queue.lease(60)
        await queue.add_item(Item(b"x"))
        item = await queue.lease(60, timeout=TIMEOUT_SECS)
        assert item is not None


PROGRAM = """
import sys, time, leaseq
leaseq.flows.WAIT_CAP = 3600  # what ends the wait is the signal
with leaseq.WorkQueue("q", sys.argv[1]) as queue:
    print("go", flush=True)
    try:
        for item in queue.items(60):
            with item:
                if sys.argv[2] == "working":
                    print("working", flush=True)
                    while True:  # a wait without an end could start just behind the signal
                        time.sleep(0.01)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.promise("G22")
@pytest.mark.parametrize("state", ["blocked", "working"])
def test_ctrl_c(url: str, redis_client: redis.Redis, state: str) -> None:
    """LQ-BLOCK-6, LQ-RELEASE-4: SIGINT while blocked or at work: the program ends soon, the item is there, uncounted."""
    queue = leaseq.WorkQueue("q", url)
    with (
        queue,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, url, state],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        blocked(redis_client, 1)
        if state == "working":
            queue.add_item(Item(b"x", id="a"))
            assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_SECS)
        assert (out, err, process.returncode) == ("interrupted\n", "", 0)
        if state == "blocked":
            queue.add_item(Item(b"x", id="a"))
        item = queue.lease(30, timeout=TIMEOUT_SECS)
        assert item is not None
        assert item.attempt == 1


@pytest.mark.promise("G22")
@pytest.mark.parametrize("moment", ["blocked", "wake-up on its way", "item on its way"])
def test_an_interrupted_thread_leaves_nothing(
    url: str, redis_client: redis.Redis, proxy: Listener, moment: str
) -> None:
    """LQ-BLOCK-6: KeyboardInterrupt in the main thread; the next worker gets the item at once, uncounted.

    The proxy holds replies back, so that what is on its way is still there when the signal comes.
    """
    client = redis.Redis.from_url(proxy.url)
    queue, other = leaseq.WorkQueue("q", client), leaseq.WorkQueue("q", url)
    load(redis_client)

    def interrupt() -> None:
        blocked(redis_client, 1)
        if moment != "blocked":
            proxy.hold_replies_after = 0 if moment == "wake-up on its way" else len(WAKE_UP)
            other.add_item(Item(b"x", id="a"))
        if moment == "item on its way":
            servers.wait_until(lambda: other.stats().leased == 1)
        servers.wait_until(lambda: not is_sending(threading.main_thread()))
        os.kill(os.getpid(), signal.SIGINT)

    with client, queue, other:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            queue.lease(60)
        proxy.hold_replies_after = None
        thread.join()
        if moment == "blocked":
            other.add_item(Item(b"x", id="a"))
        got = other.lease(60, timeout=TIMEOUT_SECS)
        assert got is not None
        assert got.attempt == 1
        assert other.complete(got)
        servers.wait_until(lambda: not connections_in_use(client))


async def test_a_cancelled_complete_and_lease_loses_nothing(
    url: str, redis_client: redis.Redis, proxy: Listener
) -> None:
    """LQ-FUSED-1, LQ-BLOCK-6: cancelled with the answer on its way: the next item is ready again, uncounted."""
    async with leaseq.aio.WorkQueue("q", proxy.url) as queue, leaseq.aio.WorkQueue("q", url) as other:
        await queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")])
        item = await queue.lease(60)
        assert item is not None
        load(redis_client)
        proxy.hold_replies_after = 0
        task = asyncio.create_task(queue.complete_and_lease(item, 60))
        while (await other.stats()).completed == 0:  # noqa: ASYNC110 (the condition is the server's)
            await asyncio.sleep(0.01)
        task.cancel()
        proxy.hold_replies_after = None  # the cancellation came first; who is cancelled waits for the answer
        with pytest.raises(asyncio.CancelledError):
            await task
        got = await other.lease(60, timeout=TIMEOUT_SECS)
        assert got is not None
        assert (got.id, got.attempt) == ("b", 1)


def test_an_interrupted_complete_and_lease_loses_nothing(
    url: str, redis_client: redis.Redis, proxy: Listener
) -> None:
    """LQ-FUSED-1, LQ-BLOCK-6: KeyboardInterrupt with the answer on its way: the same for threads."""
    with leaseq.WorkQueue("q", proxy.url) as queue, leaseq.WorkQueue("q", url) as other:
        queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")])
        item = queue.lease(60)
        assert item is not None
        load(redis_client)
        proxy.hold_replies_after = 0
        received = threading.Event()

        def on_signal(*_: object) -> None:
            received.set()
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, on_signal)

        def interrupt() -> None:
            servers.wait_until(lambda: other.stats().completed == 1)
            servers.wait_until(lambda: not is_sending(threading.main_thread()))
            os.kill(os.getpid(), signal.SIGINT)
            # who is interrupted waits for the answer
            received.wait(TIMEOUT_SECS)
            proxy.hold_replies_after = None

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            queue.complete_and_lease(item, 60)
        thread.join()
        signal.signal(signal.SIGINT, before)
        got = other.lease(60, timeout=TIMEOUT_SECS)
        assert got is not None
        assert (got.id, got.attempt) == ("b", 1)
