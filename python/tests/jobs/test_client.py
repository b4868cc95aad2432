"""Enqueuing jobs and learning what became of them, in both flavours."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.job_app import TIMEOUT_SECS, JobAppFlavour, for_asyncio, until
from support.redis_probe import EVALS, calls, count_blocked, load

import leaseq
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.extras import install_command
from leaseq.jobs import (
    App,
    Backoff,
    Chain,
    ChainHandle,
    Context,
    Handle,
    JobCancelled,
    JobFailed,
    JobFunction,
    ResultNotKept,
    Schedules,
    aio,
)
from leaseq.jobs.store._aio import store as aio_store
from leaseq.jobs.store._sync import store as sync_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

DAY = 86400.0
HOUR = 3600.0


class Shop:
    """An App with functions, and calls of one flavour."""

    def __init__(self, url: str, *, asynchronous: bool) -> None:
        self.app = App(url)
        self.flavour = JobAppFlavour(self.app, asynchronous=asynchronous)
        self.add = self.app.job(name="add")(add)
        self.fail = self.app.job(name="fail", retries=0)(fail)

    def enqueue(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return self.flavour(function, "enqueue", *args, **kwargs)

    def info(self, handle: Any) -> Any:
        return self.flavour(handle, "info")


def add(a: int, b: int = 0) -> int:
    return a + b


def fail(message: str) -> None:
    raise ValueError(message)


@pytest.fixture(params=[False, True], ids=["threads", "asyncio"])
def shop(request: pytest.FixtureRequest, url: str) -> Iterator[Shop]:
    made = Shop(url, asynchronous=request.param)
    with made.flavour:
        yield made


def test_a_job_from_enqueue_to_result(shop: Shop) -> None:
    handle = shop.enqueue(shop.add, 1, b=2)
    assert handle.added
    assert shop.flavour(handle, "status") == "ready"
    assert shop.flavour.burst() == 1
    assert shop.flavour(handle, "status") == "succeeded"
    assert shop.flavour(handle, "result", 0) == 3
    again = shop.app.handle(handle.id)
    assert shop.flavour(again, "result") == 3


def test_a_job_is_found_again_in_whatever_queue_it_is(shop: Shop) -> None:
    shop.app.job(name="mail", queue="mail")(add)
    elsewhere = shop.enqueue(shop.app.functions["mail"], 1)
    here = shop.enqueue(shop.add.with_options(id="a"), 1)
    gone = shop.enqueue(shop.app.functions["mail"].with_options(delay=HOUR), 1)
    shop.flavour(gone, "cancel")
    for handle, queue, status in (
        (elsewhere, "mail", "ready"),
        (here, "default", "ready"),
        (gone, "mail", "cancelled"),
        (shop.app.handle("none"), "default", "unknown"),
    ):
        again = shop.flavour.side(shop.app.handle(handle.id))
        assert shop.flavour(again, "status") == status
        assert again.queue == queue
        assert shop.info(shop.app.handle(handle.id)).queue == queue
    assert shop.flavour(shop.app.handle(elsewhere.id, queue="default"), "status") == "unknown"
    # many at once, without a round trip for each
    handles = [shop.app.handle(handle.id) for handle in (elsewhere, here, gone, shop.app.handle("none"))]
    known = shop.flavour(shop.app, "statuses", handles)
    assert known == ["ready", "ready", "cancelled", "unknown"]
    assert [handle.queue for handle in handles] == ["mail", "default", "mail", "default"]


def test_a_job_is_enqueued_by_name(shop: Shop) -> None:
    known = shop.flavour(shop.app, "enqueue", "add", 1, 2)
    unknown = shop.flavour(
        shop.app.function("elsewhere.f").with_options(queue="other", delay=HOUR), "enqueue", 1, x=2
    )
    shop.flavour.burst()
    assert shop.flavour(known, "result", 0) == 3
    info = shop.info(unknown)
    assert (info.function, info.args, info.kwargs) == ("elsewhere.f", (1,), {"x": 2})
    assert (info.queue, info.status) == ("other", "delayed")


def test_a_second_job_of_an_id_is_not_enqueued_and_says_so(shop: Shop) -> None:
    first = shop.enqueue(shop.add.with_options(id="invoice-7"), 1, 2)
    second = shop.enqueue(shop.add.with_options(id="invoice-7"), 5, 5)
    assert (first.added, second.added) == (True, False)
    assert first.id == second.id == "invoice-7"
    shop.flavour.burst()
    assert shop.flavour(second, "result", 0) == 3
    assert shop.enqueue(
        shop.add.with_options(id="invoice-7"), 5, 5
    ).added  # it has ended: an id may be used again
    assert shop.flavour(first, "status") == "ready"


@pytest.mark.parametrize("how", ["id", "unique", "name", "many", "chain"])
def test_a_job_that_runs_is_known_as_before_when_its_id_is_enqueued_again(shop: Shop, how: str) -> None:
    """LQ-JOB-26: worker, start and progress stay. A second job is not added, so there is nothing to forget."""
    begun, end = threading.Event(), threading.Event()

    @shop.app.job(name="work")
    def work(ctx: Context, number: int) -> int:
        ctx.progress(3, 10)
        begun.set()
        assert end.wait(TIMEOUT_SECS)
        return number

    options: Any = {"unique": True} if how == "unique" else {"id": "import"}
    function = work.with_options(**options)
    handle = shop.enqueue(function, 1)
    with shop.flavour.working() as worker:
        assert begun.wait(TIMEOUT_SECS)
        until(lambda: shop.info(handle).progress == (3, 10))
        worker.flush()  # nothing is left to be written
        try:
            before = shop.info(handle)
            if how == "many":
                [again] = shop.flavour(shop.app, "enqueue_many", [function.call(1)])
            elif how == "chain":
                again = shop.flavour(shop.app.chain(function.call(1)).then(shop.add.partial()), "enqueue")
            elif how == "name":
                again = shop.enqueue(shop.app.function("work").with_options(**options), 1)
            else:
                again = shop.enqueue(function, 1)
            assert not again.added
            assert shop.info(handle) == before
            assert (before.status, before.worker, before.started > 0) == ("running", worker.service.id, True)
        finally:
            end.set()
        assert shop.flavour(handle, "result", TIMEOUT_SECS) == 1


def test_one_job_is_one_round_trip(shop: Shop, redis_client: redis.Redis) -> None:
    load(redis_client)
    shop.enqueue(shop.add, 0)
    redis_client.config_resetstat()
    for n in range(5):
        shop.enqueue(shop.add, n, b=n)
    shop.enqueue(shop.add.with_options(priority=3, delay=HOUR), 7)
    reads = redis_client.info("stats")["total_reads_processed"]
    assert reads == 6 + 1  # and the question
    assert calls(redis_client, *EVALS) == 6


def test_many_jobs_in_one_round_trip(shop: Shop, redis_client: redis.Redis) -> None:
    load(redis_client)
    shop.enqueue(shop.add, 0)
    redis_client.config_resetstat()
    many = [shop.add.with_options(priority=n % 3).call(n, n) for n in range(250)]
    other = [shop.add.with_options(queue="other", delay=n + 1).call(n) for n in range(3)]
    handles = shop.flavour(shop.app, "enqueue_many", [*many, *other])
    assert calls(redis_client, *EVALS) == 2
    assert [handle.queue for handle in handles] == ["default"] * 250 + ["other"] * 3
    assert len({handle.id for handle in handles}) == 253
    assert {len(bytes.fromhex(handle.id)) for handle in handles} == {16}
    redis_client.config_resetstat()
    states = shop.flavour(shop.app, "statuses", handles)
    assert states == ["ready"] * 250 + ["delayed"] * 3
    assert calls(redis_client, *EVALS) == 2
    redis_client.config_resetstat()
    infos = shop.flavour(shop.app, "inspect_jobs", handles)
    assert [info.args for info in infos] == [(n, n) for n in range(250)] + [(n,) for n in range(3)]
    stats = redis_client.info("commandstats")
    call_counts = [stats[f"cmdstat_{command}"]["calls"] for command in ("evalsha", "mget")]
    assert call_counts == [4, 2]  # for each queue
    shop.flavour.burst()
    assert shop.flavour(shop.app, "statuses", handles[:3]) == ["succeeded"] * 3
    assert [shop.flavour(handle, "result", 0) for handle in handles[:3]] == [0, 2, 4]


def test_the_options_of_a_job_are_those_of_its_item(shop: Shop) -> None:
    given = shop.add.with_options(
        priority=5, delay=HOUR, expires=50, retries=6, attempt=3, keep=60, headers={"trace": "7f"}
    )
    handle = shop.enqueue(given, 1)
    item = shop.app.queue().inspect(handle.id)
    now = shop.app.queue().stats().now
    assert item.state == "delayed"
    assert (item.priority, item.max_attempts, item.keep) == (5, 5, 60.0)  # attempts 3 to 7 are five
    assert abs(item.time - item.created - HOUR) < 1  # both by the server's clock, in one call
    assert abs(item.expires - item.created - HOUR - 50) < 1
    assert item.time > now


def test_the_defaults_are_those_of_the_documentation(shop: Shop) -> None:
    handle = shop.enqueue(shop.add, 1)
    item = shop.app.queue().inspect(handle.id)
    assert (item.max_attempts, item.keep, item.priority) == (5, DAY, 0)
    assert abs(item.expires - item.created - DAY) < 1
    forever = shop.enqueue(shop.add.with_options(expires=None, keep=None, retries=None), 1)
    item = shop.app.queue().inspect(forever.id)
    assert (item.max_attempts, item.keep, item.expires) == (0, 0.0, 0.0)


def test_what_is_said_of_a_function_counts_for_all_its_jobs(shop: Shop) -> None:
    now = shop.app.queue().stats().now
    job_options: Any = {
        "id": "one",
        "queue": "mail",
        "priority": 5,
        "at": now + HOUR,
        "expires": 50,
        "timeout": 7,
    }
    job_options |= {"retries": 6, "backoff": Backoff(1, 2), "keep": 60, "description": "d", "attempt": 3}
    function = shop.app.job(name="f", headers={"trace": "7f"}, **job_options)(add)
    handle = shop.enqueue(function, 1)
    again = shop.enqueue(function, 2)
    assert (handle.id, handle.queue, handle.added, again.added) == ("one", "mail", True, False)
    info, item = shop.info(handle), shop.app.queue("mail").inspect("one")
    assert (info.description, info.timeout, info.retries, info.args) == ("d", 7.0, 6, (1,))
    assert (item.priority, item.max_attempts, item.keep, item.state) == (5, 5, 60.0, "delayed")
    other = shop.enqueue(function.with_options(id=None, delay=HOUR), 1)
    assert other.id != "one"
    assert other.added


def test_durations_may_be_text(shop: Shop) -> None:
    function = shop.app.job(name="f", timeout="3m", delay="1h")(add)
    handle = shop.enqueue(function.with_options(expires="90s", keep="7d"), 1)
    called = shop.enqueue(function.with_options(timeout="1h"), 1)
    item = shop.app.queue().inspect(handle.id)
    assert (shop.info(handle).timeout, shop.info(called).timeout) == (180.0, 3600.0)
    assert (item.state, item.keep) == ("delayed", 7 * DAY)
    assert abs(item.expires - item.created - HOUR - 90) < 1


def test_durations_may_be_timedeltas(shop: Shop) -> None:
    minute = timedelta(minutes=1)
    function = shop.app.job(name="f", timeout=minute, delay=60 * minute, expires=minute, keep=2 * minute)(add)
    handle = shop.enqueue(function, 1)
    item = shop.app.queue().inspect(handle.id)
    assert (shop.info(handle).timeout, item.state, item.keep) == (60.0, "delayed", 120.0)
    assert abs(item.expires - item.created - HOUR - 60) < 1
    with pytest.raises(TimeoutError):
        shop.flavour(handle, "result", timedelta())
    chain = shop.flavour(shop.app.chain(shop.add.call(1)), "enqueue")
    with pytest.raises(TimeoutError):
        shop.flavour(chain, "result", timedelta(milliseconds=10))


def test_delays_travel_with_a_call_and_functions_do_not(shop: Shop) -> None:
    data = {}
    for name, backoff in (("fixed", 7), ("list", [1, "2m"]), ("grows", Backoff(1, timedelta(minutes=1)))):
        shop.enqueue(shop.add.with_options(id=name, backoff=backoff), 1)  # type: ignore[arg-type]
        data[name] = json.loads(shop.app.queue().lease(HOUR).data)  # type: ignore[union-attr]
    assert [data[name].get("delays") for name in ("fixed", "list", "grows")] == [[7000], [1000, 120000], None]
    assert [data[name].get("backoff") for name in ("fixed", "list", "grows")] == [None, None, [1000, 60000]]
    with pytest.raises(BadArgumentError, match="a function as backoff cannot be sent with a call"):
        shop.add.with_options(backoff=lambda attempt: attempt)
    shop.app.job(name="chosen", backoff=lambda attempt: attempt)(add)
    with pytest.raises(BadArgumentError, match="backoff has no delay"):
        shop.app.job(name="none", backoff=[])


def test_a_job_is_due_at_a_time(shop: Shop) -> None:
    now = shop.app.queue().stats().now
    handle = shop.enqueue(shop.add.with_options(at=now + HOUR), 1)
    zone = timezone(timedelta(hours=2))
    local = shop.enqueue(shop.add.with_options(at=datetime.fromtimestamp(now + HOUR, zone)), 1)
    for each in (handle, local):
        item = shop.app.queue().inspect(each.id)
        assert item.state == "delayed"
        assert abs(item.time - now - HOUR) < 1
        # a day after it is due by the server's clock, which was asked in a call before
        assert -1 < item.expires - now - HOUR - DAY < HOUR / 2
    assert abs(shop.info(local).due - now - HOUR) < 1


def expire(queue: str, handle: Any, redis_client: redis.Redis) -> None:
    """Let the time of a job be over an hour ago."""
    key = f"leaseq:{{jobs}}:{queue}:"
    record: Any = redis_client.hget(key + "meta", handle.id)
    (expires,) = struct.unpack_from("<d", record, 31)
    over = expires - 2 * HOUR * 1_000_000
    redis_client.zadd(key + "expiry", {handle.id: over}, xx=True)
    redis_client.hset(key + "meta", handle.id, record[:31] + struct.pack("<d", over))


def test_a_result_is_converted_for_who_has_the_id_alone(shop: Shop, url: str) -> None:
    when = datetime(2026, 3, 1, tzinfo=UTC)

    @shop.app.job(name="day")
    def day(text: str) -> datetime:
        return when

    short, long = (shop.enqueue(day, text) for text in ("a", "a" * 5000))
    shop.flavour.burst()
    assert shop.flavour(shop.app.handle(short.id), "result") == when
    assert (
        shop.flavour(shop.app.handle(long.id), "result") == "2026-03-01T00:00:00Z"
    )  # its result does not name the function
    assert shop.flavour(long, "result") == when
    with App(url) as other:
        assert other.handle(short.id).result() == "2026-03-01T00:00:00Z"


@pytest.mark.parametrize("cleaned", [False, True], ids=["found by a worker", "found by a cleaner"])
def test_a_job_that_expires_has_failed(
    shop: Shop, redis_client: redis.Redis, caplog: pytest.LogCaptureFixture, *, cleaned: bool
) -> None:
    handles = [shop.enqueue(shop.add.with_options(expires=HOUR), number) for number in (1, 2)]
    for handle in handles:
        expire("default", handle, redis_client)
    if cleaned:
        assert shop.app.queue().light_clean().died == 2
    assert shop.flavour.burst() == 0
    for handle in handles:
        with pytest.raises(JobFailed, match=f"job '{handle.id}' expired: no worker started it in time"):
            shop.flavour(handle, "result", timeout=60)
        assert shop.flavour(handle, "status") == "failed"
        info = shop.info(handle)
        assert (info.error, info.attempt, info.args) == ("expired", 0, (handles.index(handle) + 1,))
    assert shop.app.queue().stats().died == 2
    until(lambda: "expired" in caplog.text)
    logged = [record.getMessage() for record in caplog.records if record.name == "leaseq"]
    assert logged == [
        f"queue 'default': 2 items are dead letters, '{handles[0].id}' and others: expired",
    ]
    assert shop.flavour(handles[0], "revive") is True
    assert shop.flavour.burst() == 1


def test_a_job_that_is_dropped_when_it_expires(shop: Shop, redis_client: redis.Redis) -> None:
    handle = shop.enqueue(shop.add.with_options(expires=HOUR, dead_on_expiry=False), 1)
    expire("default", handle, redis_client)
    assert shop.flavour.burst() == 0
    assert shop.flavour(handle, "status") == "unknown"
    with pytest.raises(ResultNotKept, match="expired"):
        shop.flavour(handle, "result")
    assert shop.app.queue().stats().expired == 1


def test_a_failure_tells_of_the_remote_traceback(shop: Shop) -> None:
    handle = shop.enqueue(shop.fail, "no such order\nat all")
    shop.flavour.burst()
    assert shop.flavour(handle, "status") == "failed"
    with pytest.raises(JobFailed, match="ValueError: no such order at all") as raised:
        shop.flavour(handle, "result")
    assert (raised.value.type, raised.value.attempt) == ("ValueError", 1)
    assert "raise ValueError(message)" in raised.value.traceback
    assert "leaseq/jobs" not in raised.value.traceback
    assert any("raise ValueError(message)" in note for note in raised.value.__notes__)


def test_a_failure_without_a_kept_result_is_told_all_the_same(shop: Shop) -> None:
    handle = shop.enqueue(shop.fail.with_options(keep=None), "no")
    shop.flavour.burst()
    with pytest.raises(JobFailed, match="ValueError: no"):
        shop.flavour(handle, "result")


def test_who_waits_for_what_never_comes_is_told_at_once(shop: Shop) -> None:
    unkept = shop.enqueue(shop.add.with_options(keep=None), 1)
    with pytest.raises(ResultNotKept, match="without `keep`"):
        shop.flavour(unkept, "result")
    shop.flavour.burst()
    for handle in (unkept, shop.app.handle("there-was-none")):
        with pytest.raises(ResultNotKept):
            shop.flavour(handle, "result")
        assert shop.flavour(handle, "status") == "unknown"


def test_a_result_that_does_not_come_in_time_is_a_timeout(shop: Shop) -> None:
    handle = shop.enqueue(shop.add.with_options(delay=HOUR), 1)
    with pytest.raises(TimeoutError, match="it is delayed"):
        shop.flavour(handle, "result", 0)
    with pytest.raises(TimeoutError, match="it is delayed"):
        shop.flavour(handle, "result", 0.05)


def test_who_waits_is_woken(shop: Shop, redis_client: redis.Redis, cap_of_an_hour: None) -> None:
    handle = shop.enqueue(shop.add, 1, 2)
    answers: list[Any] = []
    waiting = asyncio.run_coroutine_threadsafe(for_asyncio(handle).result(), shop.flavour._loop)
    waiting.add_done_callback(lambda done: answers.append(done.result()))
    until(lambda: count_blocked(redis_client) == 1)
    assert shop.flavour.burst() == 1
    until(lambda: answers == [3])


def test_cancelling_leaves_a_trace(shop: Shop, redis_client: redis.Redis) -> None:
    """LQ-JOB-11: for a day."""
    handle = shop.enqueue(shop.add.with_options(id="a"), 1)
    assert shop.flavour(handle, "cancel")
    assert not shop.flavour(handle, "cancel")
    assert shop.flavour(handle, "status") == "cancelled"
    (note,) = redis_client.keys("*:cancelled:a")
    assert 86_000_000 < redis_client.pttl(note) <= 86_400_000
    known = shop.info(handle)
    assert known.ended > 0
    assert (known.function, known.args, known.description) == ("add", (1,), "add(1)")
    with pytest.raises(JobCancelled):
        shop.flavour(handle, "result")
    assert shop.flavour.burst() == 0
    # LQ-JOB-26: a job that is enqueued under its id is another one
    unkept = shop.enqueue(shop.add.with_options(id="a", keep=None), 1)
    assert shop.flavour(unkept, "status") == "ready"
    shop.flavour.burst()
    assert shop.flavour(unkept, "status") == "unknown"


def test_who_waits_for_a_job_that_is_cancelled_is_woken(
    shop: Shop, redis_client: redis.Redis, cap_of_an_hour: None
) -> None:
    handle = shop.enqueue(shop.add.with_options(id="a"), 1)
    waiting = [shop.flavour.start(for_asyncio(handle).result()) for _ in range(3)]
    until(lambda: count_blocked(redis_client) == 3)
    assert shop.flavour(handle, "cancel")
    for each in waiting:
        with pytest.raises(JobCancelled):
            each.result(TIMEOUT_SECS)
    # what woke them is nothing that a job of the same id would be taken to have left
    again = shop.enqueue(shop.add.with_options(id="a"), 1)
    assert shop.flavour(again, "status") == "ready"
    later = shop.flavour.start(for_asyncio(again).result())
    until(lambda: count_blocked(redis_client) == 1)
    shop.flavour.burst()
    assert later.result(TIMEOUT_SECS) == 1
    # nor does it come in place of an outcome
    shop.app.program.clients.sync.store._wake("default", "a")
    assert shop.flavour(again, "result", 0) == 1
    assert not redis_client.keys("*woken*")


def test_where_cancelling_fails_there_is_no_trace_of_it(shop: Shop, redis_client: redis.Redis) -> None:
    handle = shop.enqueue(shop.add.with_options(id="a"), 1)
    redis_client.set("leaseq:{jobs}:default:counters", "of another program")
    with pytest.raises(leaseq.LeaseqError, match="WRONG_TYPE"):
        shop.flavour(handle, "cancel")
    redis_client.delete("leaseq:{jobs}:default:counters")
    redis_client.config_set("maxmemory", 1)  # the transaction is refused before it starts
    try:
        with pytest.raises(leaseq.LeaseqError, match="maxmemory"):
            shop.flavour(handle, "cancel")
    finally:
        redis_client.config_set("maxmemory", 0)
    assert shop.flavour(handle, "status") == "ready"
    assert not redis_client.exists("leaseq:{jobs}:default:cancelled:a")
    assert shop.flavour(handle, "cancel")


def test_a_cancellation_of_an_earlier_job_does_not_count(shop: Shop, redis_client: redis.Redis) -> None:
    """LQ-JOB-25: a job of that id is there, or its outcome."""
    handle = shop.enqueue(shop.add.with_options(id="a"), 1)
    redis_client.set("leaseq:{jobs}:default:cancelled:a", '{"v":1,"cancelled":1}')
    assert shop.flavour(handle, "status") == "ready"
    shop.flavour.burst()
    redis_client.set("leaseq:{jobs}:default:cancelled:a", '{"v":1,"cancelled":1}')
    assert shop.flavour(handle, "status") == "succeeded"


def test_an_id_that_is_used_again_has_nothing_of_the_older_result(shop: Shop) -> None:
    first = shop.enqueue(shop.add.with_options(id="a"), 1)
    shop.flavour.burst()
    assert shop.flavour(first, "result", 0) == 1
    again = shop.enqueue(shop.add.with_options(id="a", keep=None), 2)
    assert shop.flavour(again, "status") == "ready"
    shop.flavour.burst()
    for handle in (first, again):
        assert shop.flavour(handle, "status") == "unknown"
        with pytest.raises(ResultNotKept):
            shop.flavour(handle, "result", 0)
    assert shop.info(again).args == ()


def test_what_a_long_job_was_is_not_told_when_it_is_cancelled(shop: Shop, redis_client: redis.Redis) -> None:
    handle = shop.enqueue(shop.fail.with_options(id="a"), "x" * 5000)
    assert shop.flavour(handle, "cancel")
    assert (shop.flavour(handle, "status"), shop.info(handle).function) == ("cancelled", "")
    assert redis_client.strlen("leaseq:{jobs}:default:cancelled:a") < 100


@pytest.mark.parametrize(("size", "known"), [(4096, "fail"), (4097, "")])
def test_up_to_4096_bytes_of_a_cancelled_job_are_kept(shop: Shop, size: int, known: str) -> None:
    """LQ-JOB-11."""
    empty = shop.enqueue(shop.fail, "")
    item = shop.app.queue().lease(HOUR)
    assert item is not None
    assert item.id == empty.id
    handle = shop.enqueue(shop.fail, "x" * (size - len(item.data)))
    item = shop.app.queue().lease(HOUR)
    assert item is not None
    assert len(item.data) == size
    assert shop.flavour(handle, "cancel")
    assert shop.info(handle).function == known


def test_what_has_ended_is_not_cancelled(shop: Shop) -> None:
    good, bad = shop.enqueue(shop.add, 1), shop.enqueue(shop.fail, "no")
    unkept = shop.enqueue(shop.fail.with_options(keep=None), "no")
    shop.flavour.burst()
    for handle, status in (
        (good, "succeeded"),
        (bad, "failed"),
        (unkept, "failed"),
        (shop.app.handle("none"), "unknown"),
    ):
        assert not shop.flavour(handle, "cancel")
        assert shop.flavour(handle, "status") == status
        assert (shop.info(handle).ended > 0) is (status != "unknown")


def test_what_is_known_of_a_job(shop: Shop) -> None:
    described = shop.enqueue(shop.add.with_options(description="the sum"), 1, b=2)
    before = shop.info(described)
    assert (before.id, before.queue, before.status) == (described.id, "default", "ready")
    assert (before.function, before.args, before.kwargs) == ("add", (1,), {"b": 2})
    assert before.description == "the sum"
    assert (before.started, before.ended, before.attempt, before.worker) == (0.0, 0.0, 0, "")
    assert (before.timeout, before.retries, before.result) == (300.0, 4, None)
    limited = shop.enqueue(shop.add.with_options(timeout=180, retries=7, attempt=3), 1)
    assert (shop.info(limited).timeout, shop.info(limited).retries) == (180.0, 7)
    endless = shop.enqueue(shop.add.with_options(timeout=None, retries=None), 1)
    assert (shop.info(endless).timeout, shop.info(endless).retries) == (None, None)
    now = shop.app.queue().stats().now
    assert now - 600 < before.enqueued <= now
    failing = shop.enqueue(shop.fail, "no")
    shop.flavour.burst()
    after = shop.info(described)
    assert (after.status, after.attempt, after.function, after.args) == ("succeeded", 1, "add", (1,))
    assert after.started > 0
    assert after.enqueued <= after.ended
    assert after.worker
    assert after.result == 3
    failed = shop.info(failing)
    assert (failed.status, failed.error, failed.attempt) == ("failed", "ValueError: no", 1)
    assert failed.description == "fail('no')"
    assert failed.worker == after.worker
    assert "raise ValueError" in failed.traceback


@pytest.mark.parametrize("kind", ["thread", "loop", "process"])
def test_what_is_known_of_a_job_after_each_of_its_attempts(
    shop: Shop, redis_client: redis.Redis, kind: str
) -> None:
    def work(ctx: Context, until: int) -> str:
        if ctx.attempt < until:
            raise ValueError(f"attempt {ctx.attempt}")
        return "done"

    async def in_loop(ctx: Context, until: int) -> str:
        return work(ctx, until)

    chosen: Any = in_loop if kind == "loop" else work
    function = shop.app.job(name="work", retries=2, backoff=HOUR, fork=kind == "process")(chosen)
    good, bad = (shop.enqueue(function.with_options(id=name), last) for name, last in (("a", 3), ("b", 9)))
    workers, started = [], [0.0]
    for attempt in (1, 2):
        shop.flavour.burst()
        for handle in (good, bad):
            info = shop.info(handle)
            assert (info.status, info.attempt, info.retries) == ("retrying", attempt, 2)
            assert info.error == f"ValueError: attempt {attempt}"
            assert info.traceback.rstrip().endswith(info.error)
            assert (info.ended, info.result, info.progress) == (0.0, None, None)
            with pytest.raises(TimeoutError, match=f"it is retrying, after ValueError: attempt {attempt}"):
                shop.flavour(handle, "result", 0)
            redis_client.zadd("leaseq:{jobs}:default:delayed", {handle.id: 1.0})
        workers.append(shop.info(good).worker)
        started.append(shop.info(good).started)
        redis_client.delete("leaseq:{jobs}:default:state")  # which knows when to look next
    shop.flavour.burst()
    info = shop.info(good)
    assert (info.status, info.attempt, info.error, info.traceback) == ("succeeded", 3, "", "")
    assert (info.result, info.retries, info.function, info.args) == ("done", None, "work", (3,))
    assert info.started <= info.ended + 0.001
    assert len({*workers, info.worker}) == 3  # each was another one
    assert [*started, info.started] == sorted([*started, info.started])
    info = shop.info(bad)
    assert (info.status, info.attempt, info.error) == ("failed", 3, "ValueError: attempt 3")
    assert info.ended > 0
    with pytest.raises(JobFailed, match="attempt 3") as raised:
        shop.flavour(bad, "result", 0)
    assert (raised.value.type, raised.value.message, raised.value.attempt) == ("ValueError", "attempt 3", 3)
    assert shop.flavour(bad, "revive")
    info = shop.info(bad)
    assert (info.status, info.attempt, info.ended, info.retries) == ("ready", 0, 0.0, 2)


def test_the_times_of_a_job_are_seconds(shop: Shop) -> None:
    before = time.time()
    handles = [
        shop.enqueue(shop.add, 1),
        shop.enqueue(shop.fail, "no"),
        shop.enqueue(shop.fail.with_options(retries=1, backoff=HOUR), "no"),
    ]
    gone = shop.enqueue(shop.add, 1)
    assert shop.flavour(gone, "cancel")
    shop.flavour.burst()
    infos = [shop.info(handle) for handle in (*handles, gone)]
    after = time.time() + 0.001  # rounded
    assert [info.status for info in infos] == ["succeeded", "failed", "retrying", "cancelled"]
    for info in infos[:3]:
        assert before - 0.001 <= info.started <= after
    for info in (infos[0], infos[1], infos[3]):
        assert abs(info.ended - before) < 600
    assert (infos[2].ended, infos[3].started) == (0.0, 0.0)


def test_options_that_are_given_later_take_the_place_of_those_before(shop: Shop) -> None:
    data = []
    for given in (
        shop.add.with_options(backoff=[1, 2]).with_options(backoff=Backoff(3, 4)),
        shop.add.with_options(backoff=Backoff(3, 4)).with_options(backoff=[1, 2]),
        shop.add.with_options(timeout=5, description="d").with_options(priority=1),
    ):
        handle = shop.enqueue(given, 1)
        item = shop.app.queue().lease(HOUR)
        assert item is not None
        assert item.id == handle.id
        data.append(json.loads(item.data))
    assert (data[0].get("backoff"), data[0].get("delays")) == ([3000, 4000], None)
    assert (data[1].get("backoff"), data[1].get("delays")) == (None, [1000, 2000])
    assert (data[2]["timeout"], data[2]["description"]) == (5000, "d")


def test_a_time_takes_the_place_of_a_delay_and_may_be_past(shop: Shop) -> None:
    queue = shop.app.queue()
    now = queue.stats().now
    function = shop.app.job(name="f", delay=HOUR, expires=60)(add)
    later = shop.enqueue(function.with_options(at=now + 3 * HOUR), 1)
    assert abs(queue.inspect(later.id).time - now - 3 * HOUR) < 1
    past = shop.enqueue(function.with_options(at=now - HOUR), 1)
    item = queue.inspect(past.id)
    assert item.state == "ready"
    assert abs(item.expires - item.created - 60) < 1
    info = shop.info(past)
    assert abs(info.due - info.enqueued) < 600  # it was due when it was enqueued


def test_listing_costs_no_round_trip_per_job(shop: Shop, redis_client: redis.Redis) -> None:
    handles = shop.flavour(shop.app, "enqueue_many", [shop.add.call(n) for n in range(40)])
    load(redis_client)
    redis_client.config_resetstat()
    listed = shop.flavour(shop.app, "jobs", "ready", limit=30, offset=5)
    assert [info.id for info in listed] == [handle.id for handle in handles[5:35]]
    assert [info.args for info in listed] == [(n,) for n in range(5, 35)]
    stats = redis_client.info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] == 3
    assert stats["cmdstat_mget"]["calls"] == 1
    assert "cmdstat_keys" not in stats
    shop.flavour.burst()
    succeeded = shop.flavour(shop.app, "jobs", "succeeded")
    assert {info.id: info.result for info in succeeded} == {handle.id: n for n, handle in enumerate(handles)}
    assert shop.flavour(shop.app, "jobs", "failed") == []
    with pytest.raises(BadArgumentError, match="ready, delayed, running, failed, succeeded"):
        shop.flavour(shop.app, "jobs", "lost")
    with pytest.raises(BadArgumentError, match="offset is at least 0 and limit 1 to 256: not -1 and 100"):
        shop.flavour(shop.app, "jobs", "succeeded", offset=-1)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"delay": -1}, "delay must not be negative"),
        ({"delay": 5, "at": 5.0}, "not both"),
        ({"at": datetime(2030, 1, 1)}, "no time zone"),  # noqa: DTZ001
        ({"expires": 0}, "expires must be above 0"),
        ({"timeout": 0}, "timeout must be above 0"),
        ({"timeout": "0s"}, "timeout must be above 0"),
        ({"timeout": "an hour"}, "'an hour' is no duration; write 30s"),
        ({"retries": -1}, "retries must be 0 to"),
        ({"retries": 65534}, "None is without limit"),
        ({"retries": 1, "attempt": 3}, "is at least 1, and at most 2 with 1 retries; not 3"),
        ({"retries": None, "attempt": 0}, "is at least 1; not 0"),
        ({"max_attempts": 3}, "there is no option 'max_attempts'"),
        ({"retry_on": ValueError}, "there is no option 'retry_on'"),
    ],
)
def test_options_that_cannot_be_are_refused(
    options: Any, why: str, url: str, redis_client: redis.Redis
) -> None:
    app = App(url)
    with app, pytest.raises(BadArgumentError, match=why):
        app.job(add).with_options(**options)
    assert not redis_client.keys()


def test_wrong_kinds_of_things_are_refused(url: str) -> None:
    app = App(url)
    known = app.job(name="add")(add)
    with app:
        with pytest.raises(BadTypeError, match="backoff is a"):
            known.with_options(backoff={3})  # type: ignore[arg-type]
        with pytest.raises(BadTypeError, match="retry_on takes classes"):
            app.job(name="b", retry_on=ValueError("x"))  # type: ignore[call-overload]
        with pytest.raises(BadTypeError, match="several calls"):
            app.enqueue_many(known.call(1))  # type: ignore[arg-type]
        with pytest.raises(BadTypeError, match="calls, as in"):
            app.enqueue_many([1])  # type: ignore[arg-type]
        with pytest.raises(
            BadTypeError, match=r"add is not called like that: .*missing a required argument: 'a'"
        ):
            known.enqueue()  # type: ignore[call-arg]
        with pytest.raises(
            BadTypeError, match=r"'delay' is an option: with_options\(delay=\.\.\.\)\.enqueue"
        ):
            known.enqueue(1, 2, delay=5)  # type: ignore[call-arg]
        with pytest.raises(BadArgumentError, match="already"):
            app.job(name="add")(fail)
        with pytest.raises(BadArgumentError, match="needs one"):
            app.job(lambda: None)
        with pytest.raises(BadTypeError, match=r"not str; .* app\.handle\(id\)"):
            app.job("c")  # type: ignore[call-overload]
        with pytest.raises(BadTypeError, match="a job is a function"):
            app.job(name="c")(3)  # type: ignore[call-overload]
        with pytest.raises(leaseq.BadNameError):
            app.job(queue="no spaces")


def test_functions_of_main_are_refused_with_the_reason(url: str, redis_client: redis.Redis) -> None:
    def f() -> None: ...

    f.__module__, f.__qualname__ = "__main__", "f"
    app = App(url)
    with app:
        with pytest.raises(
            BadArgumentError, match="a worker is another program, in which __main__ is another module"
        ):
            app.job(f).enqueue()
        with pytest.raises(BadArgumentError, match="__main__"):
            app.enqueue("__main__.f")
        assert not redis_client.keys()
        assert app.job(name="f")(f).enqueue().added


def test_a_decorated_function_can_be_called_as_before(url: str) -> None:
    app = App(url)
    known = app.job(add)
    assert known(1, 2) == 3
    assert known.name == f"{add.__module__}.add"
    assert app.job(retries=1, backoff=Backoff(1, 2))(fail).options.retries == 1


def test_a_method_is_no_job(url: str) -> None:
    app = App(url)

    class Mailer:
        def send(self, address: str) -> str:
            return address

        @staticmethod
        def make(address: str) -> str:
            return address

    def local(self: int) -> int:  # no method, whatever its first parameter is called
        return self

    class_send = Mailer.send
    class_send.__qualname__ = "Mailer.send"
    with pytest.raises(BadTypeError, match="send is a method of Mailer: no worker has its self"):
        app.job(name="send")(class_send)
    assert app.job(name="make")(Mailer.make).call("a").args == ("a",)
    assert app.job(name="local")(local).call(1).args == (1,)


def test_without_its_extra_the_job_layer_says_how_to_install_it() -> None:
    code = "import sys; sys.modules['msgspec'] = None; import leaseq.jobs"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "leaseq.jobs needs the extra `jobs` (there is no msgspec): " in run.stderr
    assert run.stderr.endswith(f"{install_command('jobs')}\n")


@pytest.mark.parametrize(
    "cls", [App, Chain, ChainHandle, Handle, JobFunction, Schedules], ids=lambda cls: cls.__name__
)
def test_both_flavours_have_the_same_names_and_arguments(cls: type) -> None:
    twin = getattr(aio, cls.__name__)
    names = {name for name in dir(cls) if name[0] != "_"} - {"aio"}
    assert names == {name for name in dir(twin) if name[0] != "_"}
    for name in names:
        ours, theirs = getattr(cls, name), getattr(twin, name)
        if inspect.isfunction(ours):
            given = [*inspect.signature(ours).parameters]
            supervised = {"processes", "listen"}  # what is for a supervisor, and not for a worker in a loop
            assert [each for each in given if each not in supervised] == [
                *inspect.signature(theirs).parameters
            ]
            assert not inspect.iscoroutinefunction(ours)
    assert any(inspect.iscoroutinefunction(getattr(twin, name)) for name in names)


def test_what_is_for_threads_has_its_twin_for_asyncio(url: str) -> None:
    app = App(url)
    known = app.job(name="add")(add)
    chain = app.chain(known.call(1))
    handle = known.enqueue(1)
    assert isinstance(app.aio, aio.App)
    assert isinstance(app.schedules.aio, aio.Schedules)
    assert isinstance(chain.aio, aio.Chain)
    assert isinstance(chain.enqueue().aio, aio.ChainHandle)
    assert isinstance(handle.aio, aio.Handle)
    assert (handle.aio.id, handle.aio.queue, handle.aio.added) == (handle.id, handle.queue, True)
    later = known.with_options(delay=HOUR).aio
    assert (later.name, later.options.delay) == ("add", HOUR)
    assert app.aio.functions.keys() == app.functions.keys() == {"add"}
    app.close()


@dataclass
class Order:
    number: int
    placed: datetime


def test_arguments_and_results_have_the_types_of_the_function(url: str) -> None:
    app = App(url)
    seen: list[Any] = []

    @app.job(name="place")
    async def place(
        ctx: Context, /, order: Order, *sizes: float, rush: tuple[int, ...] = (), **more: datetime
    ) -> Order:
        seen.append((order, sizes, rush, more))
        return order

    order = Order(1, datetime(2026, 1, 2, tzinfo=UTC))
    with JobAppFlavour(app, asynchronous=False) as flavour:
        handle = place.enqueue(order, 1, 2.5, rush=(1, 2), when=order.placed)
        wrong = app.enqueue("place", {"number": "one", "placed": 0})
        flavour.burst()
        assert seen == [(order, (1.0, 2.5), (1, 2), {"when": order.placed})]
        assert handle.result(0) == handle.info().result == order
        assert app.handle(handle.id).result(0) == order
        with pytest.raises(JobFailed, match="argument 'order': Expected `int`, got `str`"):
            wrong.result(0)


async def test_what_is_made_for_asyncio_knows_the_types_of_the_function(url: str) -> None:
    app = App(url)
    order = Order(1, datetime(2026, 1, 2, tzinfo=UTC))

    @app.job(name="place")
    def place(order: Order) -> Order:
        return order

    handle = place.enqueue(order)
    later = await place.with_options(priority=1).aio.enqueue(order)
    chain = app.chain(place.call(order)).then(place.partial())
    chains = [chain.enqueue().aio, await chain.aio.enqueue()]
    with pytest.raises(BadTypeError, match="missing a required argument: 'order'"):
        await place.aio.enqueue()  # type: ignore[call-arg]
    assert await app.aio.run_worker(burst=True, handle_signals=False) == 6
    results: list[Any] = [handle.aio, later, *chains, *chains[0].stages]
    assert [await each.result(0) for each in results] == [order] * 6
    assert [chain.added for chain in chains] == [True, True]
    await app.aio.close()


def test_an_app_opens_again_after_it_was_closed_and_works_in_several_loops(url: str) -> None:
    app = App(url)
    known = app.job(name="add")(add)
    assert known.enqueue(1).added
    app.close()
    assert known.enqueue(2).added

    async def once() -> bool:
        async with app.aio:
            return (await known.aio.enqueue(3)).added

    assert asyncio.run(once())
    assert asyncio.run(once())
    app.close()


def test_a_client_of_one_flavour_serves_that_flavour(url: str) -> None:
    with servers.plain_client(url) as client:
        app = App(client)
        handle = app.enqueue("f", 1)
        assert handle.added

        async def other() -> None:
            await app.aio.enqueue("f", 1)

        with pytest.raises(BadTypeError, match=r"redis\.asyncio client"):
            asyncio.run(other())
        app.close()
        assert client.ping()


def test_a_delayed_job_is_promoted(shop: Shop) -> None:
    later = shop.enqueue(shop.fail.with_options(delay=3600), "at once")
    assert shop.flavour(later, "promote") is True
    assert shop.flavour(later, "promote") is False
    shop.flavour.burst()
    with pytest.raises(JobFailed, match="at once"):
        shop.flavour(later, "result", 0)


def test_a_dead_job_keeps_its_id_until_it_is_revived_or_purged(shop: Shop) -> None:
    chosen = shop.fail.with_options(id="order-7")
    first = shop.enqueue(chosen, "the first time")
    shop.flavour.burst()
    again = shop.enqueue(chosen, "another time")
    assert (first.added, again.added) == (True, False)
    assert shop.flavour(again, "status") == "failed"
    assert shop.flavour(again, "revive") is True
    assert shop.flavour(again, "revive") is False
    with pytest.raises(TimeoutError, match="it is ready"):  # not the old failure
        shop.flavour(again, "result", 0)
    shop.flavour.burst()
    with pytest.raises(JobFailed, match="the first time"):
        shop.flavour(again, "result", 0)
    assert shop.flavour(again, "purge") is True
    assert shop.flavour(again, "purge") is False
    third = shop.enqueue(chosen, "another time")
    assert third.added
    with pytest.raises(TimeoutError, match="it is ready"):
        shop.flavour(third, "result", 0)
    shop.flavour.burst()
    with pytest.raises(JobFailed, match="another time"):
        shop.flavour(third, "result", 0)


def test_a_producer_keeps_a_bounded_number_of_queues(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (aio_store, sync_store):
        monkeypatch.setattr(module, "MAX_QUEUES", 10)

    async def client_of_loop() -> Any:
        return for_asyncio(shop.app)._clients.aio

    asynchronous = shop.flavour.asynchronous
    client = shop.flavour.run(client_of_loop()) if asynchronous else shop.app._clients.sync
    held = client.store.queue("q0")
    for number in range(50):
        name = f"q{number}"
        handle = shop.enqueue(shop.add.with_options(queue=name), number)
        assert shop.flavour(handle, "status") == "ready"
        with pytest.raises(TimeoutError):
            shop.flavour(handle, "result", 0.001)
    assert len(client.store.queues) == 10
    assert len(client.waits) <= 10
    gc.collect()
    assert list(client.store._dropped) == [held]  # the App closes it
    assert shop.flavour.run(_added(held)) if asynchronous else held.add_item(leaseq.Item(b""))


async def _added(queue: Any) -> Any:
    return await queue.add_item(leaseq.Item(b""))


def test_a_call_of_a_function_with_a_context_that_is_not_annotated_says_so(url: str) -> None:
    app = App(url)

    @app.job(name="f")
    def f(ctx, a):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        return ctx, a

    with (
        app,
        pytest.raises(BadTypeError, match=r"annotate it: ctx: leaseq\.jobs"),
    ):
        f.enqueue(1)


def test_a_job_that_no_worker_takes_says_so(shop: Shop) -> None:
    job = shop.enqueue(shop.add, 1)
    with pytest.raises(
        TimeoutError, match="no worker has taken it from queue 'default'; `leaseq workers` shows"
    ):
        shop.flavour(job, "result", 0.01)
