"""The options of a job, in every way in which jobs are enqueued: a dropped option shows here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import JobAppFlavour, until

from leaseq.jobs import App, Backoff, Context, JobFailed
from leaseq.jobs.worker.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOUR = 3600.0
AGE = 1_700_000_000
"""Seconds of an interval whose slots are in 2023 and in 2077, so that none falls into a test."""
OPTIONS: Any = {
    "queue": "mail",
    "priority": -2,
    "expires": 5 * HOUR,
    "timeout": 1234.0,
    "retries": 6,
    "keep": 77.0,
    "description": "for people",
    "headers": {"shop": "a"},
}


@pytest.fixture(params=[False, True], ids=["threads", "asyncio"])
def flavour(url: str, request: pytest.FixtureRequest) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=request.param) as made:
        yield made


class Ways:
    """Ways to enqueue a job of `work` with some options. Each returns the handle of the job."""

    def __init__(self, flavour: JobAppFlavour, work: Callable[..., Any]) -> None:
        self._flavour = flavour
        self._app = flavour.app
        self._work = work

    def _function(self, **options: Any) -> Any:
        return self._app.job(name="work", **options)(self._work)

    def declared(self, **options: Any) -> Any:
        return self._flavour(self._function(**options), "enqueue", 1)

    def given(self, **options: Any) -> Any:
        return self._flavour(self._function().with_options(**options), "enqueue", 1)

    def given_by_name(self, **options: Any) -> Any:
        self._function()
        return self._flavour(self._app.function("work").with_options(**options), "enqueue", 1)

    def one_of_many(self, **options: Any) -> Any:
        function = self._function()
        calls = [function.call(0), function.with_options(**options).call(1)]
        return self._flavour(self._app, "enqueue_many", calls)[1]

    def first_of_a_chain(self, **options: Any) -> Any:
        function = self._function()
        chain = self._flavour.side(self._app).chain(function.with_options(**options).call(1))
        return self._enqueued(chain.then(function.partial()))[0]

    def second_of_a_chain(self, **options: Any) -> Any:
        first = self._app.job(name="first")(lambda: 1)
        function = self._function()
        chain = (
            self._flavour.side(self._app).chain(first.call()).then(function.with_options(**options).partial())
        )
        made = self._enqueued(chain)[1]
        self._flavour.burst(queues=["default"])
        return made

    def _enqueued(self, chain: Any) -> Any:
        answer = chain.enqueue()
        return (self._flavour.run(answer) if self._flavour.asynchronous else answer).stages

    def triggered(self, **options: Any) -> Any:
        self._scheduled(**options)
        return self._flavour(self._app.schedules, "trigger", "work")

    def _scheduled(self, **options: Any) -> None:
        def work(number: int = 1) -> Any:
            return self._work(number)

        def work_with_context(ctx: Context, number: int = 1) -> Any:
            return self._work(ctx, number)

        chosen = work_with_context if "ctx" in self._work.__annotations__ else work
        self._app.every(AGE, name="work", **options)(chosen)

        async def begin() -> None:
            program = self._app.program
            await Scheduler(
                program.clients.aio.store, program.schedules, ["mail"], program.clients.settings
            ).begin()

        self._flavour.run(begin())


WAYS = [
    "declared",
    "given",
    "given_by_name",
    "one_of_many",
    "first_of_a_chain",
    "second_of_a_chain",
    "triggered",
]


@pytest.mark.parametrize("way", WAYS)
def test_a_job_has_the_options_that_were_given(flavour: JobAppFlavour, way: str) -> None:
    def work(number: int) -> int:
        return number

    handle = getattr(Ways(flavour, work), way)(**OPTIONS, delay=HOUR)
    assert handle.queue == "mail"
    item = flavour.app.queue("mail").inspect(handle.id)
    assert (item.state, item.priority, item.max_attempts, item.keep) == ("delayed", -2, 7, 77)
    assert item.time - item.created == pytest.approx(HOUR, abs=1)
    assert item.expires - item.created == pytest.approx(6 * HOUR, abs=1)
    info = flavour(handle, "info")
    assert (info.status, info.queue, info.function) == ("delayed", "mail", "work")
    assert (info.timeout, info.retries, info.description) == (1234, 6, "for people")
    assert info.due - info.enqueued == pytest.approx(HOUR, abs=1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("backoff", "least"), [([HOUR, 9 * HOUR], HOUR), (HOUR, HOUR), (Backoff(HOUR, HOUR), HOUR / 2)], ids=str
)
def test_a_job_runs_with_the_options_that_were_given(
    flavour: JobAppFlavour, way: str, backoff: Any, least: float
) -> None:
    """LQ-JOB-5."""
    seen: list[Context] = []

    def work(ctx: Context, number: int) -> int:
        seen.append(ctx)
        raise ValueError(number)

    handle = getattr(Ways(flavour, work), way)(**OPTIONS, backoff=backoff)
    before = flavour.app.queue("mail").stats().now
    flavour.burst(queues=["mail"])
    (ctx,) = seen
    assert (ctx.id, ctx.queue, ctx.headers, ctx.attempt) == (handle.id, "mail", {"shop": "a"}, 1)
    item = flavour.app.queue("mail").inspect(handle.id)
    assert item.state == "delayed"
    assert before + least <= item.time <= flavour.app.queue("mail").stats().now + HOUR
    assert flavour(handle, "info").status == "retrying"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [{"keep": None}, {"keep": 0}, {"retries": None}, {"retries": 0}], ids=str)
def test_a_job_may_have_no_limits_and_keep_nothing(flavour: JobAppFlavour, way: str, options: Any) -> None:
    """Nothing, none and 0 are given, not left out. A schedule's job that is asked for keeps its result all the same."""

    def work(number: int) -> int:
        return number

    handle = getattr(Ways(flavour, work), way)(**{**OPTIONS, **options, "expires": None})
    item = flavour.app.queue("mail").inspect(handle.id)
    assert item.expires == 0
    assert item.max_attempts == {"None": 0, "0": 1}.get(str(options.get("retries", "")), 7)
    if way != "triggered":
        assert item.keep == (77 if "retries" in options else 0)
    flavour.burst(queues=["mail"])
    assert flavour.app.queue("mail").stats().completed >= 1


