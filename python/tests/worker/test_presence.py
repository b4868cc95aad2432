"""Live workers: what a worker says of itself, and reading it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.background_worker import TIMEOUT_SECS, BackgroundWorker, Latch, background_worker

import leaseq.worker._aio.presence
import leaseq.worker._sync.presence
import leaseq.worker.aio.registry
import leaseq.worker.registry
from leaseq import BadArgumentError, BadTypeError, Item
from leaseq.worker import presence

if TYPE_CHECKING:
    import redis
    from support.client_flavours import ClientFlavour

    from leaseq.worker.registry import WorkerInfo

INDEX = "leaseq:workers"


def listed(flavour: ClientFlavour, server: Any) -> list[WorkerInfo]:
    module: Any = leaseq.worker.aio.registry if flavour.name == "asyncio" else leaseq.worker.registry
    workers: list[WorkerInfo] = flavour.run(module.live_workers(server))
    return workers


def until(check: Any) -> None:
    servers.wait_until(check, TIMEOUT_SECS)


def test_one_that_runs_unannounced_writes_nothing(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis
) -> None:
    queue.add_item(Item(b""))
    assert BackgroundWorker(flavour, queue, lambda _: None, burst=True, announce=False).result() == 1
    assert redis_client.exists(INDEX) == 0


def test_more_items_than_are_named_are_counted(queue: Any, flavour: ClientFlavour, url: str) -> None:
    queue.add_items(Item(b"") for _ in range(150))
    latch = Latch()
    with background_worker(flavour, queue, latch.handler(flavour), announce=True, concurrency=150) as work:
        latch.reached(150)
        work.call(work.run.presence_reporter.announce)
        (worker,) = listed(flavour, url)
        assert (worker.held, len(worker.items)) == (150, presence.MAX_ITEMS)
        latch.open()


def test_the_index_forgets_what_nobody_refreshes(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis
) -> None:
    """LQ-WORKER-2: every worker that enters itself takes old ids out."""
    seconds, _ = redis_client.time()
    redis_client.zadd(INDEX, {"old": (seconds - 1) * 1000, "other": (seconds + 500) * 1000})
    with background_worker(flavour, queue, lambda _: None, announce=True) as work:
        until(lambda: redis_client.zscore(INDEX, work.worker.id))
        until(lambda: redis_client.zscore(INDEX, "old") is None)
        assert redis_client.zscore(INDEX, "other") is not None


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_workers_that_move_in_the_index_are_listed(
    flavour: ClientFlavour,
    url: str,
    redis_client: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    protocol: int,
) -> None:
    """The pages were by rank: behind a worker that was entered anew, or ended, the first of the next page was left out."""
    now = redis_client.time()[0]
    names = [f"w{number}" for number in range(6)]
    redis_client.zadd(INDEX, {name: (now + 600) * 1000 + number // 3 for number, name in enumerate(names)})
    counts = dict.fromkeys(("started", "concurrency", "completed", "held"), 0)
    fields = {"host": "h", "pid": 1, "client": "c", "stopping": False, "queues": [], "items": [], **counts}
    for name in names:
        redis_client.set(presence.key(name), json.dumps(fields))
    decode = presence.decode

    def decode_later(worker_id: bytes, *read: Any) -> WorkerInfo | None:
        if worker_id == b"w0":
            redis_client.zadd(INDEX, {"w0": (now + 660) * 1000})
        return decode(worker_id, *read)

    monkeypatch.setattr(presence, "decode", decode_later)
    monkeypatch.setattr(leaseq.worker._aio.presence, "PAGE_SIZE", size)
    monkeypatch.setattr(leaseq.worker._sync.presence, "PAGE_SIZE", size)
    assert [worker.id for worker in listed(flavour, f"{url}?protocol={protocol}")] == names


def test_a_worker_that_enters_itself_again_started_when_it_did(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis
) -> None:
    with background_worker(flavour, queue, lambda _: None, announce=True) as work:
        until(lambda: redis_client.exists(presence.key(work.worker.id)))
        reporter = work.run.presence_reporter
        before, first = announced(redis_client, work), redis_client.zscore(INDEX, work.worker.id)
        until(lambda: milliseconds(redis_client) > before["reported"] + 1)
        reporter._registered_at -= presence.INDEX_REFRESH_SECS
        work.call(reporter.announce)
        after, last = announced(redis_client, work), redis_client.zscore(INDEX, work.worker.id)
    assert first is not None
    assert last is not None
    assert last > first
    assert after["started"] == before["started"]
    assert after["reported"] > before["reported"]


def test_a_worker_says_when_it_reported_and_not_when_it_last_asked_for_the_time(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis
) -> None:
    with background_worker(flavour, queue, lambda _: None, announce=True) as work:
        until(lambda: redis_client.exists(presence.key(work.worker.id)))
        reporter = work.run.presence_reporter
        before = announced(redis_client, work)
        reporter._registered_at -= 30  # it asked for the time that long ago
        work.call(reporter.announce)
        assert announced(redis_client, work)["reported"] >= before["reported"] + 30_000


def announced(client: redis.Redis, work: BackgroundWorker) -> Any:
    return json.loads(client.get(presence.key(work.worker.id)))  # type: ignore[arg-type]


def milliseconds(client: redis.Redis) -> int:
    seconds, microseconds = client.time()
    return int(seconds) * 1000 + int(microseconds) // 1000


def test_a_worker_without_the_right_works_unseen(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """LQ-WORKER-3: one line in the log, and that is all."""
    redis_client.acl_setuser(
        "group", enabled=True, passwords=["+p"], keys=["leaseq:{q}:*"], commands=["+@all"], reset=True
    )
    try:
        queue = flavour.queue("q", url.replace("redis://", "redis://group:p@"))
        queue.add_item(Item(b""))
        with background_worker(flavour, queue, lambda _: None, announce=True) as work:
            until(lambda: queue.stats().completed == 1)
            until(lambda: "is not seen among the live ones" in caplog.text)
            work.stop()
            assert work.result() == 1
        assert caplog.text.count("is not seen") == 1
    finally:
        redis_client.acl_deluser("group")
    assert redis_client.exists(INDEX) == 0


def test_workers_of_a_cluster(flavour: ClientFlavour, cluster: servers.RedisCluster) -> None:
    """The keys of workers lie in separate slots."""
    client = flavour.cluster_client(cluster.url)
    queues = [flavour.queue(name, client) for name in ("a", "b", "c")]
    with (
        background_worker(flavour, queues, lambda _: None, announce=True),
        background_worker(flavour, queues[0], lambda _: None, announce=True),
    ):
        until(lambda: len(listed(flavour, client)) == 2)
        for queue in queues:
            queue.add_item(Item(b""))
        until(lambda: all(queue.stats().completed == 1 for queue in queues))
    assert listed(flavour, client) == []


def steer(flavour: ClientFlavour, wish: str, worker_id: Any, server: Any) -> bool:
    module: Any = leaseq.worker.aio.registry if flavour.name == "asyncio" else leaseq.worker.registry
    alive: bool = flavour.run(getattr(module, f"{wish}_worker")(worker_id, server))
    return alive


def test_a_quiet_worker_starts_nothing_more_until_it_resumes(
    queue: Any, flavour: ClientFlavour, url: str, redis_client: redis.Redis
) -> None:
    """LQ-WORKER-6: its handler goes on."""
    latch = Latch()
    with background_worker(flavour, queue, latch.handler(flavour), announce=True, concurrency=1) as work:
        until(lambda: redis_client.exists(presence.key(work.worker.id)))
        queue.add_items(Item(b"", id=item_id) for item_id in "abc")
        latch.reached(1)
        assert steer(flavour, "quiet", work.worker.id, url)
        work.call(work.run.presence_reporter.announce)
        assert work.worker.readiness == "quiet"
        until(lambda: [worker.state for worker in listed(flavour, url)] == ["quiet"])
        latch.open()
        until(lambda: queue.stats().completed == 1)
        assert [info.attempt for info in queue.inspect_items(["b", "c"])] == [0, 0]
        assert steer(flavour, "resume", work.worker.id, url)
        work.call(work.run.presence_reporter.announce)
        until(lambda: queue.stats().completed == 3)
        assert work.worker.readiness == "leasing"


def test_what_comes_while_a_worker_is_quiet_goes_back(
    queue: Any, flavour: ClientFlavour, url: str, redis_client: redis.Redis
) -> None:
    started: list[str] = []
    with background_worker(flavour, queue, lambda item: started.append(item.id), announce=True) as work:
        until(lambda: redis_client.exists(presence.key(work.worker.id)))
        until(lambda: work.run._fetcher.requested)  # it waits for an item
        assert steer(flavour, "quiet", work.worker.id, url)
        work.call(work.run.presence_reporter.announce)
        queue.add_item(Item(b"", id="a"))
        until(lambda: (stats := queue.stats()).leases == 1 and stats.ready == 1)
        queue.add_item(Item(b"", id="b"))
        assert [info.attempt for info in queue.inspect_items(["a", "b"])] == [0, 0]
        assert queue.stats().leases == 1
        assert started == []
        work.stop()
        assert work.result() == 0
    assert queue.stats().ready == 2


def test_a_worker_that_is_to_stop_lets_its_handlers_end_however_often_it_reads_that(
    queue: Any, flavour: ClientFlavour, url: str, redis_client: redis.Redis
) -> None:
    latch = Latch()
    with background_worker(flavour, queue, latch.handler(flavour), announce=True) as work:
        until(lambda: redis_client.exists(presence.key(work.worker.id)))
        queue.add_item(Item(b""))
        latch.reached(1)
        assert steer(flavour, "stop", work.worker.id, url)
        for _ in range(3):
            work.call(work.run.presence_reporter.announce)
        assert work.worker.readiness == "stopping"
        work.stop()  # as SIGTERM does: it is the first stop, and not the second
        assert not work.future.done()
        assert queue.stats().leased == 1
        latch.open()
        assert work.result() == 1
    assert redis_client.keys("leaseq:worker*") == []


def test_a_worker_that_is_not_alive_is_not_steered(
    flavour: ClientFlavour, url: str, redis_client: redis.Redis
) -> None:
    redis_client.set("leaseq:worker:h:1:2/wish", "quiet")
    assert [steer(flavour, wish, "h:1:2", url) for wish in ("resume", "quiet", "stop")] == [False] * 3
    assert redis_client.keys("leaseq:*") == []
    with pytest.raises(BadArgumentError, match="no id of a worker"):
        steer(flavour, "stop", "h:1:2/wish", url)
    with pytest.raises(BadTypeError, match="must be a str"):
        steer(flavour, "quiet", 7, url)


def test_a_worker_is_found_by_its_id(queue: Any, flavour: ClientFlavour, url: str) -> None:
    module: Any = leaseq.worker.aio.registry if flavour.name == "asyncio" else leaseq.worker.registry
    with background_worker(flavour, queue, lambda _: None, announce=True) as work:
        until(lambda: flavour.run(module.live_worker(work.worker.id, url)) is not None)
        found = flavour.run(module.live_worker(work.worker.id, url))
        assert [found] == listed(flavour, url)
    assert flavour.run(module.live_worker("h:1:2", url)) is None
    with pytest.raises(BadArgumentError, match="no id of a worker"):
        flavour.run(module.live_worker("h:1:2/wish", url))


def test_a_wish_lasts_for_a_day(flavour: ClientFlavour, url: str, redis_client: redis.Redis) -> None:
    redis_client.set("leaseq:worker:h:1:2", "{}")
    assert steer(flavour, "quiet", "h:1:2", url)
    assert 86_390_000 < redis_client.pttl("leaseq:worker:h:1:2/wish") <= 86_400_000
    assert steer(flavour, "resume", "h:1:2", url)
    assert not redis_client.exists("leaseq:worker:h:1:2/wish")


COUNTS = dict.fromkeys(("pid", "started", "concurrency", "completed", "held", "reported"), 1)
FIELDS = {"host": "h", "client": "c", "stopping": False, "queues": ["g:n"], **COUNTS}
HELD = {"queue": "g:n", "id": "a", "attempt": 1, "ms": 5}
HUGE = "9" * 400


@pytest.mark.parametrize(
    "number", ["1e999", HUGE, f"-{HUGE}", "NaN", "Infinity", "-1", "9007199254740992", "true", '"1"']
)
def test_a_report_with_a_number_that_is_none_is_ignored(
    flavour: ClientFlavour, url: str, redis_client: redis.Redis, number: str
) -> None:
    """LQ-WORKER-5: with the other reports, which are listed. JSON has numbers that no clock and no count reaches."""
    module: Any = leaseq.worker.aio.registry if flavour.name == "asyncio" else leaseq.worker.registry
    reports = {"right": {**FIELDS, "items": [HELD]}}
    for name in ("pid", "started", "concurrency", "completed", "held"):
        reports[name] = {**FIELDS, name: "?", "items": [HELD]}
    for name in ("attempt", "ms"):
        reports[name] = {**FIELDS, "items": [{**HELD, name: "?"}]}
    for name, report in reports.items():
        redis_client.zadd(INDEX, {name: 1e15})
        redis_client.set(presence.key(name), json.dumps(report).replace('"?"', number))
    assert [worker.id for worker in listed(flavour, url)] == ["right"]
    assert [flavour.run(module.live_worker(name, url)) is None for name in reports] == [False] + 7 * [True]


@pytest.mark.parametrize("number", ["1e999", HUGE, "NaN", "-1", "null"])
def test_a_report_whose_time_is_none_is_as_old_as_one_without_it(
    flavour: ClientFlavour, url: str, redis_client: redis.Redis, number: str
) -> None:
    report = json.dumps({**FIELDS, "reported": "?", "items": [HELD]}).replace('"?"', number)
    redis_client.zadd(INDEX, {"w": 1e15})
    redis_client.set(presence.key("w"), report)
    (worker,) = listed(flavour, url)
    assert worker.items[0].seconds == 0.005
