"""The worker while servers restart, forget scripts and fail over, and networks swallow answers: it goes on."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

import pytest
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.sentinel import Sentinel
from support import servers
from support.background_worker import TIMEOUT_SECS, BackgroundWorker, Latch, RecordingHooks, background_worker
from support.redis_probe import blocked, load

import leaseq.worker
import leaseq.worker.aio
from leaseq import Item
from leaseq.worker import Hooks, server_health
from leaseq.worker._aio import source as async_source
from leaseq.worker._sync import source as sync_source

if TYPE_CHECKING:
    import redis
    from support.client_flavours import ClientFlavour
    from support.sentinel_set import SentinelSet

    from leaseq_conformance.fault_proxy import Listener

HOUR = 3600.0


def until(check: Any) -> None:
    servers.wait_until(check, TIMEOUT_SECS)


@pytest.mark.promise("G14")
def test_a_restarted_server_is_worked_for_again(
    flavour: ClientFlavour, own_server: servers.StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Killed while one handler runs and the worker waits: the item is completed, the next is leased; one line each."""
    caplog.set_level(logging.INFO, "leaseq.worker")
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    queue = flavour.queue("q", server.url)
    queue.add_item(Item(b"", id="before"))
    latch, recorded = Latch(), RecordingHooks()
    with background_worker(flavour, queue, latch.handler(flavour), hooks=recorded, lease_secs=HOUR) as work:
        latch.reached()
        with server.client() as client:
            blocked(client, 1)
        server.kill()
        latch.open()
        until(lambda: recorded.of("server_away"))
        server.start()
        with leaseq.WorkQueue("q", server.url) as producer:
            producer.add_item(Item(b"", id="after"))
            until(lambda: producer.stats().completed == 2)
        until(lambda: recorded.of("server_back"))
        work.stop()
        assert work.result() == 2
    assert sorted(recorded.of("completed")) == ["after", "before"]
    assert (
        len(recorded.of("server_away"))
        == len(recorded.of("server_back"))
        == caplog.text.count("goes on trying")
    )


