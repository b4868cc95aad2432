"""An ASGI application, served at a port of this machine in a thread."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

import uvicorn
from support.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp


@contextlib.contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """Serve an application; yield its address, without a slash at the end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
