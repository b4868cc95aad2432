"""Connections that break at the worst moment: what has taken effect, what the caller is told, that nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio
import servers
from faultproxy import FaultProxy
from servers import PATIENCE
from watching import EVALS, blocked, blocked_ids, calls, count_blocked, is_sending, load, until

import leaseq
import leaseq.aio
from leaseq import Item

if TYPE_CHECKING:
    from colours import Colour

pytestmark = pytest.mark.usefixtures("cap_of_an_hour")

# name -> what it does with a queue that has a ready item "ready" and the given leased item "held", and what was
# counted on the server when it has happened once
Operation = tuple[Callable[[Any, Any], object], Callable[[Any], object], object]
OPERATIONS: dict[str, Operation] = {
    "add": (lambda q, _: q.add_item(Item(b"x", id="new")), lambda q: q.stats().added, 3),
    "lease": (lambda q, _: q.lease(30, block=False), lambda q: q.stats().leases, 2),
    "blocking lease": (lambda q, _: q.lease(30, timeout=PATIENCE), lambda q: q.stats().leases, 2),
    "complete": (lambda q, i: q.complete(i), lambda q: q.stats().completed, 1),
    "complete and lease": (
        lambda q, i: q.complete_and_lease(i, 30),
        lambda q: (q.stats().completed, q.stats().leases),
        (1, 2),
    ),
    "extend": (lambda q, i: q.extend(i, 3600), lambda q: q.inspect("held").time > q.stats().now + 3000, True),
    "release": (lambda q, i: q.release(i), lambda q: q.stats().released, 1),
    "remove": (lambda q, _: q.remove("ready"), lambda q: q.stats().removed, 1),
    "configure": (lambda q, _: q.configure(max_data=77), lambda q: q.stats().max_data, 77),
}


def prepare(queue: leaseq.WorkQueue) -> Any:
    """Items held and ready; every script known to the server."""
    queue.add_item(Item(b"x", id="held"))
    item = queue.lease(60)
    assert item is not None
    queue.add_item(Item(b"x", id="ready"))
    return item


@pytest.mark.parametrize("retries", [False, True], ids=["our client", "redis-py with its ten retries"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_lost_reply_is_no_second_run(
    colour: Colour, redis_client: redis.Redis, url: str, proxy: FaultProxy, name: str, retries: bool
) -> None:
    """LQ-CLIENT-1, LQ-ERROR-4: ReplyLostError, which is not definite; the effect has happened once, by one call."""
    watcher = colour.queue("q", url)
    held = prepare(watcher)
    load(redis_client)
    call, effect, expected = OPERATIONS[name]
    queue = colour.queue("q", colour.client(proxy.url) if retries else proxy.url)
    queue.stats()
    redis_client.config_resetstat()
    proxy.cut_after_down = 0
    with pytest.raises(leaseq.ReplyLostError) as caught:
        call(queue, held)
    assert caught.value.definite is False
    assert calls(redis_client, *EVALS) == 1
    assert effect(watcher) == expected
    assert queue.stats().items >= 1, "the next call connects again"


@pytest.mark.parametrize("name", OPERATIONS)
def test_half_a_reply_is_a_lost_reply(
    colour: Colour, redis_client: redis.Redis, url: str, proxy: FaultProxy, name: str
) -> None:
    """LQ-CLIENT-1, LQ-ERROR-4: the connection is reset in the middle of the reply."""
    watcher = colour.queue("q", url)
    held = prepare(watcher)
    load(redis_client)
    call, effect, expected = OPERATIONS[name]
    queue = colour.queue("q", proxy.url)
    queue.stats()
    proxy.cut_after_down = 2
    with pytest.raises(leaseq.ReplyLostError):
        call(queue, held)
    assert effect(watcher) == expected


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_connection_is_definite(colour: Colour, url: str, proxy: FaultProxy, name: str) -> None:
    """LQ-ERROR-4: refused before anything is sent; nothing has happened, and the next call works."""
    watcher = colour.queue("q", url)
    held = prepare(watcher)
    before = watcher.stats()
    call, effect, expected = OPERATIONS[name]
    queue = colour.queue("q", proxy.url)
    queue.stats()
    proxy.refuse = True
    proxy.reset_connections()
    servers.wait_until(lambda: refuses(queue))
    with pytest.raises(leaseq.UnavailableError) as caught:
        call(queue, held)
    assert caught.value.definite is True
    after = watcher.stats()
    assert (after.added, after.leases, after.items) == (before.added, before.leases, before.items)
    proxy.refuse = False
    call(queue, held)
    assert effect(watcher) == expected


def refuses(queue: leaseq.WorkQueue) -> bool:
    """Whether the queue's server is out of reach by now."""
    try:
        queue.stats()
    except leaseq.LeaseqError:
        return True
    return False