@pytest.mark.parametrize("names", ["q", "ab"], ids=["one queue", "two queues"])
def test_an_idle_worker_says_when_the_server_is_back(
    flavour: ClientFlavour, redis_client: redis.Redis, proxy: Listener, names: str
) -> None:
    """There is nothing to lease, so only a look shows it: hooks are called, and the worker is ready again."""
    queues, recorded = [flavour.queue(name, proxy.url) for name in names], RecordingHooks()
    with background_worker(flavour, queues, lambda _: None, hooks=recorded) as work:
        blocked(redis_client, len(names))
        assert work.worker.readiness == "leasing"
        proxy.refuse = True
        proxy.reset()
        until(lambda: recorded.of("server_away"))
        assert work.worker.readiness == "away"
        proxy.refuse = False
        until(lambda: recorded.of("server_back"))
        until(lambda: work.worker.readiness == "leasing")
        blocked(redis_client, len(names))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The failures in a row before each pause of a worker, which takes no time here."""
    failures: list[int] = []

    def pause(count: int) -> float:
        failures.append(count)
        return 0.001

    monkeypatch.setattr(server_health, "pause", pause)
    return failures


def test_a_busy_worker_starts_the_pauses_of_each_outage_anew(
    flavour: ClientFlavour, proxy: Listener, pauses: list[int]
) -> None:
    """LQ-WORK-7. A worker that ends when nothing is ready has no loop that waits: all pauses are those of one loop."""
    queue = flavour.queue("q", proxy.url)
    # two: of the next ones, some are leased ahead, without a call when their turn comes
    queue.add_items(Item(b"", id=str(number)) for number in range(2))
    latches, recorded = {str(number): Latch() for number in range(2)}, RecordingHooks()
    handlers: dict[str, Any] = {name: latch.handler(flavour) for name, latch in latches.items()}

    def handle(item: Any) -> Any:
        return handlers[item.id](item)

    async def handle_async(item: Any) -> None:
        await handlers[item.id](item)

    handler = handle_async if flavour.name == "asyncio" else handle
    options: Any = {"burst": True, "concurrency": 1, "lease_secs": HOUR, "hooks": recorded}
    with background_worker(flavour, queue, handler, **options) as work:
        firsts = []
        for latch in latches.values():
            latch.reached()
            proxy.refuse = True
            proxy.reset()
            before = len(pauses)
            latch.open()
            until(lambda before=before: len(pauses) >= before + 5)
            firsts.append(pauses[before : before + 5])
            proxy.refuse = False
        assert work.result() == 2
    assert firsts == [[1, 2, 3, 4, 5]] * 2
    assert len(recorded.of("server_away")) == len(recorded.of("server_back")) == 2


def test_a_worker_that_ends_in_an_outage_gives_back_what_it_holds_once_the_server_answers(
    flavour: ClientFlavour, proxy: Listener, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, latch = flavour.queue("q", proxy.url), Latch()
    queue.add_item(Item(b"", id="a"))
    failures: list[int] = []

    def pause(count: int) -> float:
        failures.append(count)
        proxy.refuse = False
        return 0.001

    monkeypatch.setattr(server_health, "pause", pause)
    with background_worker(flavour, queue, latch.handler(flavour), lease_secs=HOUR, burst=True) as work:
        latch.reached()
        proxy.refuse = True
        proxy.reset()
        work.stop(at_once=True)
        assert work.result() == 0
        latch.open()
    assert failures == [1]
    with leaseq.WorkQueue("q", url) as look:
        info = look.inspect("a")
    assert info is not None
    assert (info.state, info.attempt) == ("ready", 0)


def test_an_item_whose_time_is_over_in_an_outage_goes_back_once_the_server_answers(
    flavour: ClientFlavour, proxy: Listener, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LQ-WORK-6: the lease of a handler whose time is over is not lost."""
    queue, latch = flavour.queue("q", proxy.url), Latch()
    queue.add_item(Item(b"", id="a"))
    failures: list[int] = []

    def pause(count: int) -> float:
        failures.append(count)
        proxy.refuse = count < 3
        return 0.001

    class Cut(Hooks):
        def started(self, item: Any) -> None:
            proxy.refuse = True
            proxy.reset()

    monkeypatch.setattr(server_health, "pause", pause)
    options: Any = {"burst": True, "lease_secs": HOUR, "time_limit": 0.02, "backoff": HOUR, "hooks": Cut()}
    with (
        leaseq.WorkQueue("q", url) as look,
        background_worker(flavour, queue, latch.handler(flavour), **options),
    ):
        until(lambda: look.stats().delayed == 1)
        assert look.inspect("a").error == "TimeoutError: took longer than 0.02 seconds"
        latch.open()
    assert failures == [1, 2, 3]


