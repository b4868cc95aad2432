"""A primary and its replica, as a cluster of two."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Final, Self

import redis

from leaseq_conformance.cases import UnjudgedError
from leaseq_conformance.server import OwnServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

SLOTS: Final = 16384
PATIENCE: Final = 120.0
"""Seconds that two nodes may take to find each other; a machine that stalls takes long."""


class Pair:
    """Two nodes that know each other; a `with` block.

    Raises:
        UnjudgedError: they do not come up.
    """

    def __init__(self, program: str | None = None) -> None:
        with contextlib.ExitStack() as started:
            self.primary, self.replica = (
                started.enter_context(
                    OwnServer(program, "cluster-enabled", "yes", "cluster-config-file", "nodes.conf")
                )
                for _ in range(2)
            )
            _join(self.primary, self.replica)
            self._started = started.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._started.close()


def _join(primary: OwnServer, replica: OwnServer) -> None:
    with primary.client() as first, replica.client() as second:
        for start in range(0, SLOTS, 1024):
            _ask(first, "ADDSLOTS", *range(start, start + 1024))
        assert isinstance(primary.address, tuple)
        _ask(second, "MEET", *primary.address)
        name = _text(_ask(first, "MYID"))
        _until("the nodes do not meet", lambda: name in _text(_ask(second, "NODES")))
        _until("the replica is not taken", lambda: _replicates(second, name))
        _until("the replica has no data", lambda: b"master_link_status:up" in _info(second))
        _until(
            "the nodes are not ready",
            lambda: all(b"cluster_state:ok" in _ask(node, "INFO") for node in (first, second)),
        )
        _until("the primary does not name its replica", lambda: _places(first) == _places(second) == 2)


def _replicates(replica: redis.Redis, primary: str) -> bool:
    try:
        return bool(_ask(replica, "REPLICATE", primary))
    except redis.ResponseError:
        return False  # it does not know yet that the other has slots


def _places(node: redis.Redis) -> int:
    """How many nodes the first range of slots is at."""
    slots: Sequence[Any] = _ask(node, "SLOTS")
    return len(slots[0]) - 2 if slots else 0


def _ask(node: redis.Redis, *words: str | int) -> Any:
    # with parse callbacks of redis-py the replies of some would be turned into other things
    connection: Any = node.connection_pool.get_connection()
    try:
        connection.send_command("CLUSTER", *words)
        return connection.read_response(disable_decoding=True)
    finally:
        node.connection_pool.release(connection)


def _info(node: redis.Redis) -> bytes:
    connection: Any = node.connection_pool.get_connection()
    try:
        connection.send_command("INFO", "replication")
        return bytes(connection.read_response(disable_decoding=True))
    finally:
        node.connection_pool.release(connection)


def _text(reply: bytes) -> str:
    return reply.decode()


def _until(complaint: str, there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not there():
        if time.monotonic() > deadline:
            raise UnjudgedError(f"the cluster did not come up in {PATIENCE:.0f} s: {complaint}")
        time.sleep(0.02)