@pytest.mark.parametrize("ours", [False, pytest.param(True, marks=pytest.mark.on("last"))])
def test_a_server_that_answers_nothing(
    colour: Colour, redis_client: redis.Redis, url: str, proxy: FaultProxy, *, ours: bool
) -> None:
    """LQ-ERROR-4: a call ends with the read timeout; whether it has run nobody knows, and no reply is taken for another's.

    The replies of connections that are opened here are read in another way.
    """
    opened = f"{proxy.url}?socket_timeout=1" if ours else colour.client(proxy.url, socket_timeout=0.3)
    queue = colour.queue("q", opened)
    watcher = colour.queue("q", url)
    load(redis_client)
    queue.stats()
    proxy.blackhole_down = True
    with pytest.raises(leaseq.ReplyLostError):
        queue.add_item(Item(b"x", id="a"))
    assert watcher.stats().added == 1
    proxy.blackhole_down = False
    assert queue.inspect("a").state == "ready"
    proxy.blackhole_up = True
    with pytest.raises(leaseq.ReplyLostError):
        queue.add_item(Item(b"x", id="b"))
    proxy.blackhole_up = False
    assert watcher.stats().added == 1
    assert queue.add_item(Item(b"x", id="b"))


def test_scripts_that_are_forgotten_before_every_call(
    colour: Colour, redis_client: redis.Redis, url: str
) -> None:
    """LQ-SCRIPT-2: NOSCRIPT at any time, in a blocked lease too."""
    queue = colour.queue("q", url)
    for call, effect, expected in OPERATIONS.values():
        redis_client.flushall()
        held = prepare(queue)
        redis_client.script_flush()
        call(queue, held)
        redis_client.script_flush()
        assert effect(queue) == expected
    redis_client.flushall()
    for _ in range(3):
        waiting = colour.start(queue.lease, 30, timeout=PATIENCE)
        blocked(redis_client, 1)
        redis_client.script_flush()
        queue.add_item(Item(b"x"))
        redis_client.script_flush()
        assert waiting.result(PATIENCE).attempt == 1


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_server_that_restarts(
    colour: Colour, own_server: Callable[..., servers.Server], protocol: int
) -> None:
    """LQ-FAIL-5, LQ-ERROR-4: between two calls nobody notices; a blocked worker gets a definite error or an item."""
    server = own_server("--appendonly", "yes")
    queue = colour.queue("q", f"{server.url}?protocol={protocol}")
    queue.add_item(Item(b"x", id="a"))
    server.restart()
    item = queue.lease(30)
    assert item is not None
    server.restart()
    assert queue.complete(item) is True
    waiting = colour.start(queue.lease, 30, timeout=PATIENCE)
    with server.client() as client:
        blocked(client, 1)
    server.restart()
    with contextlib.suppress(leaseq.UnavailableError):  # it may have looked while nobody listened
        waiting.cancel()
        queue.add_item(Item(b"x", id="b"))
        assert waiting.result(PATIENCE).id == "b"
    if queue.inspect("b").state == "ready":
        again = queue.lease(30, timeout=PATIENCE)
        assert again is not None
        assert again.id == "b"
    assert queue.stats().items == 1


