"""The proxy and its listeners."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import socket
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from leaseq_conformance.fault_proxy.breakpoints import Breakpoint
from leaseq_conformance.fault_proxy.command import Command
from leaseq_conformance.fault_proxy.connection import RESET, ProxiedConnection
from leaseq_conformance.fault_proxy.link_faults import LinkFaults

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from leaseq_conformance.fault_proxy.breakpoints import Action, When


class FaultProxy:
    """Listeners for clients in front of one server. Starts and ends with its `with` block, threads and sockets included.

    Args:
        server_url: where the server is, as redis-py takes it: `redis://` or `unix://`.
        scripts: names of scripts by their SHA-1 digest, for the labels of commands.
    """

    def __init__(self, server_url: str, scripts: Mapping[str, str] | None = None) -> None:
        self.server_url = server_url
        self.commands: list[Command] = []
        self._scripts = dict(scripts or {})
        self._breakpoints: list[Breakpoint] = []
        self._listeners: dict[str, Listener] = {}
        self._numbers = itertools.count(1)
        self._connections = itertools.count(1)
        self._lock = threading.Lock()

    def learn_scripts(self, digests: Mapping[str, str]) -> None:
        """Know these scripts too: name -> digest, as a client declares them."""
        self._scripts.update({digest: name for name, digest in digests.items()})

    def listener(self, client: str, kill: Callable[[], object] = lambda: None) -> Listener:
        """Return the listener of a client, opened at the first call; `kill` is called when a breakpoint says so."""
        listener = self._listeners.get(client)
        if listener is None:
            listener = self._listeners[client] = Listener(self, client)
        listener.kill = kill
        return listener

    def add_breakpoint(
        self,
        client: str,
        label: str | None = None,
        when: When = "before",
        action: Action = "hold",
        nth: int = 1,
    ) -> Breakpoint:
        """Stop the nth command from now on that this client sends, of those that `Command.is_named` so."""
        point = Breakpoint(client, label, when, action, nth)
        self.add(point)
        return point

    def add(self, point: Breakpoint) -> None:
        """Ask this breakpoint about every command from now on."""
        with self._lock:
            self._breakpoints.append(point)

    def replace(self, point: Breakpoint, new: Breakpoint) -> None:
        """Ask another one in its place, with no command in between."""
        with self._lock:
            self._breakpoints[self._breakpoints.index(point)] = new

    def remove(self, point: Breakpoint) -> None:
        """Stop asking it."""
        with self._lock:
            self._breakpoints.remove(point)

    def clear(self) -> None:
        """Remove all breakpoints, resume what they hold, and forget the commands that were seen."""
        with self._lock:
            points, self._breakpoints = self._breakpoints, []
            self.commands = []
        for point in points:
            point.resume()

    def reset(self, client: str) -> None:
        """Reset the connections of a client, blocked ones too."""
        for listener in self._listeners.values():
            if listener.client == client:
                listener.reset()

    def transcript(self) -> list[str]:
        """Return the commands and their replies, one line each."""
        with self._lock:
            return [command.describe() for command in self.commands]

    def commands_of(self, client: str, label: str | None = None) -> list[Command]:
        """Return the commands that a client sent: all, or those that `Command.is_named` so."""
        with self._lock:
            return [
                command for command in self.commands if command.client == client and command.is_named(label)
            ]

    def record(
        self, client: str, connection: int, arguments: tuple[bytes, ...], port: int
    ) -> tuple[Command, list[Breakpoint]]:
        """Write a command down, and find the breakpoints that stop it."""
        script = self._script(arguments)
        command = Command(next(self._numbers), client, connection, arguments, script, port=port)
        with self._lock:
            self.commands.append(command)
            return command, [point for point in self._breakpoints if point.matches(command)]

    def _script(self, arguments: tuple[bytes, ...]) -> str | None:
        if len(arguments) < 3:
            return None
        if arguments[0].upper() == b"EVALSHA":
            return self._scripts.get(arguments[1].decode("ascii", "replace").lower())
        if arguments[0].upper() == b"EVAL":
            return self._scripts.get(hashlib.sha1(arguments[1], usedforsecurity=False).hexdigest())
        return None

    def connection_number(self) -> int:
        """Return a number for a new connection."""
        return next(self._connections)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
        for listener in self._listeners.values():
            listener.close()


class Listener(LinkFaults):
    """The port of one client, with the faults of its link.

    Attributes:
        client: the client's name; after a change, commands have the new name on them.
        kill: ends the client.
        has_every_slot: whether it answers CLUSTER in the server's place, as a cluster of one node that listens here.
        port, url: where it connects; the URL has the user, password and database of the server's.
    """

    def __init__(self, proxy: FaultProxy, client: str) -> None:
        super().__init__()
        self.proxy = proxy
        self.client = client
        self.kill: Callable[[], object] = lambda: None
        self.has_every_slot = False
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.url = _url_at(proxy.server_url, self.port)
        self._connections: set[ProxiedConnection] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._accept, name=f"listener of {client}", daemon=True)
        self._thread.start()

    def add_breakpoint(
        self, label: str | None = None, when: When = "before", action: Action = "hold", nth: int = 1
    ) -> Breakpoint:
        """Stop a command of this client; see `FaultProxy.add_breakpoint`."""
        return self.proxy.add_breakpoint(self.client, label, when, action, nth)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            server = self._server_for(client)
            if server is None:
                client.close()
                continue
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = ProxiedConnection(self, client, server, self.proxy.connection_number())
            with self._lock:
                self._connections.add(connection)
            connection.start()

    def _server_for(self, client: socket.socket) -> socket.socket | None:
        """A connection to the server for a client, or None if the client's is refused."""
        with contextlib.suppress(OSError):
            if not self.refuse:
                return _connect(self.proxy.server_url)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        return None

    def forget(self, connection: ProxiedConnection) -> None:
        """Leave out a connection that has ended."""
        with self._lock:
            self._connections.discard(connection)

    def reset(self) -> None:
        """Reset its connections."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.reset()

    def close(self) -> None:
        """Close the port and end its connections."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()
        self._thread.join()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.reset()
            connection.join()


def _url_at(server_url: str, port: int) -> str:
    parts = urlsplit(server_url)
    login, database = "", "/0"
    if parts.scheme != "unix":
        login, database = parts.netloc.rpartition("@")[0], parts.path or "/0"
    return f"redis://{login + '@' if login else ''}127.0.0.1:{port}{database}"


def _connect(server_url: str) -> socket.socket:
    parts = urlsplit(server_url)
    if parts.scheme == "unix":
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(parts.path)
        except OSError:
            sock.close()
            raise
        return sock
    sock = socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 6379))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock
