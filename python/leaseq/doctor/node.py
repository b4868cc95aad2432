"""One server as the doctor sees it: questions to it, answered in plain Python values whatever the client decodes."""

import contextlib
from collections.abc import Iterator
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from leaseq.commands.encoding import Argument, argument
from leaseq.keys import QueueKeys

PROBE_QUEUE = "leaseq-doctor"
"""The name of an unused queue, to try what the user may do in its group."""

REPLICA_SECS = 5.0
"""Seconds that a replica may take to be connected to and to answer."""


class Node:
    """A server and a client of it; `keys` are of an unused queue there. Raises what redis-py raises."""

    def __init__(self, client: redis.Redis, name: str, keys: QueueKeys | None = None) -> None:
        self.client = client
        self.name = name
        self.keys = QueueKeys(PROBE_QUEUE) if keys is None else keys

    def execute(self, *command: Argument | int) -> Any:
        """Return what the server answers to a command, as plain values."""
        client: Any = self.client
        return plain(client.execute_command(*map(argument, command)))

    def info(self, section: str) -> dict[str, Any]:
        """One section of INFO."""
        answer: Any = self.client.info(section)
        info: dict[str, Any] = plain(answer)
        return info

    def setting(self, name: str) -> str | None:
        """A setting of the server; None where it does not tell this user, or does not know it."""
        client: Any = self.client
        try:
            settings = plain(client.config_get(name))
        except redis.ResponseError:  # no right, or no such command where a provider took it away
            return None
        value: str | None = settings.get(name)
        return value

    def time(self) -> float:
        """The server's clock, in seconds since 1970."""
        answer: Any = self.client.time()
        return float(answer[0]) + float(answer[1]) / 1_000_000

    @contextlib.contextmanager
    def replica(self, host: str, port: int) -> Iterator["Node"]:
        """A replica of this server, asked as the same user."""
        pool: Any = self.client.connection_pool
        unneeded = ("path", "connection_pool", "maint_notifications_pool_handler")
        options = {name: value for name, value in pool.connection_kwargs.items() if name not in unneeded}
        options |= {
            "host": host,
            "port": port,
            "socket_timeout": REPLICA_SECS,
            "socket_connect_timeout": REPLICA_SECS,
            "retry": Retry(NoBackoff(), 0),
        }
        kind = (
            redis.SSLConnection
            if issubclass(pool.connection_class, redis.SSLConnection)
            else redis.Connection
        )
        # from_pool: a client that is handed a pool in another way leaves it open
        with redis.Redis.from_pool(redis.ConnectionPool(connection_class=kind, **options)) as client:
            yield Node(client, f"{host}:{port}")


def address(client: redis.Redis) -> str:
    """Where a client's server is, without user and password."""
    pool: Any = client.connection_pool
    named = pool.connection_kwargs
    if named.get("path"):
        return str(named["path"])
    if named.get("host"):
        return f"{named['host']}:{named.get('port', 6379)}"
    return str(getattr(pool, "service_name", "server"))  # Sentinels find the address


def plain(value: Any) -> Any:
    """The same with text for bytes."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, dict):
        return {plain(key): plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    return value
