"""The connections of the clients that are opened here."""

from typing import Any

from redis.asyncio import ConnectionPool
from redis.exceptions import ConnectionError as BrokenError
from redis.exceptions import TimeoutError as LateError

from leaseq._aio.plain import are_plain
from leaseq.process import THIS


class Pool(ConnectionPool):
    """Hands out the connection that came back last, without the bookkeeping of redis-py.

    For redis-py that connection has never come back: it counts it, and closes it with all others. A look at whether it
    still stands remains, and where it does not, redis-py does what it always does. What it does besides each time
    (metrics, events, attempts to connect) was a quarter of the time of a call, and is for settings that no URL has.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.plain = are_plain(self.connection_class, self.connection_kwargs)
        self._idle: dict[int, list[Any]] = {}
        """By process, since the child of a fork must not speak where its parent does."""
        self._open: set[Any] = set()
        """Those that are open. One whose opening was interrupted is not: the replies to that are still to come."""

    async def get_connection(self, *_: Any, **__: Any) -> Any:
        """The connection that came back last, if it stands and has nothing to read; else what redis-py gives."""
        connection = await self.at_hand()
        if connection is None:
            untyped: Any = super()
            connection = await untyped.get_connection()
            self._open.add(connection)
        return connection

    async def at_hand(self) -> Any | None:
        """The connection that came back last, if it stands and has nothing to read."""
        try:
            connection = self._idle[THIS.number].pop()
        except LookupError:
            return None
        fit = False
        try:
            look = connection._parser if self.plain and connection.is_connected else connection
            fit = not connection.should_reconnect() and not await look.can_read()
        except (BrokenError, LateError, OSError):
            fit = False  # redis-py connects again
        finally:
            if not fit:
                self._open.discard(connection)
                await super().release(connection)
        return connection if fit else None

    async def release(self, connection: Any) -> None:
        """Take a connection back, also one that redis-py could not open."""
        here = THIS.number
        # those of asyncio know no process, since no event loop outlives a fork
        if connection in self._open and connection.is_connected and getattr(connection, "pid", here) == here:
            self._idle.setdefault(here, []).append(connection)
        else:
            self._open.discard(connection)
            await connection.disconnect()
            await super().release(connection)
