"""TCP fault proxy for tests: latency, jitter, bandwidth, black holes, resets, a reply cut after N bytes, refusal.

    with FaultProxy("127.0.0.1", server.port) as proxy:
        client = redis.Redis(port=proxy.port, ...)
        proxy.cut_after_down = 0        # the next command runs on the server, its reply is lost
        proxy.latency = 0.1             # each way: a round trip takes 0.2 s longer
        proxy.reset_connections()

Attributes may be set at any time from any thread. The proxy runs in a thread of its own, so that sync and asyncio
tests can both use it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

START_SECS = 5.0
_LINGER_0 = struct.pack("ii", 1, 0)  # close with RST instead of FIN

Pair = tuple[asyncio.StreamWriter, asyncio.StreamWriter]


class FaultProxy:
    """A TCP proxy in front of a server, whose faults are switched by setting attributes.

    Attributes:
        port: where it listens, once entered.
        latency: seconds, added to each chunk in each direction.
        jitter: seconds, largest random addition to the latency.
        rate: bytes per second, or None.
        blackhole_up: swallow what the client sends.
        blackhole_down: swallow what the server answers.
        cut_after_down: reset the connection after so many reply bytes, counted from arming; happens once.
        hold_down: hold the server's replies back, in order, once so many more bytes of them have passed; None lets them
            go. What is on its way is on its way until a test says so, however long the machine stalls.
        hold_up: hold back what clients send, likewise.
        sent_up: bytes that clients have sent so far, held ones included.
        refuse: reset new connections.
    """

    def __init__(self, up_host: str, up_port: int, host: str = "127.0.0.1") -> None:
        self.up = (up_host, up_port)
        self.host = host
        self.port = 0
        self.latency = 0.0
        self.jitter = 0.0
        self.rate: float | None = None
        self.blackhole_up = False
        self.blackhole_down = False
        self.cut_after_down: int | None = None
        self.hold_down: int | None = None
        self.hold_up = False
        self.sent_up = 0
        self.refuse = False
        self._pairs: set[Pair] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="fault proxy", daemon=True)
        self._ready = threading.Event()
        self._handlers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def url(self) -> str:
        """The URL to give to a client."""
        return f"redis://{self.host}:{self.port}"

    def reset_connections(self) -> None:
        """Reset all connections through the proxy; returns before it has happened."""
        self._loop.call_soon_threadsafe(self._reset_all)

    async def _pipe_up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.sent_up += len(data)
            while self.hold_up:  # noqa: ASYNC110 (set from other threads)
                await asyncio.sleep(0.002)
            await self._delay(data)
            if not self.blackhole_up:
                writer.write(data)
                await writer.drain()

    async def _pipe_down(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pair: Pair
    ) -> None:
        while data := await reader.read(65536):
            await self._delay(data)
            if self.blackhole_down:
                continue
            if self.hold_down is not None:
                data = await self._held(data, writer)
            left = self.cut_after_down
            if left is not None and len(data) >= left:
                self.cut_after_down = None
                writer.write(data[:left])
                await writer.drain()
                _reset(*pair)
                return
            if left is not None:
                self.cut_after_down = left - len(data)
            writer.write(data)
            await writer.drain()

    async def _held(self, data: bytes, writer: asyncio.StreamWriter) -> bytes:
        """Let pass what may pass; answer the rest once it may go."""
        passes = min(len(data), self.hold_down or 0)
        writer.write(data[:passes])
        if self.hold_down is not None:
            self.hold_down -= passes
        while passes < len(data) and self.hold_down is not None:  # noqa: ASYNC110 (set from other threads)
            await asyncio.sleep(0.002)
        return data[passes:]

    async def _delay(self, data: bytes) -> None:
        if self.latency or self.jitter:
            await asyncio.sleep(self.latency + random.random() * self.jitter)
        if self.rate:
            await asyncio.sleep(len(data) / self.rate)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # known from the first moment, so that a proxy that ends just now closes it too
        task = self._loop.create_task(self._handle(reader, writer))
        self._handlers[task] = writer
        task.add_done_callback(self._handlers.pop)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuse:
            _reset(writer)
            return
        try:
            server_reader, server_writer = await asyncio.open_connection(*self.up)
        except OSError:
            _reset(writer)
            return
        pair = (writer, server_writer)
        self._pairs.add(pair)
        tasks = [
            asyncio.create_task(self._pipe_up(reader, server_writer)),
            asyncio.create_task(self._pipe_down(server_reader, writer, pair)),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0] in done and tasks[0].exception() is None:
                # a client that sends nothing more may still read
                with contextlib.suppress(OSError):
                    server_writer.write_eof()
                await asyncio.wait(tasks[1:])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._pairs.discard(pair)
            for side in pair:
                side.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._accept, self.host, 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        # Connections that were made before the end are accepted and known first: asyncio trips over them otherwise.
        self._turn(5)
        server.close()
        while self._handlers:
            _reset(*self._handlers.values())
            self._reset_all()
            for task in self._handlers:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*self._handlers, return_exceptions=True))
            self._turn(1)
        self._turn(3)  # a transport that was aborted closes its socket in a later turn of the loop
        self._loop.close()

    def _turn(self, times: int) -> None:
        for _ in range(times):
            self._loop.run_until_complete(asyncio.sleep(0))

    def _reset_all(self) -> None:
        for pair in list(self._pairs):
            _reset(*pair)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(START_SECS):
            raise RuntimeError("the proxy did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_SECS)


def _reset(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        sock = writer.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError):  # closed by the other side meanwhile
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_0)
        writer.transport.abort()
