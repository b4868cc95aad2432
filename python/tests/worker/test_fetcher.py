"""The idle worker: it sends its lease with the block, so an item is under way to it as soon as it is added."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.background_worker import TIMEOUT_SECS, BackgroundWorker, Latch, RecordingHooks, background_worker
from support.client_flavours import unwrap
from support.redis_probe import (
    BLOCKS,
    EVALS,
    WAKE_UP,
    blocked,
    blocked_ids,
    blocked_with_a_command_behind,
    calls,
    load,
    until,
)

import leaseq
import leaseq.worker.aio
from leaseq import Item, commands, flows
from leaseq._aio import concurrency as async_concurrency
from leaseq._aio import connection as async_connection
from leaseq._sync import concurrency as sync_concurrency
from leaseq._sync import connection as sync_connection
from leaseq.commands import LeaseReply
from leaseq.flows import Wait
from leaseq.keys import QueueKeys

if TYPE_CHECKING:
    import redis
    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener

HOUR = 3600.0


def state(queue: Any, item_id: str) -> tuple[str, int]:
    info = queue.inspect(item_id)
    return info.state, info.attempt


@pytest.mark.parametrize("names", ["q", "aq"], ids=["one queue", "two queues"])
def test_nothing_is_sent_between_the_wake_up_and_the_handler(
    flavour: ClientFlavour,
    redis_client: redis.Redis,
    url: str,
    proxy: Listener,
    names: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker's commands no longer arrive, and its handler starts all the same.

    Several queues of one group are waited for alike: the item comes to the last, whose lease was sent with the block on all.
    """
    monkeypatch.setattr(
        flows, "WAIT_CAP", HOUR
    )  # what ends the block is the item, however slow this machine is
    load(redis_client)
    latch = Latch()
    with leaseq.WorkQueue("q", url, group="g") as producer:
        queues = [flavour.queue(name, proxy.url, group="g") for name in names]
        producer.add_item(Item(b""))
        item = queues[-1].lease(HOUR)  # the queue is in the registry by now
        assert item
        assert queues[-1].complete(item)
        with background_worker(
            flavour, [unwrap(queue) for queue in queues], latch.handler(flavour), lease_secs=HOUR
        ) as work:
            blocked_with_a_command_behind(redis_client, proxy)  # else the lease would be held on its way
            proxy.hold_commands = True
            producer.add_item(Item(b"", id="a"))
            latch.reached()
            proxy.hold_commands = False
            latch.open()
            servers.wait_until(lambda: producer.stats().completed == 2, TIMEOUT_SECS)
            work.stop()
            assert work.result() == 1


def test_an_item_takes_an_idle_worker_three_commands(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis, producer: leaseq.WorkQueue
) -> None:
    """A lease behind the block, a completion, the next block: a worker that leased does not look again (LQ-SETTLE-3)."""
    load(redis_client)
    count = 20
    with background_worker(flavour, queue, lambda _: None, lease_secs=HOUR):
        producer.add_item(Item(b""))
        servers.wait_until(lambda: producer.stats().completed == 1, TIMEOUT_SECS)
        blocked(redis_client, 1)
        redis_client.config_resetstat()
        for number in range(count):
            producer.add_item(Item(b"", id=str(number)))
            servers.wait_until(lambda: redis_client.hlen("leaseq:{q}:q:items") == 0, TIMEOUT_SECS)
            blocked(redis_client, 1)
        assert calls(redis_client, *EVALS) == 3 * count  # add, lease, complete
        assert calls(redis_client, *BLOCKS) == count


class Stops(RecordingHooks):
    """Stops the worker while it hands out, and gives its main loop time to leave."""

    work: BackgroundWorker

    def leased(self, items: Any) -> None:
        super().leased(items)
        self.work.worker.stop()
        time.sleep(0.1)


def test_a_worker_that_is_stopped_while_it_hands_out(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, producer: leaseq.WorkQueue
) -> None:
    """A handler that has started may end; other items go back."""
    queue, latch, hooks = flavour.queue("q", url), Latch(), Stops()
    handle = latch.handler(flavour)
    with background_worker(flavour, queue, handle, lease_secs=HOUR, grace_secs=HOUR, hooks=[hooks]) as work:
        hooks.work = work
        blocked(redis_client, 1)
        producer.add_item(Item(b"", id="a"))
        servers.wait_until(lambda: ("started", "a") in hooks.calls or work.future.done(), TIMEOUT_SECS)
        latch.open()
        ended = work.result()
    assert ended == hooks.calls.count(("started", "a")) == producer.stats().completed


