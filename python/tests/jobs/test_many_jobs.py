"""Many jobs at a time: each has its own options and its own answer, in whichever call it goes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import JobAppFlavour, until
from support.servers import TIMEOUT_SECS

import leaseq
from leaseq.errors import BadArgumentError, QueueFullError, ReplyLostError
from leaseq.jobs import App, SerializationError
from leaseq.jobs.store._aio import client as aio_client
from leaseq.jobs.store._sync import client as sync_client

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

    from leaseq_conformance.fault_proxy import Listener

HOUR = 3600.0
NOTE = "leaseq:{jobs}:default:cancelled:"


@pytest.fixture(params=[False, True], ids=["threads", "asyncio"])
def flavour(request: pytest.FixtureRequest, url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=request.param) as made:
        made.app.job(name="f", retries=0)(work)
        yield made


def work(number: int) -> int:
    if number < 0:
        raise ValueError(number)
    return number


def test_each_of_more_than_a_call_takes_has_its_own_status(
    flavour: JobAppFlavour, redis_client: redis.Redis
) -> None:
    for number in (3, 299):
        redis_client.set(f"{NOTE}{number}", '{"v":1,"cancelled":1}')
    handles = [flavour.app.handle(str(number), "default") for number in range(300)]
    expected = ["cancelled" if number in {3, 299} else "unknown" for number in range(300)]
    assert flavour(flavour.app, "statuses", handles) == expected
    infos = flavour(flavour.app, "inspect_jobs", handles)
    assert [info.id for info in infos] == [handle.id for handle in handles]
    assert [info.status for info in infos] == expected


def test_where_a_later_call_fails_the_error_has_the_answers_of_all(flavour: JobAppFlavour) -> None:
    flavour.app.queue().configure(max_items=280)
    f = flavour.app.function("f")
    with pytest.raises(QueueFullError) as raised:
        flavour(flavour.app, "enqueue_many", [f.call(number) for number in range(300)])
    assert raised.value.answers == [True] * 280 + [None] * 20


def test_the_answers_of_earlier_queues_are_in_the_error_too(flavour: JobAppFlavour) -> None:
    """LQ-CLIENT-2: in the order of the calls; what has no answer is None."""
    flavour.app.queue("small").configure(max_items=1)
    f = flavour.app.function("f")
    small = f.with_options(queue="small")
    with pytest.raises(QueueFullError) as raised:
        flavour(flavour.app, "enqueue_many", [small.call(1), f.call(2), small.call(3), f.call(4)])
    assert raised.value.answers == [True, None, None]
    flavour.app.queue("small").configure(max_items=0)
    flavour.app.queue().configure(max_items=1)
    with pytest.raises(QueueFullError) as raised:
        flavour(flavour.app, "enqueue_many", [small.call(1), f.call(2), small.call(3), f.call(4)])
    assert raised.value.answers == [True, True, True, None]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["threads", "asyncio"])
def test_all_jobs_of_a_call_without_a_reply_are_in_doubt(
    proxy: Listener, redis_client: redis.Redis, *, asynchronous: bool
) -> None:
    """LQ-CLIENT-2: of 300 jobs, the 256 of the first call."""
    with JobAppFlavour(App(proxy.url), asynchronous=asynchronous) as flavour:
        flavour.app.job(name="f")(work)
        function = flavour.app.function("f")
        flavour(function, "enqueue", 0)
        proxy.discard_replies = True
        with ThreadPoolExecutor(1) as pool:
            jobs = pool.submit(flavour, flavour.app, "enqueue_many", [function.call(1) for _ in range(300)])
            until(lambda: redis_client.hlen("leaseq:{jobs}:default:items") > 1)
            proxy.reset()
            with pytest.raises(ReplyLostError) as raised:
                jobs.result(60)
    assert (raised.value.answers, raised.value.in_doubt) == ([], 256)


@pytest.mark.parametrize("limit", [0, 257])
def test_a_page_of_jobs_has_at_most_256(flavour: JobAppFlavour, limit: int) -> None:
    with pytest.raises(BadArgumentError, match=r"limit 1 to 256: not 0 and"):
        flavour(flavour.app, "jobs", "ready", limit=limit)


def test_among_several_one_counts_its_expiry_from_its_time(flavour: JobAppFlavour) -> None:
    f, queue = flavour.app.function("f"), flavour.app.queue()
    now = queue.stats().now
    calls = [f.call(1), f.with_options(at=now + HOUR, expires=60).call(2), f.with_options(expires=50).call(3)]
    first, second, third = flavour(flavour.app, "enqueue_many", calls)
    assert abs(queue.inspect(second.id).expires - now - HOUR - 60) < 10
    for handle, expires in ((first, 24 * HOUR), (third, 50)):
        item = queue.inspect(handle.id)
        assert abs(item.expires - item.created - expires) < 1


def test_pages_of_results_leave_failures_out(flavour: JobAppFlavour, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (aio_client, sync_client):
        monkeypatch.setattr(module, "MAX_ENTRIES", 2)  # of the list of outcomes, in one call
    f = flavour.app.function("f")
    numbers = [-1, 1, 2, -3, -4, 5, -6, 7, 8]
    calls = [f.with_options(keep=1000 + place).call(number) for place, number in enumerate(numbers)]
    flavour.app.enqueue_many(calls)
    flavour.burst()
    good = [number for number in numbers if number > 0]

    def page(offset: int, limit: int) -> list[Any]:
        found = flavour(flavour.app, "jobs", "succeeded", offset=offset, limit=limit)
        return [info.result for info in found]

    assert [page(offset, 2) for offset in range(6)] == [good[offset : offset + 2] for offset in range(6)]
    assert page(3, 1) == [7]


def test_many_calls_are_sent_if_none_is_refused(flavour: JobAppFlavour) -> None:
    """A value is written when the call is sent: it may have changed since the call was made."""
    changed: list[object] = []
    flavour.app.job(name="g")(lambda values: values)
    first, second = (flavour.app.function(name).with_options(queue=name) for name in ("f", "g"))
    calls = [first.call(1), second.call(changed)]
    changed.append(object())
    with pytest.raises(SerializationError):
        flavour(flavour.app, "enqueue_many", calls)
    assert flavour.app.queue("f").stats().items == 0


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_job_that_ends_while_it_is_cancelled_was_not(
    proxy: Listener, url: str, *, asynchronous: bool
) -> None:
    """Between the look at its state and its removal. No note of a cancellation stays behind (spec/jobs.md, Notes)."""
    with JobAppFlavour(App(proxy.url), asynchronous=asynchronous) as flavour, ThreadPoolExecutor(1) as pool:
        job = flavour(flavour.app.job(name="f", keep=0)(lambda: 1), "enqueue")
        point = proxy.add_breakpoint("MULTI")
        cancelling = pool.submit(flavour, job, "cancel")
        point.wait()
        with leaseq.WorkQueue("default", url, group="jobs") as queue:
            item = queue.lease(30, block=False)
            assert item is not None
            assert queue.complete(item)
        point.resume()
        assert not cancelling.result(TIMEOUT_SECS)
        assert flavour(job, "status") == "unknown"
