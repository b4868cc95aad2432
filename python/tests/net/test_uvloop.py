"""The clients of asyncio on another event loop than Python's own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import uvloop
from support import servers

import leaseq
import leaseq.aio
import leaseq.jobs
import leaseq.worker.aio

if TYPE_CHECKING:
    from collections.abc import Coroutine

    import redis

    from leaseq_conformance.fault_proxy import Listener

HOUR = 3600.0


def blocked(redis_client: redis.Redis) -> bool:
    """Return whether a client waits on the server."""
    return any(each["cmd"] == "blpop" for each in redis_client.client_list())


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run it to its end, on uvloop."""
    uvloop.run(main)


def test_an_item_from_add_to_done(redis_client: redis.Redis, url: str) -> None:
    async def main() -> None:
        async with leaseq.aio.WorkQueue("q", url) as queue:
            waiting = asyncio.create_task(queue.lease(HOUR, timeout=HOUR))
            await asyncio.to_thread(servers.wait_until, lambda: blocked(redis_client))
            assert await queue.add_item(leaseq.Item(b"data", id="a"))
            item = await waiting
            assert item is not None
            assert item.data == b"data"
            assert await queue.complete(item)
            assert not await queue.complete(item)

    run(main())


def test_a_reply_that_does_not_come(redis_client: redis.Redis, proxy: Listener) -> None:
    """LQ-ERROR-4: the call ends with the read timeout, and the next call has another connection."""
    del redis_client

    async def main() -> None:
        async with leaseq.aio.WorkQueue("q", f"{proxy.url}?socket_timeout=1") as queue:
            assert await queue.add_item(leaseq.Item(b"data", id="first"))
            proxy.discard_replies = True
            with pytest.raises(leaseq.ReplyLostError):
                await queue.add_item(leaseq.Item(b"data", id="a"))
            proxy.discard_replies = False
            assert (await queue.inspect("a")).state == "ready"

    run(main())


def test_data_that_the_socket_does_not_take_at_once(redis_client: redis.Redis, url: str) -> None:
    del redis_client

    async def main() -> None:
        data = b"x" * 50_000_000
        async with leaseq.aio.WorkQueue("q", url) as queue:
            await queue.configure(max_data=len(data))
            assert await queue.add_item(leaseq.Item(data, id="a"))
            item = await queue.lease(HOUR)
            assert item is not None
            assert item.data == data

    run(main())


def test_a_worker_and_a_job(redis_client: redis.Redis, url: str) -> None:
    del redis_client
    app = leaseq.jobs.aio.App(url)

    @app.job(name="double")
    async def double(number: int) -> int:
        return 2 * number

    async def main() -> None:
        handle = await double.enqueue(21)
        assert await app.run_worker(burst=True) == 1
        assert await handle.result(HOUR) == 42
        await app.close()

    run(main())
