"""An HTTP server for /metrics, /healthz and /readyz: in a separate thread, or within a loop that must not wait."""

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from socketserver import ThreadingMixIn
from typing import Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from leaseq import listen_address
from leaseq.errors import BadArgumentError

REQUEST_SECS = 10.0
"""A client that is slower is let go."""

MAX_REQUEST_BYTES = 1 << 14
"""A longer request is not read."""

MAX_CONNECTIONS = 32
"""Connections that are open at a time; others wait."""

Answer = Callable[..., Any]


class Status:
    """A WSGI application: the metrics and the health of a program.

    `unhealthy` and `unready` return why the program does not live or does not work, "" if it does.
    """

    def __init__(
        self, registry: CollectorRegistry, unhealthy: Callable[[], str], unready: Callable[[], str]
    ) -> None:
        self._metrics = make_wsgi_app(registry)
        self._checks = {"/healthz": unhealthy, "/readyz": unready}

    def __call__(self, environ: dict[str, Any], start: Answer) -> Iterable[bytes]:
        """Answer one request."""
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            return _plain(start, "405 Method Not Allowed", "only GET")
        path = environ["PATH_INFO"]
        if path == "/metrics":
            answer: Iterable[bytes] = self._metrics(environ, start)
            return answer
        check = self._checks.get(path)
        if check is None:
            return _plain(start, "404 Not Found", "there are /metrics, /healthz and /readyz")
        why = check()
        return _plain(start, "503 Service Unavailable" if why else "200 OK", why or "ok")


class StatusServer:
    """Serves a status at HOST:PORT (port 0: any free one), in a separate thread, so that it can report a hang.

    Raises BadArgumentError if it cannot listen there.
    """

    def __init__(self, status: Status, address: str) -> None:
        self._server = _listening(status, address, _ThreadingServer)
        self.url = _url(self._server)
        self._thread = threading.Thread(target=self._server.serve_forever, name="leaseq status")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class PolledStatusServer:
    """Serves a status from a loop that polls descriptors: it never waits, and starts no thread.

    Raises BadArgumentError if it cannot listen at HOST:PORT.
    """

    def __init__(self, status: Status, address: str) -> None:
        self._server = _listening(status, address, _Server)
        self._server.socket.setblocking(False)
        self.url = _url(self._server)
        self._connections: dict[int, _Connection] = {}

    def interests(self) -> Mapping[int, int]:
        """Return the descriptors to poll, each with its events."""
        events = {number: each.events for number, each in self._connections.items()}
        if len(events) < MAX_CONNECTIONS:
            events[self._server.fileno()] = select.POLLIN
        return events

    def serve(self, descriptor: int) -> None:
        """Do what can be done now with one of these descriptors."""
        if descriptor == self._server.fileno():
            self._accept()
        elif descriptor in self._connections and not self._connections[descriptor].go_on(self._server):
            self._connections.pop(descriptor).close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it has gone, or there is no descriptor left
            client, peer = self._server.socket.accept()
            client.setblocking(False)
            self._connections[client.fileno()] = _Connection(client, peer)

    def drop_slow(self) -> None:
        """Close connections that take too long."""
        oldest = time.monotonic() - REQUEST_SECS
        for number in [number for number, each in self._connections.items() if each.since < oldest]:
            self._connections.pop(number).close()

    def close(self) -> None:
        """Close what is open in this process; in the child of a fork, the parent goes on serving."""
        self._server.server_close()
        for each in self._connections.values():
            each.close()
        self._connections.clear()


class _Connection:
    """One request, and its reply as far as it is not sent."""

    def __init__(self, client: socket.socket, peer: Any) -> None:
        self.since = time.monotonic()
        self._client = client
        self._peer = peer
        self._request = bytearray()
        self._reply = b""

    @property
    def events(self) -> int:
        return select.POLLOUT if self._reply else select.POLLIN

    def go_on(self, server: WSGIServer) -> bool:
        """Read or write what can be; false if it is over."""
        try:
            if not self._reply:
                received = self._client.recv(MAX_REQUEST_BYTES)
                self._request += received
                if not received or len(self._request) > MAX_REQUEST_BYTES:
                    return False
                if b"\r\n\r\n" not in self._request:
                    return True
                self._reply = _Exchange(bytes(self._request), self._peer, server).reply
            self._reply = self._reply[self._client.send(self._reply) :]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return bool(self._reply)

    def close(self) -> None:
        self._client.close()


class _Server(WSGIServer):
    request_queue_size = 128

    def server_bind(self) -> None:
        """Bind, without asking for the name of the host, which can take long."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()


class _ThreadingServer(ThreadingMixIn, _Server):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    timeout = REQUEST_SECS

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base class)
        """Scrapes are no news."""


class _Exchange(_Handler):
    """Answers a request that has been read. `reply` is to be sent."""

    def __init__(self, request: bytes, peer: Any, server: WSGIServer) -> None:
        self._request = request
        self.reply = b""
        super().__init__(None, peer, server)  # type: ignore[arg-type] # nothing is read from a socket

    def setup(self) -> None:
        self.rfile = BytesIO(self._request)
        self.wfile = self._written = BytesIO()

    def finish(self) -> None:
        self.reply = self._written.getvalue()


def _listening(status: Status, address: str, kind: type[_Server]) -> WSGIServer:
    """Return a server that listens. Raises BadArgumentError."""
    host, port = listen_address.parsed(address)
    if ":" in host:
        kind = type(kind.__name__, (kind,), {"address_family": socket.AF_INET6})
    try:
        return make_server(host, port, status, server_class=kind, handler_class=_Handler)
    except (OSError, OverflowError) as error:
        raise BadArgumentError(
            f"cannot listen on {host}:{port}: {error}; --listen takes another HOST:PORT, or off"
        ) from None


def _url(server: WSGIServer) -> str:
    host, port = server.server_name, server.server_port
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _plain(start: Answer, status: str, text: str) -> list[bytes]:
    start(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{text}\n".encode()]
