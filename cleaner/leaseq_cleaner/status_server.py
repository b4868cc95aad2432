"""The HTTP server of a cleaner: /metrics, /healthz, /readyz. In a separate thread, so that it can report a hang."""

import socket
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from leaseq.cli.exit_codes import CommandError, ExitCode
from leaseq_cleaner.cleaner import Cleaner

REQUEST_SECS = 10.0
"""A client that is slower is let go."""

Answer = Callable[..., Any]


class Web:
    """Serves one cleaner's metrics and health on `host` and `port` (0: any free one). Raises CommandError."""

    def __init__(self, cleaner: Cleaner, host: str, port: int) -> None:
        self._cleaner = cleaner
        self._metrics = make_wsgi_app(cleaner.metrics.registry)
        server = _ServerIPv6 if ":" in host else _Server
        try:
            self._server = make_server(host, port, self._answer, server_class=server, handler_class=_Handler)
        except (OSError, OverflowError) as error:
            message = f"cannot listen on {host}:{port}: {error}; --listen takes another HOST:PORT, or off"
            raise CommandError(message, ExitCode.BAD_INPUT) from None
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="leaseq-cleaner web")

    def _answer(self, environ: dict[str, Any], start: Answer) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            return _plain(start, "405 Method Not Allowed", "only GET")
        match environ["PATH_INFO"]:
            case "/metrics":
                answer: Iterable[bytes] = self._metrics(environ, start)
                return answer
            case "/healthz" if self._cleaner.alive:
                return _plain(start, "200 OK", "ok")
            case "/healthz":
                return _plain(start, "503 Service Unavailable", "the event loop hangs")
            case "/readyz":
                why = self._cleaner.unready
                return _plain(start, "503 Service Unavailable" if why else "200 OK", why or "ok")
        return _plain(start, "404 Not Found", "there are /metrics, /healthz and /readyz")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _ServerIPv6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = REQUEST_SECS

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base class)
        """Scrapes are no news."""


def _plain(start: Answer, status: str, text: str) -> list[bytes]:
    start(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{text}\n".encode()]
