"""The clock of `at_once`: a test moves it, and what is due by then has run."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import late_replies

from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs import App, Context, Retry, aio
from leaseq.jobs.testing import Clock, at_once

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUR = 3600.0
SLACK = 60.0
"""Seconds that a test may take: times of the moved clock are exact to that."""


@pytest.fixture(autouse=True)
def _late_replies() -> Iterator[None]:
    with late_replies():
        yield


class Program:
    """An App whose jobs note when they ran, by the moved clock."""

    def __init__(self, url: str, **options: Any) -> None:
        self.app = App(url, **options)
        self.ran: list[tuple[str, float]] = []
        self.dues: list[float] = []
        self.clock = Clock()
        self.started = self.clock.now()
        self.note = self.app.job(name="note")(self._note)

    def _note(self, ctx: Context, name: str) -> str:
        self.noted(name)
        self.dues.append(ctx.due)
        return name

    def noted(self, name: str) -> None:
        self.ran.append((name, self.clock.now() - self.started))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.ran]

    def ran_at(self, *hours: float) -> bool:
        """Return whether the jobs ran at these hours since the start, one after the other."""
        times = [at for _, at in self.ran]
        return len(times) == len(hours) and all(
            hour * HOUR <= at < hour * HOUR + SLACK for at, hour in zip(times, hours, strict=True)
        )


@pytest.fixture
def program(url: str) -> Iterator[Program]:
    made = Program(url)
    with at_once(made.app, clock=made.clock):
        yield made


def test_delayed_jobs_run_in_the_order_of_their_times(program: Program) -> None:
    late = program.note.with_options(delay="3h").enqueue("late")
    program.note.with_options(delay=HOUR).enqueue("early")
    program.app.enqueue_many(
        [
            program.note.with_options(delay=timedelta(hours=2), priority=-1).call("between"),
            program.note.with_options(delay="4h").call("another day"),
        ]
    )
    program.clock.advance(HOUR - SLACK)
    assert program.ran == []
    assert late.status() == "delayed"
    program.clock.advance("3h")
    assert program.names == ["early", "between", "late"]
    assert program.ran_at(1, 2, 3)
    assert late.result(0) == "late"
    assert program.clock.now() - program.started < 4 * HOUR


def test_a_delay_counts_from_the_moved_time(program: Program) -> None:
    program.clock.advance("1h")
    program.note.with_options(delay="1h").enqueue("a")
    program.clock.advance(HOUR - SLACK)
    assert program.ran == []
    program.clock.advance(SLACK)
    assert program.ran_at(2)


def test_jobs_that_a_delayed_job_enqueues_run_at_their_times(program: Program) -> None:
    @program.app.job(name="parent")
    def parent(name: str) -> None:
        program.noted(name)
        program.note.enqueue(name + "/now")
        program.note.with_options(delay="1h").enqueue(name + "/later")

    parent.with_options(delay="1h").enqueue("a")
    program.note.with_options(delay="90m").enqueue("between")
    program.clock.advance(timedelta(hours=2))
    assert program.names == ["a", "a/now", "between", "a/later"]
    assert program.ran_at(1, 1, 1.5, 2)


def test_failed_jobs_are_tried_again_when_their_backoff_is_over(program: Program) -> None:
    attempts: list[int] = []

    @program.app.job(name="fails", retries=3, backoff=["1h", "2h"])
    def fails(ctx: Context) -> int:
        program.noted("attempt")
        attempts.append(ctx.attempt)
        if ctx.attempt == 3:
            raise Retry(delay=HOUR / 2)
        if ctx.attempt < 4:
            raise ValueError("not yet")
        return ctx.attempt

    job = fails.enqueue()
    assert job.status() == "retrying"
    program.clock.advance("1h")
    assert attempts == [1, 2]
    program.clock.advance("1h")
    assert attempts == [1, 2]
    program.clock.advance("90m")
    assert program.ran_at(0, 1, 3, 3.5)
    assert job.result(0) == 4


def test_a_job_is_dead_when_its_retries_are_used_up(program: Program) -> None:
    @program.app.job(name="fails", retries=2, backoff="1h")
    def fails() -> None:
        program.noted("attempt")
        raise ValueError("no")

    job = fails.enqueue()
    program.clock.advance("30d")
    assert program.ran_at(0, 1, 2)
    assert job.status() == "failed"


def test_a_time_is_of_the_moved_clock(program: Program) -> None:
    at = program.clock.now() + 2 * HOUR
    for expires in (None, "1d"):
        program.note.with_options(at=datetime.fromtimestamp(at, UTC), expires=expires).enqueue("before")
    program.clock.advance("1h")
    for expires in (None, "1d"):
        program.note.with_options(at=at, expires=expires).enqueue("after")
    program.app.enqueue_many([program.note.with_options(at=at, expires=None).call("many")])
    assert program.ran == []
    program.clock.advance("1h")
    assert sorted(program.names) == ["after", "after", "before", "before", "many"]
    assert program.ran_at(2, 2, 2, 2, 2)
    assert program.dues == pytest.approx([at] * 5, abs=0.001)
    program.note.with_options(at=at).enqueue("past")  # the server's clock is before that time
    assert program.names[-1] == "past"


def test_due_is_the_time_that_was_asked_for(program: Program) -> None:
    program.note.with_options(delay="1h").enqueue("a")
    program.clock.advance("2h")
    program.note.with_options(delay="1h").enqueue("b")
    program.clock.advance("5h")
    hours = [round((due - program.started) / HOUR, 1) for due in program.dues]
    assert hours == [1, 3]


def test_the_delay_of_a_stage_counts_from_the_moved_end_of_the_job_before_it(program: Program) -> None:
    chain = (
        program.app.chain(program.note.with_options(delay="1h").call("first"))
        .then(program.note.with_options(delay="2h").partial())
        .enqueue()
    )
    program.clock.advance("4h")
    assert program.ran_at(1, 3)
    assert round((program.dues[1] - program.started) / HOUR, 1) == 3
    assert chain.result(0) == "first"


def test_schedules_run_at_each_of_their_slots(program: Program) -> None:
    slots: list[float] = []

    @program.app.cron("0 3 * * *", name="nightly")
    def nightly(ctx: Context) -> None:
        slots.append(ctx.due)
        program.noted("nightly")
        assert program.clock.now() - ctx.due < SLACK

    @program.app.every("12h", name="twice", missed="none")
    def twice(ctx: Context) -> None:
        slots.append(ctx.due)

    program.clock.advance("2d")
    times = [datetime.fromtimestamp(slot, UTC) for slot in slots]
    assert times == sorted(times)
    assert sorted({(time.hour, time.minute, time.second) for time in times}) == [
        (0, 0, 0),
        (3, 0, 0),
        (12, 0, 0),
    ]
    assert len(times) == 6
    assert len(set(times)) == 6
    program.clock.advance("1d")
    assert len(slots) == 9


def test_a_schedule_that_is_paused_rests_and_goes_on(program: Program) -> None:
    @program.app.every("1h", name="hourly")
    def hourly() -> None:
        program.noted("hourly")

    program.clock.advance("1h")
    program.app.schedules.pause("hourly")
    program.clock.advance("5h")
    assert len(program.ran) == 1
    program.app.schedules.resume("hourly")
    program.clock.advance("2h")
    assert len(program.ran) == 3


@pytest.mark.parametrize("asynchronous", [True, False])
def test_in_an_event_loop(url: str, asynchronous: bool) -> None:
    both = App(url)
    app: Any = aio.App.of_program(both.program) if asynchronous else both
    loops: list[object] = []

    @both.job(name="f")
    async def f(number: int) -> int:
        loops.append(asyncio.get_running_loop())
        return number + 1

    async def main() -> int:
        with at_once(app) as clock:
            side = getattr(app, "aio", app)
            async with side:
                job = await side.function("f").with_options(delay="1h").enqueue(1)
                await clock.aio.advance("30m")
                assert await job.status() == "delayed"
                await clock.aio.advance(timedelta(minutes=30))
                assert loops == [asyncio.get_running_loop()]
                assert clock.aio.now() == pytest.approx(clock.now(), abs=SLACK)
                answer: int = await job.result(0)
                return answer

    assert asyncio.run(main()) == 2


@pytest.mark.parametrize(
    ("duration", "error"),
    [
        (-1, BadArgumentError),
        (timedelta(seconds=-1), BadArgumentError),
        ("-1h", BadArgumentError),
        (None, BadTypeError),
    ],
)
def test_the_clock_does_not_go_back(program: Program, duration: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        program.clock.advance(duration)
    assert program.clock.now() - program.started < SLACK


def test_a_job_cannot_move_the_clock(program: Program) -> None:
    @program.app.job(name="f")
    def f() -> str:
        with pytest.raises(BadArgumentError, match="not in a job"):
            program.clock.advance(1)
        return "refused"

    assert f.enqueue().result(0) == "refused"
    later = f.with_options(delay=1).enqueue()
    program.clock.advance(1)
    assert later.result(0) == "refused"


def test_two_apps_have_two_clocks_or_one(url: str) -> None:
    one, other = Program(url, group="one"), Program(url, group="other")
    with at_once(one.app) as first, at_once(other.app) as second:
        one.note.with_options(delay="1h").enqueue("one")
        other.note.with_options(delay="1h").enqueue("other")
        first.advance("1h")
        assert (one.names, other.names) == (["one"], [])
        second.advance("1h")
        assert other.names == ["other"]

    one, other = Program(url, group="one"), Program(url, group="other")
    order: list[str] = []

    @one.app.job(name="first")
    def hand_over() -> None:
        order.append("one")
        other.app.function("last").enqueue()
        other.app.function("last").with_options(delay="1h").enqueue()

    @other.app.job(name="last")
    def last() -> None:
        order.append("other")

    with at_once(other.app) as clock, at_once(one.app, clock=clock):
        hand_over.with_options(delay="1h").enqueue()
        hand_over.with_options(delay="3h").enqueue()
        clock.advance("3h")
        assert order == ["one", "other", "other", "one", "other"]
        clock.advance("1h")
        assert order[5:] == ["other"]


def test_the_clock_is_that_of_the_server_again_behind_the_block(program: Program, url: str) -> None:
    app = App(url, group="another")
    with at_once(app) as clock:
        clock.advance("1d")
        assert app.program.clients.settings.ahead > HOUR
    assert app.program.clients.settings.ahead == 0
    with at_once(app) as clock:
        assert clock.now() - program.started < SLACK
