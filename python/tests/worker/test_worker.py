"""The worker: what becomes of items, whatever their handlers do."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.background_worker import (
    TIMEOUT_SECS,
    BackgroundWorker,
    Latch,
    RecordingHooks,
    background_worker,
    start,
)
from support.redis_probe import EVALS, blocked, calls, load

import leaseq
import leaseq.worker
import leaseq.worker.aio
from leaseq import Item
from leaseq._scripts import SCRIPTS
from leaseq.worker import Backoff, DeadLetter, Hooks, Release, prefetch
from leaseq.worker._aio import worker_loop as aio_worker_loop
from leaseq.worker._sync import worker_loop as sync_worker_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis
    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener, When

"""Its scripts are those of the client, which is tested on all servers."""

HOUR = 3600.0


def until(check: Any) -> None:
    servers.wait_until(check, TIMEOUT_SECS)


def test_every_item_is_handled_once_and_completed_in_groups(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis
) -> None:
    queue.add_items(Item(b"x", id=f"i{n}") for n in range(2000))
    load(redis_client)
    redis_client.config_resetstat()
    handled: list[str] = []
    assert BackgroundWorker(flavour, queue, lambda item: handled.append(item.id), burst=True).result() == 2000
    assert sorted(handled) == sorted(f"i{n}" for n in range(2000))
    assert queue.stats().completed == 2000
    assert calls(redis_client, *EVALS) < 1000, "one by one, it would be at least 2001"


def test_what_a_handler_raises_decides(queue: Any, flavour: ClientFlavour) -> None:
    queue.add_items(Item(name, id=name) for name in ("fail", "retry", "dead", "chosen", "late", "back"))
    reasons: dict[str, BaseException] = {
        "fail": ZeroDivisionError("by nothing"),
        "retry": Release("later", delay=HOUR),
        "dead": DeadLetter("for a person"),
        "chosen": KeyError("no such"),
        "late": SystemExit(3),
        "back": Release(uncounted=True, delay=HOUR),
    }

    def handle(item: Any) -> None:
        raise reasons[item.id]

    recorded = RecordingHooks()
    done = BackgroundWorker(
        flavour,
        queue,
        handle,
        burst=True,
        backoff=Backoff(HOUR, HOUR),
        dead_letter_on=[KeyError],
        hooks=recorded,
    ).result()
    assert done == 0
    info = {name: queue.inspect(name) for name in reasons}
    assert {name: each.state for name, each in info.items()} == {
        "fail": "delayed",
        "retry": "delayed",
        "dead": "dead",
        "chosen": "dead",
        "late": "delayed",
        "back": "delayed",
    }
    assert info["fail"].error == "ZeroDivisionError: by nothing"
    assert info["retry"].error == "later"
    assert info["dead"].error == "for a person"
    assert info["chosen"].error == "KeyError: 'no such'"
    now = queue.stats().now
    assert HOUR / 2 - 60 < info["fail"].time - now <= HOUR
    assert HOUR - 60 < info["retry"].time - now <= HOUR
    assert info["back"].attempt == 0
    assert sorted(what[0] for what in recorded.of("dead_lettered")) == ["chosen", "dead"]
    assert {what[0] for what in recorded.of("released")} == {"fail", "retry", "late", "back"}


def test_an_item_dies_of_its_attempts(queue: Any, flavour: ClientFlavour) -> None:
    queue.add_item(Item(b"", id="a"))

    def handle(_: Any) -> None:
        raise ValueError("again")

    BackgroundWorker(flavour, queue, handle, burst=True, max_attempts=3, backoff=lambda _: 0.0).result()
    assert (queue.inspect("a").state, queue.inspect("a").attempt) == ("dead", 3)
    assert queue.inspect("a").error == "ValueError: again"


def test_hooks_hear_of_an_item_that_dies_of_the_attempts_that_it_was_added_with(
    queue: Any, flavour: ClientFlavour
) -> None:
    queue.add_item(Item(b"", id="a"), max_attempts=1)
    recorded = RecordingHooks()

    def handle(_: Any) -> None:
        raise ValueError("never again")

    BackgroundWorker(flavour, queue, handle, burst=True, hooks=recorded).result()
    assert queue.inspect("a").state == "dead"
    assert recorded.of("dead_lettered") == [("a", "ValueError: never again")]


def test_an_item_that_killed_its_workers_dies_unseen(queue: Any, flavour: ClientFlavour) -> None:
    """No worker was left to count: more attempts than allowed are behind it when it is leased."""
    queue.add_item(Item(b"", id="a"))
    for _ in range(2):
        item = queue.lease(30)
        queue.release(item)
    handled: list[str] = []
    BackgroundWorker(
        flavour, queue, lambda item: handled.append(item.id), burst=True, max_attempts=2
    ).result()
    assert handled == []
    assert queue.inspect("a").state == "dead"
    assert "leased 3 times" in queue.inspect("a").error


def test_what_a_handler_ended_itself_is_left_alone(queue: Any, flavour: ClientFlavour) -> None:
    queue.add_items([Item(b"", id="completed"), Item(b"", id="released"), Item(b"", id="block")])

    def end(item: Any) -> Any:
        if item.id == "completed":
            return item.queue.complete(item)
        if item.id == "released":
            return item.queue.release(item, delay=HOUR)
        return None

    async def end_async(item: Any) -> None:
        if item.id == "block":
            async with item:
                pass
        else:
            await end(item)

    def end_sync(item: Any) -> None:
        if item.id == "block":
            with item:
                pass
        else:
            end(item)

    assert (
        BackgroundWorker(
            flavour, queue, end_async if flavour.name == "asyncio" else end_sync, burst=True
        ).result()
        == 0
    )
    assert queue.inspect("released").state == "delayed"
    assert (queue.stats().completed, queue.stats().leased) == (2, 0)


def test_burst_ends_when_nothing_is_left_also_of_what_handlers_add(
    queue: Any, flavour: ClientFlavour
) -> None:
    queue.add_item(Item(b"", id="0"))

    async def handle_async(item: Any) -> None:
        if int(item.id) < 5:
            await item.queue.add_item(Item(b"", id=str(int(item.id) + 1)))

    def handle(item: Any) -> None:
        if int(item.id) < 5:
            item.queue.add_item(Item(b"", id=str(int(item.id) + 1)))

    assert (
        BackgroundWorker(
            flavour, queue, handle_async if flavour.name == "asyncio" else handle, burst=True
        ).result()
        == 6
    )


def test_a_burst_looks_again_when_the_last_handler_has_ended(queue: Any, flavour: ClientFlavour) -> None:
    """Also if the queue was empty when it looked while that handler ran."""
    handled: list[str] = []
    queue.add_items([Item(b"", id="short"), Item(b"", id="long")], keep=HOUR)
    latch = Latch()

    async def long_async(item: Any) -> None:
        if item.id == "long":
            await latch.wait_async()
            await item.queue.add_item(Item(b"", id="more"))
        handled.append(item.id)

    def long(item: Any) -> None:
        if item.id == "long":
            latch.wait()
            item.queue.add_item(Item(b"", id="more"))
        handled.append(item.id)

    handle = long_async if flavour.name == "asyncio" else long
    with background_worker(flavour, queue, handle, burst=True, concurrency=2) as work:
        latch.reached()
        until(lambda: queue.stats().completed == 1 and work.run._dry)
        latch.open()
        assert work.result() == 3
    assert handled == ["short", "long", "more"]


def test_slow_work_is_not_hoarded(queue: Any, flavour: ClientFlavour) -> None:
    """Nothing is measured before the first end, so nothing is leased beyond the slots."""
    queue.add_items(Item(b"") for _ in range(50))
    latch = Latch()
    with background_worker(flavour, queue, latch.handler(flavour), concurrency=3) as work:
        latch.reached(3)
        assert queue.stats().leased == 3
        latch.open()
        until(lambda: queue.stats().completed == 50)
        work.stop()
        assert work.result() == 50


def test_what_was_leased_ahead_goes_back_when_the_work_becomes_slow(
    queue: Any, flavour: ClientFlavour
) -> None:
    queue.add_items(Item(b"", id=f"fast{n}") for n in range(600))
    queue.add_items([Item(b"", id="slow"), *(Item(b"", id=f"next{n}") for n in range(200))])
    latch = Latch()
    slow = latch.handler(flavour)

    async def handle_async(item: Any) -> None:
        if item.id == "slow":
            await slow(item)  # type: ignore[misc]

    def handle(item: Any) -> None:
        if item.id == "slow":
            slow(item)

    handler = handle_async if flavour.name == "asyncio" else handle
    with background_worker(flavour, queue, handler, concurrency=1, max_attempts=1) as work:
        latch.reached()
        until(lambda: queue.stats().leased == 1)
        latch.open()
        until(lambda: queue.stats().completed == 801)
        work.stop()
    assert queue.stats().dead == 0, "what went back was not counted"


def test_all_that_is_held_is_extended_in_one_call(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis
) -> None:
    """LQ-CLIENT-3: the deadlines move, however many items there are."""
    queue.add_items(Item(b"", id=f"i{n}") for n in range(20))
    latch = Latch()
    with background_worker(flavour, queue, latch.handler(flavour), concurrency=20, lease_secs=HOUR) as work:
        latch.reached(20)
        load(redis_client)
        before = {listed.id: listed.time for listed in queue.list_items("leased").items}
        redis_client.config_resetstat()
        work.beat()
        assert calls(redis_client, *EVALS) == 1
        after = {listed.id: listed.time for listed in queue.list_items("leased").items}
        assert len(before) == 20
        assert all(after[item_id] > before[item_id] for item_id in before)
        latch.open()
        until(lambda: queue.stats().completed == 20)


def test_a_longer_extension_by_a_handler_stays(queue: Any, flavour: ClientFlavour) -> None:
    """LQ-CLIENT-13: the worker extends by what the handler asked for, and not back to its own time."""
    queue.add_items([Item(b"", id="longer"), Item(b"", id="usual")])
    latch = Latch()
    stand = latch.handler(flavour)

    async def handle_async(item: Any) -> None:
        if item.id == "longer":
            await item.queue.extend(item, 3 * HOUR)
        await stand(item)  # type: ignore[misc]

    def handle(item: Any) -> None:
        if item.id == "longer":
            item.queue.extend(item, 3 * HOUR)
        stand(item)

    handler = handle_async if flavour.name == "asyncio" else handle
    with background_worker(flavour, queue, handler, concurrency=2, lease_secs=HOUR) as work:
        latch.reached(2)
        work.beat()
        now = queue.stats().now
        left = {listed.id: listed.time - now for listed in queue.list_items("leased").items}
        assert left["longer"] > 2 * HOUR
        assert left["usual"] <= HOUR
        latch.open()
        until(lambda: queue.stats().completed == 2)


@pytest.mark.parametrize(
    ("when", "asked", "least"),
    [("before", 3 * HOUR, 2 * HOUR), ("after", 0.5 * HOUR, 0.75 * HOUR)],
    ids=["the handler's runs first", "the beat runs first"],
)
def test_a_beat_that_overlaps_an_extension_of_the_handler_is_repeated_at_once(
    *,
    flavour: ClientFlavour,
    redis_client: redis.Redis,
    proxy: Listener,
    producer: leaseq.WorkQueue,
    when: When,
    asked: float,
    least: float,
) -> None:
    """LQ-CLIENT-28: by the longer of both, however the server took the two. The next beat would come after 20 minutes."""
    load(redis_client)  # it is the reply of the script that is held
    items: list[Any] = []
    producer.add_item(Item(b"", id="a"))
    queue, latch = flavour.queue("q", proxy.url), Latch()
    handle = with_items(flavour, latch, items)
    with background_worker(flavour, queue, handle, lease_secs=HOUR) as work:
        latch.reached()
        proxy.proxy.learn_scripts({script.name: script.sha1 for script in SCRIPTS})
        held = proxy.add_breakpoint("extend", when)
        work.call(beat_now, work)
        held.wait()
        (item,) = items
        assert flavour.run(item.queue.extend(item, asked))
        held.resume()

        def is_extended() -> bool:
            if item.hold.under_way:
                return False
            (listed,) = producer.list_items("leased").items
            return listed.time - producer.stats().now > least

        until(is_extended)
        latch.open()
        until(lambda: producer.stats().completed == 1)


def with_items(flavour: ClientFlavour, latch: Latch, items: list[Any]) -> Callable[[Any], object]:
    """A handler that keeps its item, and then stands at a latch."""
    stand: Any = latch.handler(flavour)

    async def handle_async(item: Any) -> None:
        items.append(item)
        await stand(item)

    def handle(item: Any) -> None:
        items.append(item)
        stand(item)

    return handle_async if flavour.name == "asyncio" else handle


def beat_now(work: BackgroundWorker) -> None:
    """Have the worker's heart beat in its loop, as if it were time."""
    work.run.heartbeater._next_beat = 0.0
    work.run.heartbeater._wake_event.set()


