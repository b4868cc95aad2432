"""A second implementation of the slots of a line of crontab: it goes from minute to minute (LQ-JOB-40)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

if TYPE_CHECKING:
    from collections.abc import Iterator

START = datetime(2026, 1, 1, tzinfo=UTC)
YEARS = 10
SCAN = timedelta(hours=2)


class Line(NamedTuple):
    """A line for all days: its minutes and hours; all hours are none named."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int] | None

    def has(self, shown: datetime) -> bool:
        return (
            shown.second == 0
            and shown.minute in self.minutes
            and (self.hours is None or shown.hour in self.hours)
        )


def line(minutes: str, hours: str) -> Line:
    return Line(
        f"{minutes} {hours} * * *", _numbers(minutes, 60), None if hours == "*" else _numbers(hours, 24)
    )


def _numbers(text: str, count: int) -> frozenset[int]:
    if text.startswith("*"):
        return frozenset(range(0, count, int(text[2:] or 1)))
    return frozenset(map(int, text.split(",")))


def shown(moment: datetime, zone: tzinfo) -> datetime:
    """The time that the clock shows."""
    return moment.astimezone(zone).replace(tzinfo=None)


def slots(rule: Line, zone: tzinfo, begin: datetime, end: datetime, step: timedelta) -> list[datetime]:
    """The slots from `begin`, a day before which no clock was changed, to `end`."""
    found: list[datetime] = []
    moment = begin
    highest = shown(begin, zone) - step
    while moment < end:
        now = shown(moment, zone)
        if rule.hours is None:
            due = rule.has(now)
        else:
            due = any(rule.has(highest + step * (number + 1)) for number in range((now - highest) // step))
        highest = max(highest, now)
        if due:
            found.append(moment)
        moment += step
    return found


def changes(zone: tzinfo, begin: datetime, end: datetime) -> Iterator[datetime]:
    """The moments at which a clock is changed."""
    count = (end - begin) // SCAN
    for before, after in pairwise(begin + SCAN * number for number in range(count + 1)):
        low, high = before, after
        if low.astimezone(zone).utcoffset() == high.astimezone(zone).utcoffset():
            continue
        while high - low > timedelta(seconds=1):
            middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
            same = middle.astimezone(zone).utcoffset() == before.astimezone(zone).utcoffset()
            low, high = (middle, high) if same else (low, middle)
        yield high


@cache
def zones() -> list[ZoneInfo]:
    """Every zone, of those with the same changes one."""
    found: dict[object, ZoneInfo] = {}
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        key = tuple(
            (START + timedelta(days=number * 5)).astimezone(zone).utcoffset() for number in range(YEARS * 73)
        )
        found.setdefault(key, zone)
    return list(found.values())
