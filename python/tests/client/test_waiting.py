"""Waiting for an outcome, and for room in a full queue: who is woken, who leaves, what is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from support import servers, timeouts
from support.client_flavours import connections_in_use
from support.redis_probe import BLOCKS, EVALS, blocked, blocked_ids, calls, count_blocked, load, until
from support.servers import PATIENCE

import leaseq
import leaseq.aio
from leaseq import Item

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


def lease_nothing(queue: Any) -> None:
    """A worker looks for the next item, which tells producers of room."""
    assert queue.lease(60, block=False) is None


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
        """Whether that is the answer."""
        return bool(answer and answer.id == "a")


class Outcome(Lease):
    """Somebody waits for the outcome of an item."""

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
@pytest.mark.parametrize("how", ["kill", "unblock", "unblock error"])
def test_a_wait_whose_block_is_ended_goes_on(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, kind: type[Lease], how: str
) -> None:
    """LQ-BLOCK-5: CLIENT KILL and CLIENT UNBLOCK: it looks again and waits on."""
    waited = kind(flavour.queue("q", url))
    waiting = flavour.start(waited.wait, waited.queue)
    for _ in range(3):
        blocked(redis_client, 1)
        (ended,) = blocked_ids(redis_client)
        if how == "kill":
            redis_client.client_kill_filter(_id=str(ended))
            servers.wait_until(lambda gone=ended: gone not in blocked_ids(redis_client))  # type: ignore[misc]
        else:
            redis_client.client_unblock(ended, error=how == "unblock error")
    blocked(redis_client, 1)
    waited.end()
    assert waited.has_come(waiting.result(PATIENCE))


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
        waiting.result(PATIENCE)
    stays.end()
    assert stays.has_come(other.result(PATIENCE))
    blocked(redis_client, 0)


@every_wait
@pytest.mark.cap(0.1)
def test_who_waits_sends_little(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, kind: type[Lease]
) -> None:
    """LQ-BLOCK-1, LQ-BLOCK-2: a block and a call for each cap, and a settle at most."""
    waited = kind(flavour.queue("q", url))
    load(redis_client)
    redis_client.delete("leaseq:{q}:q:wake", "leaseq:{q}:q:room")
    redis_client.config_resetstat()
    with contextlib.suppress(leaseq.QueueFullError):
        assert not waited.has_come(flavour.start(waited.wait, waited.queue, timeout=0.35).result(PATIENCE))
    assert 1 <= calls(redis_client, "cmdstat_blpop", "cmdstat_blmove") <= 4
    # at 0, 0.1, 0.2, 0.3 and 0.35 s; a slow machine leaves some out
    assert 2 <= calls(redis_client, *EVALS) <= 6


# Outcomes.


@pytest.mark.parametrize("ending", ["result", "dead letter", "last attempt"])
def test_every_waiter_is_told(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis, ending: str
) -> None:
    """LQ-BLOCK-1: one push ends all blocks: each waiter sends one call before its block and one behind it."""
    load(redis_client)
    item = held(queue, max_attempts=1)
    redis_client.config_resetstat()
    waiting = [flavour.start(queue.outcome, "a") for _ in range(5)]
    blocked(redis_client, 5)
    if ending == "result":
        assert queue.complete(item, result=b"done")
    elif ending == "dead letter":
        assert queue.dead_letter(item, error="done")
    else:
        assert queue.release(item, error="done") == "dead"
    found = [call.result(PATIENCE) for call in waiting]
    assert {outcome.content for outcome in found} == {b"done"}
    assert {outcome.state for outcome in found} == {"result" if ending == "result" else "failure"}
    assert calls(redis_client, *EVALS) == 5 + 1 + 5
    assert 0 < redis_client.pttl("leaseq:{q}:q:result:a") <= 60_000, "it ends all the same"
    assert redis_client.llen("leaseq:{q}:q:result:a") == 1


def test_an_outcome_that_is_there_takes_one_call(queue: Any, redis_client: redis.Redis) -> None:
    """LQ-BLOCK-1: no block, also not for an item that never was."""
    load(redis_client)
    queue.complete(held(queue), result=b"done")
    redis_client.config_resetstat()
    assert queue.outcome("a").content == b"done"
    assert queue.outcome("never").state == "absent"
    assert (calls(redis_client, *EVALS), calls(redis_client, *BLOCKS)) == (2, 0)


def test_a_wait_that_ends_without_an_outcome(queue: Any) -> None:
    """LQ-BLOCK-1: at once, or when the time is up, it says where the item is."""
    queue.add_item(Item(b"x", id="a"), keep=60, delay=60)
    assert queue.outcome("a", block=False).state == "delayed"
    began = time.monotonic()
    assert queue.outcome("a", timeout=0.3).state == "delayed"
    assert queue.outcome("a", timeout=0.004).finished is False, "too short for a block"
    assert time.monotonic() - began >= 0.3
    with pytest.raises(leaseq.BadArgumentError):
        queue.outcome("a", timeout=-1)


@pytest.mark.cap(0.5)
def test_a_death_that_nobody_published(queue: Any, flavour: ClientFlavour, redis_client: redis.Redis) -> None:
    """LQ-BLOCK-2: whoever reclaimed it died too: a waiter looks after the cap, publishes it, and all others are told."""
    queue.add_item(Item(b"x", id="a"), keep=60, max_attempts=1)
    assert queue.lease(0.1) is not None
    waiting = [flavour.start(queue.outcome, "a") for _ in range(3)]
    blocked(redis_client, 3)
    servers.wait_until(lambda: queue.stats().overdue == 1)
    command = leaseq.commands.light_clean(queue._keys, 256)
    with redis_client.pipeline(transaction=True) as pipe:  # a waiter may look at any time
        pipe.execute_command(*command.eval())  # type: ignore[no-untyped-call]
        pipe.exists("leaseq:{q}:q:result:a")
        assert pipe.execute()[1] == 0
    assert {call.result(PATIENCE).state for call in waiting} == {"failure"}


@pytest.mark.cap(0.5)
def test_an_item_that_is_gone_or_another_by_now(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis
) -> None:
    """LQ-BLOCK-12, LQ-BLOCK-13: seen within the cap; the outcome of a later item of the same id is not what was waited for."""
    removed, again = held(queue, "removed"), held(queue, "again")
    waiting = [flavour.start(queue.outcome, item.id) for item in (removed, again)]
    blocked(redis_client, 2)
    assert queue.remove("removed") == "leased"
    assert queue.complete(again, keep=0)
    assert queue.complete(held(queue, "again"), result=b"of another")
    assert [call.result(PATIENCE).state for call in waiting] == ["absent", "absent"]
    assert queue.outcome("again").content == b"of another"


def test_a_lost_look_at_an_outcome(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, proxy: Listener
) -> None:
    """LQ-BLOCK-9, LQ-BLOCK-11: the network swallows everything: the waiter is told, and may ask again."""
    queue, other = flavour.queue("q", proxy.url), flavour.queue("q", url)
    item = held(other)
    waiting = flavour.start(queue.outcome, "a", timeout=0.5)
    blocked(redis_client, 1)
    proxy.discard_commands = proxy.discard_replies = True
    other.complete(item, result=b"done")
    with timeouts.reply_grace(0.1), pytest.raises(leaseq.ReplyLostError):
        waiting.result(PATIENCE)
    proxy.discard_commands = proxy.discard_replies = False
    assert queue.outcome("a").content == b"done"


def test_a_short_socket_timeout_is_none_of_a_waiter(flavour: ClientFlavour, url: str) -> None:
    """LQ-BLOCK-9: a block lasts as long as it should."""
    queue = flavour.queue("q", flavour.client(url, socket_timeout=0.1))
    item = held(queue)
    waiting = flavour.start(queue.outcome, "a")
    assert queue.outcome("a", timeout=0.4).state == "leased"
    queue.complete(item, result=b"done")
    assert waiting.result(PATIENCE).content == b"done"


def test_outcomes_of_a_full_server(
    flavour: ClientFlavour, own_server: servers.StartServer, redis_client: redis.Redis
) -> None:
    """LQ-BLOCK-10: it refuses BLMOVE, which takes no room; the waiter looks at the end of its time."""
    server = own_server()
    queue = flavour.queue("q", server.url)
    item = held(queue)
    with server.client() as client:
        load(client)
        client.config_set("maxmemory", 1)
        client.config_set("maxmemory-policy", "noeviction")
        client.config_resetstat()
        assert queue.outcome("a", timeout=0.5).state == "leased"
        assert calls(client, *EVALS) == 2, "no busy loop"
        waiting = flavour.start(queue.outcome, "a", timeout=1)
        servers.wait_until(lambda: calls(client, *EVALS) == 3)
        assert queue.complete(item, result=b"done")
        assert waiting.result(PATIENCE).content == b"done"


async def test_cancelled_waiters_for_an_outcome(url: str, redis_client: redis.Redis) -> None:
    """LQ-BLOCK-6: no connection stays lent, and the one that stays is told."""
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
        assert (await asyncio.wait_for(stays, PATIENCE)).content == b"done"
        await until(lambda: connections_in_use(queue._transport.client) == 0)


# Room.


def test_a_producer_waits_for_room(queue: Any, flavour: ClientFlavour, redis_client: redis.Redis) -> None:
    """LQ-BLOCK-1: it is woken, adds, and passes on that there may be more room."""
    load(redis_client)
    item = full(queue)
    redis_client.delete("leaseq:{q}:q:room")
    redis_client.config_resetstat()
    waiting = flavour.start(queue.add_item_when_room, Item(b"x", id="new"), priority=3)
    blocked(redis_client, 1)
    assert not waiting.done()
    assert queue.complete_and_lease(item, 60) == (True, None)
    assert waiting.result(PATIENCE) is True
    # add, complete_and_lease, add, settle
    servers.wait_until(lambda: calls(redis_client, *EVALS) == 4)
    assert queue.inspect("new").priority == 3
    assert queue.add_item_when_room(Item(b"y", id="new")) is False, "it is there: that needs no room"


def test_room_for_several_producers(flavour: ClientFlavour, redis_client: redis.Redis, url: str) -> None:
    """LQ-ROOM-3: one element wakes one; who adds wakes the next."""
    queue: Any = flavour.queue("q", url)
    queue.configure(max_items=5)
    queue.add_items([Item(b"x", id=f"held-{n}") for n in range(5)])
    items = queue.lease_items(5, 60)
    waiting = [flavour.start(queue.add_item_when_room, Item(b"x", id=f"new-{n}")) for n in range(8)]
    blocked(redis_client, 8)
    assert queue.complete_items(items) == [True] * 5
    lease_nothing(queue)
    servers.wait_until(lambda: sum(call.done() for call in waiting) == 5, PATIENCE)
    blocked(redis_client, 3)
    assert queue.complete_items(queue.lease_items(3, 60)) == [True] * 3
    assert queue.lease_items(2, 60), "there is room, and the lease says so"
    assert [call.result(PATIENCE) for call in waiting] == [True] * 8
    assert queue.stats().items == 5


def test_no_room_in_time(queue: Any, redis_client: redis.Redis) -> None:
    """LQ-ROOM-2, LQ-ROOM-3: QueueFullError, with the answer; who leaves settles."""
    load(redis_client)
    full(queue)
    redis_client.delete("leaseq:{q}:q:room")
    redis_client.config_resetstat()
    began = time.monotonic()
    with pytest.raises(leaseq.QueueFullError) as caught:
        queue.add_item_when_room(Item(b"x"), timeout=0.3)
    assert caught.value.answers == [None]
    assert time.monotonic() - began >= 0.3
    assert calls(redis_client, *EVALS) == 3, "add, add, settle"
    with pytest.raises(leaseq.BadArgumentError):
        queue.add_item_when_room(Item(b"x"), timeout=-1)


def test_producers_that_leave_pass_room_on(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str
) -> None:
    """LQ-ROOM-3: many time out around the moment when there is room; the one that stays gets it."""
    queue: Any = flavour.queue("q", url)
    for number in range(6):
        item = full(queue)
        leaving = [
            flavour.start(queue.add_item_when_room, Item(b"x"), timeout=0.15 + 0.002 * n) for n in range(8)
        ]
        # a slow machine may see some leave before the last comes
        servers.wait_until(
            lambda calls=leaving: count_blocked(redis_client) == 8 or any(call.done() for call in calls)  # type: ignore[misc]
        )
        stays = flavour.start(queue.add_item_when_room, Item(b"x", id=f"stays-{number}"))
        assert queue.complete_and_lease(item, 60) == (True, None)
        added = ""
        while added != f"stays-{number}":
            # not by leasing, which would tell producers once more
            servers.wait_until(lambda: queue.stats().ready == 1, PATIENCE)
            found = queue.lease(60)
            added = found.id
            assert queue.complete_and_lease(found, 60) == (True, None)
        assert stays.result(PATIENCE) is True
        for call in leaving:
            with contextlib.suppress(leaseq.QueueFullError):
                assert call.result(PATIENCE)
        for found in queue.items(60, timeout=0.01):
            assert queue.complete(found)
        assert queue.stats().items == 0


def test_a_lost_reply_to_an_add_that_waited(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, proxy: Listener
) -> None:
    """LQ-BLOCK-11, LQ-ERROR-4: it may have added, so it is not sent again; the wake-up is passed on."""
    queue: Any
    other: Any
    queue, other = flavour.queue("q", proxy.url), flavour.queue("q", url)
    load(redis_client)
    item = full(other)
    waiting = flavour.start(queue.add_item_when_room, Item(b"x", id="new"))
    blocked(redis_client, 1)
    proxy.cut_replies_after = len(b"*2\r\n$21\r\nleaseq:{q}:q:room\r\n$1\r\n1\r\n") + 1
    other.complete_and_lease(item, 60)
    with pytest.raises(leaseq.ReplyLostError):
        waiting.result(PATIENCE)
    assert other.stats().added == 2
    assert other.complete(other.lease(60, timeout=PATIENCE))


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
                async with asyncio.timeout(PATIENCE):
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
        assert waiting.result(PATIENCE) is True
        outcome = flavour.start(queue.outcome, "new")
        servers.wait_until(lambda: sum(map(count_blocked, nodes)) == 1)
        assert queue.complete(queue.lease(60), result=b"done")
        assert outcome.result(PATIENCE).content == b"done"
    for node in nodes:
        node.close()


def test_waits_in_the_child_of_a_fork(url: str, redis_client: redis.Redis) -> None:
    """LQ-BLOCK-1: while a thread of the parent waits; the child waits by itself."""
    with leaseq.WorkQueue("q", url) as queue:
        item = held(queue)
        waiting = threading.Thread(target=queue.outcome, args=["a"])
        waiting.start()
        blocked(redis_client, 1)
        assert in_child(lambda: queue.outcome("a", timeout=0.1).state == "leased")
        queue.complete(item, result=b"done")
        waiting.join(PATIENCE)
        assert not waiting.is_alive()


def in_child(check: Callable[[], bool]) -> bool:
    """Whether a check holds in a forked child."""
    import os

    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            code = 0 if check() else 1
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
