"""Schedules: one job for each slot, whatever the number of schedulers, their clocks and their ends (LQ-JOB-12, LQ-JOB-13, LQ-JOB-14, LQ-JOB-15)."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from support import programs
from support.job_app import JobAppFlavour, until

from leaseq import BadArgumentError, BadNameError, BadTypeError, Item
from leaseq.jobs import App, Context, aio
from leaseq.jobs.cron import schedule_state
from leaseq.jobs.cron.schedule import MAX_RUNS_PER_TURN, REVIEW_MS
from leaseq.jobs.cron.schedule_state import ScheduleState
from leaseq.jobs.cron.trigger import CronTrigger, IntervalTrigger
from leaseq.jobs.worker.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
BERLIN = ZoneInfo("Europe/Berlin")
AGE = 1_700_000_000
"""Seconds of an interval whose slots are in 2023 and in 2077, so that none falls into a test."""
TICKS = "leaseq:{jobs}:default.cron:"


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=False) as made:
        yield made


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def now_of(flavour: JobAppFlavour) -> int:
    """The server's time; rounded down, as slots are."""
    return int(flavour.app.queue().stats().now * 1000)


def scheduler(flavour: JobAppFlavour) -> Scheduler:
    async def make() -> Scheduler:
        return Scheduler(
            flavour.app.program.clients.aio.store,
            flavour.app.program.schedules,
            ["default"],
            flavour.app.program.clients.settings,
        )

    made: Scheduler = flavour.run(make())
    return made


def begin(flavour: JobAppFlavour, *, until: int, name: str = "s") -> None:
    """Store a schedule whose slots up to then are over."""
    flavour.app.queue("default.cron").add_item(
        schedule_state.item(name, ScheduleState(until=until)), max_attempts=0
    )


def taken(flavour: JobAppFlavour) -> Any:
    """Lease the item of a schedule."""

    async def lease() -> Any:
        return await flavour.app.aio.queue("default.cron").lease(3600, block=False)

    return flavour.run(lease())


def make_due(client: redis.Redis, name: str = "s") -> None:
    """The time has come: the item waits no longer."""
    client.zadd(TICKS + "delayed", {name: 1.0})
    client.delete(TICKS + "state")  # which knows when to look next


def state(client: redis.Redis, name: str = "s") -> ScheduleState:
    found = schedule_state.read(client.hget(TICKS + "items", name))  # type: ignore[arg-type]
    assert found is not None
    return found


def slots(flavour: JobAppFlavour) -> list[int]:
    """The slots that have a job."""
    page = flavour.app.queue().list_items("ready", limit=256)
    return [int(item.id.rpartition(":")[2]) for item in page.items]


@pytest.mark.parametrize(
    ("line", "begin", "expected"),
    [
        ("*/5 * * * *", "2026-03-01T00:01:00+00:00", "2026-03-01T00:05:00+00:00"),
        ("0 0 1 1 *", "2026-03-01T00:00:00+00:00", "2027-01-01T00:00:00+00:00"),
        ("@hourly", "2026-03-01T00:00:00+00:00", "2026-03-01T01:00:00+00:00"),
        ("0 12 * * MON", "2026-03-01T00:00:00+00:00", "2026-03-02T12:00:00+00:00"),
        ("*/10 * * * * *", "2026-03-01T00:00:01+00:00", "2026-03-01T00:00:10+00:00"),
    ],
)
def test_a_line_of_crontab_says_when(line: str, begin: str, expected: str) -> None:
    assert next(CronTrigger(line).after(ms(begin))) == ms(expected)
    assert CronTrigger(line).last(ms(expected)) == ms(expected)
    assert CronTrigger(line).last(ms(expected) - 1) != ms(expected)


