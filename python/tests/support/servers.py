"""The servers of tests: by name, or the one at `LEASEQ_TEST_URL`; see `leaseq_conformance.redis_server` for what they are."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final, TypeAlias

import redis

from leaseq_conformance.polling import TIMEOUT_SECS, wait_until
from leaseq_conformance.redis_cluster import RedisCluster
from leaseq_conformance.redis_server import ExternalServer, Server, SpawnedServer, plain_client
from leaseq_conformance.reserved_port import ReservedPort
from leaseq_conformance.server_process import ServerError
from leaseq_conformance.server_programs import find_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "BY_URL",
    "DEFAULT",
    "TIMEOUT_SECS",
    "WITH_TLS",
    "ExternalServer",
    "RedisCluster",
    "ReservedPort",
    "Server",
    "ServerError",
    "SpawnedServer",
    "StartServer",
    "cluster_client",
    "find_program",
    "open_named",
    "plain_client",
    "startable",
    "wait_until",
]

StartServer: TypeAlias = "Callable[..., SpawnedServer]"
"""The type of the fixture `own_server`."""
DEFAULT: Final = "valkey-9.1.2"
BY_URL: Final = "LEASEQ_TEST_URL"
"""The name of the server whose URL is in the variable of this name."""
WITH_TLS: Final = "redis-7.0"
"""The core server that is built with TLS: Debian's."""


def open_named(name: str) -> Server:
    """Return a running server of that name; the caller closes it."""
    return ExternalServer(os.environ[BY_URL]) if name == BY_URL else SpawnedServer(name)


def startable(name: str) -> str:
    """Return the name of a server that tests can start themselves: this one, or the default if this one is given by URL."""
    return DEFAULT if name == BY_URL else name


@contextlib.contextmanager
def cluster_client(url: str) -> Iterator[redis.RedisCluster]:
    """A cluster client, closed at the end with its connections: redis-py leaves open the pools of one made from a URL."""
    client = redis.RedisCluster.from_url(url)
    try:
        yield client
    finally:
        client.disconnect_connection_pools()  # type: ignore[no-untyped-call]
        client.close()
