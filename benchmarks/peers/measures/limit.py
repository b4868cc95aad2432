"""What the server could do: plain commands and the floor's scripts, sent by a client that costs next to nothing.

Commands are packed beforehand and replies only counted, over 50 connections, one or sixteen commands at a time on each.
The figure is the server's CPU time for one command; a million over it is the most that one server does in a second.
"""

from __future__ import annotations

import re
import socket
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import floor
from peers.bench import Record, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench_server import BenchServer
    from peers.bench import Bench

NAME: Final = "limit"
WHO: Final = "server"
CONNECTIONS: Final = 50
DEPTHS: Final = (1, 16)
DATA: Final = b"x" * 100
BATCH: Final = 100
ANSWER_SECS: Final = 30.0
LEASED: Final = re.compile(rb"(f\d{8})\r\n\$100\r\nx+\r\n:1\r\n\$\d+\r\n(\d+)\r\n")


def steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One in each repetition, whatever libraries there are."""
    if not libraries:
        return
    for repetition in range(1, bench.size.repetitions + 1):
        secs = bench.size.limit_commands * 8 * 12e-6 * len(DEPTHS) + 1
        yield Step(NAME, (WHO,), repetition, secs, partial(limit, bench, repetition))


def packed(*parts: bytes | str | int) -> bytes:
    """A command as it goes over the wire."""
    encoded = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in encoded)


class Load:
    """Connections that send prepared commands and count the lines of the replies."""

    def __init__(self, server: BenchServer) -> None:
        self._server = server
        self._sockets = [
            socket.create_connection(("127.0.0.1", server.port), ANSWER_SECS) for _ in range(CONNECTIONS)
        ]

    def run(
        self, commands: Sequence[bytes], lines: int, depth: int, *, keep: bool = False
    ) -> tuple[float, bytes]:
        """Send all, so many at a time on each connection: server CPU in us per command, and the replies if wanted."""
        before = self._server.cpu_usec()
        kept = []
        for at in range(0, len(commands), CONNECTIONS * depth):
            sent = []
            for number, each in enumerate(self._sockets):
                part = commands[at + number * depth : at + (number + 1) * depth]
                if part:
                    each.sendall(b"".join(part))
                    sent.append((each, len(part) * lines))
            for each, wanted in sent:
                reply = b""
                while reply.count(b"\r\n") < wanted:
                    reply += each.recv(1 << 20)
                if b"\r\n-" in reply or reply.startswith(b"-"):
                    raise RuntimeError(reply[:200].decode())
                if keep:
                    kept.append(reply)
        return (self._server.cpu_usec() - before) / len(commands), b"".join(kept)

    def close(self) -> None:
        """Close the connections."""
        for each in self._sockets:
            each.close()


def limit(bench: Bench, repetition: int) -> list[Record]:
    """All commands at both depths, and the floor's scripts in batches over one connection."""
    load = Load(bench.server)
    found: list[Record] = []

    def note(case: str, server_us: float) -> None:
        values = {"server_us": round(server_us, 3), "per_second": round(1e6 / server_us)}
        found.append(Record(NAME, WHO, repetition, values, case))

    try:
        for depth in DEPTHS:
            for name, server_us in singles(bench, load, depth).items():
                note(f"{name}, {depth} at a time", server_us)
    finally:
        load.close()
    for name, server_us in batches(bench).items():
        note(f"{name}, batches of {BATCH}", server_us)
    return found


def singles(bench: Bench, load: Load, depth: int) -> dict[str, float]:
    """Server CPU in us of each command."""
    bench.empty()
    count = bench.size.limit_commands
    server = bench.server
    add, lease, complete = (server.load(source) for source in (floor.ADD, floor.LEASE, floor.COMPLETE))
    nothing = server.load("return 1")
    plain = {
        "PING": [b"PING\r\n"] * count,
        "SET": [packed("SET", f"key-{n:08d}", DATA) for n in range(count)],
        "LPUSH": [packed("LPUSH", "list", DATA)] * count,
        "EVALSHA return 1": [packed("EVALSHA", nothing, 0)] * count,
        "floor add": [packed("EVALSHA", add, 4, *floor.KEYS, f"f{n:08d}", DATA) for n in range(count)],
    }
    found = {name: load.run(commands, 1, depth)[0] for name, commands in plain.items()}
    leases = [packed("EVALSHA", lease, 3, *floor.KEYS[:3], 60_000)] * count
    found["floor lease"], replies = load.run(leases, 8, depth, keep=True)
    held = LEASED.findall(replies)
    if len(held) != count:
        raise RuntimeError(f"{len(held)} of {count} were leased")
    ends = [packed("EVALSHA", complete, 3, *floor.KEYS[:3], each, deadline) for each, deadline in held]
    found["floor complete"] = load.run(ends, 1, depth)[0]
    return found


def batches(bench: Bench) -> dict[str, float]:
    """Server CPU in us per item of the floor's scripts for many."""
    bench.empty()
    subject = floor.Floor(bench.server, BATCH)
    ids = [f"item-{n:05d}" for n in range(bench.size.limit_commands // BATCH * BATCH)]
    held: list[Any] = []
    found = {}
    before = bench.server.cpu_usec()
    for at in range(0, len(ids), BATCH):
        subject.add(ids[at : at + BATCH], DATA)
    found["floor add"] = bench.server.cpu_usec() - before
    before = bench.server.cpu_usec()
    held += [subject.lease(60_000) for _ in range(0, len(ids), BATCH)]
    found["floor lease"] = bench.server.cpu_usec() - before
    before = bench.server.cpu_usec()
    for each in held:
        subject.complete(each)
    found["floor complete"] = bench.server.cpu_usec() - before
    return {name: usec / len(ids) for name, usec in found.items()}
