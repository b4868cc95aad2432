"""The start of a connection: its socket, its time limit, and the commands before the first call."""

import os
import socket
import ssl
import struct
import traceback
from functools import lru_cache
from typing import Any, Protocol

from leaseq._sync import concurrency
from leaseq.commands import Argument
from leaseq.endpoint import Endpoint
from leaseq.errors import REFUSALS

LEAST_SECS = 0.0001
"""A socket takes a limit of 0 for no limit, or for not to wait."""


class Greeter(Protocol):
    """A connection that stands."""

    endpoint: Endpoint

    def send(self, *command: Argument) -> None:
        """Send a command."""

    def read(self, seconds: float | None = None) -> Any:
        """Read a reply."""


@lru_cache(maxsize=64)
def timeval(seconds: float) -> bytes:
    """Return a time limit as a socket takes it."""
    return struct.pack("@ll", *divmod(round(max(LEAST_SECS, seconds) * 1_000_000), 1_000_000))


def limited_by_kernel(sock: socket.socket) -> bool:
    """Return whether a time limit can be the kernel's. Python's own asks before each sending whether the socket takes something in.

    It cannot over TLS, on Windows, and for the sockets of gevent and eventlet.
    """
    return os.name == "posix" and type(sock).__module__ == "socket"


def connected(endpoint: Endpoint, until: float) -> socket.socket:
    """Return a socket that is connected, by `until` on `concurrency.now`. Raises OSError, UnicodeError."""
    if endpoint.path is not None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        return _connect(sock, endpoint.path, endpoint, until)
    failure: OSError | None = None
    found = socket.getaddrinfo(endpoint.host, endpoint.port, endpoint.family, socket.SOCK_STREAM)
    for number, (family, kind, protocol, _, address) in enumerate(found):
        now = concurrency.now()
        # an address that is silent leaves time for the others
        share = now + (until - now) / (len(found) - number)
        try:
            return _connect(socket.socket(family, kind, protocol), address, endpoint, share)
        except OSError as error:
            failure = error.with_traceback(
                None
            )  # else they hold each other until the garbage collector comes by
    raise failure or OSError("the name of the host leads nowhere")


def _connect(sock: socket.socket, address: Any, endpoint: Endpoint, until: float) -> socket.socket:
    try:
        endpoint.set_up(sock)
        sock.settimeout(max(LEAST_SECS, until - concurrency.now()))
        sock.connect(address)
        context = endpoint.tls()
        if context is not None:
            sock.settimeout(max(LEAST_SECS, until - concurrency.now()))
            sock = context.wrap_socket(sock, server_hostname=endpoint.host)
        elif limited_by_kernel(sock):
            sock.settimeout(None)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval(endpoint.reply_secs))
    except BaseException as error:
        sock.close()
        _close_left(error)
        raise
    return sock


def _close_left(error: BaseException) -> None:
    """Close the socket that `ssl` has left open in a frame: of a server that closed before the handshake, or in an interruption."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        left = frame.f_locals.get("self")
        if isinstance(left, ssl.SSLSocket):
            left.close()


def greet(connection: Greeter, until: float) -> None:
    """Send HELLO, AUTH and the like, and read all replies. Raises the error of redis-py that refuses the connection."""
    endpoint = connection.endpoint
    provider = endpoint.credentials
    greeting = endpoint.greeting(None if provider is None else provider.get_credentials())
    for command in greeting:
        connection.send(*command)
    for command in greeting:
        try:
            reply = connection.read(max(LEAST_SECS, until - concurrency.now()))
        except REFUSALS as error:
            reply = error
        if (refusal := endpoint.refusal(command, reply)) is not None:
            raise refusal
