# Generated from _aio/opening.py by python/unasync.py: do not edit.
"""From what a caller passes as a server to a client of redis-py."""

import os

from leaseq._sync import io
from leaseq._sync.route import route
from leaseq._sync.server_set import OpenedSet
from leaseq.embedded import EmbeddedServer, embedded
from leaseq.errors import BadArgumentError, NoServerError
from leaseq.server_url import server_set


class OpenedServer:
    """A client for a server, opened here unless it was passed.

    Attributes:
        client: the client.
        route: the connections for it.
        owned: whether it was opened here, so that closing it is ours too.
    """

    def __init__(self, server: str | io.Client | None, what: str, example: str) -> None:
        """`server` is a URL or a client; None is $REDIS_URL. `what` needs it, as in `example`. Raises NoServerError."""
        self._embedded: EmbeddedServer | None = None
        self._set: OpenedSet | None = None
        url = os.environ.get("REDIS_URL") if server is None else server
        if url is None or url == "":
            raise NoServerError(
                f"no server for {what}: pass a URL ({example}), pass a redis client, or set $REDIS_URL; 'embedded:DIR'"
                " starts a server of its own"
            )
        self.owned = isinstance(url, str)
        self.client: io.Client = self._open(url) if isinstance(url, str) else io.check_client(url)
        self.route = route(self.client)
        self.route.users.add(self)

    def _open(self, url: str) -> io.Client:
        if url.startswith("embedded:"):
            folder = url.removeprefix("embedded:")
            if not folder:
                raise BadArgumentError("embedded: needs a folder, as in 'embedded:my-queue-data'")
            self._embedded = embedded(folder)
            url = self._embedded.url
        servers = server_set(url)
        if servers is not None:
            self._set = OpenedSet(servers)
            return self._set.client
        try:
            return io.connect(url)
        except (ValueError, TypeError):
            # neither the URL nor the cause, which quotes it: there may be a password in it
            raise BadArgumentError(
                "this is not a server URL, which looks like redis://user:password@host:6379/0, rediss://...,"
                " unix://path, redis+sentinel://..., redis+cluster://... or embedded:DIR"
            ) from None

    def close(self) -> None:
        """Close what was opened here: connections, unless others use them; the client, the Sentinels, the embedded server."""
        self.route.users.discard(self)
        if self.owned or not self.route.users:
            self.route.close()
        if self._set is not None:
            self._set.close()
        elif self.owned:
            io.close(self.client)
        if self._embedded is not None:
            self._embedded.close()
