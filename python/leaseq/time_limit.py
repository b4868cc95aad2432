"""The time limit of bytes on their way: renewed while they flow, and bounded (LQ-CLIENT-19). No input or output."""

from typing import Final

LEAST_BYTES_PER_SECOND: Final = 32_768
"""The slowest link that is waited for: 256 kbit/s."""

LARGE_BYTES: Final = 16_384
"""A larger command gives its reply more time, since it may arrive slowly."""


def arrival_secs(size: int) -> float:
    """Return the seconds that `size` bytes may be on their way."""
    return size / LEAST_BYTES_PER_SECOND


class TimeLimit:
    """The limit of one reply that has started, or of one command that the server takes in slowly.

    Each pause may last `seconds`. All of it may last `seconds` and the time of its bytes at the least rate.
    """

    __slots__ = ("_ends", "_seconds")

    def __init__(self, seconds: float, now: float) -> None:
        self._seconds = seconds
        self._ends = now + seconds

    def pause(self, moved: int, now: float) -> float:
        """Return the seconds until the next bytes are due, after `moved` more have moved; 0 or less when the time is over."""
        self._ends += arrival_secs(moved)
        return min(self._seconds, self._ends - now)
