"""LQ-CLIENT-18: what belongs to an event loop is gone with it, and a queue or an App is used from one after the other, or from several."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest
import uvloop
from support import servers
from support.redis_probe import count_blocked, until
from support.servers import TIMEOUT_SECS

import leaseq.aio
import leaseq.jobs
from leaseq import Item
from leaseq._aio import loop_end

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    import redis

LOOPS = 20


def closed_by_hand(call: Coroutine[Any, Any, Any]) -> Any:
    """Run a call in an event loop that is closed without more ado."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(call)
    finally:
        loop.close()


RUNS: dict[str, Callable[[Coroutine[Any, Any, Any]], Any]] = {
    "asyncio.run": asyncio.run,
    "uvloop.run": uvloop.run,
    "closed by hand": closed_by_hand,
}

# Python warns of what is open in a loop that is closed by hand
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

each_run = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


of_proper_ends = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio.run", "uvloop.run"])


def connections(client: redis.Redis) -> int:
    return len(client.client_list())


@pytest.mark.promise("G24")
@each_run
def test_an_app_in_one_loop_after_the_other(run: Any, url: str, redis_client: redis.Redis) -> None:
    app, before = leaseq.jobs.App(url), connections(redis_client)
    loops: list[weakref.ref[Any]] = []

    async def enqueue(number: int) -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await app.aio.enqueue("each", number)
        if number == LOOPS:
            await app.aio.close()

    for number in range(LOOPS):
        run(enqueue(number))
    left = int(run is closed_by_hand)
    servers.wait_until(lambda: connections(redis_client) <= before + left)
    gc.collect()
    assert sum(loop() is not None for loop in loops) <= 2
    assert len(app._clients._of_loops) == 1
    run(enqueue(LOOPS))
    servers.wait_until(lambda: connections(redis_client) == before)


@pytest.mark.promise("G24")
@each_run
def test_a_queue_in_one_loop_after_the_other(run: Any, url: str, redis_client: redis.Redis) -> None:
    queue, before = leaseq.aio.WorkQueue("q", url), connections(redis_client)

    async def work() -> None:
        await queue.add_item(Item(b"x"))
        item = await queue.lease(60)
        assert item is not None
        async with item:
            pass

    for _ in range(LOOPS):
        run(work())
    left = int(run is closed_by_hand)
    servers.wait_until(lambda: connections(redis_client) <= before + left)
    run(queue.close())
    servers.wait_until(lambda: connections(redis_client) == before)


@of_proper_ends
def test_a_loop_that_ends_under_a_wait(run: Any, url: str, redis_client: redis.Redis) -> None:
    """Its connections are closed, and the queue can be used and closed in another loop."""
    queue, before = leaseq.aio.WorkQueue("q", url), connections(redis_client)
    waits: set[Any] = set()

    async def wait() -> None:
        waits.add(asyncio.create_task(queue.lease(60)))
        await until(lambda: count_blocked(redis_client) >= 1)

    run(wait())

    async def close() -> int:
        found = await queue.stats()
        await queue.close()
        return found.ready

    assert run(close()) == 0
    servers.wait_until(lambda: connections(redis_client) == before)


@pytest.mark.promise("G24")
def test_several_loops_at_once(url: str, redis_client: redis.Redis) -> None:
    """Each has separate connections, keeps them, and reads the replies to its calls."""
    queue = leaseq.aio.WorkQueue("q", f"{url}{'&' if '?' in url else '?'}client_name=mine")
    turns = threading.Barrier(3)
    seen: set[str] = set()

    def note_connections() -> None:
        if turns.wait(TIMEOUT_SECS) == 0:
            seen.update(each["id"] for each in redis_client.client_list() if each["name"] == "mine")

    async def work(name: str) -> None:
        for number in range(20):
            assert await queue.add_item(Item(b"x", id=f"{name}-{number}"))
            assert (await queue.inspect(f"{name}-{number}")).id == f"{name}-{number}"
            await asyncio.to_thread(note_connections)

    threads = [threading.Thread(target=asyncio.run, args=(work(name),)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_SECS)
    assert len(seen) <= 6  # as many as there were calls at once, and not one for each call
    asyncio.run(queue.close())
    servers.wait_until(lambda: not [each for each in redis_client.client_list() if each["name"] == "mine"])
    assert not loop_end._closers
