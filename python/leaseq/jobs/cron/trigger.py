"""When the slots of a schedule are. Times are milliseconds since 1970; every program that knows the rule finds the same."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from leaseq import commands
from leaseq.errors import BadArgumentError, BadTypeError

SECOND = 1000

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
        """Those later than `time`, in order."""

    def last(self, time: int) -> int | None:
        """The last slot up to `time`."""


@dataclass(frozen=True, slots=True)
class CronTrigger:
    """A line of crontab, in a time zone. Raises BadTypeError, BadArgumentError."""

    line: str
    zone: tzinfo = UTC

    def __post_init__(self) -> None:
        if not isinstance(self.line, str):
            raise BadTypeError(f"a line of crontab is a str, not {type(self.line).__name__}")
        try:
            next(self.after(0), None)
        except CronSimError as error:
            raise BadArgumentError(
                f"{self.line!r} is no line of crontab: {error}; it has minute, hour, day of month, month and day of week,"
                f" and may have a second before them, or is one of {', '.join(NICKNAMES)}"
            ) from error

    def after(self, time: int) -> Iterator[int]:
        """Those later than `time`."""
        for slot in CronSim(self._fields, self._at(time)):
            yield _milliseconds(slot)

    def last(self, time: int) -> int | None:
        """The last slot up to `time`."""
        slots = CronSim(self._fields, self._at(time + SECOND), reverse=True)
        return next((found for slot in slots if (found := _milliseconds(slot)) <= time), None)

    @property
    def _fields(self) -> str:
        return NICKNAMES.get(self.line.strip().lower(), self.line)

    def _at(self, time: int) -> datetime:
        return datetime.fromtimestamp(time // SECOND, self.zone)

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
        """Those later than `time`."""
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
        return f"every {self.seconds:g} s"


def zone(given: str | tzinfo) -> tzinfo:
    """A time zone by its name. Raises BadArgumentError, BadTypeError."""
    if isinstance(given, tzinfo):
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


def _milliseconds(slot: datetime) -> int:
    return round(slot.timestamp() * 1000)
