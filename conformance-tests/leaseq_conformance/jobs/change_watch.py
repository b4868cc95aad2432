"""Waits for a change of a job, as a client that watches the job does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import redis

BLOCK_SECS: Final = 600
"""Longer than a case takes."""


class ChangeWatch:
    """Waits from now on for the element of one list, which is there for a short time only. It has a separate connection."""

    def __init__(self, client: redis.Redis, key: str) -> None:
        self._key = key
        pool = client.connection_pool
        self._connection = pool.connection_class(**{**pool.connection_kwargs, "socket_timeout": None})
        self._connection.connect()
        self._connection.send_command("BLMOVE", key, key, "LEFT", "LEFT", BLOCK_SECS)
        self._connection.send_command("PTTL", key)  # the server runs it as soon as there is an element

    def life_ms(self, secs: float) -> int:
        """Return the time to live that the list had with its element. Raises ValueError if none came within this time."""
        if not self._connection.can_read(secs):
            raise ValueError(f"{self._key} has had no element within {secs:.0f} s")
        self._connection.read_response()
        return int(self._connection.read_response())

    def close(self) -> None:
        """End the wait."""
        self._connection.disconnect()
