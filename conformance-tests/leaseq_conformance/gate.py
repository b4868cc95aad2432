"""A gate between actors and a real server: it sees every command, and can stop one before or after the server runs it.

    with Gate(server) as gate:
        door = gate.door("w1", kill=w1.kill9)   # a port of its own, so that every command has a name on it
        point = gate.point("w1", "lease", when="after")
        ...                                     # w1 connects to door.url and leases
        point.reached()                         # the server has leased; the reply is held here
        point.drop()                            # and is never told

A point waits for one command. What it does with it is said when it is made (`do=`) or, held, by `let_go`, `drop`,
`kill` or `inject`. A held command holds those behind it on the same connection, and no others.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import socket
import struct
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Self

from leaseq_conformance import resp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

PATIENCE: Final = 120.0
"""How long a held command is held at most, and how long anybody waits for one, seconds."""
ANY_SCRIPT: Final = "SCRIPT"
"""The label of a call of whatever script."""
ANY_CALL: Final = "CALL"
"""The label of what an operation is made of: calls of scripts, and blocks."""
BLOCKS: Final = frozenset({"BLPOP", "BLMOVE"})
_RESET: Final = struct.pack("ii", 1, 0)  # close with RST instead of FIN

When = Literal["before", "after"]
Do = Literal["hold", "let go", "drop", "kill"] | bytes
"""What becomes of a command: bytes are a reply that the client gets instead of the server's."""
Address = tuple[str, int] | str
"""Where the server listens: host and port, or the path of a socket."""


class GateError(Exception):
    """A command did not come that was waited for."""


