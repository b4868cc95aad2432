"""Each option of a worker, other than by default: a dropped option shows here."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.background_worker import (
    TIMEOUT_SECS,
    BackgroundWorker,
    Latch,
    RecordingHooks,
    background_worker,
)

import leaseq.worker.aio.registry
import leaseq.worker.registry
from leaseq import Item
from leaseq.worker import Backoff, Release, Worker

if TYPE_CHECKING:
    from support.client_flavours import ClientFlavour

HOUR = 3600.0
DAY = 24 * HOUR


def until(check: Any) -> None:
    servers.wait_until(check, TIMEOUT_SECS)


def fail(item: Any) -> None:
    raise KeyError(item.id)


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (HOUR, [HOUR, HOUR, HOUR]),
        ("2h", [2 * HOUR] * 3),
        (timedelta(hours=3), [3 * HOUR] * 3),
        ([HOUR, timedelta(hours=5)], [HOUR, 5 * HOUR, 5 * HOUR]),
        (lambda attempt: attempt * HOUR, [HOUR, 2 * HOUR, 3 * HOUR]),
    ],
    ids=["number", "text", "timedelta", "list", "function"],
)
def test_a_failed_item_waits_as_the_backoff_says(
    queue: Any, flavour: ClientFlavour, redis_client: Any, backoff: Any, delays: list[float]
) -> None:
    queue.add_item(Item(b"", id="a"))
    for delay in delays:
        before = queue.stats().now
        BackgroundWorker(flavour, queue, fail, backoff=backoff, burst=True).result()
        assert before + delay - 0.001 <= queue.inspect("a").time <= queue.stats().now + delay
        redis_client.zadd("leaseq:{q}:q:delayed", {"a": 1.0})
        redis_client.delete("leaseq:{q}:q:state")  # which knows when to look next
    assert queue.inspect("a").attempt == 3


def test_the_default_backoff_doubles_up_to_its_last(
    queue: Any, flavour: ClientFlavour, redis_client: Any
) -> None:
    queue.add_item(Item(b"", id="a"))
    for most in (40 * HOUR, 80 * HOUR, 100 * HOUR, 100 * HOUR):
        before = queue.stats().now
        backoff = Backoff(40 * HOUR, 100 * HOUR)
        BackgroundWorker(flavour, queue, fail, backoff=backoff, burst=True).result()
        assert before + most / 2 - 0.001 <= queue.inspect("a").time <= queue.stats().now + most
        redis_client.zadd("leaseq:{q}:q:delayed", {"a": 1.0})
        redis_client.delete("leaseq:{q}:q:state")


@pytest.mark.parametrize("raised", [KeyError("no"), Release("no", delay=0)], ids=["failure", "release"])
@pytest.mark.parametrize(
    ("of_worker", "of_item", "attempts"), [(1, None, 1), (3, None, 3), (3, 2, 2), (2, 5, 2), (0, 4, 4)]
)
def test_the_lowest_limit_of_attempts_counts(
    queue: Any,
    flavour: ClientFlavour,
    of_worker: int,
    of_item: int | None,
    attempts: int,
    raised: Exception,
) -> None:
    seen: list[int] = []

    def handle(item: Any) -> None:
        seen.append(item.attempt)
        raise raised

    queue.add_item(Item(b"", id="a"), max_attempts=of_item)
    backoff = HOUR if isinstance(raised, Release) else 0
    options: Any = {"max_attempts": of_worker, "backoff": backoff, "burst": True}
    BackgroundWorker(flavour, queue, handle, **options).result()
    assert seen == list(range(1, attempts + 1))
    info = queue.inspect("a")
    assert (info.state, info.attempt) == ("dead", attempts)
    assert "no" in info.error
    assert "leased" not in info.error


def test_a_release_that_does_not_count_is_never_the_last(queue: Any, flavour: ClientFlavour) -> None:
    def handle(item: Any) -> None:
        raise Release("later", delay=HOUR, uncounted=True)

    queue.add_item(Item(b"", id="a"))
    BackgroundWorker(flavour, queue, handle, max_attempts=1, burst=True).result()
    info = queue.inspect("a")
    assert (info.state, info.attempt, info.error) == ("delayed", 0, "later")


@pytest.mark.parametrize(
    "kinds",
    [LookupError, (ValueError, LookupError), [KeyError]],
    ids=["base", "tuple", "list"],
)
def test_chosen_exceptions_and_their_kinds_are_death(queue: Any, flavour: ClientFlavour, kinds: Any) -> None:
    def handle(item: Any) -> None:
        raise KeyError(item.id) if item.id == "dies" else OSError(item.id)

    queue.add_items([Item(b"", id="dies"), Item(b"", id="fails")])
    options: Any = {"dead_letter_on": kinds, "backoff": HOUR, "burst": True}
    BackgroundWorker(flavour, queue, handle, **options).result()
    assert [queue.inspect(name).state for name in ("dies", "fails")] == ["dead", "delayed"]


@pytest.mark.parametrize("lease_secs", [2 * HOUR, timedelta(hours=2)], ids=["number", "timedelta"])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_leases_are_as_long_and_as_many_as_asked_for(
    queue: Any, flavour: ClientFlavour, lease_secs: Any, concurrency: int
) -> None:
    """An extension has the same length."""
    queue.add_items(Item(b"", id=f"{number}") for number in range(5))
    latch = Latch()
    handle = latch.handler(flavour)
    with background_worker(flavour, queue, handle, lease_secs=lease_secs, concurrency=concurrency) as work:
        latch.reached(concurrency)
        leased = queue.list_items("leased").items
        assert len(leased) == concurrency  # nothing is leased ahead of what was not measured
        now = queue.stats().now
        assert all(2 * HOUR - 60 < entry.time - now <= 2 * HOUR for entry in leased)
        work.beat()
        assert all(
            later.time > before.time
            for later, before in zip(queue.list_items("leased").items, leased, strict=True)
        )
        latch.open()
        until(lambda: queue.stats().completed == 5)


@pytest.mark.parametrize("form", ["one", "list", "tuple", "iterator"])
def test_hooks_are_one_or_several(queue: Any, flavour: ClientFlavour, form: str) -> None:
    queue.add_item(Item(b"", id="a"))
    hooks = [RecordingHooks() for _ in range(1 if form == "one" else 2)]
    given: Any = {"one": hooks[0], "list": hooks, "tuple": tuple(hooks), "iterator": iter(hooks)}[form]
    BackgroundWorker(flavour, queue, lambda _: None, hooks=given, burst=True).result()
    assert [each.of("completed") for each in hooks] == [["a"]] * len(hooks)


def test_each_run_counts_anew(queue: Any, flavour: ClientFlavour) -> None:
    work = BackgroundWorker(flavour, queue, lambda _: None, burst=True)
    assert work.result() == 0
    for count in (3, 1):
        queue.add_items(Item(b"") for _ in range(count))
        assert flavour.run(work.worker.run()) == count
    assert work.worker.readiness == "starting"
    assert work.worker.answered_at is None


@pytest.mark.parametrize("handles", [False, True])
def test_signals_are_as_before_when_it_has_ended(url: str, *, handles: bool) -> None:
    seen: list[Any] = []
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    with leaseq.WorkQueue("q", url) as queue:
        for _ in range(2):
            queue.add_item(Item(b""))

            def handle(_: Any) -> None:
                seen.append([signal.getsignal(number) for number in numbers] == before)

            assert Worker(queue, handle, burst=True, handle_signals=handles, announce=False).run() == 1
            assert [signal.getsignal(number) for number in numbers] == before
    assert seen == [not handles] * 2


def test_a_live_worker_says_all_of_itself(flavour: ClientFlavour, url: str) -> None:
    module: Any = leaseq.worker.aio.registry if flavour.name == "asyncio" else leaseq.worker.registry
    queues = [flavour.queue("a", url, group="shop"), flavour.queue("b", url)]
    latch = Latch()
    handle = latch.handler(flavour)
    queues[0].add_items(Item(b"", id=f"{number}") for number in range(2))
    queues[1].add_item(Item(b"", id="third"))
    with background_worker(flavour, queues, handle, announce=True, concurrency=5, grace_secs=HOUR) as work:
        latch.reached(3)
        work.call(work.run.presence_reporter.announce)
        (info,) = flavour.run(module.live_workers(url))
        assert (info.id, info.concurrency, info.completed) == (work.worker.id, 5, 0)
        assert (info.state, info.stopping) == ("busy", False)
        assert info.queues == (("shop", "a"), ("b", "b"))
        assert {(item.group, item.queue, item.id, item.attempt) for item in info.items} == {
            ("shop", "a", "0", 1),
            ("shop", "a", "1", 1),
            ("b", "b", "third", 1),
        }
        assert all(0 <= item.seconds < TIMEOUT_SECS for item in info.items)
        latch.open()
        until(lambda: sum(queue.stats().completed for queue in queues) == 3)
        until(lambda: not work.run.in_flight.held())
        work.call(work.run.presence_reporter.announce)
        (info,) = flavour.run(module.live_workers(url))
        assert (info.state, info.completed, info.held, info.items) == ("idle", 3, 0, ())
    assert flavour.run(module.live_workers(url)) == []
