"""Jobs whose ids are made of their arguments: `unique` and `throttle`."""

from __future__ import annotations

import asyncio
import enum
import json
import math
import subprocess
import sys
import urllib.parse
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import JobAppFlavour
from support.snippets import ROOT

from leaseq.errors import BadArgumentError, BadTypeError, QueueFullError, ReplyLostError
from leaseq.jobs import App, SerializationError
from leaseq.jobs.job_ids import canonical, slot_id, unique_id
from leaseq.jobs.testing import at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import redis

    from leaseq_conformance.fault_proxy import Listener

    Enqueue = Callable[..., Any]

DAY = 86_400


@pytest.fixture(params=[False, True], ids=["threads", "asyncio"])
def flavour(url: str, request: pytest.FixtureRequest) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=request.param) as made:
        yield made


@pytest.fixture(params=["declared", "given", "by name", "many", "chain"])
def enqueue(flavour: JobAppFlavour, request: pytest.FixtureRequest) -> Enqueue:
    """Enqueue a job of `double` with options, in one of the ways in which jobs are enqueued."""
    runs: list[int] = []

    def double(number: int, extra: int = 0) -> int:
        runs.append(number)
        if number < 0:
            raise ValueError(number)
        return 2 * number

    def call(number: int, *, keywords: Any = None, **options: Any) -> Any:
        keywords = keywords or {}
        options.setdefault("retries", 0)
        declared = flavour.app.job(name="double", **(options if request.param == "declared" else {}))(double)
        if request.param == "declared":
            return flavour(declared, "enqueue", number, **keywords)
        given: Any = declared.with_options(**options)
        if request.param == "by name":
            given = flavour.app.function("double").with_options(**options)
        if request.param == "many":
            others = [declared.call(100), given.call(number, **keywords), declared.call(101)]
            return flavour(flavour.app, "enqueue_many", others)[1]
        if request.param == "chain":
            chain = flavour.side(flavour.app).chain(given.call(number, **keywords)).enqueue()
            return (flavour.run(chain) if flavour.asynchronous else chain).stages[0]
        return flavour(given, "enqueue", number, **keywords)

    vars(call)["runs"] = runs
    return call


def test_a_unique_job_is_enqueued_once_while_it_waits_and_while_its_result_is_kept(
    flavour: JobAppFlavour, enqueue: Enqueue
) -> None:
    first, again, other = (enqueue(number, unique=True) for number in (1, 1, 2))
    assert (first.added, again.added, other.added) == (True, False, True)
    assert again.id == first.id != other.id
    flavour.burst()
    kept = enqueue(1, unique=True)
    assert (kept.added, flavour(kept, "status"), flavour(kept, "result", 0)) == (False, "succeeded", 2)
    flavour.burst()
    assert sorted(number for number in vars(enqueue)["runs"] if number < 100) == [1, 2]


def test_without_a_kept_result_a_unique_job_is_enqueued_again_when_it_has_ended(
    flavour: JobAppFlavour, enqueue: Enqueue
) -> None:
    assert enqueue(1, unique=True, keep=None).added
    assert not enqueue(1, unique=True, keep=None).added
    flavour.burst()
    assert enqueue(1, unique=True, keep=None).added


def test_a_unique_job_that_is_dead_keeps_its_id_until_it_is_purged(
    flavour: JobAppFlavour, enqueue: Enqueue
) -> None:
    first = enqueue(-1, unique=True)
    flavour.burst()
    assert flavour(first, "status") == "failed"
    assert not enqueue(-1, unique=True).added
    assert flavour(first, "purge")
    assert enqueue(-1, unique=True).added


def test_a_unique_job_that_was_cancelled_can_be_enqueued_again(
    flavour: JobAppFlavour, enqueue: Enqueue
) -> None:
    first = enqueue(1, unique=True)
    assert flavour(first, "cancel")
    again = enqueue(1, unique=True)
    assert (again.added, flavour(again, "status")) == (True, "ready")


def test_one_throttled_job_runs_in_each_slot(flavour: JobAppFlavour, enqueue: Enqueue) -> None:
    """Also if the job of the slot has ended, and nothing is kept of it."""
    app = flavour.app
    first, again, other = (enqueue(number, throttle="3650d", keep=None) for number in (1, 1, 2))
    assert (first.added, again.added, other.added) == (True, False, True)
    assert again.id == first.id != other.id
    flavour.burst()
    assert not enqueue(1, throttle="3650d", keep=None).added
    app.program.clients.settings.ahead = 3650.0 * DAY  # the next slot
    later = enqueue(1, throttle="3650d", keep=None)
    assert (later.added, later.id == first.id) == (True, False)
    assert not enqueue(1, throttle="3650d", keep=None).added
    flavour.burst()
    assert sorted(number for number in vars(enqueue)["runs"] if number < 100) == [1, 1, 2]