def test_a_handler_whose_item_was_removed_is_told(queue: Any, flavour: ClientFlavour) -> None:
    """LQ-CLIENT-4: in asyncio it is cancelled, in threads `lost` is true. The others go on."""
    queue.add_items([Item(b"", id="gone"), Item(b"", id="stays")])
    latch, recorded, items, cancelled = Latch(), RecordingHooks(), {}, threading.Event()
    stand = latch.handler(flavour)

    async def handle_async(item: Any) -> None:
        items[item.id] = item
        try:
            await stand(item)  # type: ignore[misc]
        except asyncio.CancelledError:
            assert item.id == "gone"
            cancelled.set()
            raise

    def handle(item: Any) -> None:
        items[item.id] = item
        stand(item)

    in_tasks = flavour.name == "asyncio"
    with background_worker(flavour, queue, handle_async if in_tasks else handle, hooks=recorded) as work:
        latch.reached(2)
        assert queue.remove("gone") == "leased"
        work.beat()
        assert recorded.of("lost") == ["gone"]
        assert (items["gone"].lost, items["stays"].lost) == (True, False)
        assert not in_tasks or cancelled.wait(TIMEOUT_SECS)
        queue.add_item(Item(b"", id="next"))
        latch.open()
        until(lambda: queue.stats().completed == 2)
        work.stop()
        assert work.result() == 2
    assert recorded.of("lost") == ["gone"]


