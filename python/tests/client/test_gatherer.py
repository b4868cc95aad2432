"""Adds of many tasks of an event loop share calls: what comes while calls are under way goes along in the next one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from support.redis_probe import calls, load, until

import leaseq.aio
import leaseq.jobs.aio
from leaseq import Item, QueueFullError, ReplyLostError, TooLargeError, UnavailableError, WrongKeyTypeError
from leaseq._aio import gatherer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    import redis

    from leaseq_conformance.fault_proxy import Listener

AT_ONCE = gatherer.AT_ONCE


def closed_by_hand(call: Coroutine[Any, Any, None]) -> None:
    """Run a call in an event loop that is closed without more ado."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(call)
    loop.close()


def in_hand(queue: leaseq.aio.WorkQueue) -> int:
    """Return how many adds are sent or wait, in this event loop."""
    line = queue.adds._lines.get(asyncio.get_running_loop(), gatherer.Line())
    return line.calls + len(line.waiting)


async def connect(queue: leaseq.aio.WorkQueue) -> None:
    """Open as many connections as the calls under way need: no reply is needed then."""
    route = queue.executor.route
    for connection in [await route.acquire(queue.executor.key) for _ in range(AT_ONCE)]:
        route.release(connection)


class Crowd:
    """Tasks that add at once while no reply comes: the first fill the calls that can be under way, and the others wait."""

    def __init__(self, queue: leaseq.aio.WorkQueue, listener: Listener, server: redis.Redis) -> None:
        self.queue = queue
        self.tasks: list[asyncio.Task[bool]] = []
        self._listener = listener
        self._server = server
        self._before = calls(server)
        listener.hold_replies_after = 0

    async def add(self, *items: Item) -> list[asyncio.Task[bool]]:
        """Add each in a separate task. Return when all are sent or wait."""
        tasks = [asyncio.create_task(self.queue.add_item(item)) for item in items]
        self.tasks += tasks
        await until(lambda: in_hand(self.queue) == len(self.tasks))
        return tasks

    def sent(self) -> int:
        """Return how many calls the server has had."""
        return calls(self._server) - self._before

    def resume(self) -> None:
        """Let the replies come."""
        self._listener.hold_replies_after = None


@pytest.fixture
async def crowd(redis_client: redis.Redis, proxy: Listener) -> AsyncIterator[Crowd]:
    load(redis_client)
    async with leaseq.aio.WorkQueue("q", proxy.url) as queue:
        await queue.add_item(Item(b""))  # it is registered
        await connect(queue)
        made = Crowd(queue, proxy, redis_client)
        await made.add(*(Item(b"", id=f"first {number}") for number in range(AT_ONCE)))
        await until(lambda: made.sent() == AT_ONCE)
        yield made
        made.resume()


def numbered(count: int, data: bytes = b"") -> list[Item]:
    return [Item(data, id=str(number)) for number in range(count)]


async def test_callers_at_once_share_calls(crowd: Crowd) -> None:
    await crowd.add(*numbered(300, b"abc"))
    assert crowd.sent() == AT_ONCE, "the others wait"
    crowd.resume()
    assert await asyncio.gather(*crowd.tasks) == [True] * (AT_ONCE + 300)
    assert crowd.sent() == AT_ONCE + 2, "300 items are two calls"
    first, later, last = await crowd.queue.inspect_items(["0", "255", "299"])
    assert first.created < later.created, "the items of a call are in order"
    assert (first.size, last.size) == (3, 3)


async def test_long_data_are_shared_by_few(crowd: Crowd) -> None:
    await crowd.add(*numbered(6, b"x" * 1024 * 1024))
    crowd.resume()
    assert all(await asyncio.gather(*crowd.tasks))
    assert crowd.sent() == AT_ONCE + 2, "4 MiB are one call"


async def test_options_headers_and_ids_go_with_each(crowd: Crowd) -> None:
    queue = crowd.queue
    tasks = [
        asyncio.create_task(
            queue.add_item(Item(b"1", id="\xe4", headers={"a": "b"}), priority=2, max_attempts=3)
        ),
        asyncio.create_task(queue.add_item(Item(bytearray(b"2"), id="later"), delay=3600)),
        asyncio.create_task(queue.add_item(Item(b"3", id="later"))),
    ]
    await until(lambda: in_hand(queue) == AT_ONCE + 3)
    crowd.resume()
    assert await asyncio.gather(*tasks) == [True, True, False]
    assert crowd.sent() == AT_ONCE + 1
    first, later = await queue.inspect_items(["\xe4", "later"])
    assert (first.priority, first.max_attempts, later.state, later.size) == (2, 3, "delayed", 1)
    leased = await queue.lease(60)
    assert leased
    assert (leased.id, leased.headers) == ("\xe4", {"a": "b"})


async def test_a_refused_item_of_a_shared_call(crowd: Crowd, redis_client: redis.Redis) -> None:
    """The error reaches the caller of that item alone, and all others are added once."""
    with leaseq.WorkQueue("q", redis_client) as admin:
        admin.configure(max_data=10)
    before = crowd.sent()
    tasks = await crowd.add(*numbered(29), Item(b"x" * 11, id="long"), *numbered(64)[29:63])
    crowd.resume()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(ends.pop(29), TooLargeError)
    assert ends == [True] * 63
    assert crowd.sent() - before == 1 + 2 * 6, "64 are halved six times"