@pytest.mark.parametrize("groups", [1, 2])
def test_what_comes_to_a_worker_that_stood_still_goes_back(
    flavour: ClientFlavour,
    redis_client: redis.Redis,
    proxy: Listener,
    producer: leaseq.WorkQueue,
    monkeypatch: pytest.MonkeyPatch,
    groups: int,
) -> None:
    """The lease of what it reads then is over by its own clock; it leases anew."""
    load(redis_client)
    queues = [flavour.queue(name, proxy.url) for name in ("q", "other")[:groups]]
    ran: list[int] = []
    late = 0.0
    for io in (sync_concurrency, async_concurrency):
        monkeypatch.setattr(io, "now", lambda: time.monotonic() + late)
    with background_worker(flavour, queues, lambda item: ran.append(item.attempt), lease_secs=HOUR):
        blocked(redis_client, groups)
        proxy.hold_replies_after = 0
        producer.add_item(Item(b"", id="a"))
        servers.wait_until(lambda: producer.stats().leased == 1, TIMEOUT_SECS)
        late = 2 * HOUR
        proxy.hold_replies_after = None
        servers.wait_until(lambda: producer.stats().completed == 1, TIMEOUT_SECS)
    assert ran == [1], "given back uncounted, so it is its first attempt again"
    assert producer.stats().leases == 2


@pytest.mark.parametrize("passes", [0, len(WAKE_UP)], ids=["nothing read", "the wake-up read"])
@pytest.mark.parametrize("ending", ["stop", "close"])
def test_what_comes_to_a_worker_that_ends_goes_back(
    *,
    flavour: ClientFlavour,
    redis_client: redis.Redis,
    proxy: Listener,
    producer: leaseq.WorkQueue,
    ending: str,
    passes: int,
) -> None:
    """Stopped, or its queue closed, when the lease has run and its reply is on the way: ready again, uncounted."""
    load(redis_client)
    queue = flavour.queue("q", proxy.url)
    ran: list[Any] = []
    with background_worker(flavour, queue, ran.append, lease_secs=HOUR) as work:
        blocked(redis_client, 1)
        proxy.hold_replies_after = passes
        producer.add_item(Item(b"", id="a"))
        servers.wait_until(lambda: producer.stats().leased == 1, TIMEOUT_SECS)
        if ending == "stop":
            work.stop()
        else:
            closing = flavour.start(queue.close)
            servers.wait_until(lambda: unwrap(queue).executor.life.closed, TIMEOUT_SECS)
        proxy.hold_replies_after = None
        if ending == "stop":
            assert work.result() == 0
            queue.close()
        else:
            closing.result(TIMEOUT_SECS)
            with pytest.raises(leaseq.QueueClosedError):
                work.result()
    assert (state(producer, "a"), ran) == (("ready", 0), [])
    assert redis_client.llen("leaseq:{q}:q:wake") == 1, "another worker is woken"


@pytest.mark.parametrize("ending", ["stop", "close"])
def test_a_worker_that_ends_while_it_waits_takes_nothing(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis, producer: leaseq.WorkQueue, ending: str
) -> None:
    """The server has let go of its block when it has ended: items added then wait for another client."""
    with background_worker(flavour, queue, lambda _: None, lease_secs=HOUR) as work:
        blocked(redis_client, 1)
        if ending == "stop":
            work.stop()
            work.result()
        queue.close()
        if ending == "close":
            with pytest.raises(leaseq.QueueClosedError):
                work.result()
    blocked(redis_client, 0)
    producer.add_item(Item(b"", id="a"))
    assert state(producer, "a") == ("ready", 0)
    assert redis_client.llen("leaseq:{q}:q:wake") == 1


async def test_what_comes_to_a_cancelled_run_goes_back(
    redis_client: redis.Redis, url: str, proxy: Listener
) -> None:
    load(redis_client)
    async with leaseq.aio.WorkQueue("q", url) as other:
        async with leaseq.aio.WorkQueue("q", proxy.url) as queue:

            async def handle(_: Any) -> None:
                raise AssertionError

            worker = leaseq.worker.aio.Worker(queue, handle, lease_secs=HOUR, announce=False)
            run = asyncio.create_task(worker.run())
            await asyncio.to_thread(blocked_with_a_command_behind, redis_client, proxy)
            proxy.hold_replies_after = 0
            await other.add_item(Item(b"", id="a"))
            assert (await other.inspect("a")).state == "leased"
            run.cancel()
            await until(lambda: bool(queue.executor.background._tasks))
            proxy.hold_replies_after = None
            with pytest.raises(asyncio.CancelledError):
                await run
        info = await other.inspect("a")
        assert (info.state, info.attempt) == ("ready", 0)


