"""Chains: each job is given what the one before it returned, and nothing is lost between two of them (LQ-JOB-16)."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support import programs
from support.job_app import JobAppFlavour, for_asyncio, until

from leaseq import BadArgumentError, BadTypeError
from leaseq._aio import concurrency as async_concurrency
from leaseq._sync import concurrency as sync_concurrency
from leaseq.jobs import App, Backoff, Context, JobCancelled, JobFailed, ResultNotKept, info

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

    from leaseq_conformance.fault_proxy import Listener

AT_ONCE = Backoff(0.001, 0.001)
HOUR = 3600.0


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=False) as made:
        yield made


def test_a_step_more_leaves_the_chain_as_it_is(flavour: JobAppFlavour) -> None:
    step = flavour.app.job(name="step")(lambda number: number + 1)
    base = flavour.app.chain(step.call(1))
    one, other = base.then(step.partial()), base.then(step.partial()).then(step.partial())
    assert [len(each.enqueue().stages) for each in (one, other)] == [2, 3]
    assert flavour.burst() == 5


class Page(msgspec.Struct):
    """A result that is not a plain value."""

    text: str
    links: list[str]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("form", ["msgpack", "json"])
def test_each_job_is_given_the_result_of_the_one_before_it(
    url: str, form: Any, *, asynchronous: bool
) -> None:
    with JobAppFlavour(App(url, format=form), asynchronous=asynchronous) as flavour:
        app = flavour.app

        @app.job(name="fetch")
        async def fetch(url: str) -> Page:
            return Page(url, ["a", "b"])

        @app.job(name="count", queue="other")
        def count(ctx: Context, page: Page, first: int, *, more: int = 0) -> int:
            return len(page.links) + first + more + ctx.attempt

        @app.job(name="show", fork=True)
        def show(number: int) -> str:
            return f"<{number}>"

        handle = flavour(
            app.chain(fetch.with_options(id="x").call("u"))
            .then(count.partial(10, more=100))
            .then(show.partial()),
            "enqueue",
        )
        assert [stage.id for stage in handle.stages] == ["x", "x/1", "x/2"]  # LQ-JOB-28
        assert (handle.added, flavour(handle, "status")) == (True, "ready")
        assert flavour.burst() == 3
        assert flavour(handle, "result", 0) == "<113>"
        assert flavour(handle, "status") == "succeeded"
        assert flavour(handle.stages[0], "result", 0) == Page("u", ["a", "b"])
        assert flavour(handle.stages[1], "result", 0) == 113


def test_a_chain_of_which_a_job_dies_ends_there_and_goes_on_when_it_is_revived(
    flavour: JobAppFlavour,
) -> None:
    mended: list[int] = []

    @flavour.app.job(name="one")
    def one() -> int:
        return 1

    @flavour.app.job(name="two", retries=1, backoff=AT_ONCE)
    def two(number: int) -> int:
        if not mended:
            message = "broken"
            raise ValueError(message)
        return number + 1

    handle = flavour.app.chain(one.call()).then(two.partial()).then(two.partial()).enqueue()
    with flavour.working():
        with pytest.raises(JobFailed, match="broken") as failed:
            handle.result()
        assert failed.value.attempt == 2
        assert handle.status() == "failed"
        mended.append(1)
        assert flavour.app.queue().revive(handle.stages[1].id)
        until(lambda: handle.status() == "succeeded")
    assert handle.result(0) == 3


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_jobs_of_a_chain_share_the_time_of_a_wait(
    url: str, monkeypatch: pytest.MonkeyPatch, *, asynchronous: bool
) -> None:
    """Each of four jobs takes an hour, by a clock that is put forward; the last one does not run."""
    late, waited = 0.0, []
    for io in (sync_concurrency, async_concurrency):
        monkeypatch.setattr(io, "now", lambda: time.monotonic() + late)
    with JobAppFlavour(App(url), asynchronous=asynchronous) as flavour:

        @flavour.app.job(name="same")
        def same(number: int) -> int:
            return number

        first, *behind = [same.with_options(queue=f"q{number}") for number in range(4)]
        chain: Any = flavour.app.chain(first.call(1))
        for function in behind:
            chain = chain.then(function.partial())
        handle = flavour(chain, "enqueue")
        result = type(handle.last).result

        def work(stage: Any, timeout: float) -> None:
            nonlocal late
            waited.append(timeout)
            late += HOUR
            if stage.id != handle.last.id:
                assert flavour.burst(queues=[stage.queue]) == 1

        def recorded(stage: Any, timeout: Any = None) -> Any:
            work(stage, timeout)
            return result(stage, timeout)

        async def recorded_async(stage: Any, timeout: Any = None) -> Any:
            await asyncio.to_thread(work, stage, timeout)
            return await result(stage, timeout)

        monkeypatch.setattr(type(handle.last), "result", recorded_async if asynchronous else recorded)
        with pytest.raises(TimeoutError):
            flavour(handle, "result", 2.5 * HOUR)
        assert waited == pytest.approx([2.5 * HOUR, 1.5 * HOUR, 0.5 * HOUR, 0], abs=600)


def test_who_waits_for_a_chain_is_woken_by_its_last_job(flavour: JobAppFlavour) -> None:
    go = asyncio.Event()

    @flavour.app.job(name="one")
    async def one() -> int:
        await go.wait()
        return 1

    @flavour.app.job(name="two")
    async def two(number: int) -> int:
        return number + 1

    handle = flavour.app.chain(one.call()).then(two.partial()).enqueue()
    with pytest.raises(TimeoutError):
        handle.result(0)
    with flavour.working():
        until(lambda: handle.status() == "running")
        waiting = flavour.start(for_asyncio(handle).result())
        flavour._loop.call_soon_threadsafe(go.set)
        assert waiting.result(120) == 2


def test_options_of_steps_are_those_of_their_items(flavour: JobAppFlavour, redis_client: redis.Redis) -> None:
    @flavour.app.job(name="one")
    def one() -> int:
        return 1

    @flavour.app.job(name="two")
    def two(ctx: Context, number: int) -> dict[str, Any]:
        return {"headers": ctx.headers, "late": ctx.due > ctx.enqueued}

    late = two.with_options(delay=3600, priority=3, headers={"a": "b"}, retries=6, keep=50, expires=60)
    handle = flavour.app.chain(one.call()).then(late.partial()).enqueue()
    flavour.burst()  # LQ-JOB-27
    item = flavour.app.queue().inspect(handle.last.id)
    assert (item.state, item.priority, item.max_attempts, item.keep) == ("delayed", 3, 7, 50)
    assert 3600 < item.expires - item.created <= 3661
    redis_client.zadd("leaseq:{jobs}:default:delayed", {handle.last.id: 1.0})
    redis_client.delete("leaseq:{jobs}:default:state")
    flavour.burst()
    assert handle.result(0) == {"headers": {"a": "b"}, "late": True}


def test_results_that_nobody_keeps_are_handed_on_and_cannot_be_waited_for(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="one", keep=None)
    def one() -> int:
        return 1

    @flavour.app.job(name="two")
    def two(number: int) -> int:
        return number + 1

    handle = flavour.app.chain(one.call()).then(two.partial()).enqueue()
    with pytest.raises(ResultNotKept):
        handle.result()
    flavour.burst()
    assert handle.result(0) == 2


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_chain_is_over_where_nothing_is_kept_of_its_last_job(url: str, *, asynchronous: bool) -> None:
    """The status was "ready" for as long as the result of the job before the last was kept."""
    with JobAppFlavour(App(url), asynchronous=asynchronous) as flavour:
        steps = [
            flavour.app.job(name=name, keep=keep, queue=name)(lambda number: number + 1)
            for name, keep in (("one", 60), ("two", 60), ("three", None))
        ]
        first, *rest = steps
        chain = flavour.app.chain(first.call(0))
        for step in rest:
            chain = chain.then(step.partial())
        handle = flavour(chain, "enqueue")
        for queue in ("one", "two", "three"):
            assert flavour(handle, "status") == "ready"
            flavour.burst(queues=[queue])
        assert flavour(handle, "status") == "unknown"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_job_that_is_handed_on_between_two_looks_is_ready(
    url: str, monkeypatch: pytest.MonkeyPatch, *, asynchronous: bool
) -> None:
    with JobAppFlavour(App(url), asynchronous=asynchronous) as flavour:

        @flavour.app.job(name="one", queue="one")
        def one() -> int:
            return 1

        @flavour.app.job(name="two", queue="two")
        def two(number: int) -> int:
            return number

        handle = flavour(flavour.app.chain(one.call()).then(two.partial()), "enqueue")
        looks: list[str] = []
        status_of = info.status_of

        def status_later(outcome: Any, state: Any) -> Any:
            looks.append(outcome.id)
            return "succeeded" if len(looks) == 1 else status_of(outcome, state)

        monkeypatch.setattr(info, "status_of", status_later)
        assert flavour(handle, "status") == "ready"
        assert looks == [handle.id, handle.last.id] * 2


@pytest.mark.parametrize("asynchronous", [False, True])
def test_cancelling_a_chain_ends_it_where_it_is(url: str, *, asynchronous: bool) -> None:
    with JobAppFlavour(App(url), asynchronous=asynchronous) as flavour:

        @flavour.app.job(name="one")
        def one() -> int:
            return 1

        @flavour.app.job(name="two")
        def two(number: int) -> int:
            return number

        handle = flavour(
            flavour.app.chain(one.call()).then(two.with_options(delay=3600).partial()), "enqueue"
        )
        flavour.burst()
        assert flavour(handle, "status") == "delayed"
        assert flavour(handle, "cancel") is True
        assert flavour(handle, "cancel") is False
        assert flavour(handle, "status") == "cancelled"
        with pytest.raises(JobCancelled):
            flavour(handle, "result")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_chain_whose_id_is_used_again_has_nothing_of_the_older_one(url: str, *, asynchronous: bool) -> None:
    """LQ-JOB-29."""
    with JobAppFlavour(App(url), asynchronous=asynchronous) as flavour:

        @flavour.app.job(name="one")
        def one(number: int) -> int:
            return number

        @flavour.app.job(name="two", queue="other")
        def two(number: int) -> int:
            return number + 1

        def enqueued(number: int) -> Any:
            chain = (
                flavour.app.chain(one.with_options(id="a").call(number))
                .then(two.partial())
                .then(two.partial())
            )
            return flavour(chain, "enqueue")

        assert flavour(enqueued(1), "cancel")
        first = enqueued(1)
        assert (first.added, flavour(first, "status")) == (True, "ready")
        flavour.burst(queues=["default"])
        assert flavour(first, "cancel")  # in its second job
        first = enqueued(1)
        assert flavour(first, "status") == "ready"
        flavour.burst()
        assert (flavour(first, "status"), flavour(first, "result", 0)) == ("succeeded", 3)
        again, other = enqueued(5), enqueued(7)
        assert (again.added, other.added) == (True, False)
        for chain in (again, other):
            assert flavour(chain, "status") == "ready"
            with pytest.raises(TimeoutError):
                flavour(chain, "result", 0)
        flavour.burst(queues=["default"])
        assert flavour(again, "status") == "ready"
        with pytest.raises(TimeoutError):
            flavour(again, "result", 0)
        flavour.burst()
        assert [flavour(chain, "result", 0) for chain in (again, other)] == [7, 7]


class Shout:
    """A serializer that the formats could not replace."""

    name = "shout"

    def dumps(self, value: Any) -> bytes:
        return json.dumps(value).upper().encode()

    def loads(self, data: bytes) -> Any:
        return json.loads(data.lower())


def test_a_serializer_of_ones_own_writes_all_stages(url: str) -> None:
    with JobAppFlavour(App(url, serializer=Shout()), asynchronous=False) as flavour:

        @flavour.app.job(name="one")
        def one(text: str) -> str:
            return text + "1"

        @flavour.app.job(name="two")
        def two(text: str, other: str) -> str:
            return text + other

        handle = flavour.app.chain(one.call("a")).then(two.partial("b")).then(two.partial("c")).enqueue()
        flavour.burst()
        assert handle.result(0) == "a1bc"


def test_a_stage_that_no_queue_takes_makes_a_dead_letter_with_the_reason(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="one")
    def one() -> str:
        return "x" * 5000

    @flavour.app.job(name="two", queue="small")
    def two(text: str) -> str:
        return text

    flavour.app.queue("small").configure(max_data=1000)
    handle = flavour.app.chain(one.call()).then(two.partial()).enqueue()
    flavour.burst(queues=["default"])
    with pytest.raises(JobFailed, match="next stage, two, cannot be enqueued"):
        handle.result(0)


def test_what_is_done_is_handed_on_once_the_server_answers(
    url: str, proxy: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    runs: list[int] = []
    with (
        JobAppFlavour(App(proxy.url), asynchronous=False) as flavour,
        JobAppFlavour(App(url), asynchronous=False) as direct,
    ):

        @flavour.app.job(name="one")
        async def one() -> int:
            runs.append(1)
            proxy.refuse = True
            proxy.reset()
            return 1

        @flavour.app.job(name="two")
        async def two(number: int) -> int:
            return number + 1

        handle = flavour.app.chain(one.call()).then(two.partial()).enqueue()
        seen = direct.app.handle(handle.last.id, queue="default")
        with flavour.working():
            until(lambda: "cannot be handed on yet" in caplog.text)
            assert seen.status() == "unknown"
            proxy.refuse = False
            until(lambda: seen.status() == "succeeded")
    assert runs == [1]


def test_what_cannot_be_a_chain(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="one")
    def one() -> int:
        return 1

    @flavour.app.job(name="two")
    def two(number: int, other: int) -> int:
        return number + other

    chain = flavour.app.chain(one.call())
    with pytest.raises(BadTypeError, match="not called like that"):
        two.partial()  # type: ignore[call-arg]
    with pytest.raises(BadTypeError, match="not called like that"):
        one.partial()  # type: ignore[misc]
    with pytest.raises(BadTypeError, match="goes on with a partial call"):
        chain.then(one.call())  # type: ignore[arg-type]
    with pytest.raises(BadTypeError, match="takes calls"):
        flavour.app.chain(one)  # type: ignore[arg-type]
    with pytest.raises(BadArgumentError, match="neither an id"):
        two.with_options(id="a").partial(1)
    with pytest.raises(BadArgumentError, match="nor a time"):
        two.with_options(at=5).partial(1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_kill_between_two_stages_loses_nothing(
    flavour: JobAppFlavour, redis_client: redis.Redis, url: str
) -> None:
    """Workers are killed as they hand on: before the call, after it, and anywhere near."""
    from programs import chain_worker

    chains = [chain_worker.chain(flavour.app, number) for number in range(12)]
    killed = 0
    while killed < 12:
        worker = subprocess.Popen(
            programs.command("chain_worker", "before" if killed % 2 else "after"),
            env=programs.environment(REDIS_URL=url),
        )
        assert worker.wait(120) == -signal.SIGKILL
        killed += 1
        held: Any = redis_client.zrange("leaseq:{jobs}:default:leased", 0, -1)
        for item_id in held:
            redis_client.zadd("leaseq:{jobs}:default:leased", {item_id: 1.0})  # its lease is over
        redis_client.delete("leaseq:{jobs}:default:state")
    worker = subprocess.Popen(
        programs.command("chain_worker", "never"), env=programs.environment(REDIS_URL=url)
    )
    assert worker.wait(120) == 0
    assert [chain.result(0) for chain in chains] == [[n, 1, 2, 3] for n in range(12)]
    stats = flavour.app.queue().stats()
    assert (stats.ready, stats.delayed, stats.leased, stats.dead) == (0, 0, 0, 0)
    # a stage ran again where its worker was killed before it had handed on, and nowhere else
    effects = redis_client.lrange("effects", 0, -1)
    assert len(effects) == 12 * 3 + killed // 2
    assert len(set(effects)) == 12 * 3