async def test_an_error_that_no_item_caused_reaches_all(crowd: Crowd, redis_client: redis.Redis) -> None:
    tasks = await crowd.add(*numbered(3))
    redis_client.delete("leaseq:{q}:q:ready")
    redis_client.set("leaseq:{q}:q:ready", "no sorted set")
    crowd.resume()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(end, WrongKeyTypeError) for end in ends), ends
    assert crowd.sent() == AT_ONCE + 1


async def test_a_shared_call_and_a_full_queue(crowd: Crowd, redis_client: redis.Redis) -> None:
    with leaseq.WorkQueue("q", redis_client) as admin:
        admin.configure(max_items=AT_ONCE + 2)
    tasks = await crowd.add(Item(b"", id="fits"), Item(b"", id="does not"))
    crowd.resume()
    fits, other = await asyncio.gather(*tasks, return_exceptions=True)
    assert fits is True
    assert isinstance(other, QueueFullError)
    assert other.answers == [None]


async def test_a_cancel_takes_back_an_add_that_waits(crowd: Crowd) -> None:
    gone, stays = await crowd.add(Item(b"", id="gone"), Item(b"", id="stays"))
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    crowd.resume()
    assert await stays
    assert [each.state for each in await crowd.queue.inspect_items(["gone", "stays"])] == ["absent", "ready"]


async def test_a_cancel_of_a_call_leaves_its_place_to_the_others(crowd: Crowd) -> None:
    """Each that was sent is cancelled: what waits goes all the same."""
    (waits,) = await crowd.add(Item(b"", id="waits"))
    for task in crowd.tasks[:AT_ONCE]:
        task.cancel()
    crowd.resume()
    assert await waits
    await asyncio.gather(*crowd.tasks, return_exceptions=True)
    assert await crowd.queue.add_item(Item(b"", id="later"))
    await until(lambda: in_hand(crowd.queue) == 0)


async def test_what_waits_when_the_queue_is_closed_is_added(crowd: Crowd, redis_client: redis.Redis) -> None:
    tasks = await crowd.add(*numbered(3))
    closing = asyncio.create_task(crowd.queue.close())
    await until(lambda: crowd.queue.executor.life.closed)
    with pytest.raises(leaseq.QueueClosedError):
        await crowd.queue.add_item(Item(b"", id="late"))
    crowd.resume()
    await closing
    assert await asyncio.gather(*tasks) == [True] * 3
    assert not redis_client.hexists("leaseq:{q}:q:items", "late")


async def test_a_server_that_is_away_fails_all(crowd: Crowd, proxy: Listener) -> None:
    """Each gets a separate error, and none is sent twice."""
    tasks = await crowd.add(*numbered(3))
    proxy.refuse = True
    proxy.reset()
    ends = await asyncio.gather(*crowd.tasks, return_exceptions=True)
    assert all(isinstance(each, ReplyLostError) for each in ends[:AT_ONCE]), ends
    assert all(isinstance(each, UnavailableError) for each in ends[AT_ONCE:]), ends
    assert len({id(task.exception()) for task in tasks}) == 3
    assert crowd.sent() == AT_ONCE


async def test_what_waits_longer_than_a_call_may_take_is_not_sent(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowd.queue.executor.route, "call_secs", -1)
    (late,) = await crowd.add(Item(b"", id="late"))
    monkeypatch.undo()
    (waits,) = await crowd.add(Item(b"", id="waits"))
    crowd.resume()
    with pytest.raises(UnavailableError, match="was not sent"):
        await late
    assert await waits
    assert (await crowd.queue.inspect("late")).state == "absent"


async def test_a_call_that_is_stopped_in_the_background_fails_its_adds(crowd: Crowd) -> None:
    tasks = await crowd.add(*numbered(3))
    for task in crowd.tasks[:AT_ONCE]:
        task.cancel()
    background = crowd.queue.executor.background
    await until(lambda: bool(background._tasks))
    for each in list(background._tasks):
        each.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(end, ReplyLostError) for end in ends), ends


async def test_jobs_share_calls(redis_client: redis.Redis, proxy: Listener) -> None:
    load(redis_client)
    async with leaseq.jobs.aio.App(proxy.url) as app:

        @app.job(name="handle")
        async def handle(_number: int) -> None: ...

        await handle.enqueue(0)
        before = calls(redis_client)
        handles = await asyncio.gather(*(handle.enqueue(number) for number in range(100)))
        assert all(each.added for each in handles)
        assert calls(redis_client) - before == AT_ONCE + 1


@pytest.mark.parametrize("run", [asyncio.run, closed_by_hand])
def test_adds_that_an_event_loop_leaves_behind(
    run: Callable[[Coroutine[Any, Any, None]], None], redis_client: redis.Redis, proxy: Listener
) -> None:
    """The next loop adds as if there had been none before (LQ-CLIENT-18)."""
    load(redis_client)
    queue = leaseq.aio.WorkQueue("q", proxy.url)

    async def leave() -> None:
        await connect(queue)
        proxy.hold_replies_after = 0
        left.extend(asyncio.create_task(queue.add_item(item)) for item in numbered(AT_ONCE + 2))
        await until(lambda: in_hand(queue) == len(left))

    async def add() -> None:
        proxy.hold_replies_after = None
        assert await queue.add_item(Item(b"", id="next"))
        assert await asyncio.gather(*(queue.add_item(Item(b"")) for _ in range(20))) == [True] * 20
        assert len(queue.adds._lines) == 1
        await queue.close()

    left: list[asyncio.Task[bool]] = []
    run(leave())
    asyncio.run(add())
    assert not redis_client.hexists("leaseq:{q}:q:items", str(AT_ONCE)), "it was not sent"
