"""When the slots of a line of crontab are, while clocks are changed (LQ-JOB-40, LQ-JOB-41), and that turns run each once (LQ-JOB-30, LQ-JOB-31)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import islice, repeat, takewhile
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import clock_changes
from support.clock_changes import START, YEARS, Line, line

from leaseq import BadArgumentError
from leaseq.jobs import App
from leaseq.jobs.cron.schedule import REVIEW_MS, Missed, Schedule
from leaseq.jobs.cron.trigger import CronTrigger, Trigger

if TYPE_CHECKING:
    from collections.abc import Iterator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LINES = [
    line("30", "2"),
    line("0", "0"),
    line("*/20", "2"),
    line("0,30", "1,2,3"),
    line("15", "*/2"),
    line("*/5", "0,23"),
    line("*/15", "*"),
    line("30", "*"),
    line("*", "*"),
]


def ms(moment: datetime | str) -> int:
    given = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return (given - EPOCH) // timedelta(milliseconds=1)


def found(table: Trigger, begin: int, end: int) -> list[int]:
    """Return the slots from `begin` to before `end`."""
    return list(takewhile(lambda slot: slot < end, table.after(begin - 1)))


def check(rule: Line, zone: tzinfo, begin: datetime, end: datetime, step: timedelta = MINUTE) -> None:
    """Both implementations find the same slots, forwards and backwards, from any moment."""
    table = CronTrigger(rule.text, zone)
    expected = [ms(slot) for slot in clock_changes.slots(rule, zone, begin, end, step)]
    assert found(table, ms(begin), ms(end)) == expected, (rule.text, zone, begin)
    for probe in range(ms(begin), ms(end), 47 * 60_000 + 13):
        assert next(table.after(probe)) == next(
            (slot for slot in expected if slot > probe), next(table.after(probe))
        )
        before = [slot for slot in expected if slot <= probe]
        if before:
            assert table.last(probe) == before[-1], (rule.text, zone, probe)
    for slot in expected[:: max(1, len(expected) // 5)]:
        assert table.last(slot) == slot


@pytest.mark.parametrize(
    ("zone", "change"),
    [
        ("Europe/Berlin", "2026-03-29T01:00:00+00:00"),
        ("Europe/Berlin", "2026-10-25T01:00:00+00:00"),
        ("Australia/Lord_Howe", "2026-04-04T15:00:00+00:00"),
        ("Australia/Lord_Howe", "2026-10-03T15:30:00+00:00"),
        ("Antarctica/Troll", "2026-03-29T01:00:00+00:00"),
        ("Antarctica/Troll", "2026-10-25T01:00:00+00:00"),
        ("Africa/Casablanca", "2026-02-15T02:00:00+00:00"),
        ("Africa/Casablanca", "2026-03-22T02:00:00+00:00"),
        ("America/Havana", "2026-11-01T05:00:00+00:00"),
        ("America/Santiago", "2026-04-05T03:00:00+00:00"),
        ("Pacific/Apia", "2011-12-30T10:00:00+00:00"),
        ("Pacific/Kwajalein", "1993-08-21T12:00:00+00:00"),
        ("Asia/Pyongyang", "2018-05-04T15:00:00+00:00"),
        ("Africa/Monrovia", "1972-01-07T00:44:30+00:00"),
    ],
)
def test_each_slot_is_found_once_while_a_clock_is_changed(zone: str, change: str) -> None:
    moment = datetime.fromisoformat(change)
    offsets = {(moment + side).astimezone(ZoneInfo(zone)).utcoffset() for side in (-MINUTE, timedelta())}
    assert len(offsets) == 2
    for rule in LINES[:7]:
        step = MINUTE if moment.second == 0 else timedelta(seconds=30)
        check(
            rule,
            ZoneInfo(zone),
            moment - 3 * HOUR - timedelta(seconds=moment.second),
            moment + 5 * HOUR,
            step,
        )


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_every_zone_over_ten_years() -> None:
    for zone in clock_changes.zones():
        end = START + timedelta(days=365 * YEARS)
        for change in clock_changes.changes(zone, START, end):
            for rule in LINES:
                check(rule, zone, change - 3 * HOUR, change + 4 * HOUR)
        daily = found(CronTrigger("30 2 * * *", zone), ms(START), ms(end))
        assert len({(EPOCH + timedelta(milliseconds=slot)).astimezone(zone).date() for slot in daily}) == len(
            daily
        )
        assert len(daily) - 365 * YEARS in {-1, 0, 1}, zone


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Troll", "America/Havana"]
)
def test_seconds_go_on_while_a_clock_is_changed(zone: str) -> None:
    for change in clock_changes.changes(ZoneInfo(zone), START, START + timedelta(days=365)):
        begin = ms(change - 2 * MINUTE)
        slots = found(CronTrigger("*/10 * * * * *", ZoneInfo(zone)), begin, ms(change + 2 * MINUTE))
        assert slots == list(range(begin, begin + 240_000, 10_000))


def test_a_daily_job_is_asked_for_in_the_hour_that_comes_twice() -> None:
    daily = CronTrigger("30 2 * * *", ZoneInfo("Europe/Berlin"))
    for minute in range(0, 180, 5):
        asked = ms("2026-10-25T00:00:00+00:00") + minute * 60_000
        day = "2026-10-25T00:30:00+00:00" if minute < 30 else "2026-10-26T01:30:00+00:00"
        assert next(daily.after(asked)) == ms(day)


class Nameless(tzinfo):
    def tzname(self, dt: datetime | None) -> str:
        return "nameless"

    def dst(self, dt: datetime | None) -> timedelta | None:
        return timedelta()

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return None


class Ancient(Nameless):
    """A zone as they were written before `fold`."""

    BEGIN = datetime.fromisoformat("2026-03-29T02:00")
    END = datetime.fromisoformat("2026-10-25T03:00")

    def utcoffset(self, dt: datetime | None) -> timedelta:
        return HOUR + self.dst(dt)

    def dst(self, dt: datetime | None) -> timedelta:
        summer = dt is not None and self.BEGIN <= dt.replace(tzinfo=None) < self.END
        return HOUR if summer else timedelta()


class Tied(Nameless):
    """A zone as pytz has them: an object for each offset, and only `fromutc` finds the right one."""

    def __init__(self, offset: timedelta = timedelta(minutes=53)) -> None:
        self.offset = offset

    def utcoffset(self, dt: datetime | None) -> timedelta:
        return self.offset

    def fromutc(self, dt: datetime) -> datetime:
        offset = dt.replace(tzinfo=UTC).astimezone(ZoneInfo("Europe/Berlin")).utcoffset()
        assert offset is not None
        return (dt + offset).replace(tzinfo=Tied(offset))


@pytest.mark.parametrize(
    "zone", [Ancient(), Tied(), timezone(timedelta(hours=-9, minutes=-30)), timezone.max]
)
@pytest.mark.parametrize("change", ["2026-03-29T01:00:00+00:00", "2026-10-25T01:00:00+00:00"])
def test_zones_of_others(zone: tzinfo, change: str) -> None:
    moment = datetime.fromisoformat(change)
    for rule in LINES[:7]:
        check(rule, zone, moment - 3 * HOUR, moment + 3 * HOUR)


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("@daily", "2026-12-31T12:00:00+00:00", ["2027-01-01T00:00:00+00:00", "2027-01-02T00:00:00+00:00"]),
        ("59 23 31 12 *", "2026-12-31T23:59:00+00:00", ["2027-12-31T23:59:00+00:00"]),
        (
            "0 0 29 2 *",
            "2026-01-01T00:00:00+00:00",
            ["2028-02-29T00:00:00+00:00", "2032-02-29T00:00:00+00:00"],
        ),
        (
            "0 0 L * *",
            "2026-01-31T00:00:00+00:00",
            ["2026-02-28T00:00:00+00:00", "2026-03-31T00:00:00+00:00"],
        ),
        ("0 12 * * FRI#5", "2026-01-31T00:00:00+00:00", ["2026-05-29T12:00:00+00:00"]),
    ],
)
def test_days_that_are_rare(text: str, after: str, expected: list[str]) -> None:
    table = CronTrigger(text)
    slots = list(islice(table.after(ms(after)), len(expected)))
    assert slots == [ms(each) for each in expected]
    assert [table.last(each) for each in slots] == slots
    assert table.last(slots[0] - 1) != slots[0]


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 4,6 *", "0 0 LW 2 */7"])
def test_a_line_that_never_comes_is_refused(text: str) -> None:
    with pytest.raises(BadArgumentError, match=r"no line of crontab|no slot in 50 years"):
        CronTrigger(text)


def test_a_zone_that_does_not_say_its_time_is_refused() -> None:
    with pytest.raises(BadArgumentError, match="a time zone has utcoffset"):
        App().cron("* * * * *", tz=Nameless())


def schedule(table: Trigger, missed: Missed) -> Schedule:
    app = App()

    @app.job(name="s")
    def s() -> None: ...

    return Schedule("s", s.call(), table, missed)


def polled(one: Schedule, begin: int, times: list[int]) -> list[int]:
    """The slots that get jobs, where turns are taken at these times, and again while more are due."""
    until, ran = begin, list[int]()
    for now in times:
        while True:
            turn = one.turn(until, now, paused=False)
            assert all(until < slot <= now for slot in turn.slots)  # LQ-JOB-30
            assert turn.until >= max([until, *turn.slots])  # LQ-JOB-31
            assert turn.due > turn.until
            ran += turn.slots
            until = turn.until
            if turn.due > now:
                break
    return ran


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Troll", "Africa/Casablanca"]),
    st.sampled_from([LINES[0], LINES[2], LINES[3], LINES[6]]),
    st.sampled_from(["2026-02-15T00:00:00+00:00", "2026-03-28T21:00:00+00:00", "2026-10-24T21:00:00+00:00"]),
    st.lists(st.integers(1, 90 * 60_000), min_size=1, max_size=30),
)
def test_turns_at_any_times_run_each_slot_once(zone: str, rule: Line, begin: str, gaps: list[int]) -> None:
    table = CronTrigger(rule.text, ZoneInfo(zone))
    times = [ms(begin)]
    for gap in gaps:
        times.append(times[-1] + gap)
    expected = found(table, times[0] + 1, times[-1] + 1)
    assert polled(schedule(table, "all"), times[0], times) == expected
    for missed in ("last", "none"):
        ran = polled(schedule(table, missed), times[0], times)
        assert ran == sorted(set(ran))
        assert set(ran) <= set(expected)
        if missed == "last" and expected:
            assert ran[-1] == expected[-1]


class Misbehaving:
    """A timetable whose slots are in the past, in no order, and never later than the time asked."""

    def after(self, time: int) -> Iterator[int]:
        return repeat(time - 1000)

    def last(self, time: int) -> int | None:
        return time + 1000


class Disordered(Misbehaving):
    def after(self, time: int) -> Iterator[int]:
        return iter([time + 20, time + 10, time + 10, time - 5])


@pytest.mark.parametrize("missed", ["last", "all", "none"])
def test_a_timetable_that_misbehaves_runs_nothing_twice_and_keeps_no_worker_busy(missed: Any) -> None:
    now = 10_000_000
    one = schedule(Misbehaving(), missed)
    for until in (now - 5000, now, now + 5000):
        turn = one.turn(until, now, paused=False)
        assert turn == ([], max(now, until), max(now, until) + REVIEW_MS, 0)
    assert schedule(Disordered(), "all").turn(now - 15, now, paused=False).slots == [now - 5]
