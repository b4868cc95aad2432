"""When the slots of a schedule are. Times are milliseconds since 1970; every program that knows the rule finds the same."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from heapq import heappop, heappush
from typing import Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from leaseq import commands
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs.cron.wall_clock import EPOCH, WallClock

HOURS_OF_A_DAY = 24

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Trigger(Protocol):
    """Slots without end."""

    def after(self, time: int) -> Iterator[int]:
        """Yield the slots later than `time`, in order."""

    def last(self, time: int) -> int | None:
        """The last slot up to `time`."""


@dataclass(frozen=True, slots=True)
class CronTrigger:
    """A line of crontab, in a time zone. Raises BadTypeError, BadArgumentError.

    A line that names hours gives one slot for each time of the clock: the first moment at which the clock shows that time or a
    later one. A line for every hour gives a slot for each moment at which the clock shows a time of the line (LQ-JOB-40, LQ-JOB-41).
    """

    line: str
    zone: tzinfo = UTC
    _clock: WallClock = field(init=False, repr=False, compare=False)
    _every_hour: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.line, str):
            raise BadTypeError(f"a line of crontab is a str, not {type(self.line).__name__}")
        object.__setattr__(self, "_clock", WallClock(self.zone))
        try:
            times = CronSim(self._fields, EPOCH.replace(tzinfo=None))
        except CronSimError as error:
            raise BadArgumentError(
                f"{self.line!r} is no line of crontab: {error}; it has minute, hour, day of month, month and day of week,"
                f" and may have a second before them, or is one of {', '.join(NICKNAMES)}"
            ) from error
        if next(times, None) is None:
            raise BadArgumentError(f"{self.line!r} has no slot in 50 years: no day is like that")
        object.__setattr__(self, "_every_hour", len(times.hours) == HOURS_OF_A_DAY)

    def after(self, time: int) -> Iterator[int]:
        """Yield the slots later than `time`, in order."""
        found: list[int] = []
        for shown in CronSim(self._fields, self._clock.lowest(time)):
            moments = self._moments(shown)
            for moment in moments:
                heappush(found, moment)
            # the second moment of a time can be later than those of later times
            while moments and found and found[0] <= moments[0]:
                if (slot := heappop(found)) > time:
                    time = slot
                    yield slot

    def last(self, time: int) -> int | None:
        """The last slot up to `time`."""
        found: list[int] = []
        latest = self._clock.highest(time) + timedelta(seconds=1)
        for shown in CronSim(self._fields, latest, reverse=True):
            moments = self._moments(shown)
            found += [moment for moment in moments if moment <= time]
            if moments and moments[-1] <= time:  # so are those of all earlier times
                break
        return max(found, default=None)

    def _moments(self, shown: datetime) -> list[int]:
        return self._clock.moments(shown) if self._every_hour else self._clock.first(shown)

    @property
    def _fields(self) -> str:
        return NICKNAMES.get(self.line.strip().lower(), self.line)

    def __str__(self) -> str:
        return f"{self.line} {self.zone}"


@dataclass(frozen=True, slots=True)
class IntervalTrigger:
    """Slots at multiples of `seconds` since 1970. Raises BadTypeError, BadArgumentError."""

    seconds: float

    def __post_init__(self) -> None:
        if commands.milliseconds(self.seconds, "an interval") < 1:
            raise BadArgumentError("an interval is at least 0.001 seconds")

    def after(self, time: int) -> Iterator[int]:
        """Yield the slots later than `time`."""
        step = self._step
        slot = time - time % step
        while True:
            slot += step
            yield slot

    def last(self, time: int) -> int:
        """The last slot up to `time`."""
        return time - time % self._step

    @property
    def _step(self) -> int:
        return round(self.seconds * 1000)

    def __str__(self) -> str:
        return f"every {self.seconds:.15g} s"


def zone(given: str | tzinfo) -> tzinfo:
    """A time zone by its name. Raises BadArgumentError, BadTypeError."""
    if isinstance(given, tzinfo):
        try:
            WallClock(given).lowest(0)
        except (TypeError, ValueError, NotImplementedError) as error:
            message = f"a time zone has utcoffset, dst and fromutc, for each time; {given!r} has not: {error}"
            raise BadArgumentError(message) from error
        return given
    if not isinstance(given, str):
        raise BadTypeError(f"a time zone is its name or a tzinfo, not {type(given).__name__}")
    try:
        return UTC if given == "UTC" else ZoneInfo(given)
    except (ValueError, OSError, LookupError) as error:
        raise BadArgumentError(
            f"there is no time zone {given!r} here: names are like 'Europe/Berlin', and a system without them needs the"
            " package tzdata"
        ) from error
