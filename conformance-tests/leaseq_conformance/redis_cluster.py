"""A cluster of real servers, made by plain commands."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any, Final, Self

from leaseq_conformance.polling import wait_until
from leaseq_conformance.redis_server import SpawnedServer
from leaseq_conformance.server_process import ServerError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    import redis

SLOTS: Final = 16384
LOOPBACK: Final = "127.0.0.1"
TIMEOUT_SECS: Final = 120.0
"""Seconds that nodes may take to find each other; a machine that stalls takes long."""
_OPTIONS: Final = (
    *("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"),
    *("--cluster-node-timeout", "60000", "--repl-diskless-sync-delay", "0"),
)
"""A node is not given up because the machine stalls; a replica is synchronised at once."""


class RedisCluster:
    """Primaries that share the slots, each with that many replicas. It is ready once this returns; a `with` block.

    Args:
        program: see `find_program`.
        options: further command-line arguments of each node.
        apart: each node at a separate loopback address, if the machine has more than one, as Linux does.

    Attributes:
        nodes: all of them, the primaries first.
        url: that of the first node.

    Raises:
        ServerError: a node does not start, or they do not find each other.
    """

    def __init__(
        self,
        program: str | None = None,
        primaries: int = 3,
        replicas: int = 0,
        *,
        apart: bool = False,
        options: Sequence[str] = (),
    ) -> None:
        with contextlib.ExitStack() as started:
            count = primaries * (1 + replicas)
            hosts = _hosts(count) if apart else [LOOPBACK] * count
            self.nodes = [
                started.enter_context(
                    SpawnedServer(program, *_OPTIONS, *options, "--cluster-announce-ip", host, host=host)
                )
                for host in hosts
            ]
            self.primaries, self.replicas = self.nodes[:primaries], self.nodes[primaries:]
            self.url = self.nodes[0].url
            self._join()
            self._started = started.pop_all()

    def _join(self) -> None:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(node.client(decode_responses=True)) for node in self.nodes]
            count = len(self.primaries)
            for place, client in enumerate(clients[:count]):
                slots = range(SLOTS * place // count, SLOTS * (place + 1) // count)
                for start in range(slots.start, slots.stop, 1024):
                    cluster(client, "ADDSLOTS", *slots[start - slots.start :][:1024])
                cluster(client, "SET-CONFIG-EPOCH", place + 1)
            for place, client in enumerate(clients):
                for node in self.nodes[place + 1 :]:  # each meets each, without waiting for gossip
                    cluster(client, "MEET", node.host, node.port)
            self._wait(
                "the nodes do not meet", lambda: all(_knows(client, len(clients)) for client in clients)
            )
            names = [cluster(client, "MYID") for client in clients[:count]]
            for place, client in enumerate(clients[count:]):
                primary = names[place % count]
                self._wait(
                    "a replica is not accepted", lambda c=client, p=primary: cluster(c, "REPLICATE", p)
                )
                self._wait("a replica has no data", lambda c=client: _is_linked(c))
            self._wait("the nodes are not ready", lambda: all(self._is_ready(client) for client in clients))

    def _is_ready(self, client: redis.Redis) -> bool:
        """Return whether a node serves all slots, and knows each slot's replicas."""
        ranges: Sequence[Any] = cluster(client, "SLOTS")
        nodes_each = 1 + len(self.replicas) // len(self.primaries)
        return (
            "cluster_state:ok" in cluster(client, "INFO")
            and len(ranges) == len(self.primaries)
            and all(len(each) == 2 + nodes_each for each in ranges)
        )

    def _wait(self, complaint: str, check: Any) -> None:
        try:
            wait_until(check, TIMEOUT_SECS)
        except TimeoutError as error:
            raise ServerError(f"the cluster did not come up in {TIMEOUT_SECS:.0f} s: {complaint}") from error

    def move(self, slot: int, to: SpawnedServer) -> None:
        """Give an empty slot to another primary."""
        with to.client(decode_responses=True) as client:
            name = cluster(client, "MYID")
        for node in [to, *(other for other in self.primaries if other is not to)]:
            with node.client() as client:
                cluster(client, "SETSLOT", slot, "NODE", name)

    def flush(self) -> None:
        """Empty every primary and make every node forget every script."""
        for node in self.primaries:
            with node.client() as client:
                client.flushall()
        for node in self.nodes:
            with node.client() as client:
                client.script_flush()

    def close(self) -> None:
        """End all nodes."""
        self._started.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _hosts(count: int) -> list[str]:
    """Addresses of the loopback, different ones where the machine has them."""
    hosts = [f"127.0.0.{number}" for number in range(1, count + 1)]
    with contextlib.suppress(OSError):
        for host in hosts:
            with socket.socket() as sock:
                sock.bind((host, 0))
        return hosts
    return [LOOPBACK] * count


def cluster(client: redis.Redis, *words: str | int) -> Any:
    """Return the plain reply to a CLUSTER command. redis-py converts the reply of a command that is named in two words."""
    untyped: Any = client
    return untyped.execute_command("CLUSTER", *words)


def _knows(client: redis.Redis, count: int) -> bool:
    lines = [line for line in cluster(client, "NODES").splitlines() if "handshake" not in line]
    return len(lines) == count


def _is_linked(client: redis.Redis) -> bool:
    info: dict[str, Any] = client.info("replication")
    return info.get("master_link_status") == "up"
