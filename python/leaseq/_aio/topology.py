"""Which node of a cluster has which slot, read over leaseq's own connections."""

from dataclasses import replace
from typing import Any

import redis
from redis.asyncio.connection import Connection as RedisConnection
from redis.crc import key_slot

from leaseq._aio import concurrency
from leaseq._aio.connection import Connection
from leaseq.endpoint import Endpoint, endpoint

ASK_SECS = 1.0
"""The longest that one node is waited for before the next is asked (LQ-CLIENT-22)."""

SLOTS = 16384

_OF_CLIENT = ("redis_connect_func", "oss_cluster_maint_notifications_handler")
"""Settings by which redis-py's connections know their client: they would keep it."""

_NEVER = -1.0
"""A time before every reading on `concurrency.now`."""

Address = tuple[str, int]


class Topology:
    """The nodes of a cluster, which are asked one after the other; a redis-py client names the first ones."""

    def __init__(self, client: Any) -> None:
        """Raises BadTypeError, BadArgumentError for settings that leaseq's connections do not support."""
        self._client = client
        given = {
            name: value for name, value in client.get_connection_kwargs().items() if name not in _OF_CLIENT
        }
        self.settings = endpoint(given, given.get("connection_class", RedisConnection), ("", 0))
        self._nodes: list[Address | None] = [None] * SLOTS
        self._known: list[Address] = []
        """All nodes of the last reading, replicas included; the first is asked first."""
        self._read_at = _NEVER

    def endpoint_of(self, node: Address) -> Endpoint:
        """Return how to connect to a node."""
        host, port = node
        return replace(self.settings, host=host, port=port)

    async def node_of(self, key: str, until: float, since: float = 0.0) -> Address:
        """Return the node that has a key, by what was read after `since` on `concurrency.now`.

        Raises errors of redis-py, by `until`.
        """
        if self._read_at < since:
            await self._read(until)
        slot = key_slot(key.encode())
        node = self._nodes[slot]
        if node is None:
            self.forget()
            raise redis.ConnectionError(f"no node of the cluster has the slot {slot}")
        return node

    def record(self, key: str, node: Address) -> None:
        """A node answered that this one has the slot of the key now."""
        self._nodes[key_slot(key.encode())] = node

    def suspect(self, node: Address) -> None:
        """Ask this node last: it does not answer."""
        self._known = sorted(self._known, key=lambda each: each == node)

    def forget(self) -> None:
        """Read it again before the next call."""
        self._read_at = _NEVER

    def remapped(self, host: str, port: int) -> Address:
        """Return where a node is, as the user of the client maps the addresses that nodes tell."""
        host, port = self._client.nodes_manager.remap_host_port(host, port)
        return host, port

    async def _read(self, until: float) -> None:
        """Ask one node after the other until all slots are known. Raises the last error if none answers."""
        began = concurrency.now()
        until = min(until, began + self.settings.connect_secs)
        places = self._places()
        nodes: list[Address | None] = [None] * SLOTS
        known: list[Address] = []
        failure: Exception | None = None
        for number, place in enumerate(places):
            left = (until - concurrency.now()) / (len(places) - number)
            try:
                ranges = await self._ask(place, min(left, ASK_SECS))
            except (redis.RedisError, OSError) as error:
                failure = error.with_traceback(None)  # else it holds this frame, and that holds it
                continue
            known.append(place)
            for first, last, *those in ranges:
                found = [self._address(each, place) for each in those]
                known += found
                nodes[first : last + 1] = [node or found[0] for node in nodes[first : last + 1]]
            if None not in nodes:
                break
        if not known:
            raise failure or redis.ConnectionError("the client of the cluster names no node")
        self._nodes, self._known, self._read_at = nodes, list(dict.fromkeys(known)), began

    def _places(self) -> list[Address]:
        """Return the nodes to ask, in order: those that are known, and those that the client of redis-py names."""
        given = [
            (str(each.host), int(each.port)) for each in self._client.nodes_manager.startup_nodes.values()
        ]
        return list(dict.fromkeys([*self._known, *given]))

    async def _ask(self, place: Address, seconds: float) -> Any:
        """Return what a node says of the slots: the first, the last, the node that has them, its replicas."""
        until = concurrency.now() + seconds
        connection = await Connection.open(self.endpoint_of(place).within(seconds))
        try:
            await connection.send("CLUSTER", "SLOTS")
            return await connection.read(max(0.001, until - concurrency.now()))
        finally:
            connection.close()

    def _address(self, node: Any, sender: Address) -> Address:
        """Return where a node is. A node that names no host is where the sender is."""
        host = node[0].decode() if node[0] else sender[0]
        return self.remapped(host, int(node[1]))
