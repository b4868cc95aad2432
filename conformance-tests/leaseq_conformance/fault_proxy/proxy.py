"""The proxy and its listeners."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from leaseq_conformance.fault_proxy.command_log import CommandLog
from leaseq_conformance.fault_proxy.connection import RESET, Link, ProxiedConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from leaseq_conformance.fault_proxy.breakpoints import Action, Breakpoint, When


class FaultProxy(CommandLog):
    """Listeners for clients in front of one server. Starts and ends with its `with` block, threads and sockets included.

    Args:
        server_url: where the server is, as redis-py takes it: `redis://` or `unix://`.
        scripts: names of scripts by their SHA-1 digest, for the labels of commands.
    """

    def __init__(self, server_url: str, scripts: Mapping[str, str] | None = None) -> None:
        super().__init__(scripts)
        self.server_url = server_url
        self._listeners: dict[str, Listener] = {}

    def listener(self, client: str, kill: Callable[[], object] = lambda: None) -> Listener:
        """Return the listener of a client, opened at the first call; `kill` is called when a breakpoint says so."""
        listener = self._listeners.get(client)
        if listener is None:
            listener = self._listeners[client] = Listener(self, client)
        listener.kill = kill
        return listener

    def reset(self, client: str) -> list[str]:
        """Reset the connections of a client, blocked ones too. Return their addresses: the server has them until it notices."""
        addresses: list[str] = []
        for listener in self._listeners.values():
            if listener.client == client:
                addresses += listener.reset()
        return addresses

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
        for listener in self._listeners.values():
            listener.close()


class Listener(Link):
    """The port of one client, and its link.

    Attributes:
        url: where the client connects, with the user, password and database of the server's.
    """

    def __init__(self, proxy: FaultProxy, client: str) -> None:
        port = socket.create_server(("127.0.0.1", 0))
        super().__init__(proxy, client, port.getsockname()[1])
        self._socket = port
        self.proxy = proxy
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
            connection = ProxiedConnection(self, client, server, self._forget)
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

    def _forget(self, connection: ProxiedConnection) -> None:
        with self._lock:
            self._connections.discard(connection)

    def reset(self) -> list[str]:
        """Reset its connections. Return their addresses."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.reset()
        return [connection.address for connection in connections]

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