def test_a_connection_that_cannot_end_one_half(
    queue: Any,
    flavour: ClientFlavour,
    redis_client: redis.Redis,
    producer: leaseq.WorkQueue,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with TLS: the lease is sent behind the block, so that leaving can close what has no lease in it."""
    for module in (sync_connection, async_connection):
        monkeypatch.setattr(module.Connection, "can_half_close", False)
    load(redis_client)
    with background_worker(flavour, queue, lambda _: None, lease_secs=HOUR) as work:
        blocked(redis_client, 1)
        producer.add_item(Item(b""))
        servers.wait_until(lambda: producer.stats().completed == 1, TIMEOUT_SECS)
        blocked(redis_client, 1)
        work.stop()
        assert work.result() == 1
    blocked(redis_client, 0)


def test_scripts_that_are_forgotten_while_it_waits(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, producer: leaseq.WorkQueue
) -> None:
    """The lease behind the block is answered NOSCRIPT: sent with its text, it gets the item."""
    queue, recorded = flavour.queue("q", url), RecordingHooks()
    with background_worker(flavour, queue, lambda _: None, hooks=recorded, lease_secs=HOUR):
        blocked(redis_client, 1)
        redis_client.script_flush()
        producer.add_item(Item(b"", id="a"))
        servers.wait_until(lambda: producer.stats().completed == 1, TIMEOUT_SECS)
        assert not recorded.of("server_away")


def test_a_connection_that_breaks_in_a_block_is_opened_again(
    flavour: ClientFlavour, redis_client: redis.Redis, proxy: Listener, producer: leaseq.WorkQueue
) -> None:
    """No hook reports a server that is away: it is there."""
    queue, recorded = flavour.queue("q", proxy.url), RecordingHooks()
    with background_worker(flavour, queue, lambda _: None, hooks=recorded, lease_secs=HOUR):
        blocked(redis_client, 1)
        (before,) = blocked_ids(redis_client)
        proxy.reset()
        servers.wait_until(lambda: blocked_ids(redis_client) not in ([before], []), TIMEOUT_SECS)
        producer.add_item(Item(b"", id="a"))
        servers.wait_until(lambda: producer.stats().completed == 1, TIMEOUT_SECS)
        assert not recorded.of("server_away")


@pytest.mark.parametrize("passes", [0, len(WAKE_UP)], ids=["nothing read", "the wake-up read"])
def test_a_lost_reply_to_the_lease_behind_a_block(
    *,
    flavour: ClientFlavour,
    redis_client: redis.Redis,
    proxy: Listener,
    producer: leaseq.WorkQueue,
    passes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LQ-BLOCK-11: the item waits for its deadline, it is not leased twice, and the worker goes on."""
    monkeypatch.setattr(
        flows, "WAIT_CAP", HOUR
    )  # what ends the block is the item, however slow this machine is
    load(redis_client)
    queue = flavour.queue("q", proxy.url)
    ran: list[Any] = []
    with background_worker(flavour, queue, lambda item: ran.append(item.id), lease_secs=HOUR):
        blocked_with_a_command_behind(redis_client, proxy)  # else the lease would be lost on its way there
        proxy.cut_replies_after = passes
        producer.add_item(Item(b"", id="a"))
        servers.wait_until(lambda: proxy.cut_replies_after is None, TIMEOUT_SECS)
        producer.add_item(Item(b"", id="b"))
        servers.wait_until(lambda: producer.stats().completed == 1, TIMEOUT_SECS)
        assert (state(producer, "a"), ran) == (("leased", 1), ["b"])


def test_a_block_that_is_refused(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, producer: leaseq.WorkQueue
) -> None:
    """LQ-BLOCK-10: the wait ends with the error, unless the lease behind, which was run all the same, has an item."""
    redis_client.acl_setuser(
        "deaf", enabled=True, nopass=True, keys=["*"], channels=["*"], commands=["+@all", "-blpop"]
    )
    try:
        queue = unwrap(flavour.queue("q", url.replace("redis://", "redis://deaf:x@")))
        take = commands.lease(queue.keys, 10, HOUR)
        wait = Wait(("BLPOP", queue.keys.key("wake")), 4.0, take, pipelined=True)
        producer.add_item(Item(b"", id="a"))
        reply: Any = flavour.run(queue.executor.wait(wait))
        assert [taken[0] for taken in reply.items] == ["a"]
        with pytest.raises(leaseq.AccessDeniedError):
            flavour.run(queue.executor.wait(wait))
    finally:
        redis_client.acl_deluser("deaf")


@pytest.mark.parametrize(
    ("server_wait", "remaining", "pipelined"),
    [
        (None, math.inf, True),
        (HOUR, math.inf, True),
        (3.0, math.inf, False),
        (None, 2.0, False),
        (None, HOUR, True),
    ],
)
def test_when_a_lease_is_sent_with_the_block(
    server_wait: float | None, remaining: float, *, pipelined: bool
) -> None:
    """LQ-BLOCK-8: not where the block ends at a time that matters, since a server notices that up to 100 ms late."""
    flow = flows.lease_any(
        [QueueKeys("q")], 1, 30, wait_until=10.0 + remaining, clock=lambda: 10.0, pipelined=True
    )
    next(flow)
    wait = flow.send(LeaseReply(server_wait, 0, [], sent_at=10.0))
    assert isinstance(wait, Wait)
    assert wait.pipelined is pipelined