def test_a_server_that_is_killed(colour: Colour, own_server: Callable[..., servers.Server]) -> None:
    """LQ-FAIL-5, LQ-ERROR-4: kill -9 under a blocked worker; what was answered is still there afterwards."""
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    queue = colour.queue("q", server.url)
    queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")], delay=60)
    waiting = colour.start(queue.lease, 30, timeout=PATIENCE)
    with server.client() as client:
        blocked(client, 1)
    server.kill9()
    with pytest.raises(leaseq.UnavailableError) as caught:
        waiting.result(PATIENCE)
    assert caught.value.definite
    with pytest.raises(leaseq.UnavailableError):
        queue.add_item(Item(b"x"))
    server.start()
    assert queue.add_item(Item(b"x", id="c"))
    item = queue.lease(30, timeout=PATIENCE)
    assert item is not None
    assert item.id == "c"
    assert queue.stats().delayed == 2


@pytest.mark.cap(0.5)  # one block after the other, so that one ends soon
def test_a_half_open_connection_is_replaced(
    colour: Colour, redis_client: redis.Redis, url: str, proxy: FaultProxy
) -> None:
    """LQ-BLOCK-9, LQ-ERROR-4: the network swallows everything during a block; the worker is told and goes on."""
    queue, other = colour.queue("q", proxy.url), colour.queue("q", url)
    waiting = colour.start(queue.lease, 30, timeout=PATIENCE)
    blocked(redis_client, 1)
    proxy.blackhole_up = proxy.blackhole_down = True
    with pytest.raises(leaseq.ReplyLostError):
        waiting.result(20)
    proxy.blackhole_up = proxy.blackhole_down = False
    other.add_item(Item(b"x", id="later"))
    item = queue.lease(30, timeout=PATIENCE)
    assert item is not None
    assert item.id == "later"


@pytest.mark.parametrize("how", ["kill", "unblock", "unblock error"])
def test_a_blocked_worker_whose_connection_is_ended(
    colour: Colour, redis_client: redis.Redis, url: str, how: str
) -> None:
    """LQ-BLOCK-5: CLIENT KILL and CLIENT UNBLOCK: it leases again and waits on."""
    queue = colour.queue("q", url)
    waiting = colour.start(queue.lease, 30, timeout=PATIENCE)
    for _ in range(3):
        blocked(redis_client, 1)
        (ended,) = blocked_ids(redis_client)
        if how == "kill":
            redis_client.client_kill_filter(_id=str(ended))
        else:
            redis_client.client_unblock(ended, error=how == "unblock error")
        if how == "kill":
            servers.wait_until(lambda gone=ended: gone not in blocked_ids(redis_client))  # type: ignore[misc]
    blocked(redis_client, 1)
    queue.add_item(Item(b"x", id="a"))
    assert waiting.result(PATIENCE).id == "a"


def demote_for_a_moment(client: redis.Redis) -> None:
    """Replica and primary again, in one go: nobody can ask in between."""
    pipe: Any
    with client.pipeline(transaction=False) as pipe:
        pipe.execute_command("REPLICAOF", "127.0.0.1", "1")
        pipe.execute_command("REPLICAOF", "NO", "ONE")
        pipe.execute()


def test_a_blocked_worker_whose_server_becomes_a_replica(
    colour: Colour, own_server: Callable[..., servers.Server]
) -> None:
    """LQ-BLOCK-5: the server ends the block and closes the connection: the worker waits on over another."""
    server = own_server()
    queue = colour.queue("q", server.url)
    waiting = colour.start(queue.lease, 30, timeout=PATIENCE)
    with server.client() as client:
        blocked(client, 1)
        demote_for_a_moment(client)
        blocked(client, 1)
    queue.add_item(Item(b"x", id="a"))
    assert waiting.result(PATIENCE).id == "a"