@pytest.mark.parametrize(
    ("line", "following"),
    [
        ("@yearly", ["2026-01-01T00:00", "2027-01-01T00:00"]),
        ("@annually", ["2026-01-01T00:00", "2027-01-01T00:00"]),
        ("@monthly", ["2025-12-01T00:00", "2026-01-01T00:00"]),
        ("@weekly", ["2025-11-16T00:00", "2025-11-23T00:00"]),
        ("@daily", ["2025-11-13T00:00", "2025-11-14T00:00"]),
        ("@midnight", ["2025-11-13T00:00", "2025-11-14T00:00"]),
        ("@Hourly ", ["2025-11-12T11:00", "2025-11-12T12:00"]),
        ("15,45 8-9 * * *", ["2025-11-13T08:15", "2025-11-13T08:45", "2025-11-13T09:15", "2025-11-13T09:45"]),
        ("0 6 * * mon-fri", ["2025-11-13T06:00", "2025-11-14T06:00", "2025-11-17T06:00"]),
        ("0 0 31 * *", ["2025-12-31T00:00", "2026-01-31T00:00", "2026-03-31T00:00"]),
        ("0 0 29 feb *", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 1 jan,jul *", ["2026-01-01T00:00", "2026-07-01T00:00"]),
        ("30 */6 * * 0", ["2025-11-16T00:30", "2025-11-16T06:30", "2025-11-16T12:30"]),
    ],
)
def test_each_form_of_a_line_in_its_time_zone(line: str, following: list[str]) -> None:
    """2025-11-12 was a Wednesday."""
    for zone in (UTC, ZoneInfo("Asia/Kolkata")):
        begin = ms(datetime(2025, 11, 12, 10, 30, tzinfo=zone).isoformat())
        expected = [ms(datetime.fromisoformat(each).replace(tzinfo=zone).isoformat()) for each in following]
        table = CronTrigger(line, zone)
        assert list(islice(table.after(begin), len(expected))) == expected
        assert table.last(expected[1] - 1) == expected[0]


def test_summer_time_neither_skips_nor_repeats_a_daily_job() -> None:
    daily = CronTrigger("30 2 * * *", BERLIN)
    spring = list(islice(daily.after(ms("2026-03-27T12:00:00+01:00")), 4))
    assert [datetime.fromtimestamp(slot / 1000, BERLIN).day for slot in spring] == [28, 29, 30, 31]
    autumn = list(islice(daily.after(ms("2026-10-23T12:00:00+02:00")), 4))
    assert [datetime.fromtimestamp(slot / 1000, BERLIN).day for slot in autumn] == [24, 25, 26, 27]


@pytest.mark.parametrize("line", ["30 * * * *", "30 0-23 * * *", "30 */1 * * *"])
def test_a_line_that_allows_every_hour_has_a_slot_in_each_of_two_equal_ones(line: str) -> None:
    """LQ-JOB-41: however it says so."""
    slots = list(islice(CronTrigger(line, BERLIN).after(ms("2026-10-25T01:30:00+02:00")), 3))
    assert slots == [
        ms("2026-10-25T02:30:00+02:00"),
        ms("2026-10-25T02:30:00+01:00"),
        ms("2026-10-25T03:30:00+01:00"),
    ]


@pytest.mark.parametrize("line", ["30 2 * * *", "*/20 * * * *", "0 0-5 * * SUN"])
@pytest.mark.parametrize("zone", [BERLIN, ZoneInfo("America/New_York"), UTC])
@pytest.mark.parametrize("begin", ["2026-03-07", "2026-03-28", "2026-10-24", "2026-10-31"])
def test_the_last_slot_is_that_which_was_next_before(line: str, zone: Any, begin: str) -> None:
    table = CronTrigger(line, zone)
    first = ms(begin + "T00:00:00+00:00")
    slots = list(takewhile(lambda slot: slot < first + 2 * DAY, table.after(first)))
    assert slots == sorted(set(slots))
    for one, following in pairwise(slots):
        assert table.last(one) == one
        assert table.last(following - 1) == one


def test_slots_of_an_interval_are_multiples_of_it() -> None:
    table = IntervalTrigger(0.25)
    assert list(islice(table.after(1000), 3)) == [1250, 1500, 1750]
    assert (table.last(1249), table.last(1250)) == (1000, 1250)


@pytest.mark.parametrize(
    ("missed", "late_by", "expected"),
    [
        ("last", 10 * MINUTE, [-5]),
        ("all", 10 * MINUTE, [-65, -5]),
        ("none", 10 * MINUTE, []),
        ("none", 0, [-5]),
        ("last", 0, [-5]),
    ],
)
def test_missed_slots(flavour: JobAppFlavour, missed: Any, late_by: int, expected: list[int]) -> None:
    @flavour.app.every(3600, missed=missed, name="s")
    def s() -> None: ...

    (schedule,) = flavour.app.program.schedules
    slot = 500_000 * HOUR
    minutes = [-65, -5] if late_by else [-5]
    now = slot + (5 * MINUTE + late_by if late_by else 30_000)
    turn = schedule.turn(slot - HOUR - 1 if len(minutes) == 2 else slot - 1, now, paused=False)
    assert list(turn.slots) == [slot + (minute + 5) * MINUTE for minute in expected]
    assert turn.until == now
    assert turn.following == slot + HOUR
    assert turn.due == now + REVIEW_MS
    assert schedule.turn(turn.until, now, paused=False).slots == []
    assert schedule.turn(slot - HOUR - 1, now, paused=True)[:2] == ([], now)


def test_a_turn_without_a_slot_keeps_the_last_one(flavour: JobAppFlavour, redis_client: redis.Redis) -> None:
    @flavour.app.every(AGE, name="s")
    def s() -> None: ...

    before = ScheduleState(until=AGE * 1000 + 1, last=AGE * 1000)
    flavour.app.queue("default.cron").add_item(schedule_state.item("s", before), max_attempts=0)
    flavour.run(scheduler(flavour)(taken(flavour)))
    after = state(redis_client)
    assert slots(flavour) == []
    assert after.until > before.until
    assert after.last == before.last


def test_a_clock_that_went_back_gives_no_slot_twice(flavour: JobAppFlavour) -> None:
    @flavour.app.every(60, missed="all", name="s")
    def s() -> None: ...

    (schedule,) = flavour.app.program.schedules
    turn = schedule.turn(HOUR, HOUR - 10 * MINUTE, paused=False)
    assert (turn.slots, turn.until, turn.due) == ([], HOUR, HOUR + MINUTE)  # LQ-JOB-30, LQ-JOB-31


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_one_job_for_each_slot_with_three_schedulers_whose_clocks_differ(
    flavour: JobAppFlavour, redis_client: redis.Redis, url: str
) -> None:
    count = 10 * MAX_RUNS_PER_TURN
    start = now_of(flavour) // MINUTE * MINUTE - count * MINUTE
    begin(flavour, until=start, name="minutely")
    workers = [
        subprocess.Popen(
            programs.command("cron_worker", str(minutes)), env=programs.environment(REDIS_URL=url)
        )
        for minutes in (-7, 0, 11)
    ]
    try:
        until(lambda: redis_client.llen("slots") >= count or any(worker.poll() for worker in workers))
    finally:
        for worker in workers:
            worker.terminate()
        codes = [worker.wait(120) for worker in workers]
    assert codes == [0, 0, 0]
    assert redis_client.hlen("by") == 3
    end = now_of(flavour)
    found = [int(slot) * 1000 for slot in redis_client.lrange("slots", 0, -1)]
    found += slots(flavour)
    assert sorted(found) == list(range(start + MINUTE, max(found) + 1, MINUTE))
    assert start + count * MINUTE <= max(found) <= end


@pytest.mark.parametrize("late_first", [True, False])
def test_a_turn_that_another_scheduler_took_over_counts_once(
    flavour: JobAppFlavour, redis_client: redis.Redis, *, late_first: bool
) -> None:
    @flavour.app.every(AGE, name="s")
    def s() -> None: ...

    begin(flavour, until=AGE * 1000 - 1)
    take_turn = scheduler(flavour)
    late = taken(flavour)
    redis_client.zadd(TICKS + "leased", {"s": 1.0})  # its lease is over
    redis_client.delete(TICKS + "state")
    other = taken(flavour)
    assert other.token > late.token
    for item in (late, other) if late_first else (other, late):
        flavour.run(take_turn(item))
    assert slots(flavour) == [AGE * 1000]
    assert redis_client.zcard(TICKS + "delayed") == 1
    assert state(redis_client).last == AGE * 1000


def test_a_schedule_begins_with_the_next_slot_and_goes_on_where_it_was(
    flavour: JobAppFlavour, redis_client: redis.Redis
) -> None:
    @flavour.app.cron("0 0 1 1 *", name="s")
    def s() -> None: ...

    before = now_of(flavour)
    take_turn = scheduler(flavour)
    flavour.run(take_turn.begin())
    flavour.run(take_turn.begin())
    assert before <= state(redis_client).until <= now_of(flavour) + 1
    flavour.run(take_turn(taken(flavour)))
    assert slots(flavour) == []
    first = state(redis_client)
    assert datetime.fromtimestamp(first.next / 1000, UTC).timetuple()[1:5] == (1, 1, 0, 0)
    flavour.run(take_turn.begin())
    assert state(redis_client) == first
    assert redis_client.zcard(TICKS + "delayed") == 1
    due = redis_client.zscore(TICKS + "delayed", "s")
    assert due == (first.until + REVIEW_MS) * 1000  # LQ-JOB-32


def test_each_schedule_is_in_the_queue_beside_its_jobs(flavour: JobAppFlavour) -> None:
    for name, queue in (("a", "default"), ("b", "mail"), ("c", "mail"), ("d", "unheard")):
        flavour.app.every(AGE, name=name, queue=queue)(lambda: None)

    async def begin() -> None:
        program = flavour.app.program
        await Scheduler(
            program.clients.aio.store, program.schedules, ["default", "mail"], program.clients.settings
        ).begin()

    flavour.run(begin())
    found = {
        queue: sorted(item.id for item in flavour.app.queue(f"{queue}.cron").list_items("ready").items)
        for queue in ("default", "mail", "unheard")
    }
    assert found == {"default": ["a"], "mail": ["b", "c"], "unheard": []}


def test_a_job_of_a_slot_says_so_and_keeps_no_result(flavour: JobAppFlavour) -> None:
    seen: list[Context] = []

    @flavour.app.every(AGE, name="s", headers={"why": "cron"}, priority=3)
    def s(ctx: Context) -> int:
        seen.append(ctx)
        return 1

    slot = AGE * 1000
    begin(flavour, until=slot - 1)
    flavour.app.queue("default.cron").configure(max_attempts=3)
    flavour.run(scheduler(flavour)(taken(flavour)))
    schedule = flavour.app.queue("default.cron").inspect("s")
    assert (schedule.state, schedule.max_attempts) == ("delayed", 0)  # it takes turns without end
    info = flavour.app.handle(f"cron:s:{slot}").info()
    assert (info.function, info.status, info.due) == ("s", "ready", slot / 1000)
    item = flavour.app.queue().inspect(f"cron:s:{slot}")
    assert (item.priority, item.keep, item.max_attempts) == (3, 0.0, 5)
    assert abs(item.expires - item.created - 86400) < 1
    flavour.burst()
    assert [(ctx.due, ctx.headers, ctx.attempt) for ctx in seen] == [(slot / 1000, {"why": "cron"}, 1)]
    assert flavour.app.handle(f"cron:s:{slot}").status() == "unknown"


def test_a_job_may_have_a_schedule_and_be_enqueued_as_well(flavour: JobAppFlavour) -> None:
    @flavour.app.every(3600, name="often")
    @flavour.app.cron("0 3 * * *", tz="Europe/Berlin", keep=5)
    @flavour.app.job(name="f", retries=1)
    def f(number: int = 1) -> int:
        return number

    handle = f.enqueue(7)
    flavour.burst()
    assert handle.result(0) == 7
    nightly, often = flavour.app.program.schedules
    assert (nightly.name, often.name) == ("f", "often")
    assert (str(nightly.timetable), str(often.timetable)) == ("0 3 * * * Europe/Berlin", "every 3600 s")
    assert (nightly.call.options.keep, often.call.options.keep) == (5, None)
    assert nightly.call.options.retries == often.call.options.retries == 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "0.5"), (86_400, "86400"), (1_234_567, "1234567"), (86_400.25, "86400.25"), (0.1 + 0.2, "0.3")],
)
def test_an_interval_is_shown_whole(seconds: float, text: str) -> None:
    assert str(IntervalTrigger(seconds)) == f"every {text} s"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_schedules_are_listed_paused_resumed_and_triggered(
    url: str, redis_client: redis.Redis, *, asynchronous: bool
) -> None:
    seen: list[Context] = []
    with JobAppFlavour(App(url), asynchronous=asynchronous) as flavour:

        @flavour.app.every(AGE, name="s")
        def s(ctx: Context) -> None:
            seen.append(ctx)

        schedules = flavour.app.schedules
        assert flavour(schedules, "inspect") == []
        with pytest.raises(BadArgumentError, match="no schedule 's' in this queue: it has none"):
            flavour(schedules, "pause", "s")
        take_turn = scheduler(flavour)
        begin(flavour, until=AGE * 1000 - 1)
        flavour(schedules, "pause", "s")
        flavour.run(take_turn(taken(flavour)))
        (info,) = flavour(schedules, "inspect")
        assert (info.name, info.queue, info.rule, info.function) == ("s", "default", f"every {AGE} s", "s")
        assert (info.paused, info.last, info.next) == (True, 0.0, 2 * AGE)
        assert slots(flavour) == []
        flavour(schedules, "resume", "s")
        make_due(redis_client)
        flavour.run(take_turn(taken(flavour)))
        assert slots(flavour) == []  # those that passed meanwhile have passed
        assert flavour(schedules, "inspect", "default")[0].paused is False
        handle = flavour(schedules, "trigger", "s")
        assert flavour(handle, "status") == "ready"
        assert flavour(handle, "info").function == "s"
        assert flavour.burst() == 1
        assert seen[0].due == seen[0].enqueued > AGE
        assert state(redis_client).last == 0


