"""Waiting for an outcome, and for room in a full queue: who is woken, who leaves, what is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.client_flavours import connections_in_use
from support.redis_probe import blocked, count_blocked, until
from support.servers import TIMEOUT_SECS

import leaseq
import leaseq.aio
from leaseq import Item
from leaseq.process import fork

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis
    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener

pytestmark = pytest.mark.usefixtures("cap_of_an_hour")


def held(queue: Any, item_id: str = "a", **options: Any) -> Any:
    """An item that keeps its outcome, leased."""
    queue.add_item(Item(b"x", id=item_id), keep=60, **options)
    return queue.lease(60)


def full(queue: Any) -> Any:
    """A queue with room for one item, which it has: leased. An element on `room` is left from before."""
    queue.configure(max_items=1)
    queue.add_item(Item(b"x", id="held"))
    return queue.lease(60)


class Lease:
    """A worker waits for an item."""

    def __init__(self, queue: Any) -> None:
        self.queue = queue
        self.method: str = "lease"
        self.arguments: tuple[Any, ...] = (30,)

    def wait(self, queue: Any, **options: Any) -> Any:
        """Wait."""
        return getattr(queue, self.method)(*self.arguments, **options)

    def end(self) -> None:
        """Let there be what is waited for."""
        self.queue.add_item(Item(b"x", id="a"))

    @staticmethod
    def has_come(answer: Any) -> bool:
        """Return whether that is the answer."""
        return bool(answer and answer.id == "a")


class Outcome(Lease):
    """A call that waits for the outcome of an item."""

    def __init__(self, queue: Any) -> None:
        super().__init__(queue)
        self.item = held(queue)
        self.method, self.arguments = "outcome", ("a",)

    def end(self) -> None:
        self.queue.complete(self.item, result=b"done")

    @staticmethod
    def has_come(answer: Any) -> bool:
        return bool(answer.content == b"done")


class Room(Lease):
    """A producer waits for room."""

    def __init__(self, queue: Any) -> None:
        super().__init__(queue)
        self.item = full(queue)
        self.method, self.arguments = "add_item_when_room", (Item(b"x", id="new"),)

    def end(self) -> None:
        self.queue.complete_and_lease(self.item, 60)

    @staticmethod
    def has_come(answer: Any) -> bool:
        return answer is True


every_wait = pytest.mark.parametrize("kind", [Lease, Outcome, Room])


@every_wait
def test_closing_ends_a_wait_and_no_other(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, kind: type[Lease]
) -> None:
    """LQ-BLOCK-6: at once; who waits on another connection is not left behind."""
    stays, queue = kind(flavour.queue("q", url)), flavour.queue("q", url)
    waiting = flavour.start(stays.wait, queue)
    blocked(redis_client, 1)
    other = flavour.start(stays.wait, stays.queue)
    blocked(redis_client, 2)
    queue.close()
    with pytest.raises(leaseq.QueueClosedError):
        waiting.result(TIMEOUT_SECS)
    stays.end()
    assert stays.has_come(other.result(TIMEOUT_SECS))
    blocked(redis_client, 0)


@pytest.mark.parametrize("timeout", [0, None])
def test_a_lease_waits_for_as_long_as_it_takes_with_0_and_with_none(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, timeout: int | None
) -> None:
    queue = flavour.queue("q", url)
    waiting = flavour.start(queue.lease, 30, timeout=timeout)
    blocked(redis_client, 1)
    queue.add_item(Item(b"x", id="a"))
    assert waiting.result(TIMEOUT_SECS).id == "a"


@pytest.mark.parametrize("kind", [Outcome, Room])
def test_other_waits_take_none_for_as_long_as_it_takes_and_0_for_not_at_all(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, kind: type[Lease]
) -> None:
    stays = kind(flavour.queue("q", url))
    call = getattr(stays.queue, stays.method)
    waiting = flavour.start(call, *stays.arguments, timeout=None)
    blocked(redis_client, 1)
    if kind is Room:
        with pytest.raises(leaseq.QueueFullError):
            call(*stays.arguments, timeout=0)
    else:
        assert call(*stays.arguments, timeout=0).state == "leased"
    stays.end()
    assert stays.has_come(waiting.result(TIMEOUT_SECS))


@pytest.mark.parametrize("end", ["time", "closed", "wrong item"])
def test_a_wait_for_room_that_ends_says_which_items_were_added(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, end: str
) -> None:
    """LQ-CLIENT-2: in order; None is one for which there was no room."""
    queue = flavour.queue("q", url)
    queue.add_item(Item(b"x", id="there"))
    queue.configure(max_items=300)
    items: list[Any] = [Item(b"x", id="there"), *(Item(b"x", id=f"{number}") for number in range(260))]
    if end == "wrong item":
        items.append("no item")
        with pytest.raises(leaseq.BadTypeError) as caught:
            queue.add_items_when_room(items, timeout=60)
        assert caught.value.answers == [False, *[True] * 255]
        return
    items += [Item(b"x", id=f"late {number}") for number in range(42)]
    if end == "time":
        with pytest.raises(leaseq.QueueFullError) as full:
            queue.add_items_when_room(items, timeout=0.01)
        answers = full.value.answers
    else:
        waiting = flavour.start(queue.add_items_when_room, items, timeout=None)
        blocked(redis_client, 1)
        queue.close()
        with pytest.raises(leaseq.QueueClosedError) as closed:
            waiting.result(TIMEOUT_SECS)
        answers = closed.value.answers
    assert answers == [False, *[True] * 299, *[None] * 3]
    assert redis_client.hlen("leaseq:{q}:q:items") == 300


# Outcomes.


def test_a_short_socket_timeout_is_none_of_a_waiter(flavour: ClientFlavour, url: str) -> None:
    """LQ-BLOCK-9: a block lasts as long as it should."""
    queue = flavour.queue("q", flavour.client(url, socket_timeout=0.1))
    item = held(queue)
    waiting = flavour.start(queue.outcome, "a")
    assert queue.outcome("a", timeout=0.4).state == "leased"
    queue.complete(item, result=b"done")
    assert waiting.result(TIMEOUT_SECS).content == b"done"


async def test_cancelled_waiters_for_an_outcome(url: str, redis_client: redis.Redis) -> None:
    """LQ-BLOCK-6: no connection stays lent, and the waiter that stays is woken."""
    client: Any = leaseq.aio.WorkQueue("q", url)
    async with client as queue:
        await queue.add_item(Item(b"x", id="a"), keep=60)
        item = await queue.lease(60)
        stays = asyncio.create_task(queue.outcome("a"))
        leaving = [asyncio.create_task(queue.outcome("a")) for _ in range(5)]
        await until(lambda: count_blocked(redis_client) == 6)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        await until(lambda: count_blocked(redis_client) == 1)
        await queue.complete(item, result=b"done")
        assert (await asyncio.wait_for(stays, TIMEOUT_SECS)).content == b"done"
        await until(lambda: connections_in_use(queue.executor.client) == 0)


# Room.


@pytest.mark.parametrize("latency", [0.0, 0.02])
async def test_a_producer_cancelled_at_any_moment(
    url: str, redis_client: redis.Redis, proxy: Listener, latency: float
) -> None:
    """LQ-BLOCK-6: blocked, woken, or with the answer on its way: the item is there once or not, the next gets the room."""
    async with leaseq.aio.WorkQueue("q", proxy.url) as queue, leaseq.aio.WorkQueue("q", url) as other:
        await other.configure(max_items=1)
        for number in range(12):
            await other.add_item(Item(b"x", id="held"))
            item: Any = await other.lease(60)
            task = asyncio.create_task(queue.add_item_when_room(Item(b"x", id="cancelled")))
            await until(lambda: count_blocked(redis_client) == 1)
            second = asyncio.create_task(other.add_item_when_room(Item(b"x", id="second")))
            await until(lambda: count_blocked(redis_client) == 2)
            proxy.latency = latency
            await other.complete_and_lease(item, 60)
            if latency:
                await asyncio.sleep(latency * number / 3)
            else:
                for _ in range(number):
                    await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                assert await task
            proxy.latency = 0.0
            added = ""
            while added != "second":
                # not by leasing, which would tell producers once more
                async with asyncio.timeout(TIMEOUT_SECS):
                    while (await other.stats()).ready == 0:  # noqa: ASYNC110 (the condition is the server's)
                        await asyncio.sleep(0.005)
                item = await other.lease(60)
                added = item.id
                assert await other.complete_and_lease(item, 60) == (True, None)
            assert await second
            assert (await other.stats()).items == 0


def test_room_in_a_cluster(flavour: ClientFlavour, cluster: servers.RedisCluster) -> None:
    """LQ-CLUSTER-1: both waits go to the node of the queue."""
    client = flavour.cluster_client(cluster.url)
    nodes = [node.client() for node in cluster.nodes]
    for name in ("one", "two", "three"):
        queue: Any = flavour.queue(name, client)
        item = full(queue)
        waiting = flavour.start(queue.add_item_when_room, Item(b"x", id="new"), keep=60)
        servers.wait_until(lambda: sum(map(count_blocked, nodes)) == 1)
        assert queue.complete_and_lease(item, 60) == (True, None)
        assert waiting.result(TIMEOUT_SECS) is True
        outcome = flavour.start(queue.outcome, "new")
        servers.wait_until(lambda: sum(map(count_blocked, nodes)) == 1)
        assert queue.complete(queue.lease(60), result=b"done")
        assert outcome.result(TIMEOUT_SECS).content == b"done"
    for node in nodes:
        node.close()


def test_waits_in_the_child_of_a_fork(url: str, redis_client: redis.Redis) -> None:
    """LQ-BLOCK-1: while a thread of the parent waits; the child waits separately."""
    with leaseq.WorkQueue("q", url) as queue:
        item = held(queue)
        waiting = threading.Thread(target=queue.outcome, args=["a"])
        waiting.start()
        blocked(redis_client, 1)
        assert in_child(lambda: queue.outcome("a", timeout=0.1).state == "leased")
        queue.complete(item, result=b"done")
        waiting.join(TIMEOUT_SECS)
        assert not waiting.is_alive()


def in_child(check: Callable[[], bool]) -> bool:
    """Return whether a check holds in a forked child."""
    import os

    child, _ = fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            code = 0 if check() else 1
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
