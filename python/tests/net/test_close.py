"""Closing that is cut short, and bounds and threads that are not to be had."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import redis
from support import servers
from support.redis_probe import count_blocked
from support.servers import TIMEOUT_SECS

import leaseq
import leaseq.aio
import leaseq.jobs
from leaseq import Item
from leaseq._sync import concurrency

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener


def clients(client: redis.Redis) -> int:
    return len(client.client_list())


@pytest.mark.parametrize("what", ["queue", "app"])
async def test_closing_that_was_cut_by_a_time_limit_is_finished(
    proxy: Listener, redis_client: redis.Redis, what: str
) -> None:
    """A call is under way, which closing waits for; the connections stayed."""
    before = clients(redis_client)
    app = leaseq.jobs.App(proxy.url)
    queue: Any = leaseq.aio.WorkQueue("q", proxy.url) if what == "queue" else app.aio.queue()
    await queue.add_item(Item(b"x"))
    proxy.hold_replies_after = 0
    call = asyncio.create_task(queue.stats())
    await asyncio.sleep(0)
    close = queue.close if what == "queue" else app.aio.close
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await close()
    with pytest.raises(leaseq.QueueClosedError):
        await queue.stats()
    proxy.hold_replies_after = None
    await close()
    assert (await call).ready == 1
    servers.wait_until(lambda: clients(redis_client) == before)


def test_closing_does_not_wait_for_a_heartbeat_that_sleeps(flavour: ClientFlavour, url: str) -> None:
    queue: Any = flavour.queue("q", url)
    queue.add_item(Item(b"x"))
    with queue.lease(3600):
        servers.wait_until(lambda: queue.heartbeater._worker is not None)
    began = time.monotonic()
    queue.close()
    assert time.monotonic() - began < 2  # it waits for others up to 4 s


def test_closing_that_was_interrupted_is_finished(
    redis_client: redis.Redis, proxy: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = clients(redis_client)
    queue = leaseq.WorkQueue("q", proxy.url)
    queue.add_item(Item(b"x"))
    proxy.hold_replies_after = 0
    call = threading.Thread(target=queue.stats)
    call.start()
    servers.wait_until(lambda: bool(queue.executor.life.calls))

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(concurrency, "sleep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            queue.close()
    proxy.hold_replies_after = None
    queue.close()
    call.join()
    servers.wait_until(lambda: clients(redis_client) == before)


@pytest.fixture
def no_threads() -> Iterator[None]:
    """No further thread can be started: the system has no room for its stack."""
    before = threading.stack_size(1 << 47)
    yield
    threading.stack_size(before)


@pytest.mark.usefixtures("no_threads")
def test_a_thread_that_cannot_be_started(url: str, redis_client: redis.Redis) -> None:
    """The item can still be completed; closing waited 5 s for a thread that never started."""
    del redis_client
    queue = leaseq.WorkQueue("q", url)
    queue.add_item(Item(b"x", id="a"))
    item = queue.lease(60)
    assert item is not None
    with pytest.raises(leaseq.LeaseqError, match="no thread"), item:
        pass
    assert queue.complete(item)
    began = time.monotonic()
    queue.close()
    assert time.monotonic() - began < 1


@pytest.mark.usefixtures("no_threads")
def test_what_an_interrupted_call_brings_goes_back_without_a_thread(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_item(Item(b"x", id="a"))

        def interrupted(*_: Any) -> Any:
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(leaseq._sync.connection.Connection, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            queue.lease(60, block=False)
        assert queue.inspect("a").state == "ready"


@pytest.mark.usefixtures("no_threads")
def test_several_waits_without_a_thread(url: str) -> None:
    one, other = leaseq.WorkQueue("a", url), leaseq.WorkQueue("b", url)
    with one, other, pytest.raises(leaseq.LeaseqError, match="no thread"):
        leaseq.WorkQueues([one, other]).lease(60, timeout=10)


def test_a_bound_in_two_loops_at_once(url: str) -> None:
    """LQ-CLIENT-18: one loop took the places that tasks of the other waited for, which hung."""
    kind: Any = redis.asyncio.BlockingConnectionPool
    client = redis.asyncio.Redis.from_pool(kind.from_url(url, max_connections=1, timeout=TIMEOUT_SECS))
    turns = threading.Barrier(2)
    queue = leaseq.aio.WorkQueue("q", client)
    found: list[int] = []

    async def work() -> None:
        for _ in range(20):
            turns.wait(TIMEOUT_SECS)
            found.extend(each.ready for each in await asyncio.gather(*(queue.stats() for _ in range(3))))

    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_SECS)
    assert found == [0] * 120
    asyncio.run(queue.close())


@pytest.mark.parametrize("reply", [b"+what\r\n", b"*1\r\n*0\r\n"])
def test_a_reply_of_another_shape_behind_a_block(
    flavour: ClientFlavour, proxy: Listener, redis_client: redis.Redis, url: str, reply: bytes
) -> None:
    """LQ-ERROR-4, as below."""
    queue, other = flavour.queue("q", proxy.url), flavour.queue("q", url)
    assert queue.lease(60, block=False) is None, "the script is known"
    point = proxy.add_breakpoint("EVALSHA", nth=2)
    waiting = flavour.start(queue.lease, 60)
    servers.wait_until(lambda: count_blocked(redis_client) == 1)
    other.add_item(Item(b"x", id="a"))
    point.wait()
    point.reply_with(reply)
    with pytest.raises(leaseq.ReplyLostError):
        waiting.result(TIMEOUT_SECS)


def test_closing_cuts_no_call_of_another_queue(flavour: ClientFlavour, proxy: Listener) -> None:
    """LQ-BLOCK-6: the call has a connection on which a wait of the closed queue was refused, as a full server does."""
    client = flavour.client(proxy.url, max_connections=1)
    queue, other = flavour.queue("q", client), flavour.queue("other", client)
    other.stats()
    block = proxy.add_breakpoint("BLPOP")
    waiting = flavour.start(queue.lease, 30, timeout=0.5)
    block.wait()
    block.reply_with(b"-OOM command not allowed when used memory > 'maxmemory'.\r\n")
    assert waiting.result(TIMEOUT_SECS) is None
    point = proxy.add_breakpoint("EVALSHA", when="after")
    call = flavour.start(other.stats)
    point.wait()
    queue.close()
    point.resume()
    assert call.result(TIMEOUT_SECS).ready == 0


@pytest.mark.parametrize(
    "reply", [b"+what\r\n", b":1\r\n", b"*1\r\n*0\r\n", b"$-1\r\n", b"*2\r\n$1\r\nx\r\n:7\r\n", b"_\r\n"]
)
@pytest.mark.parametrize("call", ["stats", "lease"])
def test_a_reply_of_another_shape(flavour: ClientFlavour, proxy: Listener, reply: bytes, call: str) -> None:
    """LQ-ERROR-4: it may be of anything, so the call may have taken effect. It raised TypeError, ValueError and the like."""
    queue = flavour.queue("q", proxy.url)
    queue.add_item(Item(b"x", id="a"))
    point = proxy.add_breakpoint("EVALSHA")
    calling = flavour.start(lambda: queue.stats() if call == "stats" else queue.lease(60, block=False))
    point.wait()
    point.reply_with(reply)
    try:
        answer = calling.result(TIMEOUT_SECS)
    except leaseq.ReplyLostError:
        pass
    else:
        assert answer is None  # of `lease`, for what says that there is nothing
    assert queue.inspect("a").id == "a"