@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_a_triggered_job_is_as_those_of_the_slots(url: str, redis_client: redis.Redis, form: Any) -> None:
    with JobAppFlavour(App(url, format=form), asynchronous=False) as flavour:
        given: Any = {"headers": {"why": "cron"}, "priority": 3, "delay": 3600, "expires": 60, "retries": 1}
        flavour.app.every(AGE, name="kept", keep=50, **given)(lambda: None)
        flavour.app.every(AGE, name="not kept", **given)(lambda: None)
        flavour.run(scheduler(flavour).begin())
        for name, keep in (("kept", 50.0), ("not kept", 86400.0)):
            handle = flavour.app.schedules.trigger(name)
            item = flavour.app.queue().inspect(handle.id)
            assert (item.state, item.priority, item.max_attempts, item.keep) == ("delayed", 3, 2, keep)
            assert abs(item.time - item.created - 3600) < 1
            assert abs(item.expires - item.created - 3660) < 1
            info = handle.info()
            assert abs(info.due - info.enqueued - 3600) < 600
            data = redis_client.hget("leaseq:{jobs}:default:items", handle.id)
            assert data is not None
            assert (data[:1] == b"{") is (form == "json")
            make_due_job(redis_client, handle.id)
            (leased,) = flavour.app.queue().lease_items(1, 60)
            assert leased.headers == {"why": "cron"}


