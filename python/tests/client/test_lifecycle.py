"""Closing a queue while calls are under way: leased items are given back, effects are reported, errors are named."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.client_flavours import unwrap
from support.redis_probe import WAKE_UP, load
from support.servers import TIMEOUT_SECS

import leaseq
import leaseq.aio
from leaseq import Item

if TYPE_CHECKING:
    import redis
    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener

pytestmark = pytest.mark.usefixtures("cap_of_an_hour")


def close_with_replies_held(flavour: ClientFlavour, queue: Any, proxy: Listener) -> None:
    """Close a queue while what the server has answered is still on its way; that arrives then."""
    closing = flavour.start(queue.close)
    servers.wait_until(lambda: unwrap(queue).executor.life.closed)
    proxy.hold_replies_after = None
    closing.result(TIMEOUT_SECS)


@pytest.mark.promise("G22")
def test_what_a_wait_leased_is_given_back(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, proxy: Listener
) -> None:
    """LQ-BLOCK-6: closed when the lease has run and its reply is on the way: the item is ready again, uncounted."""
    queue, other = flavour.queue("q", proxy.url), flavour.queue("q", url)
    assert queue.lease(30, block=False) is None, "the script is known"
    waiting = flavour.start(queue.lease, 30)
    servers.wait_until(lambda: redis_client.info("clients")["blocked_clients"] == 1)
    proxy.hold_replies_after = len(WAKE_UP)
    other.add_item(Item(b"x", id="a"))
    servers.wait_until(lambda: other.stats().leased == 1)
    close_with_replies_held(flavour, queue, proxy)
    with pytest.raises(leaseq.QueueClosedError):
        waiting.result(TIMEOUT_SECS)
    info = other.inspect("a")
    assert (info.state, info.attempt) == ("ready", 0)


@pytest.mark.parametrize("which", range(2))
def test_a_call_on_several_queues_ends_before_one_is_closed(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, proxy: Listener, which: int
) -> None:
    """LQ-BLOCK-6: the call of the group is in flight when any of its queues is closed; what it leased is given back first."""
    queues = [flavour.queue(name, proxy.url, group="g") for name in "ab"]
    other = flavour.queue("b", url, group="g")
    several = flavour.queues(queues)
    assert several.lease(30, block=False) is None, "the script is known"
    other.add_item(Item(b"x", id="b1"))
    proxy.hold_replies_after = 0
    call = flavour.start(several.lease, 30)
    servers.wait_until(lambda: other.stats().leased == 1)
    close_with_replies_held(flavour, queues[which], proxy)
    with pytest.raises(leaseq.QueueClosedError, match=repr("ab"[which])):
        call.result(TIMEOUT_SECS)
    info = other.inspect("b1")
    assert (info.state, info.attempt) == ("ready", 0)


def test_who_died_is_published_by_a_queue_that_closes_at_once(url: str) -> None:
    """LQ-CLIENT-8: the outcome is asked for in the background, which has not started when the queue is closed."""
    other = leaseq.WorkQueue("q", url)

    async def work() -> None:
        async with leaseq.aio.WorkQueue("q", url) as queue:
            await queue.add_item(Item(b"x", id="a"), max_attempts=1, keep=60)
            await queue.lease(0.001, block=False)
            await asyncio.to_thread(servers.wait_until, lambda: other.stats().overdue == 1)
            assert await queue.lease(30, block=False) is None

    asyncio.run(work())
    assert other.stats().kept == 1
    other.close()


def test_a_call_in_flight_is_answered(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, proxy: Listener
) -> None:
    """LQ-ERROR-4: closed when the call has run and its reply is on the way: the caller gets it."""
    queue, other = flavour.queue("q", proxy.url), flavour.queue("q", url)
    queue.add_item(Item(b"x"))
    item = queue.lease(30)
    load(redis_client)
    proxy.hold_replies_after = 0
    call = flavour.start(queue.complete, item)
    servers.wait_until(lambda: other.stats().completed == 1)
    close_with_replies_held(flavour, queue, proxy)
    assert call.result(TIMEOUT_SECS) is True


def test_complete_and_lease_in_flight(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, proxy: Listener
) -> None:
    """LQ-FUSED-1: the caller learns that the item is completed; the next one goes back."""
    queue, other = flavour.queue("q", proxy.url), flavour.queue("q", url)
    queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")])
    item = queue.lease(30)
    load(redis_client)
    proxy.hold_replies_after = 0
    call = flavour.start(queue.complete_and_lease, item, 30)
    servers.wait_until(lambda: other.stats().completed == 1)
    close_with_replies_held(flavour, queue, proxy)
    assert call.result(TIMEOUT_SECS) == (True, None)
    info = other.inspect("b")
    assert (info.state, info.attempt) == ("ready", 0)


def test_a_call_that_is_never_answered_ends(
    flavour: ClientFlavour, url: str, proxy: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LQ-ERROR-4: close waits a while only, and the call raises that the reply is lost."""
    for module in ("leaseq._aio.lifecycle", "leaseq._sync.lifecycle"):
        monkeypatch.setattr(f"{module}.REPLY_GRACE", 0.3)
    queue = flavour.queue("q", f"{proxy.url}?socket_timeout=3600")
    other = flavour.queue("q", url)
    queue.configure(max_data=7)
    proxy.discard_replies = True
    call = flavour.start(queue.configure, max_data=77)
    servers.wait_until(lambda: other.stats().max_data == 77)
    flavour.start(queue.close).result(TIMEOUT_SECS)  # the call itself would go on for an hour
    with pytest.raises(leaseq.ReplyLostError):
        call.result(TIMEOUT_SECS)


@pytest.mark.parametrize("steps", range(24))
async def test_a_cancellation_while_connecting_is_heeded(url: str, steps: int) -> None:
    """LQ-BLOCK-6: at every step of the loop; in Python 3.11 the client library swallows it at some."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        waiting = asyncio.create_task(queue.lease(30))
        for _ in range(steps):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting], timeout=TIMEOUT_SECS)
        assert waiting.cancelled()


def test_as_many_waiters_as_one_likes(url: str) -> None:
    """LQ-BLOCK-1: each holds a connection; the client library's own limit of connections is not ours."""

    async def work() -> None:
        async with leaseq.aio.WorkQueue("q", url) as queue:
            waiting = [asyncio.create_task(queue.lease(30)) for _ in range(120)]
            other = leaseq.WorkQueue("q", url)
            await asyncio.to_thread(other.add_items, [Item(b"x") for _ in range(120)])
            assert all(await asyncio.gather(*waiting))
            other.close()

    asyncio.run(work())


def test_closing_a_queue_leaves_those_that_share_its_client(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str
) -> None:
    """The wait of another queue goes on, over the connection that it has."""
    client = flavour.client(url)
    closed, other = flavour.queue("closed", client), flavour.queue("other", client)
    closed.add_item(Item(b"x"))
    waiting = flavour.start(other.lease, 60, timeout=TIMEOUT_SECS)
    servers.wait_until(lambda: blocked_ids(redis_client))
    (before,) = blocked_ids(redis_client)
    flavour.start(closed.close).result(TIMEOUT_SECS)
    with leaseq.WorkQueue("other", redis_client) as producer:
        producer.add_item(Item(b"x", id="a"))
    assert waiting.result(TIMEOUT_SECS).id == "a"
    assert before in {each["id"] for each in redis_client.client_list()}


def blocked_ids(client: redis.Redis) -> list[str]:
    """Return the ids of the connections that are blocked."""
    return [each["id"] for each in client.client_list() if "b" in each["flags"]]