@dataclass
class Command:
    """A command as an actor sent it.

    Attributes:
        number: its place among all commands through the gate, in the order in which they came.
        arguments: exactly the bytes that were sent.
        script: the name of the script that it calls, where the gate knows the digest or the source.
        sent: whether it was passed on to the server.
        reply: the bytes that the server answered, None where it has not or the connection went.
        told: the bytes that the actor got; None where it got nothing.
    """

    number: int
    actor: str
    connection: int
    arguments: tuple[bytes, ...]
    script: str | None = None
    sent: bool = False
    reply: bytes | None = None
    told: bytes | None = None
    injected: bytes | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The command's name, in upper case."""
        return self.arguments[0].decode("ascii", "replace").upper() if self.arguments else ""

    @property
    def label(self) -> str:
        """The script's name where it calls one that is known, else the command's."""
        return self.script or self.name

    def is_named(self, label: str | None) -> bool:
        """Whether it is a call of the script, or the command, of this name; `SCRIPT` is a call of any, `CALL` that or a block."""
        if label == ANY_SCRIPT:
            return self.script is not None
        if label == ANY_CALL:
            return self.script is not None or self.name in BLOCKS
        return label in {None, self.label, self.name}

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys of a call of a script."""
        return self.arguments[3 : 3 + int(self.arguments[2])] if self.script else ()

    @property
    def argv(self) -> tuple[bytes, ...]:
        """What a call of a script passes behind its keys."""
        return self.arguments[3 + int(self.arguments[2]) :] if self.script else ()

    def line(self) -> str:
        """For a transcript, one line."""
        said = " ".join(
            _shown(part) for part in (self.keys + self.argv if self.script else self.arguments[1:])
        )
        fate = resp.shown(self.told) if self.told is not None else "(no reply)"
        if not self.sent:
            fate += " [never reached the server]"
        elif self.told is None and self.reply is not None:
            fate += f" [the server said {resp.shown(self.reply)}]"
        via = f"{self.name} {self.script}" if self.script else self.name
        return f"{self.actor}/{self.connection} {via} {said} -> {fate}"


def _shown(part: bytes) -> str:
    text = part.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 80 else text[:80] + "...")


class Point:
    """A place at which one command is stopped; made by `Gate.point`."""

    def __init__(self, actor: str, label: str | None, when: When, do: Do, nth: int) -> None:
        self.actor = actor
        self.when = when
        self.command: Command | None = None
        self._label = label
        self._do: Do = do
        self._left = nth
        self._reached = threading.Event()
        self._decided = threading.Event()
        if do != "hold":
            self._decided.set()

    def takes(self, command: Command) -> bool:
        """Whether it is the command that this point is for; counts those that it lets by."""
        if command.actor != self.actor or not command.is_named(self._label):
            return False
        self._left -= 1  # below 0 once it has its command
        return self._left == 0

    def stop(self, command: Command) -> Do:
        """Hold the command until somebody has decided about it."""
        self.command = command
        self._reached.set()
        return self._do if self._decided.wait(PATIENCE) else "drop"

    def reached(self, timeout: float = PATIENCE) -> Command:
        """Wait for the command; raises GateError where none came in that many seconds."""
        if not self._reached.wait(timeout) or self.command is None:
            raise GateError(f"{self.actor} sent no {self._label or 'command'} in {timeout:.0f} s")
        return self.command

    @property
    def was_reached(self) -> bool:
        """Whether the command has come."""
        return self._reached.is_set()

    def let_go(self) -> None:
        """Let the command, or its reply, go on."""
        self._decide("let go")

    def drop(self) -> None:
        """Cut the connection: the command never reaches the server, or its reply never the client."""
        self._decide("drop")

    def kill(self) -> None:
        """Kill the actor, then cut its connection."""
        self._decide("kill")

    def inject(self, reply: bytes) -> None:
        """Answer the client with these bytes; before the server the command is not passed on."""
        self._decide(reply)

    def _decide(self, do: Do) -> None:
        self._do = do
        self._decided.set()


class Gate:
    """Doors for actors before one server. Starts and ends with its `with` block, threads and sockets included.

    Args:
        address: where the server listens.
        scripts: names of scripts by their SHA-1 digest, so that commands can be told by them.
    """

    def __init__(self, address: Address, scripts: Mapping[str, str] | None = None) -> None:
        self.address = address
        self.commands: list[Command] = []
        self._scripts = dict(scripts or {})
        self._points: list[Point] = []
        self._doors: dict[str, Door] = {}
        self._numbers = itertools.count(1)
        self._connections = itertools.count(1)
        self._lock = threading.Lock()

    def learn(self, digests: Mapping[str, str]) -> None:
        """Tell scripts by these digests too; name -> digest, as a client declares them."""
        self._scripts.update({digest: name for name, digest in digests.items()})

    def door(self, actor: str, kill: Callable[[], object] = lambda: None) -> Door:
        """The port of an actor, opened at the first call; `kill` is called when a point says so."""
        door = self._doors.get(actor)
        if door is None:
            door = self._doors[actor] = Door(self, actor)
        door.kill = kill
        return door

    def point(
        self, actor: str, label: str | None = None, when: When = "before", do: Do = "hold", nth: int = 1
    ) -> Point:
        """Stop the nth command from now on that this actor sends, of those that `Command.is_named` so."""
        point = Point(actor, label, when, do, nth)
        self.add(point)
        return point

    def add(self, point: Point) -> None:
        """Ask this point about every command from now on."""
        with self._lock:
            self._points.append(point)

    def remove(self, point: Point) -> None:
        """Ask it no longer."""
        with self._lock:
            self._points.remove(point)

    def clear(self) -> None:
        """Forget all points, let what is held go, and forget the commands that were seen."""
        with self._lock:
            points, self._points = self._points, []
            self.commands = []
        for point in points:
            point.let_go()

    def cut(self, actor: str) -> None:
        """Reset the connections of an actor, those that are blocked too."""
        for door in self._doors.values():
            if door.actor == actor:
                door.cut()

    def transcript(self) -> list[str]:
        """What was said, a line for each command."""
        with self._lock:
            return [command.line() for command in self.commands]

    def of(self, actor: str, label: str | None = None) -> list[Command]:
        """The commands that an actor sent, all or those of a name or script."""
        with self._lock:
            return [
                command for command in self.commands if command.actor == actor and command.is_named(label)
            ]

    def seen(self, actor: str, connection: int, arguments: tuple[bytes, ...]) -> tuple[Command, list[Point]]:
        """Write a command down, and find the points that it has to pass."""
        command = Command(next(self._numbers), actor, connection, arguments, self._script(arguments))
        with self._lock:
            self.commands.append(command)
            return command, [point for point in self._points if point.takes(command)]

    def _script(self, arguments: tuple[bytes, ...]) -> str | None:
        if len(arguments) < 3:
            return None
        if arguments[0].upper() == b"EVALSHA":
            return self._scripts.get(arguments[1].decode("ascii", "replace").lower())
        if arguments[0].upper() == b"EVAL":
            return self._scripts.get(hashlib.sha1(arguments[1], usedforsecurity=False).hexdigest())
        return None

    def connection_number(self) -> int:
        """A number for a new connection."""
        return next(self._connections)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
        for door in self._doors.values():
            door.close()


class Door:
    """Where one actor connects. Its `actor` may be renamed; what is said from then on has the new name on it."""

    def __init__(self, gate: Gate, actor: str) -> None:
        self.gate = gate
        self.actor = actor
        self.kill: Callable[[], object] = lambda: None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: set[_Pair] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._accept, name=f"door of {actor}", daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = _connect(self.gate.address)
            except OSError:
                _reset(client)
                continue
            pair = _Pair(self, client, server, self.gate.connection_number())
            with self._lock:
                self._pairs.add(pair)
            pair.start()

    def forget(self, pair: _Pair) -> None:
        with self._lock:
            self._pairs.discard(pair)

    def cut(self) -> None:
        """Reset what is connected."""
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            pair.cut()

    def close(self) -> None:
        """End the door and all behind it."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        self._thread.join()
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            pair.cut()
            pair.join()


