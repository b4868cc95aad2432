"""Ports of 127.0.0.1 that no other process gets while they are reserved."""

from __future__ import annotations

import random
import socket
import sys
from typing import Final

FROM: Final = 10000
COUNT: Final = 10000
"""Ports from here on, and with `BUS` added, are below those that the kernel gives to clients."""
BUS: Final = 10000
"""Distance from the port of a server in a cluster to the port on which it listens for the other servers."""


class ReservedPort:
    """A port, and the second port of a server in a cluster, which no other process gets until `close`.

    Each is held by a socket that is bound and does not listen. Since that allows the reuse of its address, a server may
    bind the port and listen; on Linux that is so for servers that allow it too, as Redis and Valkey do, and a second
    reservation, which does not at first, fails. Elsewhere the port is only seen to be free.
    """

    def __init__(self) -> None:
        draw = random.SystemRandom()  # a test may seed the usual one alike in all processes
        while True:
            self.number = FROM + draw.randrange(COUNT)
            self._sockets = [sock for port in (self.number, self.number + BUS) if (sock := _bound(port))]
            if len(self._sockets) == 2:
                break
            self.close()
        if sys.platform != "linux":
            self.close()

    def close(self) -> None:
        """Give the ports back."""
        for sock in self._sockets:
            sock.close()


def _bound(port: int) -> socket.socket | None:
    sock = socket.socket()
    try:
        sock.bind(("127.0.0.1", port))
    except OSError:
        sock.close()
        return None
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return sock
