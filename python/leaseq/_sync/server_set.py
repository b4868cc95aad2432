# Generated from _aio/server_set.py by python/unasync.py: do not edit.
"""A client for a set of servers that a URL names."""

from typing import Any

from redis import RedisCluster, RedisError, sentinel
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.exceptions import RedisClusterException
from redis.retry import Retry

from leaseq import errors
from leaseq._sync import io
from leaseq.server_url import ServerSet


class OpenedSet:
    """A client for a set of servers, and what is to be closed with it.

    Attributes:
        client: the client.
    """

    def __init__(self, servers: ServerSet) -> None:
        """Raises UnavailableError, AccessDeniedError where the client asks a cluster at once for its nodes."""
        self._watchers: list[Any] = []
        try:
            self.client = self._cluster(servers) if servers.kind == "cluster" else self._primary(servers)
        except (RedisError, RedisClusterException, OSError) as error:
            raise errors.from_connection(error, sent=False) from error

    def _cluster(self, servers: ServerSet) -> io.Client:
        node: Any = ClusterNode
        return RedisCluster(startup_nodes=[node(*host) for host in servers.hosts], **servers.options)

    def _primary(self, servers: ServerSet) -> io.Client:
        make: Any = sentinel.Sentinel
        tls = {"ssl": True} if "ssl" in servers.options else {}
        found = make(servers.hosts, sentinel_kwargs=tls, **servers.options)
        self._watchers = list(found.sentinels)
        client: io.Client = found.master_for(
            servers.service, db=servers.database, retry=Retry(NoBackoff(), 0), max_connections=io.MANY
        )
        return client

    def close(self) -> None:
        """Close them."""
        for each in (self.client, *self._watchers):
            io.close(each)