class _Pair:
    """A connection through the gate: one thread for what the actor says, one for what the server answers."""

    def __init__(self, door: Door, client: socket.socket, server: socket.socket, number: int) -> None:
        self._door = door
        self._client = client
        self._server = server
        self._number = number
        self._waiting: deque[tuple[Command, Point | None]] = deque()
        self._writing = threading.RLock()
        self._threads = [
            threading.Thread(target=self._guarded, args=(part,), name=f"{door.actor}/{number}", daemon=True)
            for part in (self._up, self._down)
        ]
        self._left = len(self._threads)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def cut(self) -> None:
        """Reset both sides; the threads see it and end."""
        for side in (self._client, self._server):
            with contextlib.suppress(OSError):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def _guarded(self, part: Callable[[], None]) -> None:
        try:
            with contextlib.suppress(OSError):
                part()
        finally:
            self.cut()
            with self._writing:
                self._left -= 1
                last = self._left == 0
            if last:
                self._client.close()
                self._server.close()
                self._door.forget(self)

    def _up(self) -> None:
        stream = resp.Stream()
        while data := self._client.recv(65536):
            stream.feed(data)
            while (frame := stream.frame()) is not None:
                self._command(frame)

    def _command(self, frame: bytes) -> None:
        command, points = self._door.gate.seen(self._door.actor, self._number, resp.arguments(frame))
        after = next((point for point in points if point.when == "after"), None)
        for point in points:
            if point.when == "before":
                self._obey(point.stop(command), command)
        with self._writing:
            self._waiting.append((command, after))
            if command.injected is None:
                command.sent = True
                self._server.sendall(frame)
            self._tell_injected()

    def _down(self) -> None:
        stream = resp.Stream()
        while data := self._server.recv(65536):
            stream.feed(data)
            while (frame := stream.frame()) is not None:
                self._answer(frame)

    def _answer(self, frame: bytes) -> None:
        if resp.is_push(frame) or not self._waiting:
            self._client.sendall(frame)
            return
        command, point = self._waiting[0]
        command.reply = frame
        if point is not None:
            self._obey(point.stop(command), command)
        with self._writing:
            self._waiting.popleft()
            command.told = frame if command.injected is None else command.injected
            self._client.sendall(command.told)
            self._tell_injected()

    def _tell_injected(self) -> None:
        """Answer the commands whose turn it is and that the server never saw."""
        while self._waiting and not self._waiting[0][0].sent:
            command, _ = self._waiting.popleft()
            command.told = command.injected
            self._client.sendall(command.injected or b"")

    def _obey(self, do: Do, command: Command) -> None:
        if isinstance(do, bytes):
            command.injected = do
        elif do in {"drop", "kill"}:
            if do == "kill":
                self._door.kill()
            self.cut()
            raise ConnectionResetError


def _connect(address: Address) -> socket.socket:
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(address)
        except OSError:
            sock.close()
            raise
        return sock
    sock = socket.create_connection(address)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    sock.close()