def test_no_handler_starts_whose_item_was_lost_while_it_waited(
    queue: Any, flavour: ClientFlavour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch.Prefetcher, "ahead", lambda _: 2)
    for module in (aio_worker_loop, sync_worker_loop):
        monkeypatch.setattr(module, "HOARD_SECS", HOUR)
    queue.add_items([Item(b"", id="works"), Item(b"", id="waits"), Item(b"", id="next")])
    latch, recorded = Latch(), RecordingHooks()
    with background_worker(flavour, queue, latch.handler(flavour), hooks=recorded, concurrency=1) as work:
        latch.reached()
        until(lambda: queue.stats().leased == 3)
        assert queue.remove("waits") == "leased"
        work.beat()
        latch.open()
        until(lambda: queue.stats().completed == 2)
        assert recorded.of("started") == ["works", "next"]
        assert recorded.of("lost") == ["waits"]


def test_a_handler_has_its_time(queue: Any, flavour: ClientFlavour) -> None:
    """The item goes back when the time is over; in asyncio the handler is cancelled, in threads it runs on."""
    queue.add_item(Item(b"", id="a"))
    latch = Latch()
    backoff = Backoff(HOUR, HOUR)
    # no heartbeat comes that would look at the time as well
    options: Any = {"time_limit": 0.05, "lease_secs": 9 * HOUR, "backoff": backoff}
    with background_worker(flavour, queue, latch.handler(flavour), **options) as work:
        until(lambda: queue.inspect("a").state == "delayed")
        assert queue.inspect("a").error == "TimeoutError: took longer than 0.05 seconds"
        latch.open()
        work.stop()
        assert work.result() == (0 if flavour.name == "asyncio" else 1), "work that is done is done"


