"""The behaviour of a worker while its server does not answer: one line in the log, growing pauses, no end."""

from leaseq.backoff import Backoff

pause = Backoff(0.1, 5.0)
"""Seconds to wait, by the number of failures in a row."""


class ServerHealth:
    """The health of the server: whether it is away, and since when. Only one caller may use it at a time."""

    def __init__(self) -> None:
        self._since: float | None = None
        self.answered_at: float | None = None
        """When a call last worked, on this process's clock."""
        self.is_down = False
        """True if the last thing heard of the server was a failure."""

    def mark_down(self, now: float) -> bool:
        """Record that a call failed. Return true if it is the first failure of this outage."""
        first = not self.is_down
        if first:
            self._since, self.is_down = now, True
        return first

    def mark_up(self, now: float) -> float | None:
        """Record that a call worked. Return the seconds that the outage took, or None if there was none."""
        self.answered_at = now
        since, self._since, self.is_down = self._since, None, False
        return None if since is None else now - since
