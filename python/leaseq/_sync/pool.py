# Generated from _aio/pool.py by python/unasync.py: do not edit.
"""The connections of the clients that are opened here."""

import os
from typing import Any

from redis import ConnectionPool
from redis.exceptions import ConnectionError as BrokenError
from redis.exceptions import TimeoutError as LateError


class Pool(ConnectionPool):
    """Hands out the connection that came back last, without the bookkeeping of redis-py.

    For redis-py that connection has never come back: it counts it, and closes it with all others. A look at whether it
    still stands remains, and where it does not, redis-py does what it always does. What it does besides each time
    (metrics, events, attempts to connect) was a quarter of the time of a call, and is for settings that no URL has.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._idle: dict[int, list[Any]] = {}
        """By process, since the child of a fork must not speak where its parent does."""

    def idle(self) -> list[Any]:
        """The connections that this process may be handed."""
        return self._idle.setdefault(os.getpid(), [])

    def get_connection(self, *_: Any, **__: Any) -> Any:
        """The connection that came back last, if it stands and has nothing to read; else what redis-py gives."""
        try:
            connection = self.idle().pop()
        except IndexError:
            return self._connect()
        fit = False
        try:
            fit = not connection.should_reconnect() and not connection.can_read()
        except (BrokenError, LateError, OSError):
            fit = False  # redis-py connects again
        finally:
            if not fit:
                super().release(connection)
        return connection if fit else self._connect()

    def release(self, connection: Any) -> None:
        """Take a connection back."""
        here = os.getpid()
        # those of asyncio know no process, since no event loop outlives a fork
        if connection.is_connected and getattr(connection, "pid", here) == here:
            self.idle().append(connection)
        else:
            super().release(connection)

    def _connect(self) -> Any:
        untyped: Any = super()
        return untyped.get_connection()