@pytest.mark.cap(1.0)  # the end of a block: then the lease is sent
def test_a_demotion_in_front_of_a_lease(colour: Colour, own_server: Callable[..., servers.Server]) -> None:
    """LQ-BLOCK-5: the lease was sent while the news was on its way: the server has not run it, so lease again."""
    server = own_server()
    with FaultProxy("127.0.0.1", server.port) as proxy:
        queue, other = colour.queue("q", proxy.url), colour.queue("q", server.url)
        waiting = colour.start(queue.lease, 30, timeout=PATIENCE)
        with server.client() as client:
            blocked(client, 1)
            # the end of the block is heard only when the lease has been sent
            proxy.hold_down, proxy.hold_up, sent = 0, True, proxy.sent_up
            demote_for_a_moment(client)
            other.add_item(Item(b"x", id="a"))
            servers.wait_until(lambda: proxy.sent_up > sent)
            proxy.hold_down = None
            proxy.hold_up = False
        assert waiting.result(PATIENCE).id == "a"
        assert other.inspect("a").attempt == 1


def test_without_a_read_timeout_no_call_hangs_for_ever(
    colour: Colour, redis_client: redis.Redis, url: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LQ-ERROR-4: a client of the caller's may have none; then ours holds."""
    monkeypatch.setattr("leaseq.flows.LONGEST_REPLY", 0.3)
    queue, watcher = colour.queue("q", colour.client(proxy.url, socket_timeout=None)), colour.queue("q", url)
    load(redis_client)
    queue.stats()
    proxy.blackhole_down = True
    with pytest.raises(leaseq.ReplyLostError):
        colour.start(queue.add_item, Item(b"x", id="a")).result(PATIENCE)
    proxy.blackhole_down = False
    assert watcher.inspect("a").state == "ready"


ENDINGS: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "release": (lambda q, i: q.release(i, delay=60), "delayed"),
    "fused": (lambda q, i: q.complete_and_lease(i, 30, only_current=True), "absent"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_block_that_ended_its_item_and_lost_the_reply(
    colour: Colour, redis_client: redis.Redis, url: str, proxy: FaultProxy, ending: str
) -> None:
    """LQ-ERROR-4: nobody knows whether it has run, so the end of the block adds nothing."""
    call, state = ENDINGS[ending]
    queue, watcher = colour.queue("q", proxy.url), colour.queue("q", url)
    load(redis_client)
    queue.add_item(Item(b"x", id="a"))
    item = queue.lease(30)
    assert item is not None
    with item:
        proxy.cut_after_down = 0
        with pytest.raises(leaseq.ReplyLostError):
            call(queue, item)
        redis_client.config_resetstat()
    assert calls(redis_client, *EVALS) == 0
    assert watcher.inspect("a").state == state


@pytest.mark.cap(0.3)
def test_an_idle_worker_sends_little(colour: Colour, redis_client: redis.Redis, url: str) -> None:
    """LQ-BLOCK-1, LQ-BLOCK-2: two requests for each cap, a BLPOP and a lease."""
    queue = colour.queue("q", url)
    load(redis_client)
    queue.add_item(Item(b"x"), delay=3600)
    redis_client.config_resetstat()
    waiting = [colour.start(queue.lease, 30, timeout=1) for _ in range(3)]
    assert [call.result(PATIENCE) for call in waiting] == [None] * 3
    assert 3 <= calls(redis_client, "cmdstat_blpop") <= 3 * 4 + 1, "one is woken by the add"
    # each: a lease before the first of four blocks and after each (at 0.3, 0.6, 0.9, 1 s), and a settle as it leaves
    assert 3 * 3 <= calls(redis_client, *EVALS) <= 3 * 6 + 1


# Interruptions.

CANCEL_AFTER = [
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    8,
    10,
    13,
    17,
    22,
]  # steps of the event loop, through connecting and asking


def pool_counts(client: redis.asyncio.Redis) -> int:
    """Connections that are lent."""
    pool: Any = client.connection_pool
    return len(pool._in_use_connections)


@pytest.mark.parametrize("socket_timeout", [None, 5])
@pytest.mark.parametrize("steps", CANCEL_AFTER)
async def test_a_cancelled_lease_loses_nothing(
    url: str, redis_client: redis.Redis, steps: int, socket_timeout: float | None
) -> None:
    """LQ-BLOCK-6: cancelled anywhere between connecting and the reply, with an item there: another gets it, attempt 1."""
    client = redis.asyncio.Redis.from_url(url, socket_timeout=socket_timeout)
    async with client, leaseq.aio.WorkQueue("q", client) as queue, leaseq.aio.WorkQueue("q", url) as other:
        await other.add_item(Item(b"x", id="a"))
        task = asyncio.create_task(queue.lease(60))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            taken = await task
            assert await other.release(taken, uncounted=True) == "ready"  # type: ignore[arg-type]
        item = await other.lease(60, timeout=PATIENCE)
        assert item is not None
        assert item.attempt == 1
        await until(lambda: pool_counts(client) == 0)
        assert (await queue.stats()).items == 1


@pytest.mark.parametrize("latency", [0.0, 0.02])
async def test_cancelling_at_any_moment_around_a_wake_up(
    url: str, redis_client: redis.Redis, proxy: FaultProxy, latency: float
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
        await until(lambda: pool_counts(client) == 0)
        # no more than were ever used at once: the waiter's, and those that passed something on
        assert len(client.connection_pool._available_connections) <= 16


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
            await until(lambda: pool_counts(client) == 0)
        assert await queue.add_item(Item(b"x"))
        assert len(redis_client.client_list()) <= 11
    await until(lambda: len(redis_client.client_list()) == 1)


async def test_closing_after_cancelling_loses_nothing(
    url: str, redis_client: redis.Redis, proxy: FaultProxy
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
            item = await other.lease(60, timeout=PATIENCE)
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
        item = await queue.lease(60, timeout=PATIENCE)
        assert item is not None


PROGRAM = """
import sys, leaseq
leaseq.flows.WAIT_CAP = 3600  # what ends the wait is the signal
with leaseq.WorkQueue("q", sys.argv[1]) as queue:
    print("go", flush=True)
    try:
        for item in queue.items(60):
            with item:
                if sys.argv[2] == "working":
                    print("working", flush=True)
                    import threading; threading.Event().wait()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


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
        out, err = process.communicate(timeout=PATIENCE)
        assert (out, err, process.returncode) == ("interrupted\n", "", 0)
        if state == "blocked":
            queue.add_item(Item(b"x", id="a"))
        item = queue.lease(30, timeout=PATIENCE)
        assert item is not None
        assert item.attempt == 1


WAKE_UP = b"*2\r\n$17\r\nleaseq:{q}:q:wake\r\n$1\r\n1\r\n"
"""The reply to a BLPOP that was woken."""


@pytest.mark.parametrize("moment", ["blocked", "wake-up on its way", "item on its way"])
def test_an_interrupted_thread_leaves_nothing(
    url: str, redis_client: redis.Redis, proxy: FaultProxy, moment: str
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
            proxy.hold_down = 0 if moment == "wake-up on its way" else len(WAKE_UP)
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
        proxy.hold_down = None
        thread.join()
        if moment == "blocked":
            other.add_item(Item(b"x", id="a"))
        got = other.lease(60, timeout=PATIENCE)
        assert got is not None
        assert got.attempt == 1
        assert other.complete(got)
        pool: Any = client.connection_pool
        servers.wait_until(lambda: not pool._in_use_connections)


async def test_a_cancelled_complete_and_lease_loses_nothing(
    url: str, redis_client: redis.Redis, proxy: FaultProxy
) -> None:
    """LQ-FUSED-1, LQ-BLOCK-6: cancelled with the answer on its way: the next item is ready again, uncounted."""
    async with leaseq.aio.WorkQueue("q", proxy.url) as queue, leaseq.aio.WorkQueue("q", url) as other:
        await queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")])
        item = await queue.lease(60)
        assert item is not None
        load(redis_client)
        proxy.hold_down = 0
        task = asyncio.create_task(queue.complete_and_lease(item, 60))
        while (await other.stats()).completed == 0:  # noqa: ASYNC110 (the condition is the server's)
            await asyncio.sleep(0.01)
        task.cancel()
        proxy.hold_down = None  # the cancellation came first; who is cancelled waits for the answer
        with pytest.raises(asyncio.CancelledError):
            await task
        got = await other.lease(60, timeout=PATIENCE)
        assert got is not None
        assert (got.id, got.attempt) == ("b", 1)


def test_an_interrupted_complete_and_lease_loses_nothing(
    url: str, redis_client: redis.Redis, proxy: FaultProxy
) -> None:
    """LQ-FUSED-1, LQ-BLOCK-6: KeyboardInterrupt with the answer on its way: the same for threads."""
    with leaseq.WorkQueue("q", proxy.url) as queue, leaseq.WorkQueue("q", url) as other:
        queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")])
        item = queue.lease(60)
        assert item is not None
        load(redis_client)
        proxy.hold_down = 0
        heard = threading.Event()

        def on_signal(*_: object) -> None:
            heard.set()
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, on_signal)

        def interrupt() -> None:
            servers.wait_until(lambda: other.stats().completed == 1)
            servers.wait_until(lambda: not is_sending(threading.main_thread()))
            os.kill(os.getpid(), signal.SIGINT)
            # who is interrupted waits for the answer
            heard.wait(PATIENCE)
            proxy.hold_down = None

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            queue.complete_and_lease(item, 60)
        thread.join()
        signal.signal(signal.SIGINT, before)
        got = other.lease(60, timeout=PATIENCE)
        assert got is not None
        assert (got.id, got.attempt) == ("b", 1)


def test_wake_ups_survive_waiters_that_leave(colour: Colour, redis_client: redis.Redis, url: str) -> None:
    """LQ-BLOCK-6, LQ-SETTLE-3: many waiters time out around the moment of an add; the one that stays gets the item."""
    queue = colour.queue("q", url)
    for number in range(8):
        stays = colour.start(queue.lease, 30, timeout=PATIENCE)
        leaving = [colour.start(queue.lease, 30, timeout=0.1 + 0.002 * n) for n in range(10)]
        time.sleep(0.1)
        queue.add_item(Item(b"x", id=str(number)))
        got = [call.result(PATIENCE) for call in leaving]
        for item in got:
            if item is not None:
                queue.release(item)
        item = stays.result(PATIENCE)
        assert queue.complete(item)


@pytest.mark.cap(1.0)
@pytest.mark.parametrize("waits", [2])
def test_a_lost_wake_up_is_repaired_within_the_cap(
    colour: Colour, redis_client: redis.Redis, url: str, waits: int
) -> None:
    """LQ-BLOCK-2, LQ-FAIL-3: somebody swallows the wake-up and dies; the item is leased within the cap all the same."""
    queue = colour.queue("q", url)
    waiting = [colour.start(queue.lease, 30, timeout=PATIENCE) for _ in range(waits)]
    blocked(redis_client, waits)
    with redis_client.pipeline(transaction=True) as pipe:
        queue_adder = leaseq.WorkQueue("q", url)
        with queue_adder:
            if colour.name == "threads":
                queue_adder.add_item(Item(b"x"), pipe=pipe)
                pipe.delete("leaseq:{q}:q:wake")
            else:
                queue_adder.add_item(Item(b"x"), pipe=pipe)
                pipe.lpop("leaseq:{q}:q:wake")
            assert pipe.execute()[-1], "the wake-up was really lost"
    servers.wait_until(lambda: any(call.done() for call in waiting))
    queue.add_item(Item(b"x"))
    for call in waiting:
        assert call.result(PATIENCE) is not None
