"""A client that costs next to nothing: commands are packed beforehand, replies are only counted."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from bench_server import BenchServer

ANSWER_SECS: Final = 60.0
CHUNK: Final = 1 << 20


def packed(*parts: bytes | str | int) -> bytes:
    """A command as it goes over the wire."""
    encoded = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in encoded)


@dataclass(frozen=True)
class Spent:
    """What one item took: CPU time of the server and time by the clock in us, and commands, those inside scripts too."""

    server_us: float
    wall_us: float
    commands: float


class Meter:
    """What a server spends from here on."""

    def __init__(self, server: BenchServer) -> None:
        self._server = server
        server.reset()
        self._cpu, self._began = server.cpu_usec(), time.monotonic_ns()

    def spent(self, items: int) -> Spent:
        """On each of so many items."""
        wall = (time.monotonic_ns() - self._began) / 1000
        cpu = self._server.cpu_usec() - self._cpu
        return Spent(cpu / items, wall / items, sum(self._server.calls().values()) / items)


class Load:
    """Connections that send prepared commands and count the lines of the replies. A context manager."""

    def __init__(self, server: BenchServer, connections: int) -> None:
        self._server = server
        self._sockets = [
            socket.create_connection(("127.0.0.1", server.port), ANSWER_SECS) for _ in range(connections)
        ]

    def run(
        self, commands: Sequence[bytes], lines: int = 1, depth: int = 1, items: int = 1
    ) -> tuple[Spent, bytes]:
        """Send all, so many at a time on each connection. Answers what an item took, and the replies.

        Args:
            commands: packed.
            lines: of the reply to each of them.
            depth: commands at a time on each connection.
            items: that each command is about.
        """
        meter, replies = Meter(self._server), []
        for at in range(0, len(commands), len(self._sockets) * depth):
            sent = []
            for number, each in enumerate(self._sockets):
                part = commands[at + number * depth : at + (number + 1) * depth]
                if part:
                    each.sendall(b"".join(part))
                    sent.append((each, len(part) * lines))
            replies += [_answer(each, wanted) for each, wanted in sent]
        return meter.spent(len(commands) * items), b"".join(replies)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._sockets:
            each.close()


def _answer(connection: socket.socket, lines: int) -> bytes:
    """So many lines. Raises RuntimeError for an error among them, or where the server hung up."""
    parts, seen, last = [], 0, b""
    while seen < lines:
        part = connection.recv(CHUNK)
        if not part:
            raise RuntimeError("the server closed the connection")
        # an end of line may come in two parts
        seen += part.count(b"\r\n") + (last == b"\r" and part[:1] == b"\n")
        last = part[-1:]
        parts.append(part)
    reply = b"".join(parts)
    if b"\r\n-" in reply or reply.startswith(b"-"):
        raise RuntimeError(reply[:200].decode(errors="replace"))
    return reply
