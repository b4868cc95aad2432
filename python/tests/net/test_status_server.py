"""The HTTP server within a loop that must not wait: what slow and broken clients do is theirs."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import urllib.request
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry, Gauge

from leaseq import status_server
from leaseq.errors import BadArgumentError
from leaseq.status_server import MAX_CONNECTIONS, PolledStatusServer, Status, StatusServer

if TYPE_CHECKING:
    from collections.abc import Iterator

SECS = 60.0
LINES = 1000


def status() -> Status:
    registry = CollectorRegistry()
    gauge = Gauge("large", "A page that no socket takes at once.", ["number"], registry=registry)
    for number in range(LINES):
        gauge.labels(f"{number:04000}")
    return Status(registry, lambda: "", lambda: "not yet")


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a server that is polled in a separate thread."""
    monkeypatch.setattr(status_server, "REQUEST_SECS", 10 * SECS)
    server = PolledStatusServer(status(), "127.0.0.1:0")
    # else the system may take all of a large page at once
    server._server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            server.drop_slow()
            poll = select.poll()
            for descriptor, events in server.interests().items():
                poll.register(descriptor, events)
            for descriptor, _ in poll.poll(10):
                server.serve(descriptor)

    thread = threading.Thread(target=serve)
    thread.start()
    yield int(server.url.rpartition(":")[2])
    over.set()
    thread.join()
    server.close()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=SECS)


def reply(client: socket.socket) -> bytes:
    parts = []
    while part := client.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def test_a_page_that_is_larger_than_a_socket_takes(port: int) -> None:
    with connected(port) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        head, _, body = reply(client).partition(b"\r\n\r\n")
    assert b" 200 OK" in head
    assert f"Content-Length: {len(body)}".encode() in head
    assert body.count(b"\nlarge{") == LINES


def test_a_slow_client_keeps_no_other_waiting_and_is_let_go(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(port) as slow:
        slow.sendall(b"GET /healthz HT")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=SECS) as answer:
            assert answer.read() == b"ok\n"
        slow.sendall(b"TP/1.0\r\n\r\n")
        assert reply(slow).endswith(b"\r\n\r\nok\n")
    with connected(port) as slow, contextlib.suppress(ConnectionResetError):
        monkeypatch.setattr(status_server, "REQUEST_SECS", 0.0)
        assert slow.recv(1) == b""


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (b"HELO\r\n\r\n", b"400"),
        (b"POST /metrics HTTP/1.0\r\n\r\n", b"405"),
        (b"GET /readyz HTTP/1.0\r\n\r\n", b"503"),
        (b"GET /" + b"x" * (1 << 15), b""),
        (b"\xff\x00\r\n\r\n", b"400"),
    ],
)
def test_other_requests(port: int, request_: bytes, answer: bytes) -> None:
    with connected(port) as client, contextlib.suppress(ConnectionError):
        client.sendall(request_)
        assert answer in reply(client)


def test_more_clients_than_it_serves_wait(port: int) -> None:
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(port)) for _ in range(2 * MAX_CONNECTIONS)]
        for client in clients:
            client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert all(reply(client).endswith(b"ok\n") for client in clients)


def test_an_address_of_ipv6_has_brackets() -> None:
    with StatusServer(status(), "[::1]:0") as server:
        assert server.url.startswith("http://[::1]:")
        with urllib.request.urlopen(f"http://{server.url[7:]}/healthz", timeout=SECS) as answer:
            assert answer.status == 200


def test_a_host_that_is_not_there() -> None:
    with pytest.raises(BadArgumentError, match=r"cannot listen on 203\.0\.113\.1:9743"):
        StatusServer(status(), "203.0.113.1:9743")
