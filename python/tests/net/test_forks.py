"""LQ-CLIENT-17: what a process has opened is not used by those that it forked, whether or not the fork runs Python's hooks."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import multiprocessing
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio
from support import servers
from support.forks import FORKS, child, ended
from support.redis_probe import blocked
from support.servers import TIMEOUT_SECS

import leaseq
import leaseq.aio
import leaseq.jobs
from leaseq import Item
from leaseq._sync import concurrency

if TYPE_CHECKING:
    from pathlib import Path

    from support.sentinel_set import SentinelSet

CALLS = 30

EMBEDDED = importlib.import_module("leaseq.embedded")
"""The package has a function of that name."""

pytestmark = pytest.mark.parametrize("kind", FORKS)


def reads_its_own(queue: Any) -> None:
    """Add and inspect items whose ids no other process has: each answer is about the item that was asked for."""
    for number in range(CALLS):
        name = f"{os.getpid()}-{number}"
        assert queue.add_item(Item(name.encode(), id=name), priority=number % 7)
        answer = queue.inspect(name)
        assert (answer.id, answer.state, answer.priority) == (name, "ready", number % 7)


async def reads_its_own_in_a_loop(queue: Any) -> None:
    """The same in asyncio, with a few calls at once."""

    async def call(number: int) -> None:
        name = f"{os.getpid()}-{number}"
        assert await queue.add_item(Item(name.encode(), id=name), priority=number % 7)
        answer = await queue.inspect(name)
        assert (answer.id, answer.state, answer.priority) == (name, "ready", number % 7)

    for first in range(0, CALLS, 3):
        await asyncio.gather(*map(call, range(first, first + 3)))


@pytest.mark.promise("G23")
def test_a_queue(kind: str, url: str) -> None:
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_item(Item(b"x"))
        children = [child(kind, lambda: reads_its_own(queue)) for _ in range(3)]
        reads_its_own(queue)
        assert ended(*children) == [0, 0, 0]
        assert queue.stats().items == 4 * CALLS + 1


@pytest.mark.promise("G23")
def test_the_child_of_a_child(kind: str, url: str) -> None:
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_item(Item(b"x"))

        def forks() -> None:
            grandchild = child(kind, lambda: reads_its_own(queue))
            reads_its_own(queue)
            assert ended(grandchild) == [0]

        forked = child(kind, forks)
        reads_its_own(queue)
        assert ended(forked) == [0]


@pytest.mark.promise("G23")
def test_a_queue_of_asyncio(kind: str, url: str) -> None:
    queue = leaseq.aio.WorkQueue("q", url)

    async def calls() -> None:
        async with queue:
            await reads_its_own_in_a_loop(queue)

    with asyncio.Runner() as runner:
        runner.run(queue.add_item(Item(b"x")))
        children = [child(kind, lambda: asyncio.run(calls())) for _ in range(3)]
        runner.run(calls())
        assert ended(*children) == [0, 0, 0]


@pytest.mark.promise("G23")
def test_an_app(kind: str, url: str) -> None:
    """Also a queue of it that was opened before the fork, as a module does."""
    app = leaseq.jobs.App(url)
    mails = app.queue("mails")
    app.enqueue("before")

    def calls() -> None:
        for number in range(CALLS):
            handle = app.enqueue("each", number)
            assert app.handle(handle.id).info().args == (number,)
        reads_its_own(mails)

    async def calls_in_a_loop() -> None:
        for number in range(CALLS):
            handle = await app.aio.enqueue("each", number)
            assert (await handle.info()).args == (number,)
        await app.aio.close()

    children = [child(kind, calls), child(kind, calls), child(kind, lambda: asyncio.run(calls_in_a_loop()))]
    calls()
    assert ended(*children) == [0, 0, 0]
    app.close()


@pytest.mark.promise("G23")
def test_several_queues_as_one(kind: str, url: str) -> None:
    """Of two groups too, which takes a thread for each."""
    with leaseq.WorkQueue("a", url) as one, leaseq.WorkQueue("b", url) as other:
        queues = leaseq.WorkQueues([one, other], fair=True)
        one.add_items([Item(b"x", id=str(number)) for number in range(CALLS)])

        def works() -> None:
            for _ in range(CALLS // 3):
                item = queues.lease(60, timeout=TIMEOUT_SECS)
                assert item is not None
                assert item.queue.complete(item)

        assert queues.lease(60, block=False) is not None
        one.add_item(Item(b"x"))
        children = [child(kind, works), child(kind, works)]
        works()
        assert ended(*children) == [0, 0]
        assert one.stats().completed == CALLS


def test_a_bound_on_connections(kind: str, url: str) -> None:
    """Connections that threads of the parent use are not returned to the pool in the child, and do not count there."""
    pool = redis.BlockingConnectionPool.from_url(url, max_connections=1, timeout=None)
    with redis.Redis.from_pool(pool) as client, leaseq.WorkQueue("q", client) as queue:
        waiting = threading.Thread(target=queue.lease, args=[60])
        waiting.start()
        with redis.Redis.from_url(url) as looking:
            blocked(looking, 1)
            assert ended(child(kind, lambda: queue.stats().ready == queue.stats().leased == 0)) == [0]
            with leaseq.WorkQueue("q", looking) as other:
                other.add_item(Item(b"x"))
            waiting.join(TIMEOUT_SECS)


@pytest.mark.promise("G25")
def test_a_child_that_closes_a_queue_ends_no_wait_of_its_parent(
    kind: str, url: str, redis_client: redis.Redis
) -> None:
    with leaseq.WorkQueue("q", url) as queue, leaseq.WorkQueue("q", url) as other:
        leased: list[Any] = []
        waiting = threading.Thread(target=lambda: leased.append(queue.lease(60)))
        waiting.start()
        blocked(redis_client, 1)

        def closes() -> None:
            began = time.monotonic()
            queue.close()
            assert time.monotonic() - began < 1  # it does not wait for calls of its parent
            with pytest.raises(leaseq.QueueClosedError):
                queue.stats()

        assert ended(child(kind, closes)) == [0]
        other.add_item(Item(b"x"))
        waiting.join(TIMEOUT_SECS)
        assert leased[0].attempt == 1
        assert queue.complete(leased[0])


@pytest.mark.promise("G25")
def test_no_lock_of_another_thread_stays_shut(kind: str, url: str, tmp_path: Path) -> None:
    """A fork between two lines of another thread, whichever lock that has."""
    app = leaseq.jobs.App(url)
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_items([Item(b"x", id=str(number)) for number in range(2)])
        held, end = threading.Event(), threading.Event()

        def hold() -> None:
            with (
                queue.executor.life._guard,
                queue.heartbeater._guard,
                app._clients._lock.here(),
                EMBEDDED._lock.here(),
            ):
                held.set()
                end.wait(TIMEOUT_SECS)

        holding = threading.Thread(target=hold)
        holding.start()
        held.wait(TIMEOUT_SECS)

        def works() -> None:
            for item in queue.items(60, timeout=0.01):
                with item:
                    pass
            app.enqueue("each")
            app.close()
            with contextlib.suppress(leaseq.LeaseqError):  # there may be no server program
                leaseq.embedded(tmp_path / "data").close()
            queue.close()

        code = ended(child(kind, works))
        end.set()
        holding.join()
        assert code == [0]
        app.close()


def sleeps(thread: threading.Thread | None) -> bool:
    """Return whether a thread waits, and not for the interpreter."""
    assert thread is not None
    assert thread.ident is not None
    frame = sys._current_frames()[thread.ident]
    return frame.f_code is concurrency.WakeEvent.wait.__code__


def test_a_child_extends_what_it_leases(kind: str, url: str) -> None:
    """The heartbeat of its parent is a thread that it lacks."""
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_items([Item(b"x"), Item(b"x")])

        def extends() -> None:
            item = queue.lease(3600)
            assert item is not None
            item.hold.held_until = time.monotonic() + 1800  # leased half an hour ago: a beat is due
            with item:
                first = item.deadline
                servers.wait_until(lambda: item.deadline > first)

        item = queue.lease(3600)
        assert item is not None
        with item:
            # a thread that waits for the interpreter at a C fork is waited for there without end
            servers.wait_until(lambda: sleeps(queue.heartbeater._worker))
            assert ended(child(kind, extends)) == [0]
        assert queue.stats().completed == 2


def test_the_sockets_of_a_parent_that_is_gone_are_let_go_of(
    kind: str, url: str, redis_client: redis.Redis
) -> None:
    """At the latest with the first call of its child: a server keeps the block of a dead waiter otherwise."""
    before = {each["id"] for each in redis_client.client_list()}

    def parent() -> None:
        queue = leaseq.WorkQueue("q", f"{url}{'&' if '?' in url else '?'}client_name=parent")
        threading.Thread(target=queue.lease, args=[60], daemon=True).start()
        blocked(redis_client, 1)
        read, write = os.pipe()

        def lives_on() -> None:
            with leaseq.WorkQueue("other", url) as other:
                other.stats()
                os.write(write, b".")
                servers.wait_until(lambda: other.stats().items == 1)

        child(kind, lives_on)
        os.read(read, 1)

    redis_client.connection_pool.disconnect()
    assert ended(child(kind, parent)) == [0]
    servers.wait_until(lambda: not [each for each in redis_client.client_list() if each["name"] == "parent"])
    with leaseq.WorkQueue("other", url) as other:
        other.add_item(Item(b"x"))
    servers.wait_until(lambda: len({each["id"] for each in redis_client.client_list()} - before) <= 1)


def test_a_cluster(kind: str, nodes: servers.RedisCluster) -> None:
    with redis.RedisCluster.from_url(nodes.url) as client, leaseq.WorkQueue(f"q-{kind}", client) as queue:
        queue.add_item(Item(b"x"))
        children = [child(kind, lambda: reads_its_own(queue)) for _ in range(2)]
        reads_its_own(queue)
        assert ended(*children) == [0, 0]
        client.disconnect_connection_pools()


@pytest.mark.slow
def test_a_sentinel(kind: str, sentinel: SentinelSet) -> None:
    hosts = ",".join(f"{host}:{port}" for host, port in sentinel.sentinels)
    with leaseq.WorkQueue("q", f"redis+sentinel://{hosts}/{sentinel.service}") as queue:
        queue.add_item(Item(b"x"))
        children = [child(kind, lambda: reads_its_own(queue)) for _ in range(2)]
        reads_its_own(queue)
        assert ended(*children) == [0, 0]


def of_a_process(queue: leaseq.WorkQueue) -> None:
    """Run in a process of multiprocessing."""
    reads_its_own(queue)


def test_multiprocessing(kind: str, url: str) -> None:
    """Also from a process that was forked in another way."""

    def starts() -> bool:
        with leaseq.WorkQueue("q", url) as queue:
            queue.add_item(Item(b"x"))
            started = [
                multiprocessing.get_context("fork").Process(target=of_a_process, args=[queue])
                for _ in range(2)
            ]
            for each in started:
                each.start()
            reads_its_own(queue)
            for each in started:
                each.join(TIMEOUT_SECS)
            return [each.exitcode for each in started] == [0, 0]

    assert starts()
    assert ended(child(kind, starts)) == [0]
