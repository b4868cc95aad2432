# Generated from _aio/server_handle.py by tools/unasync.py: do not edit.
"""From what a caller passes as a server to a client of redis-py."""

import os
from typing import Any, Self

from redis import RedisCluster, RedisError, sentinel
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.exceptions import AuthenticationError, RedisClusterException
from redis.retry import Retry

from leaseq import errors
from leaseq._sync import concurrency
from leaseq._sync.route import route
from leaseq.embedded import EmbeddedServer, embedded
from leaseq.errors import BadArgumentError, NoServerError
from leaseq.server_url import ServerSet, server_set, with_password_file


class ServerHandle:
    """A client for a server, opened here unless it was passed.

    Attributes:
        client: the client.
        route: the connections for it.
        owned: whether it was opened here, so that closing it is ours too.
    """

    def __init__(self, server: str | concurrency.Client | None, what: str, example: str) -> None:
        """`server` is a URL or a client; None is $REDIS_URL. `what` needs it, as in `example`. Raises NoServerError."""
        self._embedded: EmbeddedServer | None = None
        self._clients: list[Any] = []
        """The clients to close here."""
        url = os.environ.get("REDIS_URL") if server is None else server
        if url is None or url == "":
            raise NoServerError(
                f"no server for {what}: pass a URL ({example}), pass a redis client, or set $REDIS_URL; 'embedded:DIR'"
                " starts a server for you"
            )
        self.owned = isinstance(url, str)
        self.client: concurrency.Client = (
            self._open(url) if isinstance(url, str) else concurrency.check_client(url)
        )
        self.route = route(self.client)
        self.route.users.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, url: str) -> concurrency.Client:
        if url.startswith("embedded:"):
            folder = url.removeprefix("embedded:")
            if not folder:
                raise BadArgumentError("embedded: needs a folder, as in 'embedded:my-queue-data'")
            self._embedded = embedded(folder)
            url = self._embedded.url
        servers = server_set(url)
        try:
            if servers is None:
                self._clients = [concurrency.connect(*with_password_file(url))]
        except BadArgumentError:
            raise
        except (ValueError, TypeError):
            # neither the URL nor the cause, which quotes it: there may be a password in it
            raise BadArgumentError(
                "this is not a server URL, which looks like redis://user:password@host:6379/0, rediss://...,"
                " unix://path, redis+sentinel://..., redis+cluster://... or embedded:DIR"
            ) from None
        if servers is not None:
            self._clients = _clients_of(servers)
        client: concurrency.Client = self._clients[0]
        return client

    def close(self) -> None:
        """Close what was opened here: connections, unless others use them; the client, the Sentinels, the embedded server."""
        self.route.users.discard(self)
        if self.owned or not self.route.users:
            self.route.close()
        for client in self._clients:
            concurrency.close(client)
        if self._embedded is not None:
            self._embedded.close()


def _clients_of(servers: ServerSet) -> list[Any]:
    """A client for a set of servers, and the Sentinels that it asks. Raises UnavailableError, AccessDeniedError."""
    node: Any = ClusterNode
    make: Any = sentinel.Sentinel
    try:
        if servers.kind == "cluster":  # asks at once for its nodes
            return [RedisCluster(startup_nodes=[node(*host) for host in servers.hosts], **servers.options)]
        found = make(servers.hosts, sentinel_kwargs=servers.sentinel_options, **servers.options)
        primary = found.master_for(
            servers.service,
            db=servers.database,
            retry=Retry(NoBackoff(), 0),
            max_connections=concurrency.UNLIMITED,
        )
    except (RedisError, RedisClusterException, OSError) as error:
        # redis-py hides a refused login in the error of a cluster
        refused = error.__cause__ if isinstance(error.__cause__, AuthenticationError) else error
        raise errors.from_connection(refused, sent=False) from error
    return [primary, *found.sentinels]
