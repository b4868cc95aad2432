"""The last hour of a queue, in memory."""

from array import array
from typing import Final

from leaseq.results import QueueStats

SAMPLE_SECS: Final = 30.0
"""Seconds between two samples."""

MAX_SAMPLES: Final = 121
"""Samples of an hour, and the first before them."""

_FIELDS: Final = ("now", "ready", "added", "completed", "died")


class QueueHistory:
    """Samples of a queue, one every 30 seconds, for up to an hour: 5 KB when it is full."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values = array("d")

    def add(self, stats: QueueStats) -> None:
        """Keep a sample, if the last one is old enough. A clock that was set back starts the history anew."""
        values = self._values
        width = len(_FIELDS)
        if values:
            age = stats.now - values[-width]
            if age < 0:
                del values[:]
            elif age < SAMPLE_SECS:
                return
        values.extend(float(getattr(stats, name)) for name in _FIELDS)
        if len(values) > MAX_SAMPLES * width:
            del values[:width]

    def rate(self, stats: QueueStats, name: str) -> float:
        """Return by how much a counter such as "completed" grew per minute, over the last half minute to minute."""
        values, width = self._values, len(_FIELDS)
        if not values:
            return 0.0
        start = -2 * width if len(values) > width else -width
        seconds = stats.now - values[start]
        grown: float = getattr(stats, name) - values[start + _FIELDS.index(name)]
        return max(0.0, grown) * 60 / seconds if seconds > 0 else 0.0

    def levels(self, name: str) -> list[float]:
        """Return how high a count was at each sample, such as "ready"."""
        return list(self._values[_FIELDS.index(name) :: len(_FIELDS)])

    def rates(self, name: str) -> list[float]:
        """Return by how much a counter such as "completed" grew per minute, between each sample and the one before."""
        counts, times = self.levels(name), self.levels("now")
        return [
            max(0.0, after - before) * 60 / max(until - since, 1e-6)
            for before, after, since, until in zip(
                counts[:-1], counts[1:], times[:-1], times[1:], strict=True
            )
        ]