async def test_each_handler_of_a_slot_has_its_time(url: str) -> None:
    """The second handler is ended as the first was, and a failure in time keeps its own error."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        await queue.add_items(Item(b"", id=name) for name in ("first", "second", "fails"))

        async def handle(item: leaseq.aio.LeasedItem) -> None:
            if item.id == "fails":
                raise ValueError("no")
            await asyncio.sleep(HOUR)

        options: Any = {"time_limit": 0.05, "burst": True, "announce": False, "handle_signals": False}
        worker = leaseq.worker.aio.Worker(queue, handle, concurrency=1, backoff=HOUR, **options)
        assert await asyncio.wait_for(worker.run(), TIMEOUT_SECS) == 0
        late = "TimeoutError: took longer than 0.05 seconds"
        errors = [(await queue.inspect(name)).error for name in ("first", "second", "fails")]
        assert errors == [late, late, "ValueError: no"]


def test_a_handler_is_ended_when_its_own_time_is_over(queue: Any, flavour: ClientFlavour) -> None:
    """A handler that started between two looks at the clock is looked at when its time is over, and not a whole time later."""
    latch = Latch()
    queue.add_item(Item(b""))
    with background_worker(
        flavour, queue, latch.handler(flavour), time_limit=HOUR, lease_secs=9 * HOUR
    ) as work:
        latch.reached()
        began = work.run._pool.oldest_start()
        pauses = [work.call(work.run.heartbeater._pause, began + secs) for secs in (0.0, 600.0, 2 * HOUR)]
        assert pauses == pytest.approx([HOUR, HOUR - 600, 0.0])
        latch.open()
        until(lambda: queue.stats().completed == 1)


def test_at_most_once_completes_first(flavour: ClientFlavour, url: str) -> None:
    queue, look = flavour.queue("q", url), leaseq.WorkQueue("q", url)
    queue.add_items(Item(b"", id=f"i{n}") for n in range(30))
    states: list[str] = []

    def handle(item: Any) -> None:
        states.append(look.inspect(item.id).state)
        raise ValueError("once is enough")

    assert BackgroundWorker(flavour, queue, handle, burst=True, at_most_once=True).result() == 30
    assert states == ["absent"] * 30
    assert queue.stats().items == 0
    look.close()


@pytest.mark.parametrize("names", ["q", "ab"], ids=["one queue", "two queues"])
def test_at_most_once_completes_first_what_it_waited_for(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, names: str
) -> None:
    """An idle worker too: it hands out what comes, which no handler has before it is completed."""
    queues = [flavour.queue(name, url) for name in names]
    states: list[str] = []
    with contextlib.ExitStack() as opened:
        looks = {name: opened.enter_context(leaseq.WorkQueue(name, url)) for name in names}

        def handle(item: Any) -> None:
            states.append(looks[item.queue.name].inspect(item.id).state)

        options: Any = {"at_most_once": True, "lease_secs": HOUR}
        opened.enter_context(background_worker(flavour, queues, handle, **options))
        for count, look in enumerate([*looks.values()] * 2, 1):
            blocked(redis_client, len(names))
            look.add_item(Item(b""))
            until(lambda count=count: len(states) == count)
    assert states == ["absent"] * 2 * len(names)


def test_at_most_once_takes_no_item_ahead(flavour: ClientFlavour, url: str) -> None:
    """An item that no handler has started is completed by nothing, also behind many quick ones."""
    queue = flavour.queue("q", url)
    queue.add_items(Item(b"", id=f"i{n}") for n in range(200))
    handled, hangs, go = [], threading.Event(), threading.Event()

    def note(item: Any) -> bool:
        handled.append(item.id)
        if len(handled) == 50:
            hangs.set()
        return len(handled) == 50

    def handle(item: Any) -> None:
        if note(item):
            go.wait(TIMEOUT_SECS)

    async def handle_async(item: Any) -> None:
        if note(item):
            await asyncio.to_thread(go.wait, TIMEOUT_SECS)

    handler: Any = handle_async if flavour.name == "asyncio" else handle
    work = BackgroundWorker(flavour, queue, handler, burst=True, at_most_once=True, concurrency=1)
    assert hangs.wait(TIMEOUT_SECS)
    stats = queue.stats()
    go.set()
    assert work.result() == 200
    assert (stats.ready, stats.leased) == (150, 0)


def test_at_most_once_runs_what_it_has_completed_also_when_it_is_stopped_then(
    queue: Any, flavour: ClientFlavour
) -> None:
    """No other worker can run them: they are completed."""
    queue.add_items(Item(b"", id=f"i{n}") for n in range(6))
    handled: list[str] = []

    class Stops(Hooks):
        work: BackgroundWorker

        def completed(self, item: Any) -> None:
            if not self.work.run.stopping:  # a second stop ends it at once
                self.work.worker.stop()

    hooks, ready = Stops(), threading.Event()

    class Waits(Hooks):
        def leased(self, items: Any) -> None:
            assert ready.wait(TIMEOUT_SECS)

    options: Any = {"at_most_once": True, "concurrency": 3, "hooks": [Waits(), hooks], "grace_secs": HOUR}
    with background_worker(flavour, queue, lambda item: handled.append(item.id), **options) as work:
        hooks.work = work
        ready.set()
        assert work.result() == 3
    assert len(handled) == 3
    assert (queue.stats().completed, queue.stats().ready) == (3, 3)


def test_at_most_once_skips_what_it_could_not_complete(flavour: ClientFlavour, url: str) -> None:
    """Also often: they take no place of a handler."""
    queue, other = flavour.queue("q", url), leaseq.WorkQueue("q", url)
    ids = [f"{number} {what}" for number in range(4) for what in ("gone", "stays")]
    queue.add_items([Item(b"", id=each) for each in ids])
    handled: list[str] = []

    class Rival(Hooks):
        def leased(self, items: Any) -> None:
            other.remove_items([item.id for item in items if "gone" in item.id])

    options: Any = {"burst": True, "at_most_once": True, "hooks": Rival(), "concurrency": 1}
    assert BackgroundWorker(flavour, queue, lambda item: handled.append(item.id), **options).result() == 4
    assert handled == ids[1::2]
    other.close()


def test_stop_lets_handlers_finish_and_leases_no_more(queue: Any, flavour: ClientFlavour) -> None:
    queue.add_items(Item(b"") for _ in range(10))
    latch = Latch()
    with background_worker(flavour, queue, latch.handler(flavour), concurrency=2, grace_secs=HOUR) as work:
        latch.reached(2)
        work.stop()
        latch.open()
        assert work.result() == 2
    stats = queue.stats()
    assert (stats.completed, stats.ready, stats.leased) == (2, 8, 0)


def test_drain_waits_beyond_the_grace_time(queue: Any, flavour: ClientFlavour) -> None:
    queue.add_items(Item(b"") for _ in range(10))
    latch = Latch()
    with background_worker(flavour, queue, latch.handler(flavour), concurrency=2, grace_secs=0) as work:
        latch.reached(2)
        work.call(work.worker.drain)
        servers.wait_until(lambda: queue.stats().leased == 2, TIMEOUT_SECS)  # the others went back
        latch.open()
        assert work.result() == 2
    stats = queue.stats()
    assert (stats.completed, stats.ready, stats.leased) == (2, 8, 0)


def test_a_stop_ends_a_drain(queue: Any, flavour: ClientFlavour) -> None:
    queue.add_item(Item(b"", id="a"))
    latch = Latch()
    with background_worker(flavour, queue, latch.handler(flavour), grace_secs=0) as work:
        latch.reached()
        work.call(work.worker.drain)
        work.stop()
        assert work.result() == 0
        assert (queue.inspect("a").state, queue.inspect("a").attempt) == ("ready", 0)
        latch.open()


@pytest.mark.promise("G15")
@pytest.mark.parametrize("how", ["grace is over", "a second stop", "at once"])
def test_what_does_not_finish_goes_back_uncounted(queue: Any, flavour: ClientFlavour, how: str) -> None:
    queue.add_items([Item(b"", id="a"), Item(b"", id="b")])
    latch = Latch()
    grace = 0.05 if how == "grace is over" else HOUR
    with background_worker(flavour, queue, latch.handler(flavour), grace_secs=grace) as work:
        latch.reached(2)
        work.stop(at_once=how == "at once")
        if how == "a second stop":
            work.stop()
        assert work.result() == 0
        assert [(queue.inspect(name).state, queue.inspect(name).attempt) for name in "ab"] == [
            ("ready", 0)
        ] * 2
        latch.open()


def test_an_idle_worker_stops(flavour: ClientFlavour, url: str) -> None:
    """A worker that waits without limit stops. An item that is added later is leased by another worker, not by that wait."""
    queue, blocked = flavour.queue("q", url), leaseq.WorkQueue("q", url)
    with background_worker(flavour, queue, lambda _: None) as work:
        queue.add_item(Item(b""))
        until(lambda: queue.stats().completed == 1)
        work.stop()
        assert work.result() == 1
    queue.add_item(Item(b"", id="later"))
    item = blocked.lease(30, timeout=TIMEOUT_SECS)
    assert item is not None
    blocked.close()


@pytest.mark.usefixtures("cap_of_an_hour")
def test_an_idle_worker_of_several_groups_stops(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str
) -> None:
    """A worker that waits on one connection for each group stops, and leaves none of these waits behind."""
    before = set(threading.enumerate())
    queues = [flavour.queue(name, url) for name in "abc"]
    with background_worker(flavour, queues, lambda _: None) as work:
        until(lambda: redis_client.info("clients")["blocked_clients"] == len(queues))
        work.stop()
        assert work.result() == 0
    ours = {"leaseq", "leaseq worker"}
    until(lambda: not [each for each in set(threading.enumerate()) - before if each.name in ours])
    until(lambda: redis_client.info("clients")["blocked_clients"] == 0)
    for queue in queues:
        queue.add_item(Item(b"", id="later"))
        assert queue.lease(30, block=False) is not None


def test_a_worker_can_be_stopped_before_it_runs_and_run_again(queue: Any, flavour: ClientFlavour) -> None:
    queue.add_item(Item(b""))
    module: Any = leaseq.worker.aio if flavour.name == "asyncio" else leaseq.worker
    real: Any = getattr(queue, "real", queue)

    async def handle_async(_: Any) -> None: ...

    handler: Any = handle_async if flavour.name == "asyncio" else lambda _: None
    worker = module.Worker(real, handler, burst=True, handle_signals=False)
    worker.stop()
    assert start(flavour, worker).result(TIMEOUT_SECS) == 0
    assert start(flavour, worker).result(TIMEOUT_SECS) == 1


def test_a_worker_can_be_told_to_drain_before_it_runs_and_run_again(
    queue: Any, flavour: ClientFlavour
) -> None:
    queue.add_item(Item(b""))
    module: Any = leaseq.worker.aio if flavour.name == "asyncio" else leaseq.worker

    async def handle_async(_: Any) -> None: ...

    handler: Any = handle_async if flavour.name == "asyncio" else lambda _: None
    worker = module.Worker(getattr(queue, "real", queue), handler, burst=True, handle_signals=False)
    worker.drain()
    assert [start(flavour, worker).result(TIMEOUT_SECS) for _ in range(2)] == [0, 1]


def test_a_worker_that_runs_is_not_run_once_more(queue: Any, flavour: ClientFlavour) -> None:
    latch = Latch()
    queue.add_item(Item(b""))
    with background_worker(flavour, queue, latch.handler(flavour)) as work:
        latch.reached()
        with pytest.raises(leaseq.LeaseqError, match="runs already"):
            start(flavour, work.worker).result(TIMEOUT_SECS)
        latch.open()
        until(lambda: queue.stats().completed == 1)
        work.stop()
        assert work.result() == 1


def test_a_closed_queue_ends_the_worker_with_an_error(queue: Any, flavour: ClientFlavour) -> None:
    with background_worker(flavour, queue, lambda _: None) as work:
        queue.add_item(Item(b""))
        until(lambda: queue.stats().completed == 1)
        queue.close()
        with pytest.raises(leaseq.QueueClosedError):
            work.result()


def test_several_queues(flavour: ClientFlavour, url: str) -> None:
    queues = [flavour.queue(name, url, group="g") for name in ("a", "b")] + [flavour.queue("c", url)]
    for queue in queues:
        queue.add_items(Item(b"x") for _ in range(40))
    with background_worker(flavour, queues, lambda _: None) as work:
        until(lambda: all(queue.stats().completed == 40 for queue in queues))
        queues[2].add_item(Item(b"x"))
        until(lambda: queues[2].stats().completed == 41)
        work.stop()
        assert work.result() == 121
    fair = flavour.queues(queues, fair=True)
    for queue in queues:
        queue.add_item(Item(b"x"))
    assert BackgroundWorker(flavour, fair, lambda _: None, burst=True).result() == 3


@pytest.mark.parametrize("fair", [False, True])
def test_a_queue_that_is_never_empty_keeps_a_fair_worker_from_no_other(
    flavour: ClientFlavour, url: str, *, fair: bool
) -> None:
    busy, rare = (flavour.queue(name, url, group="g") for name in ("busy", "rare"))
    busy.add_items(Item(b"") for _ in range(200))
    rare.add_item(Item(b""))
    order: list[str] = []
    queues = flavour.queues([busy, rare], fair=fair)
    work = BackgroundWorker(
        flavour,
        queues,
        lambda item: order.append(item.queue.name),
        burst=True,
        concurrency=1,
        at_most_once=True,
    )
    assert work.result() == 201
    assert (order.index("rare") < 200) == fair, order.index("rare")


def test_hooks_are_told_everything_and_cannot_do_harm(queue: Any, flavour: ClientFlavour) -> None:
    queue.add_items([Item(b"", id="good"), Item(b"", id="bad")])

    def handle(item: Any) -> None:
        if item.id == "bad":
            raise ValueError("no")

    recorded = RecordingHooks()
    BackgroundWorker(flavour, queue, handle, hooks=recorded, burst=True, backoff=lambda _: HOUR).result()
    # what waits for a thread of a machine that stalls goes back, and is leased again
    assert {name for names in recorded.of("leased") for name in names} == {"bad", "good"}
    assert sorted(recorded.of("started")) == ["bad", "good"]
    assert sorted(recorded.of("ended")) == [("bad", "no"), ("good", None)]
    assert recorded.of("completed") == ["good"]
    assert recorded.of("released") == [("bad", HOUR, "ValueError: no")]

    class Broken(Hooks):
        def leased(self, items: Any) -> None:
            raise RuntimeError("hook")

        def around(self, item: Any) -> Any:
            raise RuntimeError("hook")

    queue.add_item(Item(b""))
    assert BackgroundWorker(flavour, queue, lambda _: None, hooks=Broken(), burst=True).result() == 1


@pytest.mark.parametrize("ending", ["returned", "raised"])
def test_hooks_hear_of_a_lease_that_was_found_lost_at_its_end(
    queue: Any, flavour: ClientFlavour, ending: str
) -> None:
    queue.add_item(Item(b"", id="a"))
    latch, recorded = Latch(), RecordingHooks()

    def end(_: Any) -> None:
        if ending == "raised":
            raise ValueError("no")

    handler = latch.handler(flavour, end)
    with background_worker(flavour, queue, handler, hooks=recorded, lease_secs=HOUR) as work:
        latch.reached()
        assert queue.remove("a") == "leased"
        latch.open()
        until(lambda: recorded.of("lost") == ["a"])
        work.stop()
        assert work.result() == 0
    assert (recorded.of("completed"), recorded.of("released")) == ([], [])
    assert recorded.of("lost") == ["a"]


def test_an_item_whose_work_is_not_done_fails(queue: Any, flavour: ClientFlavour) -> None:
    queue.add_items(Item(b"", id=name) for name in ("generator", "coroutine", "value"))
    waiting = asyncio.sleep(0)
    answers: dict[str, object] = {
        "generator": (number for number in range(3)),
        "coroutine": waiting,
        "value": 7,
    }
    recorded = RecordingHooks()
    done = BackgroundWorker(
        flavour, queue, lambda item: answers[item.id], burst=True, backoff=Backoff(HOUR, HOUR), hooks=recorded
    ).result()
    waiting.close()
    assert done == 1
    assert "the handler returned a generator" in queue.inspect("generator").error
    assert "the handler returned coroutine, which nothing awaits" in queue.inspect("coroutine").error
    assert queue.inspect("value").state == "absent"