def test_an_idle_worker_starts_the_pauses_of_each_outage_anew(
    flavour: ClientFlavour,
    redis_client: redis.Redis,
    proxy: Listener,
    pauses: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LQ-WORK-7."""
    for module in (sync_source, async_source):
        monkeypatch.setattr(module, "PROBE_SECS", 0.1)
    times = Times()
    began = time.monotonic()
    with background_worker(flavour, flavour.queue("q", proxy.url), lambda _: None, hooks=times):
        for count in range(1, 3):
            blocked(redis_client, 1)
            before = len(pauses)
            proxy.refuse = True
            proxy.reset()
            until(lambda before=before: len(pauses) >= before + 5)
            assert pauses[before] <= 2  # a call that was under way is no outage yet
            proxy.refuse = False
            until(lambda count=count: len(times.of("server_back")) == count)
    assert 0 < sum(times.seconds) < time.monotonic() - began


class Times(RecordingHooks):
    """Keeps how long the server was away."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def server_back(self, seconds: float) -> None:
        super().server_back(seconds)
        self.seconds.append(seconds)


def test_a_completion_whose_answer_was_lost_is_repeated(
    flavour: ClientFlavour, redis_client: redis.Redis, proxy: Listener, url: str
) -> None:
    """LQ-COMPLETE-1: the first call has worked, the second is answered false: that is no lost item."""
    load(redis_client)  # it is the answer of the script that is lost
    queue = flavour.queue("q", proxy.url)
    queue.add_item(Item(b"", id="a"))
    latch, recorded = Latch(), RecordingHooks()
    options: Any = {"hooks": recorded, "concurrency": 1, "lease_secs": HOUR}
    with background_worker(flavour, queue, latch.handler(flavour), **options) as work:
        latch.reached()
        proxy.discard_replies = True
        latch.open()
        until(lambda: redis_client.hlen("leaseq:{q}:q:items") == 0)
        proxy.discard_replies = False
        proxy.reset()
        until(lambda: recorded.of("completed") == ["a"])
        work.stop()
        work.result()
    assert recorded.of("lost") == []


def test_a_release_whose_call_failed_is_repeated(
    flavour: ClientFlavour, redis_client: redis.Redis, proxy: Listener, url: str
) -> None:
    queue, look = flavour.queue("q", proxy.url), leaseq.WorkQueue("q", url)
    queue.add_item(Item(b"", id="a"))
    latch, recorded = Latch(), RecordingHooks()

    def fail(_: Any) -> None:
        raise ValueError("no")

    with background_worker(
        flavour, queue, latch.handler(flavour, fail), hooks=recorded, backoff=lambda _: HOUR
    ):
        latch.reached()
        proxy.refuse = True
        proxy.reset()
        latch.open()
        until(lambda: recorded.of("server_away"))
        proxy.refuse = False
        until(lambda: look.inspect("a").state == "delayed")
    look.close()


def test_a_beat_whose_answer_is_lost_is_sent_again(flavour: ClientFlavour, proxy: Listener, url: str) -> None:
    """LQ-CLIENT-4: a beat that fails says so, the next one comes sooner, and the item is kept."""
    queue, look = flavour.queue("q", proxy.url), leaseq.WorkQueue("q", url)
    queue.add_item(Item(b"", id="a"))
    latch, recorded = Latch(), RecordingHooks()
    with background_worker(flavour, queue, latch.handler(flavour), hooks=recorded, lease_secs=HOUR) as work:
        latch.reached()
        (before,) = look.list_items("leased").items
        proxy.refuse = True
        proxy.reset()
        work.beat()
        assert recorded.of("server_away")
        assert work.run.heartbeater._pause(work.call(lambda: now(work))) <= HOUR / 9
        proxy.refuse = False
        work.beat()
        (after,) = look.list_items("leased").items
        assert after.time > before.time
        latch.open()
        until(lambda: look.stats().completed == 1)
    look.close()


@pytest.mark.parametrize("broken", ["a", "b"])
@pytest.mark.parametrize("slow", [False, True], ids=["at once", "late"])
def test_a_queue_that_cannot_be_extended_does_not_spend_the_leases_of_others(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, broken: str, slow: bool
) -> None:
    """LQ-CLIENT-3: they are extended in the same beat; where the failure took long, they come first in the next one."""
    queues = {name: flavour.queue(name, url) for name in ("a", "b")}
    for queue in queues.values():
        queue.add_item(Item(b"", id="item"))
    (healthy,) = queues.keys() - {broken}
    leased = f"leaseq:{{{broken}}}:{broken}:leased"
    latch, recorded = Latch(), RecordingHooks()
    options: Any = {"hooks": recorded, "concurrency": 2, "lease_secs": HOUR}
    with background_worker(flavour, list(queues.values()), latch.handler(flavour), **options) as work:
        latch.reached(2)
        (before,) = queues[healthy].list_items("leased").items
        redis_client.rename(leased, "aside")
        redis_client.set(leased, "of another type")
        if slow:
            work.run.heartbeater._lease_secs = 0  # any time is long
            work.beat()
            assert recorded.of("server_away")
        work.beat()
        assert len(recorded.of("server_away")) == 1
        (after,) = queues[healthy].list_items("leased").items
        assert after.time > before.time
        redis_client.rename("aside", leased)
        work.beat()
        assert recorded.of("server_back")
        latch.open()
        until(lambda: all(queue.stats().completed == 1 for queue in queues.values()))
    assert recorded.of("lost") == []


@pytest.mark.parametrize("how", ["both return", "both fail", "one fails", "stopped"])
@pytest.mark.parametrize("broken", ["a", "b"])
def test_a_queue_that_takes_no_ends_does_not_hold_up_those_of_others(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, broken: str, how: str
) -> None:
    """LQ-WORK-3, LQ-WORK-6: the item of another queue is completed or goes back, whichever of the two is tried first."""
    queues = {name: flavour.queue(name, url) for name in ("a", "b")}
    for name, queue in queues.items():
        queue.add_item(Item(b"", id=name))
    (healthy,) = queues.keys() - {broken}
    latch = Latch()

    def end(item: Any) -> None:
        if how == "both fail" or (how == "one fails" and item.id == broken):
            raise ValueError("no")

    options: Any = {"concurrency": 2, "lease_secs": HOUR, "grace_secs": 0, "backoff": lambda _: HOUR}
    with background_worker(flavour, list(queues.values()), latch.handler(flavour, end), **options) as work:
        latch.reached(2)
        redis_client.rename(f"leaseq:{{{broken}}}:{broken}:leased", "aside")
        redis_client.set(f"leaseq:{{{broken}}}:{broken}:leased", "of another type")
        if how == "stopped":
            work.stop()
            work.result()
        latch.open()
        ended = queues[healthy].stats
        state = {"stopped": "ready", "both fail": "delayed"}.get(how, "completed")
        until(lambda: getattr(ended(), state) == 1)
        redis_client.rename("aside", f"leaseq:{{{broken}}}:{broken}:leased")


def now(work: BackgroundWorker) -> float:
    module: Any = leaseq._aio.concurrency if work.asyncio else leaseq._sync.concurrency
    time: float = module.now()
    return time


def test_one_damaged_record_does_not_hold_up_the_others(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    queue.add_items(Item(b"", id=f"i{n}") for n in range(8))
    latch = Latch()
    with background_worker(flavour, queue, latch.handler(flavour), concurrency=8, lease_secs=HOUR) as work:
        latch.reached(8)
        redis_client.hset("leaseq:{q}:q:meta", "i3", b"damaged")
        work.beat()
        latch.open()
        until(lambda: queue.stats().completed == 7)
        until(lambda: "'i3' is given up" in caplog.text)
        queue.add_item(Item(b"", id="next"))
        until(lambda: queue.stats().completed == 8)


def test_results_are_kept_whatever_items_are_reported_with_them(queue: Any, flavour: ClientFlavour) -> None:
    """LQ-CLIENT-7: an item that keeps none may be the first of a group."""
    ids = [f"i{number:02}" for number in range(40)]
    for number, item_id in enumerate(ids):
        queue.add_item(Item(b"", id=item_id), keep=HOUR if number % 2 else 0)

    def handle(item: Any) -> None:
        item.result = b"r"

    assert BackgroundWorker(flavour, queue, handle, burst=True).result() == 40
    assert [queue.outcome(item_id).content for item_id in ids[1::2]] == [b"r"] * 20


def test_a_result_that_is_too_large_is_a_failure(queue: Any, flavour: ClientFlavour) -> None:
    """The others of its group are completed, with their results."""
    queue.configure(max_data=100)
    queue.add_items((Item(b"", id=f"i{n}") for n in range(5)), keep=HOUR)

    def handle(item: Any) -> None:
        item.result = b"x" * (1000 if item.id == "i2" else 10)

    assert BackgroundWorker(flavour, queue, handle, burst=True, backoff=lambda _: HOUR).result() == 4
    assert queue.inspect("i2").state == "delayed"
    assert queue.inspect("i2").error.startswith("leaseq.errors.TooLargeError")
    assert queue.outcome("i1").content == b"x" * 10


def test_without_memory_the_queue_is_drained(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis
) -> None:
    queue.add_items(Item(b"x" * 100) for _ in range(50))
    redis_client.config_set("maxmemory", 1)
    try:
        assert BackgroundWorker(flavour, queue, lambda _: None, burst=True).result() == 50
    finally:
        redis_client.config_set("maxmemory", 0)


def test_in_a_cluster(flavour: ClientFlavour, cluster: servers.RedisCluster) -> None:
    client = flavour.cluster_client(cluster.url)
    queues = [flavour.queue(name, client) for name in ("a", "b", "c")]
    for queue in queues:
        queue.add_items(Item(b"") for _ in range(50))
    assert BackgroundWorker(flavour, queues, lambda _: None, burst=True).result() == 150


@pytest.mark.timeout(600)
def test_a_failover_is_survived(flavour: ClientFlavour, sentinel: SentinelSet) -> None:
    """The primary is killed while the worker waits; it goes on at the new primary."""
    options: Any = {"socket_timeout": 5, "socket_connect_timeout": 5}
    with Sentinel(sentinel.sentinels, **options).master_for(sentinel.service) as look:  # type: ignore[no-untyped-call]
        made: Any = AsyncSentinel if flavour.name == "asyncio" else Sentinel
        watchers = made(sentinel.sentinels, **options)
        for watcher in watchers.sentinels:
            flavour.own(watcher)
        client = flavour.own(watchers.master_for(sentinel.service))
        queue, producer = flavour.queue("q", client), leaseq.WorkQueue("q", look)
        recorded = RecordingHooks()
        with background_worker(flavour, queue, lambda _: None, hooks=recorded) as work:
            producer.add_item(Item(b""))
            until(lambda: recorded.of("completed"))
            with sentinel.primary.client() as primary:
                blocked(primary, 1)
            sentinel.primary.kill()
            added = False

            def add() -> bool:
                nonlocal added
                try:
                    added = added or producer.add_item(Item(b"", id="after"))
                except leaseq.LeaseqError:
                    return False
                return "after" in recorded.of("completed")

            until(add)
            work.stop()
            assert work.result() == 2
        producer.close()


async def test_a_cancelled_run_gives_back_what_it_holds(url: str) -> None:
    async with leaseq.aio.WorkQueue("q", url) as queue:
        await queue.add_items([Item(b"", id="a"), Item(b"", id="b")])
        began = asyncio.Semaphore(0)

        async def handle(_: Any) -> None:
            began.release()
            await asyncio.sleep(HOUR)

        run = asyncio.create_task(leaseq.worker.aio.Worker(queue, handle, announce=False).run())
        for _ in range(2):
            await began.acquire()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert [
            (info.state, info.attempt) for info in [await queue.inspect("a"), await queue.inspect("b")]
        ] == [("ready", 0)] * 2


async def test_a_cancellation_inside_a_handler_is_a_failure_of_the_item(url: str) -> None:
    """Something that the handler waited for was cancelled, not the worker."""
    async with leaseq.aio.WorkQueue("q", url) as queue:
        await queue.add_item(Item(b"", id="a"))

        async def handle(_: Any) -> None:
            inner = asyncio.create_task(asyncio.sleep(HOUR))
            inner.cancel()
            await inner

        worker = leaseq.worker.aio.Worker(queue, handle, burst=True, backoff=lambda _: HOUR, announce=False)
        assert await worker.run() == 0
        assert (await queue.inspect("a")).state == "delayed"


def test_a_broken_loop_ends_the_run_with_its_error(
    queue: Any, flavour: ClientFlavour, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never silently: a defect of ours is raised where `run` was called."""
    with background_worker(flavour, queue, lambda _: None) as work:
        queue.add_item(Item(b""))
        until(lambda: queue.stats().completed == 1)

        def broken(_: Any) -> Any:
            raise ZeroDivisionError

        monkeypatch.setattr(work.run.heartbeater, "_pause", broken)
        work.call(work.run.heartbeater._wake_event.set)
        with pytest.raises(ZeroDivisionError):
            work.result()


def test_at_most_once_survives_lost_answers(
    flavour: ClientFlavour, redis_client: redis.Redis, proxy: Listener
) -> None:
    """The completion worked and its answer was lost: the item never runs, which is what at most once means."""
    load(redis_client)
    queue = flavour.queue("q", proxy.url)
    queue.add_item(Item(b"", id="a"))
    handled: list[str] = []

    class Cut(Hooks):
        def leased(self, items: Any) -> None:
            if items[0].id == "a":
                proxy.cut_replies_after = 0

    with background_worker(
        flavour, queue, lambda item: handled.append(item.id), at_most_once=True, hooks=Cut()
    ):
        until(lambda: redis_client.hlen("leaseq:{q}:q:items") == 0)
        queue_again = leaseq.WorkQueue("q", proxy.proxy.server_url)
        queue_again.add_item(Item(b"", id="b"))
        until(lambda: handled == ["b"])
        queue_again.close()
