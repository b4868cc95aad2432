"""Replies of asyncio that come too late, or just in time."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest
import redis
from redis.asyncio import Connection
from support.redis_probe import load

import leaseq.aio
from leaseq import Item
from leaseq._aio.io import Wire
from leaseq._aio.watch import Watch
from leaseq.errors import WrongTypeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from leaseq_conformance.fault_proxy import Listener

PATIENCE = 60.0


@pytest.fixture
def just_in_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Every reply comes in the moment in which it is late, as to a process that stood still; until this is undone."""
    read = Wire._read

    async def read_late(self: Wire) -> Any:
        try:
            return await read(self)
        finally:
            self.be_late()

    with monkeypatch.context() as patched:
        patched.setattr(Wire, "_read", read_late)
        yield patched


async def test_a_reply_that_comes_in_the_moment_it_is_late_is_answered(
    just_in_time: pytest.MonkeyPatch, url: str, redis_client: redis.Redis
) -> None:
    load(redis_client)
    async with leaseq.aio.WorkQueue("q", url) as queue:
        assert await queue.add_item(Item(b"x", id="a"))
        just_in_time.undo()
        assert not await queue.add_item(Item(b"x", id="a"))


async def test_nobody_is_late_because_another_one_was(
    just_in_time: pytest.MonkeyPatch, url: str, redis_client: redis.Redis
) -> None:
    """LQ-ERROR-4: also when that call ended with an error of the server, which leaves nothing on its way."""
    load(redis_client)
    redis_client.hset("leaseq:{wrong}:wrong:state", "a", "b")
    async with leaseq.aio.WorkQueue("wrong", url) as queue:
        with pytest.raises(WrongTypeError):
            await queue.stats()
        just_in_time.undo()
        redis_client.delete("leaseq:{wrong}:wrong:state")
        assert (await queue.stats()).ready == 0


@pytest.fixture
async def deaf() -> AsyncIterator[Any]:
    """A connection to somebody who takes nothing in."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connection: Any = Connection(port=port, redis_connect_func=lambda it: it._parser.on_connect(it))
        await connection.connect()
        transport = connection._writer.transport
        yield connection
        transport.abort()
        await asyncio.sleep(0)


async def put_back() -> None:
    """Nobody takes it."""


async def test_who_reads_is_late_also_when_the_connection_was_closed_meanwhile(deaf: Any) -> None:
    """A transport that has something to send does not tell its reader that it is closed."""
    wire = Wire(deaf, put_back, Watch())
    deaf._writer.write(b"x" * (64 << 20))
    reading = asyncio.create_task(wire.read(1))
    await asyncio.sleep(0)
    await deaf.disconnect(nowait=True)
    with pytest.raises((redis.TimeoutError, redis.ConnectionError)):
        await asyncio.wait_for(reading, PATIENCE)


@pytest.mark.parametrize("plain", [True, False])
async def test_a_connection_that_times_out_by_itself_is_no_reply(url: str, *, plain: bool) -> None:
    """ETIMEDOUT, where the system gets no answer: redis-py answers None then, as if nothing had come yet."""
    client: Any = redis.asyncio.Redis.from_url(url)
    connection: Any = await client.connection_pool.get_connection()
    wire = Wire(connection, put_back, Watch(), plain=plain)
    await wire.send("PING")
    connection._reader.set_exception(TimeoutError(errno.ETIMEDOUT, "Connection timed out"))
    with pytest.raises(redis.TimeoutError):
        await wire.read()
    assert wire.owed == 1
    await connection.disconnect()
    await client.aclose()


@pytest.mark.parametrize("ours", [True, False])
async def test_one_that_was_reset_meanwhile_is_opened_again(proxy: Listener, *, ours: bool) -> None:
    """LQ-ERROR-4: nothing was sent there, so no reply is lost to it."""
    client = redis.asyncio.Redis.from_url(proxy.url)
    async with leaseq.aio.WorkQueue("q", proxy.url if ours else client) as queue:
        assert await queue.add_item(Item(b"x", id="a"))
        server: Any = queue._server.client
        pool = server.connection_pool
        idle = pool._idle[os.getpid()][-1] if ours else pool._available_connections[-1]
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(idle._reader.read(1), PATIENCE)
        assert await queue.add_item(Item(b"x", id="b"))
    await client.aclose()
