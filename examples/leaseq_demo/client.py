"""Connections of the demo's processes. A process dies only of an error of the server."""

from typing import Any, Final

import redis

REPLY_SECS: Final = 60
"""A machine that stands still for a while is to end no demo; redis-py would give up after 5 seconds."""


def open_client(url: str) -> Any:
    """A client of redis-py; what the URL says of its bounds goes before."""
    return redis.Redis.from_url(url, socket_timeout=REPLY_SECS, socket_connect_timeout=REPLY_SECS)