@pytest.mark.parametrize("way", ["declared", "given", "one_of_many", "first_of_a_chain"])
def test_an_attempt_made_elsewhere_counts(flavour: JobAppFlavour, way: str) -> None:
    seen: list[int] = []

    def work(ctx: Context, number: int) -> int:
        seen.append(ctx.attempt)
        raise ValueError(number)

    handle = getattr(Ways(flavour, work), way)(queue="mail", attempt=3, retries=3, backoff=0.001)
    assert flavour(handle, "info").retries == 3
    with flavour.working(queues=["mail"]):
        until(lambda: flavour.app.queue("mail").stats().dead == 1)
    assert seen == [3, 4]
    info = flavour(handle, "info")
    assert (info.status, info.attempt) == ("failed", 4)
    with pytest.raises(JobFailed, match="after 4 attempts: ValueError: 1") as raised:
        flavour(handle, "result", 0)
    assert raised.value.attempt == 4


def test_each_call_of_many_has_its_own(flavour: JobAppFlavour) -> None:
    """LQ-CLIENT-2: in the order of the calls, whatever their queues."""
    add = flavour.app.job(name="add")(lambda number: number)
    queues = ["a", "b", "a", "c", "b"]
    calls = [
        add.with_options(queue=queue, priority=number, id=f"{number}", keep=10 + number).call(number)
        for number, queue in enumerate(queues)
    ]
    handles = flavour(flavour.app, "enqueue_many", calls)
    assert [(handle.id, handle.queue, handle.added) for handle in handles] == [
        (f"{number}", queue, True) for number, queue in enumerate(queues)
    ]
    again = flavour(flavour.app, "enqueue_many", [calls[1], add.with_options(queue="b", id="x").call(9)])
    assert [handle.added for handle in again] == [False, True]
    for number, queue in enumerate(queues):
        item = flavour.app.queue(queue).inspect(f"{number}")
        assert (item.priority, item.keep) == (number, 10 + number)
    flavour.burst(queues=["c", "b", "a"])
    assert [flavour(handle, "result", 0) for handle in handles] == [0, 1, 2, 3, 4]
    infos = flavour(flavour.app, "inspect_jobs", handles[::-1])
    assert [(info.id, info.queue, info.result) for info in infos] == [
        (f"{number}", queues[number], number) for number in (4, 3, 2, 1, 0)
    ]


def check_pages(flavour: JobAppFlavour, state: Any) -> None:
    """Four jobs in each of two queues are in this state."""

    def page(**options: Any) -> list[str]:
        return [info.id for info in flavour(flavour.app, "jobs", state, **options)]

    for queue in ("default", "mail"):
        everything = page(queue=queue)
        assert sorted(everything) == [f"{queue}-{number}" for number in range(4)]
        assert page(queue=queue, limit=2) == everything[:2]
        assert page(queue=queue, offset=1, limit=2) == everything[1:3]
        assert page(queue=queue, offset=4) == []
    assert page() == page(queue="default")


@pytest.mark.parametrize("state", ["ready", "delayed", "running", "failed", "succeeded"])
def test_jobs_in_each_state_have_pages(flavour: JobAppFlavour, state: Any) -> None:
    """Of the queue that is asked for, and of the App's own if none is."""
    go = asyncio.Event()

    async def work(number: int) -> int:
        if state == "failed":
            raise ValueError(number)
        if state == "running":
            await go.wait()
        return number

    function = flavour.app.job(name="work", retries=0)(work)
    for number in range(4):
        for queue in ("default", "mail"):
            given = function.with_options(
                id=f"{queue}-{number}",
                queue=queue,
                keep=HOUR + number,
                delay=HOUR + number if state == "delayed" else 0,
            )
            flavour(given, "enqueue", number)
    if state == "running":
        with flavour.working(queues=["default", "mail"], concurrency=8):
            until(lambda: flavour.app.queue("mail").stats().leased == 4)
            check_pages(flavour, state)
            flavour._loop.call_soon_threadsafe(go.set)
        return
    if state in {"failed", "succeeded"}:
        flavour.burst(queues=["default", "mail"])
    check_pages(flavour, state)