def make_due_job(client: redis.Redis, job_id: str) -> None:
    client.zadd("leaseq:{jobs}:default:delayed", {job_id: 1.0})
    client.delete("leaseq:{jobs}:default:state")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_of_several_schedules_each_is_paused_by_itself(url: str, *, asynchronous: bool) -> None:
    with JobAppFlavour(App(url), asynchronous=asynchronous) as flavour:
        for name, queue in (("b", "default"), ("a", "default"), ("c", "mail"), ("a", "mail")):
            place = flavour.app.queue(f"{queue}.cron")
            place.add_item(schedule_state.item(name, ScheduleState(until=0)), max_attempts=0)
        flavour.app.job(name="mail", queue="mail")(lambda: None)
        schedules = flavour.app.schedules

        def paused() -> list[tuple[str, str, bool]]:
            return [(info.queue, info.name, info.paused) for info in flavour(schedules, "inspect")]

        flavour(schedules, "pause", "b")
        flavour(schedules, "pause", "a", "mail")
        flavour(schedules, "pause", "a")
        flavour(schedules, "resume", "a")
        assert paused() == [
            ("default", "a", False),
            ("default", "b", True),
            ("mail", "a", True),
            ("mail", "c", False),
        ]


async def test_a_schedule_whose_turn_ends_while_it_is_looked_for_is_found(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with aio.App(url) as app:
        place = app.queue("default.cron")
        await place.add_item(schedule_state.item("s", ScheduleState(until=0)), max_attempts=0)
        turn = await place.lease(3600)
        assert turn is not None
        store = app._clients.aio.store
        listed = store.listed

        async def listed_at_the_end_of_the_turn(name: str, state: Any, *page: int) -> list[str]:
            if state == "leased":
                await place.release(turn, delay=3600)
            return await listed(name, state, *page)

        monkeypatch.setattr(store, "listed", listed_at_the_end_of_the_turn)
        assert [info.name for info in await app.schedules.inspect()] == ["s"]
        await app.schedules.pause("s")


def test_a_schedule_of_the_app_is_found_in_its_queue(flavour: JobAppFlavour) -> None:
    @flavour.app.every(AGE, name="s", queue="mail")
    def s() -> None: ...

    flavour.app.every(AGE, name="t", queue="a")(s)
    flavour.app.every(AGE, name="t", queue="b")(s)
    place = flavour.app.queue("mail.cron")
    place.add_item(schedule_state.item("s", ScheduleState(until=0)), max_attempts=0)
    flavour.app.schedules.pause("s")
    assert [info.paused for info in flavour.app.schedules.inspect("mail")] == [True]
    for several in ({"name": "t"}, {"name": "s", "queue": "default"}):  # of one name: which is to be said
        with pytest.raises(BadArgumentError, match="it has none"):
            flavour.app.schedules.pause(**several)


def test_a_schedule_that_is_not_known_is_left_to_others_and_goes_in_the_end(
    flavour: JobAppFlavour, redis_client: redis.Redis
) -> None:
    @flavour.app.every(3600, name="other")
    def other() -> None: ...

    begin(flavour, until=now_of(flavour) - HOUR)
    begin(flavour, until=now_of(flavour) - 2 * DAY, name="old")
    with flavour.working():
        until(lambda: not redis_client.hexists(TICKS + "items", "old"))
        until(lambda: redis_client.zscore(TICKS + "delayed", "s"))
    info = flavour.app.queue("default.cron").inspect("s")
    assert info.attempt == 0  # LQ-JOB-33
    assert slots(flavour) == []


def test_what_is_no_schedule_dies(flavour: JobAppFlavour) -> None:
    @flavour.app.every(3600, name="s")
    def s() -> None: ...

    queue = flavour.app.queue("default.cron")
    for number, data in enumerate((b"{}", b"\xff", b'{"v":2,"until":1}')):
        queue.add_item(Item(data, id=str(number)))
    with flavour.working():
        until(lambda: queue.stats().dead == 3)
    assert "no schedule" in queue.dead_letters()[0].error


def test_a_rule_that_was_changed_counts_from_the_next_turn(
    flavour: JobAppFlavour, url: str, redis_client: redis.Redis
) -> None:
    @flavour.app.cron("0 0 1 1 *", name="s")
    def s() -> None: ...

    flavour.run(scheduler(flavour).begin())
    flavour.run(scheduler(flavour)(taken(flavour)))
    with JobAppFlavour(App(url), asynchronous=False) as newer:

        @newer.app.every(0.001, name="s")
        def newer_s() -> None: ...

        make_due(redis_client)
        now = now_of(flavour)
        newer.run(scheduler(newer)(taken(newer)))
    assert state(redis_client).rule == "every 0.001 s"
    (slot,) = slots(flavour)
    assert slot >= now  # none of before it was changed


def test_a_worker_enqueues_and_runs_while_it_works(flavour: JobAppFlavour) -> None:
    seen: list[float] = []

    @flavour.app.every(0.02, name="s")
    async def s(ctx: Context) -> None:
        seen.append(ctx.due)

    with flavour.working():
        until(lambda: len(seen) >= 5)
    assert seen == sorted(set(seen))


def test_a_worker_of_other_queues_leaves_a_schedule_alone(flavour: JobAppFlavour) -> None:
    @flavour.app.every(3600, name="s")
    def s() -> None: ...

    @flavour.app.job(name="mail", queue="mail")
    def mail() -> int:
        return 1

    begin(flavour, until=0)
    mail.enqueue()
    assert flavour.burst(queues=["mail"]) == 1
    assert flavour.app.queue("default.cron").stats().ready == 1


def test_what_cannot_be_a_schedule(flavour: JobAppFlavour) -> None:
    app = flavour.app

    @app.job(name="f")
    def f() -> None: ...

    @app.job(name="g")
    def g(number: int) -> None: ...

    app.every(60)(f)
    bad: list[tuple[type[Exception], str, Any]] = [
        (BadArgumentError, "neither an id nor a time", lambda: app.every(60, name="h", id="x")(f)),
        (BadArgumentError, "neither an id nor a time", lambda: app.every(60, name="h", at=1.0)(f)),
        (BadArgumentError, "no line of crontab", lambda: app.cron("61 * * * *")),
        (BadArgumentError, "no line of crontab", lambda: app.cron("* * *")),
        (BadTypeError, "is a str", lambda: app.cron(5)),  # type: ignore[arg-type]
        (BadArgumentError, "no time zone 'Mars/Base'", lambda: app.cron("* * * * *", tz="Mars/Base")),
        (BadTypeError, "name or a tzinfo", lambda: app.cron("* * * * *", tz=1)),  # type: ignore[arg-type]
        (BadArgumentError, "at least 0.001", lambda: app.every(0)),
        (BadArgumentError, "missed is one of", lambda: app.every(1, missed="some")(f)),  # type: ignore[arg-type]
        (BadArgumentError, "already", lambda: app.every(60)(f)),
        (BadArgumentError, "no option 'ttl'", lambda: app.every(60, ttl=1)(f)),  # type: ignore[call-arg]
        (BadTypeError, "not called like that", lambda: app.every(60)(g)),
        (BadNameError, "at most 95", lambda: app.every(60, name="x", queue="q" * 96)(f)),
    ]
    for kind, text, make in bad:
        with pytest.raises(kind, match=text):
            make()
    assert len(app.program.schedules) == 1


def test_a_day_of_a_second_is_found_at_once() -> None:
    table = CronTrigger("* * * * * *")
    assert table.last(ms("2026-03-01T00:00:00+00:00") + 999) == ms("2026-03-01T00:00:00+00:00")
    assert timedelta(milliseconds=next(table.after(0))) == timedelta(seconds=1)


def test_a_schedule_is_written_above_its_job() -> None:
    app = App("redis://127.0.0.1:1")
    with pytest.raises(BadArgumentError, match=r"inner has a schedule, .* above @app\.job"):
        app.job(name="outer", retries=1)(app.cron("* * * * *", name="inner")(lambda: None))
    assert app.cron("* * * * *")(app.job(name="right")(lambda: None)).name == "right"