def test_slots_of_other_lengths_have_their_jobs(enqueue: Enqueue) -> None:
    assert enqueue(1, throttle="3650d").added
    assert enqueue(1, throttle="3000d").added
    assert enqueue(1, unique=True).added
    assert enqueue(1).added


def test_slots_are_those_of_the_server(url: str) -> None:
    """A program whose clock is a year ahead finds the same slot."""
    code = (
        "import sys, time; now = time.time; time.time = lambda: now() + 366 * 86400\n"
        "from leaseq.jobs import App\n"
        "job = App(sys.argv[1]).function('f').with_options(throttle='1h').enqueue(1)\n"
        "print(job.added, job.id)"
    )
    with App(url) as app:
        while True:  # no hour may end between the two
            before = app.queue().stats().now // 3600
            job = app.function("f").with_options(throttle="1h").enqueue(1)
            done = subprocess.run(
                [sys.executable, "-c", code, url], capture_output=True, text=True, check=True
            )
            if app.queue().stats().now // 3600 == before:
                break
    assert done.stdout.split() == ["False", job.id]


def test_the_slot_of_a_test_moves_with_its_clock(url: str) -> None:
    app = App(url)
    runs: list[float] = []
    with at_once(app) as clock:
        tick = app.job(name="tick", throttle="1h")(lambda: runs.append(clock.now()))
        added = []
        for _ in range(4):
            added.append(tick.enqueue().added)
            clock.advance("30m")
    assert added.count(True) == len(runs)
    assert len(runs) in {2, 3}  # 90 minutes are in two slots or in three
    assert [int(moment // 3600) for moment in runs] == sorted({int(moment // 3600) for moment in runs})


def test_a_slot_is_free_again_if_its_job_was_not_added(flavour: JobAppFlavour) -> None:
    job = flavour.app.job(name="f", throttle="3650d")(lambda number: number)
    queue = flavour.app.queue()
    queue.configure(max_items=1)
    with pytest.raises(QueueFullError) as full:
        flavour(flavour.app, "enqueue_many", [job.call(1), job.call(2), job.call(1)])
    assert full.value.answers == [True, None, False]
    assert not flavour(job, "enqueue", 1).added
    queue.configure(max_items=0)
    assert flavour(job, "enqueue", 2).added


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_slot_stays_taken_whose_job_was_perhaps_added(proxy: Listener, *, asynchronous: bool) -> None:
    """The reply to its add is lost; the job runs, and no other one comes within the slot."""
    with JobAppFlavour(App(proxy.url), asynchronous=asynchronous) as flavour:
        flavour(flavour.app.job(name="other")(lambda: None), "enqueue")
        job = flavour.app.job(name="f", throttle="3650d", keep=None)(lambda: None)
        proxy.add_breakpoint("EVALSHA", "after", "disconnect", nth=2)  # behind that of the outcomes
        with pytest.raises(ReplyLostError):
            flavour(job, "enqueue")
        assert flavour.burst() == 2
        assert not flavour(job, "enqueue").added


def test_slots_leave_no_key_for_good(redis_client: redis.Redis, url: str) -> None:
    """And none goes before its slot is over."""
    with App(url) as app:
        job = app.function("f").with_options(throttle="1m").enqueue(1)
    life = redis_client.pttl(f"leaseq:{{jobs}}:default:slot:{job.id}")
    assert 20_000 < life <= 60_000


def test_of_many_at_once_one_is_added(url: str) -> None:
    async def main() -> list[bool]:
        apps = [App(url) for _ in range(8)]
        jobs = [app.aio.function("f").with_options(throttle="3650d", keep=None) for app in apps]
        handles = await asyncio.gather(*(job.enqueue(1) for job in jobs))
        for app in apps:
            await app.aio.close()
        return [handle.added for handle in handles]

    assert asyncio.run(main()).count(True) == 1


def test_what_it_costs(flavour: JobAppFlavour, redis_client: redis.Redis) -> None:
    costs: list[int] = []
    for number in range(2):  # the first ones send the text of the scripts
        costs = []
        chosen: list[Any] = [{"id": f"{number}"}, {"unique": True}, {"throttle": "3650d"}]
        for options in chosen:
            function = flavour.app.function("f").with_options(**options)
            redis_client.config_resetstat()
            flavour(function, "enqueue", number)
            costs.append(redis_client.info("stats")["total_reads_processed"] - 1)
    assert costs == [2, 3, 4]


class Color(enum.Enum):
    RED = "red"


@dataclass
class Point:
    y: int
    x: float


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e16, "10000000000000000"),
        (1.2345678901234567e20, "123456789012345670000"),
        (1e21, "1e+21"),
        (-1.5e300, "-1.5e+300"),
        (0.000001, "0.000001"),
        (1e-7, "1e-7"),
        (1.25e-9, "1.25e-9"),
        (2**70, "1180591620717411303424"),
        (True, "true"),
        (None, "null"),
        ('é"\n', '"é\\"\\n"'),
        # U+FB33 is behind the first half of U+1F600 in UTF-16
        ({"\ufb33": 1, "\U0001f600": 2}, '{"\U0001f600":2,"\ufb33":1}'),
        ({"b": 1, "a": [{"d": 2.5, "c": ()}], "é": 0}, '{"a":[{"c":[],"d":2.5}],"b":1,"é":0}'),
    ],
)
def test_arguments_are_written_in_one_way(value: Any, text: str) -> None:
    assert canonical(value) == text


