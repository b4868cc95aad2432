"""Connections of redis-py whose methods do nothing but speak: what they put around each look and reply can be left out.

For threads that took 1.2 us of 22 for each call, above all to write texts for errors that do not come.
"""

from collections.abc import Mapping
from typing import Any

from redis import ConnectionError as BrokenError
from redis import TimeoutError as LateError
from redis.asyncio.connection import Connection, SSLConnection, UnixDomainSocketConnection

_PLAIN = frozenset({Connection, SSLConnection, UnixDomainSocketConnection})


def are_plain(kind: type, settings: Mapping[str, Any]) -> bool:
    """Whether connections of this class with these settings are: none of a Sentinel set, none with health checks."""
    return kind in _PLAIN and not settings.get("health_check_interval")


def broken(connection: Any, error: OSError) -> LateError | BrokenError:
    """What its `read_response` raises for an error of the socket."""
    if isinstance(error, TimeoutError):
        return LateError(f"Timeout reading from {connection._host_error()}")
    return BrokenError(f"Error while reading from {connection._host_error()} : {error.args}")
