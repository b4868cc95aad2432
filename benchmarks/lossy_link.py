"""A link to a server that is slow for replicas, and that can break: what is on it is lost then."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from typing import Final, Self

_CHUNK: Final = 65_536
_LISTENS_AT: Final = re.compile(rb"listening-port\r\n\$\d+\r\n(\d+)\r\n")
"""The port of a replica, in a command before it asks for the data."""


class LossyLink:
    """A port that leads to another one of this machine; a `with` block.

    Attributes:
        port: where it listens.
        delays: the seconds that each direction takes, by the port at which a replica says to listen. Other clients have none.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self.delays: dict[int, float] = {}
        self._target = target
        self._is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.start_server(self._join, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Break it: nothing arrives, and no connection ends."""
        self._is_cut = True

    def mend(self) -> None:
        """Let new connections through. The old ones end."""
        self._is_cut = False
        self._loop.call_soon_threadsafe(self._drop)

    def _drop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _end(self) -> None:
        self._server.close()
        self._drop()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client with the server."""
        self._writers.add(writer)
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers.add(server_writer)
        replica: list[int] = []
        with contextlib.suppress(asyncio.CancelledError):  # the end of the link
            await asyncio.gather(
                self._pass_on(reader, server_writer, replica, looks=True),
                self._pass_on(server_reader, writer, replica, looks=False),
            )

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, replica: list[int], *, looks: bool
    ) -> None:
        """Pass one direction on; `replica` gets the port of a replica, once it says so."""
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                if looks and (found := _LISTENS_AT.search(data)):
                    replica.append(int(found[1]))
                delay = self.delays.get(replica[0], 0.0) if replica else 0.0
                self._loop.call_later(delay, self._deliver, writer, data)
        if not self._is_cut:
            writer.transport.abort()
        self._writers.discard(writer)

    def _deliver(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if not self._is_cut and not writer.is_closing():
            writer.write(data)
