"""The moments at which the clock of a time zone shows a time. Moments are milliseconds since 1970 UTC, times naive datetimes.

A time zone is asked one way only, which time it is at a moment: so `fold` is not needed, which few zones of other libraries have.
"""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MS: Final = timedelta(milliseconds=1)
DAY_MS: Final = 86_400_000
"""The most by which a clock is changed."""


@dataclass(frozen=True, slots=True)
class WallClock:
    """The clock of a time zone, which is changed at most once within two days."""

    zone: tzinfo

    def lowest(self, moment: int) -> datetime:
        """Return a time that the clock does not go below from this moment on."""
        now, later = self._offset(moment), self._offset(moment + DAY_MS)
        if later < now:  # it is set back below the time of now if that is soon
            later = self._offset(moment + now - later)
        return _time(moment + min(now, later))

    def highest(self, moment: int) -> datetime:
        """Return a time that the clock has not gone above up to this moment."""
        now, earlier = self._offset(moment), self._offset(moment - DAY_MS)
        if earlier > now:
            earlier = self._offset(moment + now - earlier)
        return _time(moment + max(now, earlier))

    def moments(self, time: datetime) -> list[int]:
        """The moments at which it shows a time: one, two where it is set back, none where it is set forward."""
        shown = (time.replace(tzinfo=UTC) - EPOCH) // MS
        before, after = self._offset(shown - DAY_MS), self._offset(shown + DAY_MS)
        if before == after:
            return [shown - before]
        return sorted(shown - each for each in (before, after) if self._offset(shown - each) == each)

    def first(self, time: datetime) -> list[int]:
        """The one moment at which it shows a time, or a later one, for the first time."""
        if moments := self.moments(time):
            return moments[:1]
        shown = (time.replace(tzinfo=UTC) - EPOCH) // MS
        before, after = self._offset(shown - DAY_MS), self._offset(shown + DAY_MS)
        skipped = range(shown - after, shown - before)
        return [skipped.start + bisect_left(skipped, True, key=lambda moment: self._offset(moment) == after)]

    def _offset(self, moment: int) -> int:
        """Return the offset from UTC, in milliseconds."""
        asked = EPOCH + moment * MS
        return (asked.astimezone(self.zone).replace(tzinfo=UTC) - asked) // MS


def _time(shown: int) -> datetime:
    return EPOCH.replace(tzinfo=None) + shown * MS