def test_numbers_and_members_are_written_as_other_languages_write_them(tmp_path: Any) -> None:
    """ECMAScript's JSON.stringify, which RFC 8785 takes."""
    numbers = [0.1, 1e16, 123456.789e12, 1.2345678901234567e20, 1e21, 5e-324, 1e-6, 1.5e-7, -2.5e-5, 1 / 3]
    numbers += [math.ldexp(1 + number / 7, 13 * number - 300) for number in range(60)]
    done = subprocess.run(
        [ROOT / "tools" / "node.sh", "node", "-p", f"JSON.stringify({json.dumps(numbers)})"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert canonical(numbers) == done.stdout.strip()


def test_ids_are_those_of_the_specification() -> None:
    text = (ROOT / "spec" / "jobs.md").read_text()
    unique = unique_id("shop.total", [[10, 20.0]], {"tax": 0.1, "place": "Zürich"})
    slot = slot_id("shop.total", [[10, 20.0]], {"place": "Zürich", "tax": 0.1}, 60_000, 1_764_327_725_000)
    assert f"`{unique}`" in text
    assert f"`{slot}`" in text
    for job_id in (unique, slot):
        assert urllib.parse.quote(job_id, safe="") == job_id
        assert len(job_id) <= 100


def test_equal_arguments_have_one_id_whatever_their_classes() -> None:
    def of(*args: Any, **kwargs: Any) -> str:
        return unique_id("f", args, kwargs)

    assert of((1, 2)) == of([1, 2.0])
    assert of(a=1, b={"y": 1, "x": 2}) == of(b={"x": 2, "y": 1}, a=1)
    assert of(Point(1, 2)) == of({"x": 2, "y": 1})
    assert of({3, 1, 2}) == of({2, 3, 1})
    assert of(Color.RED) == of("red")
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert of(moment) == of("2026-01-01T00:00:00Z")
    different = [of(), of(1), of("1"), of([1]), of(1, 1), of(a=1), of({"a": 1}), of(None), of(Decimal(2))]
    assert len(set(different)) == len(different)
    assert unique_id("g", [], {}) != of()


@pytest.mark.parametrize("value", [math.nan, math.inf, object(), {"x": object()}])
def test_arguments_that_json_has_not_are_refused(url: str, value: Any) -> None:
    with App(url, format="msgpack") as app:
        with pytest.raises(SerializationError):
            app.function("f").with_options(unique=True).enqueue(value)
        assert app.queue().stats().items == 0


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"id": "a", "unique": True}, BadArgumentError, "leave out id, or give unique=False"),
        ({"id": "a", "throttle": 60}, BadArgumentError, "leave out id, or give unique=False"),
        ({"unique": True, "throttle": 60}, BadArgumentError, "unique or throttled, not both"),
        ({"throttle": 0}, BadArgumentError, "throttle must be above 0"),
        ({"throttle": timedelta(seconds=-1)}, BadArgumentError, "throttle must be above 0"),
        ({"throttle": "often"}, BadArgumentError, "'often' is no duration"),
        ({"unique": 1}, BadTypeError, "unique is true or false"),
    ],
)
def test_bad_combinations_are_refused_and_say_what_to_do(
    options: Any, error: type[Exception], why: str
) -> None:
    app = App("redis://127.0.0.1:1")
    job = app.job(name="f")(lambda: None)
    with pytest.raises(error, match=why):
        job.with_options(**options)
    with pytest.raises(error, match=why):
        app.job(name="g", **options)


def test_an_option_of_the_function_can_be_undone() -> None:
    app = App("redis://127.0.0.1:1")
    job = app.job(name="f", unique=True)(lambda number: number)
    with pytest.raises(BadArgumentError, match="unique=False"):
        job.with_options(id="a")
    assert job.with_options(id="a", unique=False).call(1).options.id == "a"
    with pytest.raises(BadArgumentError, match="not both"):
        job.with_options(throttle="1m")
    assert job.with_options(throttle="1m", unique=False).options.throttle == 60


def test_later_jobs_of_a_chain_and_of_a_schedule_are_neither() -> None:
    app = App("redis://127.0.0.1:1")
    chosen: list[Any] = [{"unique": True}, {"throttle": 60}]
    for number, options in enumerate(chosen):
        job: Any = app.function("f").with_options(**options)
        with pytest.raises(BadArgumentError, match="neither unique nor throttled"):
            job.partial()
        with pytest.raises(BadArgumentError, match="neither unique nor throttled"):
            app.every("1h", name=f"s{number}", **options)(lambda: None)
