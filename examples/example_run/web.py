"""The command of an example with a web server: `python -m NAME [--port PORT] [--check]`."""

import argparse
import contextlib
import http.client
import json
import os
import socket
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from example_run.programs import Programs, Stopped, stop_on_signals, temporary_server

ANSWER_SECONDS: Final = 60

Start = Callable[[Programs, int], None]
"""Starts the programs of an example. Takes the file descriptor of the socket that the web server accepts from."""


def run(name: str, start: Start, check: Callable[[str], None]) -> None:
    """Start a server, the web server and the workers; serve until Ctrl-C, or only for `check`, which takes the URL."""
    options = _options(name)
    stop_on_signals()
    with _listening(options.port) as listener, temporary_server() as folder, Programs() as programs:
        os.environ["EXAMPLE_FOLDER"] = str(folder)
        start(programs, listener.fileno())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        if options.check:
            check(url)
            return
        print(f"{name} is at {url} until Ctrl-C", flush=True)
        _wait(name)
    print(f"{name} is stopped")


def call(method: str, url: str, body: object = None) -> tuple[int, Any]:
    """Send a request with a body as JSON. Return the status and the body of the answer."""
    place = urlsplit(url)
    with contextlib.closing(http.client.HTTPConnection(place.netloc, timeout=ANSWER_SECONDS)) as connection:
        target = f"{place.path}?{place.query}"
        connection.request(method, target, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.load(answer)


def _wait(name: str) -> None:
    """Wait for Ctrl-C. Raises SystemExit if a program ends before."""
    with contextlib.suppress(Stopped):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        raise SystemExit(f"{name}: a program has ended, see above")


def _options(name: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {name}")
    parser.add_argument("--port", type=int, default=8000, help="0: a free one; default: 8000")
    parser.add_argument("--check", action="store_true", help="do the main job once over HTTP, and exit")
    return parser.parse_args()


def _listening(port: int) -> socket.socket:
    """Open the socket of the web server here: a request that comes early waits until the web server is up."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise SystemExit(
            f"port {port} cannot be used: {error.strerror}. Name another one with --port"
        ) from None
