"""From a client of redis-py to leaseq's connections, which all queues on that client share."""

import math
import weakref
from collections.abc import Hashable
from typing import Any

import redis
from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis, RedisCluster
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.exceptions import AskError, MovedError, RedisClusterException

from leaseq._aio import concurrency
from leaseq._aio.connection import Connection
from leaseq._aio.pool import Pool
from leaseq._aio.sentinels import Sentinels
from leaseq._aio.topology import Topology
from leaseq.endpoint import Endpoint, endpoint

NOT_CONNECTED = (redis.RedisError, RedisClusterException, OSError)
"""Errors of opening a connection."""


class OneServer(Pool):
    """Connections to one server, or to the primary that a Sentinel set names.

    Attributes:
        redirects: whether a node may send a call on to another.
        place: equal for two clients of one server, database and user; for a set of servers, only for the same client.
        limit_secs: how long a call may take in all that follows redirections.
        call_secs: how long connecting and a reply may take together.
        users: who have this open.
    """

    place: Hashable
    limit_secs = math.inf

    def __init__(self, client: Redis) -> None:
        pool: Any = client.connection_pool
        self._given = pool.connection_kwargs
        self._kind = pool.connection_class
        self._sentinels = Sentinels(pool) if isinstance(pool, SentinelConnectionPool) else None
        super().__init__(endpoint(self._given, self._kind), _slots(pool))
        self.call_secs = self._endpoint.connect_secs + self._endpoint.reply_secs
        self.place = id(client)
        if type(pool) in {ConnectionPool, BlockingConnectionPool}:
            database = int(self._given.get("db") or 0)
            self.place = (str(self._endpoint), database, self._endpoint.over_tls, self._given.get("username"))
        self.users: weakref.WeakSet[object] = weakref.WeakSet()

    async def resolve_endpoint(self) -> Endpoint:
        """Return where the next connection leads: the Sentinels are asked again, within the time for connecting (LQ-CLIENT-22)."""
        if self._sentinels is None:
            return self._endpoint
        until = concurrency.now() + self._endpoint.connect_secs
        found = endpoint(self._given, self._kind, await self._sentinels.primary(until))
        return found.within(until - concurrency.now())

    def forget(self) -> None:
        """Look the primary up before the next call: the server is it no longer."""
        if self._sentinels is not None:
            self._sentinels.forget()
        self.close_idle()


class Cluster:
    """Connections to the nodes of a cluster.

    Attributes: as those of `OneServer`.
    """

    redirects = True
    place: Hashable

    def __init__(self, client: RedisCluster) -> None:
        self._topology = Topology(weakref.proxy(client))  # the users of this keep it alive
        self._pools: dict[tuple[str, int], Pool] = {}
        settings = self._topology.settings
        self.limit_secs = self.call_secs = settings.connect_secs + settings.reply_secs
        self.place = id(client)
        self.users: weakref.WeakSet[object] = weakref.WeakSet()

    async def acquire(
        self, key: str, redirection: AskError | None = None, until: float = math.inf
    ) -> Connection:
        """Return a connection to the node that holds the key, or to the node that a redirection names.

        Raises errors of redis-py, by `until` on `concurrency.now`.
        """
        if redirection is not None:
            # nodes that do not say their host are where the others are
            host = redirection.host or (await self._topology.node_of(key, until))[0]
            node = self._topology.remapped(host, redirection.port)
            if not isinstance(redirection, MovedError):
                connection = await self._pool(node).acquire(until=until)
                connection.asking = True
                return connection
            self._topology.record(key, node)
        began = concurrency.now()
        node = await self._topology.node_of(key, until)
        try:
            return await self._pool(node).acquire(until=until)
        except NOT_CONNECTED:
            # the node that took its place may be known by now
            self._topology.suspect(node)
            other = await self._topology.node_of(key, until, began)
            if other == node:
                raise
        return await self._pool(other).acquire(until=until)

    async def node_of(self, key: str) -> str:
        """Return HOST:PORT of the node that has a key, as far as is known. Raises errors of redis-py."""
        host, port = await self._topology.node_of(key, concurrency.now() + self.limit_secs)
        return f"{host}:{port}"

    def _pool(self, node: tuple[str, int]) -> Pool:
        pool = self._pools.get(node)
        if pool is None:
            pool = self._pools.setdefault(node, Pool(self._topology.endpoint_of(node), None))
        return pool

    def release(self, connection: Connection) -> None:
        """Take it back."""
        self._pools[connection.endpoint.host, connection.endpoint.port].release(connection)

    def forget(self) -> None:
        """Read the topology before the next call, and make that on a new connection."""
        self._topology.forget()
        for pool in list(self._pools.values()):
            pool.close_idle()

    async def close(self) -> None:
        """Close all connections, and end the calls on those in use."""
        for pool in self._pools.values():
            await pool.close()


Route = OneServer | Cluster

_routes: weakref.WeakKeyDictionary[concurrency.Client, Route] = weakref.WeakKeyDictionary()


def route(client: concurrency.Client) -> Route:
    """The connections for a client. Raises BadTypeError, BadArgumentError for one whose settings do not do."""
    known = _routes.get(client)
    if known is None:
        made = Cluster(client) if isinstance(client, RedisCluster) else OneServer(client)
        known = _routes.setdefault(client, made)
    return known


def _slots(pool: Any) -> concurrency.Slots | None:
    """As many connections as the client may have."""
    limit = pool.max_connections
    if limit >= concurrency.UNLIMITED:
        return None
    return concurrency.Slots(limit, pool.timeout if isinstance(pool, BlockingConnectionPool) else 0)
