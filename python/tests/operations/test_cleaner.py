"""The cleaner as a class: what it moves and repairs, which queues, how often, with others beside it, through failures."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio
from prometheus_client.parser import text_string_to_metric_families
from support import servers
from support.redis_probe import EVALS, calls

import leaseq
from leaseq import Item
from leaseq.backoff import Backoff
from leaseq.keys import RegisteredQueue
from leaseq.results import DeepClean, LightClean
from leaseq_cleaner import Cleaner, intervals, service
from leaseq_cleaner.intervals import Intervals
from leaseq_cleaner.queue_metrics import STALE_SECS
from leaseq_cleaner.selector import QueueSelector
from leaseq_conformance.acl_suite import roles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from support.sentinel_set import SentinelSet

    OpenQueue = Callable[..., leaseq.WorkQueue]


MAX_SLEEP_SECONDS = intervals.MAX_SLEEP_SECONDS
TIMEOUT_SECS = 60.0
"""Seconds that a machine which stalls gets for what takes milliseconds."""


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for queues and retry at once: what is tested is that it happens, not when."""
    monkeypatch.setattr(intervals, "DISCOVERY_SECS", 0.05)
    monkeypatch.setattr(intervals, "REGISTRY_GRACE_SECS", 0.0)
    monkeypatch.setattr(intervals, "DEEP_SPREAD_SECS", 0.05)
    monkeypatch.setattr(intervals, "until_next_try", Backoff(0.1, 0.1))
    monkeypatch.setattr(intervals, "MAX_SLEEP_SECONDS", 0.1)
    monkeypatch.setattr(service, "DEEP_TICK_SECS", 0.02)
    monkeypatch.setattr(service, "DEEP_RETRY_SECS", 0.02)


@contextlib.asynccontextmanager
async def at_work(*cleaners: Cleaner) -> AsyncIterator[None]:
    """Cleaners that run meanwhile, and that a test can stop."""
    begun = [asyncio.Event() for _ in cleaners]
    tasks = [
        asyncio.create_task(cleaner.run(event.set)) for cleaner, event in zip(cleaners, begun, strict=True)
    ]
    try:
        for event, task in zip(begun, tasks, strict=True):
            await asyncio.wait(
                [asyncio.ensure_future(event.wait()), task],
                timeout=TIMEOUT_SECS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            assert event.is_set()
        yield
    finally:
        for cleaner in cleaners:
            cleaner.stop()
        async with asyncio.timeout(TIMEOUT_SECS):
            await asyncio.gather(*tasks)


async def until(check: Callable[[], object]) -> None:
    async with asyncio.timeout(TIMEOUT_SECS):
        while True:
            with contextlib.suppress(redis.RedisError, leaseq.LeaseqError):
                if check():
                    return
            await asyncio.sleep(0.02)


def value(cleaner: Cleaner, name: str, **labels: str) -> float:
    """A metric, 0 where there is none of these labels; summed over those that are not named."""
    found = 0.0
    for family in cleaner.metrics.registry.collect():
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                found += sample.value
    return found


@pytest.fixture
def open_queue(url: str) -> Iterator[Callable[..., leaseq.WorkQueue]]:
    with contextlib.ExitStack() as stack:
        yield lambda name, **options: stack.enter_context(leaseq.WorkQueue(name, url, **options))


class TestDeadLetters:
    async def test_old_ones_are_deleted_while_it_runs(
        self,
        url: str,
        open_queue: OpenQueue,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr(intervals, "STATS_SECS", 0.05)
        caplog.set_level(logging.INFO, "leaseq_cleaner")
        queue, other = open_queue("q"), open_queue("other")
        for each in (queue, other):
            each.add_item(Item(b"", id="a"))
            item = each.lease(60)
            assert item is not None
            each.dead_letter(item)
        async with at_work(Cleaner(url, queues=["q"], light_secs=0.05, dead_secs=0.01)):
            await until(lambda: queue.stats().purged == 1)
        assert queue.inspect("a").state == "absent"
        assert other.stats().dead == 1
        assert [line for line in caplog.messages if "purged" in line] == ["q: purged 1 dead letters"]

    @pytest.mark.parametrize("wrong", [{"dead_secs": 0}, {"dead_secs": -1.0}, {"dead_most": 0}])
    def test_what_would_delete_each_at_once_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(leaseq.BadArgumentError, match="dead_secs is above 0, dead_most at least 1"):
            Cleaner("redis://h", **wrong)


class TestLightClean:
    async def test_what_is_over_and_due_is_moved(self, url: str, open_queue: OpenQueue) -> None:
        queue = open_queue("q")
        queue.add_item(Item(b"x", id="expired"))
        queue.lease(0.001)
        queue.add_item(Item(b"x", id="due"), delay=0.001)
        queue.add_item(Item(b"x", id="gone"), expires_in=0.001, delay=0)
        cleaner = Cleaner(url, light_secs=0.05)
        async with at_work(cleaner):
            await until(lambda: (s := queue.stats()).ready == 2 and s.items == 2)
        moved = {
            what: value(cleaner, "leaseq_cleaner_moved_total", what=what)
            for what in ("promoted", "reclaimed", "expired")
        }
        assert moved == {"promoted": 1, "reclaimed": 1, "expired": 1}

    async def test_the_outcomes_of_those_who_died_are_published(
        self, url: str, redis_client: redis.Redis, open_queue: OpenQueue
    ) -> None:
        """LQ-CLIENT-8: no call here asks for it, and its waiters are woken."""
        queue = open_queue("q")
        queue.add_item(Item(b"x", id="a"), max_attempts=1, keep=3600)
        queue.lease(0.001)
        async with at_work(Cleaner(url, light_secs=0.05)):
            await until(lambda: redis_client.exists("leaseq:{q}:q:result:a"))
        assert queue.stats().dead == 1

    @pytest.mark.slow
    async def test_an_idle_queue_costs_little(
        self, real_sleep: None, url: str, redis_client: redis.Redis
    ) -> None:
        """A machine that stalls makes the time longer and the requests fewer."""
        with leaseq.WorkQueue("q", url) as queue:
            queue.light_clean()
            queue.stats()
        redis_client.sadd("leaseq:queues", "q:q")
        redis_client.config_resetstat()
        before: Any = redis_client.time()
        cleaner = Cleaner(url, deep_secs=0)
        async with at_work(cleaner):
            await until(lambda: value(cleaner, "leaseq_cleaner_call_seconds_count", call="light_clean") >= 2)
        after: Any = redis_client.time()
        secs = after[0] - before[0] + 1
        # the probe at the start, and the first look with its counts
        assert calls(redis_client, *EVALS) <= 3 + 0.3 * secs


@pytest.fixture
def real_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "MAX_SLEEP_SECONDS", MAX_SLEEP_SECONDS)


@pytest.mark.usefixtures("real_sleep")
class TestPace:
    def test_an_idle_queue(self) -> None:
        assert 1 / intervals.MAX_SLEEP_SECONDS + 1 / intervals.STATS_SECS <= 0.3
        assert Intervals(1).until_next_look(LightClean()) == 4

    def test_what_is_due_next_ends_the_sleep(self) -> None:
        assert Intervals(1).until_next_look(LightClean(wait=2.5)) == 2.5
        assert Intervals(1).until_next_look(LightClean(wait=0.1)) == 1
        assert Intervals(1).until_next_look(LightClean(wait=3600)) == 4
        assert Intervals(30).until_next_look(LightClean(wait=3600)) == 30

    def test_a_queue_with_work_is_looked_at_again_soon(self) -> None:
        assert Intervals(1).until_next_look(LightClean(reclaimed=1, wait=3600)) == 1
        assert Intervals(0.5).until_next_look(LightClean(pruned=1)) == 0.5

    def test_tries_grow_apart_and_are_bounded(self) -> None:
        tries = [[intervals.until_next_try(failures) for _ in range(50)] for failures in (1, 3, 1000)]
        assert max(tries[2]) <= intervals.until_next_try.last
        assert all(len(set(some)) > 1 for some in tries)

    def test_deep_cleans_drift_apart(self) -> None:
        passes = {Intervals(deep_secs=1000).until_next_deep() for _ in range(50)}
        assert len(passes) > 1
        assert 900 <= min(passes) <= max(passes) <= 1100
        assert all(Intervals(deep_secs=0.01).first_deep() <= 0.01 for _ in range(50))


class TestQueues:
    @pytest.mark.parametrize(
        ("queues", "fit", "others"),
        [
            (["*"], ["a/a", "g/b"], []),
            (["mail-*"], ["mail-x/mail-x", "g/mail-1"], ["g/mail", "mail-x/y"]),
            (["shop/*"], ["shop/a"], ["shops/a", "a/shop"]),
            (["s?op/[ab]"], ["shop/a", "stop/b"], ["shop/c"]),
            (["a*", "b*"], ["a1/a1", "b1/b1"], ["c/c"]),
        ],
    )
    def test_patterns(self, queues: list[str], fit: list[str], others: list[str]) -> None:
        choice = QueueSelector(queues)

        def fits(text: str) -> bool:
            group, name = text.split("/")
            return choice.fits(RegisteredQueue(name, group))

        assert [text for text in fit + others if fits(text)] == fit
        assert choice.asks_the_registry

    def test_names_need_no_registry(self) -> None:
        choice = QueueSelector(["orders", "shop/mail"])
        assert choice.named == [RegisteredQueue("orders", "orders"), RegisteredQueue("mail", "shop")]
        assert not choice.asks_the_registry

    @pytest.mark.parametrize("wrong", ["", "/", "a/", "/a", "a b", "a/b/c", "/*", "x" * 101, "é"])
    def test_what_names_nothing(self, wrong: str) -> None:
        with pytest.raises(leaseq.BadArgumentError, match="NAME"):
            QueueSelector([wrong])

    def test_no_queues(self) -> None:
        with pytest.raises(leaseq.BadArgumentError, match="no queues"):
            QueueSelector([])

    async def test_queues_come_and_go(
        self, url: str, redis_client: redis.Redis, open_queue: OpenQueue
    ) -> None:
        cleaner = Cleaner(url, queues=["mail-*"], light_secs=0.05)
        async with at_work(cleaner):
            for name in ("mail-1", "other"):
                queue = open_queue(name)
                queue.add_item(Item(b"x"), delay=0.001)
            await until(lambda: open_queue("mail-1").stats().ready == 1)
            assert open_queue("other").stats().ready == 0, "not one of those that were named"
            await until(lambda: value(cleaner, "leaseq_items", queue="mail-1", state="ready") == 1)
            redis_client.srem("leaseq:queues", "mail-1:mail-1")
            await until(lambda: value(cleaner, "leaseq_cleaner_queues") == 0)
            await until(lambda: value(cleaner, "leaseq_items") == 0)

    async def test_a_registry_that_is_deleted_loses_no_queue(
        self,
        url: str,
        redis_client: redis.Redis,
        open_queue: OpenQueue,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Clients enter their queues again after up to five minutes; meanwhile leases expire and items come due."""
        monkeypatch.setattr(intervals, "REGISTRY_GRACE_SECS", 3600.0)
        queue = open_queue("q")
        queue.add_item(Item(b"x", id="a"))
        cleaner = Cleaner(url, light_secs=0.05)
        async with at_work(cleaner):
            redis_client.delete("leaseq:queues")
            asked = value(cleaner, "leaseq_cleaner_call_seconds_count", call="registry")
            await until(
                lambda: value(cleaner, "leaseq_cleaner_call_seconds_count", call="registry") > asked + 1
            )
            queue.add_item(Item(b"x", id="b"), delay=0.001)  # this client need not enter it again yet
            await until(lambda: queue.stats().ready == 2)
            assert value(cleaner, "leaseq_cleaner_queues") == 1
        assert redis_client.exists("leaseq:queues") == 0

    async def test_a_queue_by_name_is_cleaned_where_nobody_entered_it(
        self, url: str, redis_client: redis.Redis, open_queue: OpenQueue
    ) -> None:
        queue = open_queue("b", group="a")
        queue.add_item(Item(b"x"), delay=0.001)
        redis_client.delete("leaseq:queues")
        redis_client.config_resetstat()
        async with at_work(Cleaner(url, queues=["a/b"])):
            await until(lambda: queue.stats().ready == 1)
        assert calls(redis_client, "cmdstat_sscan") == 0


def damage(client: redis.Redis, count: int) -> None:
    """Take items out of their state."""
    client.zremrangebyrank("leaseq:{q}:q:ready", 0, count - 1)


class TestDeepClean:
    @pytest.mark.promise("G28")
    async def test_damage_is_repaired(
        self, url: str, redis_client: redis.Redis, open_queue: OpenQueue, caplog: pytest.LogCaptureFixture
    ) -> None:
        queue = open_queue("q")
        queue.add_items(Item(b"x", id=f"{n}") for n in range(1000))
        damage(redis_client, 700)
        cleaner = Cleaner(url, deep_rate=1000)
        with caplog.at_level(logging.WARNING, "leaseq_cleaner"):
            async with at_work(cleaner):
                await until(lambda: value(cleaner, "leaseq_cleaner_deep_clean_timestamp_seconds") > 0)
        assert queue.stats().ready == 1000
        assert value(cleaner, "leaseq_cleaner_repairs_total", kind="unplaced") == 700
        assert "q: repaired unplaced" in caplog.text

    async def test_no_faster_than_told(self, url: str, open_queue: OpenQueue) -> None:
        """One page in an hour: the second never comes, while light cleans go on."""
        open_queue("q").add_items(Item(b"x") for _ in range(1000))
        open_queue("q").light_clean()
        cleaner = Cleaner(url, light_secs=0.05, deep_rate=1 / 3600)
        async with at_work(cleaner):
            await until(lambda: value(cleaner, "leaseq_cleaner_call_seconds_count", call="deep_clean") == 1)
            for _ in range(5):
                open_queue("q").add_item(Item(b"x"), delay=0.001)
                await until(lambda: open_queue("q").stats().delayed == 0)
        assert value(cleaner, "leaseq_cleaner_call_seconds_count", call="deep_clean") == 1

    @pytest.mark.parametrize(("rate", "pause"), [(None, 0.01), (20, 0.05)])
    async def test_a_person_waits_for_once(
        self, url: str, open_queue: OpenQueue, monkeypatch: pytest.MonkeyPatch, rate: int | None, pause: float
    ) -> None:
        open_queue("q").add_items(Item(b"x") for _ in range(1000))
        pauses: list[float] = []
        sleep = asyncio.sleep

        async def noted(secs: float) -> None:
            pauses.append(secs)
            await sleep(0)

        monkeypatch.setattr(asyncio, "sleep", noted)
        (report,) = [each async for each in Cleaner(url, deep_rate=rate).once()]
        assert report.error is None
        assert pauses.count(pause) >= 3

    async def test_never(self, url: str, open_queue: OpenQueue) -> None:
        open_queue("q").add_item(Item(b"x"), delay=0.001)
        cleaner = Cleaner(url, deep_secs=0)
        async with at_work(cleaner):
            await until(lambda: open_queue("q").stats().ready == 1)
        assert value(cleaner, "leaseq_cleaner_call_seconds_count", call="deep_clean") == 0

    async def test_after_an_error_it_goes_on_where_it_was(
        self, url: str, open_queue: OpenQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        open_queue("q").add_items(Item(b"x") for _ in range(1000))
        asked: list[str] = []
        real = leaseq.aio.WorkQueue.deep_clean_page

        async def page(
            self: leaseq.aio.WorkQueue, cursor: str = "0", **options: Any
        ) -> tuple[str, DeepClean]:
            asked.append(cursor)
            if len(asked) == 3:
                raise leaseq.UnavailableError("the server is away")
            return await real(self, cursor, **options)

        monkeypatch.setattr(leaseq.aio.WorkQueue, "deep_clean_page", page)
        cleaner = Cleaner(url, deep_rate=1000)
        async with at_work(cleaner):
            await until(lambda: value(cleaner, "leaseq_cleaner_deep_clean_timestamp_seconds") > 0)
        assert asked[2] == asked[3] != "0", "the page that failed, again"
        assert asked.count("0") == 1


class TestRestarts:
    """A crash can leave items in no state, and lose what was written last."""

    @pytest.mark.each_server
    async def test_a_restart_is_followed_by_a_deep_clean(
        self, own_server: servers.StartServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        server = own_server("--appendonly", "yes")
        with leaseq.WorkQueue("q", server.url) as queue:
            queue.add_items(Item(b"x", id=f"{n}") for n in range(1000))
            cleaner = Cleaner(server.url, deep_rate=1000)
            async with at_work(cleaner):
                await until(lambda: value(cleaner, "leaseq_cleaner_deep_clean_timestamp_seconds") > 0)
                with server.client() as client:
                    damage(client, 700)
                server.stop()
                await asyncio.to_thread(server.start)
                await until(lambda: queue.stats().ready == 1000)
                await until(lambda: value(cleaner, "leaseq_cleaner_repairs_total", kind="unplaced") == 700)
            assert value(cleaner, "leaseq_cleaner_server_restarts_total") == 1
            assert value(cleaner, "leaseq_cleaner_losses_total") == 0
        assert caplog.text.count("the server restarted or was replaced: deep cleans of its 1 queues") == 1

    async def test_a_pass_that_a_restart_meets_starts_anew(
        self, own_server: servers.StartServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A cursor means nothing to another run of the server."""
        server = own_server("--appendonly", "yes")
        asked: list[str] = []
        real = leaseq.aio.WorkQueue.deep_clean_page

        async def page(
            self: leaseq.aio.WorkQueue, cursor: str = "0", **options: Any
        ) -> tuple[str, DeepClean]:
            asked.append(cursor)
            answer = await real(self, cursor, **options)
            if len(asked) == 2:
                server.stop()
                await asyncio.to_thread(server.start)
                await until(lambda: value(cleaner, "leaseq_cleaner_server_restarts_total") == 1)
            return answer

        monkeypatch.setattr(leaseq.aio.WorkQueue, "deep_clean_page", page)
        with leaseq.WorkQueue("q", server.url) as queue:
            queue.add_items(Item(b"x") for _ in range(1000))
            cleaner = Cleaner(server.url, deep_rate=1000)
            async with at_work(cleaner):
                await until(lambda: value(cleaner, "leaseq_cleaner_deep_clean_timestamp_seconds") > 0)
        assert asked[1] != "0"
        assert asked[2] == "0"

    async def test_lost_writes_are_counted(
        self,
        own_server: servers.StartServer,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr(intervals, "STATS_SECS", 0.05)
        server = own_server()  # which keeps nothing
        with leaseq.WorkQueue("q", server.url) as queue:
            queue.add_items(Item(b"x") for _ in range(3))
            cleaner = Cleaner(server.url, queues=["q"], light_secs=0.05)
            async with at_work(cleaner):
                await until(lambda: value(cleaner, "leaseq_events_total", event="added") == 3)
                assert value(cleaner, "leaseq_cleaner_losses_total") == 0
                server.stop()
                await asyncio.to_thread(server.start)
                await until(lambda: value(cleaner, "leaseq_cleaner_losses_total") == 1)
        assert "q: its counts went back" in caplog.text

    async def test_items_in_no_state_are_told(
        self, url: str, redis_client: redis.Redis, open_queue: OpenQueue
    ) -> None:
        open_queue("q").add_items(Item(b"x") for _ in range(10))
        damage(redis_client, 7)
        cleaner = Cleaner(url, deep_secs=0)
        async with at_work(cleaner):
            await until(lambda: value(cleaner, "leaseq_unplaced_items") == 7)


class TestTwoAtOnce:
    @pytest.mark.parametrize("count", [1, 2, 5])
    async def test_they_change_no_result(self, url: str, open_queue: OpenQueue, count: int) -> None:
        """Each item is moved once, by whichever client, and what comes out does not depend on how many there are."""
        queue = open_queue("q")
        queue.add_items(Item(b"x", id=f"late-{n}") for n in range(256))
        assert len(queue.lease_items(256, 0.001)) == 256
        queue.add_items((Item(b"x", id=f"due-{n}") for n in range(600)), delay=0.001)
        before = queue.stats()
        assert (before.ready, before.leased, before.delayed) == (0, 256, 600)
        moves = {"reclaimed": 256, "promoted": 600}
        cleaners = [Cleaner(url, light_secs=0.05) for _ in range(count)]
        async with at_work(*cleaners):
            await until(lambda: queue.stats().ready == 856)
        after = queue.stats()
        assert (after.items, after.leased, after.delayed, after.dead) == (856, 0, 0, 0)
        for what, expected in moves.items():
            moved = sum(value(each, "leaseq_cleaner_moved_total", what=what) for each in cleaners)
            assert moved == expected == getattr(after, what) - getattr(before, what)
        assert queue.deep_clean(dry_run=True).total == 0

    async def test_deep_cleans_at_once(
        self, url: str, redis_client: redis.Redis, open_queue: OpenQueue
    ) -> None:
        queue = open_queue("q")
        queue.add_items(Item(b"x") for _ in range(2000))
        damage(redis_client, 1500)
        cleaners = [Cleaner(url, deep_rate=1000) for _ in range(2)]
        async with at_work(*cleaners):
            done = "leaseq_cleaner_deep_clean_timestamp_seconds"
            await until(lambda: all(value(each, done) > 0 for each in cleaners))
        repaired = sum(value(each, "leaseq_cleaner_repairs_total", kind="unplaced") for each in cleaners)
        assert repaired == 1500, "each once"
        assert queue.stats().ready == 2000
        assert len({item.id for item in queue.lease_items(256, 60)}) == 256

    async def test_workers_that_drop_items_beside_them(self, url: str, open_queue: OpenQueue) -> None:
        """Every item is completed by one call, however leases, reclaims and cleans meet."""
        queue = open_queue("q")
        queue.add_items((Item(b"x", id=f"{n}") for n in range(300)), delay=0.001)
        done: list[str] = []

        def work(worker: leaseq.WorkQueue) -> None:
            dropped = 0
            while queue.stats().items:
                for item in worker.lease_items(5, 3600 if dropped > 60 else 0.001, block=False):
                    dropped += 1
                    if dropped % 3 and worker.complete(item):
                        done.append(item.id)
                    elif dropped > 60:
                        worker.release(item)

        cleaners = [Cleaner(url, light_secs=0.05, deep_rate=1000) for _ in range(2)]
        async with at_work(*cleaners):
            await asyncio.gather(*(asyncio.to_thread(work, open_queue("q")) for _ in range(3)))
        assert sorted(done) == sorted(f"{n}" for n in range(300))
        assert (queue.stats().completed, queue.stats().dropped) == (300, 0)
        assert queue.deep_clean(dry_run=True).total == 0
        assert sum(value(each, "leaseq_cleaner_repairs_total") for each in cleaners) == 0


def refuse_writes(server: servers.SpawnedServer, client: redis.Redis, refusal: str) -> None:
    """Make a server refuse writes with an error of this name."""
    match refusal:
        case "NOREPLICAS":
            client.config_set("min-replicas-to-write", 1)
        case "READONLY":
            client.replicaof("127.0.0.1", server.port)
        case "OOM":
            client.config_set("maxmemory", 1)
        case "MISCONF":
            client.config_set("save", "3600 100000")
            (server.folder / "in-the-way").mkdir()  # a folder: the snapshot cannot be put in its place
            client.bgsave()
            servers.wait_until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err", 60)


def take_writes(server: servers.SpawnedServer, client: redis.Redis, refusal: str) -> None:
    """Make it take writes again."""
    match refusal:
        case "NOREPLICAS":
            client.config_set("min-replicas-to-write", 0)
        case "READONLY":
            client.replicaof("NO", "ONE")
        case "OOM":
            client.config_set("maxmemory", 0)
        case "MISCONF":
            (server.folder / "in-the-way").rmdir()
            client.bgsave()
            servers.wait_until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "ok", 60)


class TestFailures:
    async def test_a_restart_is_survived_and_told_in_one_line(
        self, own_server: servers.StartServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        server = own_server("--appendonly", "yes")
        with leaseq.WorkQueue("q", server.url) as queue, leaseq.WorkQueue("r", server.url) as other:
            for each in (queue, other):
                each.add_item(Item(b"x", id="a"))
            cleaner = Cleaner(server.url, light_secs=0.05)
            with caplog.at_level(logging.INFO, "leaseq_cleaner"):
                async with at_work(cleaner):
                    await until(lambda: not cleaner.unready)
                    server.stop()
                    await until(lambda: cleaner.unready)
                    assert value(cleaner, "leaseq_cleaner_server_up") == 0
                    await until(lambda: value(cleaner, "leaseq_cleaner_errors_total", call="light_clean") > 6)
                    await asyncio.to_thread(server.start)
                    await until(lambda: not cleaner.unready)
                    assert value(cleaner, "leaseq_cleaner_server_up") == 1
                    queue.lease(0.001)
                    await until(lambda: queue.stats().reclaimed == 1)
        lines = [record.message for record in caplog.records]
        assert len([line for line in lines if line.startswith("the server does not answer")]) == 1
        assert lines.count("the server answers again") == 1

    @pytest.mark.each_server
    @pytest.mark.parametrize("refusal", ["NOREPLICAS", "READONLY", "MISCONF", "OOM"])
    async def test_a_server_that_refuses_writes_is_an_outage(
        self, own_server: servers.StartServer, caplog: pytest.LogCaptureFixture, refusal: str
    ) -> None:
        """A light clean of an idle queue only reads, which such a server allows."""
        server = own_server("--dbfilename", "in-the-way")
        with server.client() as client, leaseq.WorkQueue("q", server.url) as queue:
            queue.add_item(Item(b"x", id="a"))
            cleaner = Cleaner(server.url, light_secs=0.05)
            with caplog.at_level(logging.INFO, "leaseq_cleaner"):
                async with at_work(cleaner):
                    await until(lambda: not cleaner.unready)
                    refuse_writes(server, client, refusal)
                    with pytest.raises(leaseq.LeaseqError):
                        queue.add_item(Item(b"x", id="b"))
                    await until(lambda: cleaner.unready == "the server refuses writes")
                    assert value(cleaner, "leaseq_cleaner_server_up") == 0
                    await until(lambda: value(cleaner, "leaseq_cleaner_errors_total", call="write") > 3)
                    looks = value(cleaner, "leaseq_cleaner_call_seconds_count", call="light_clean")
                    await until(
                        lambda: (
                            value(cleaner, "leaseq_cleaner_call_seconds_count", call="light_clean") > looks
                        )
                    )
                    assert cleaner.unready, "a light clean that only reads does not show that it takes writes"
                    take_writes(server, client, refusal)
                    await until(lambda: not cleaner.unready)
                    assert value(cleaner, "leaseq_cleaner_server_up") == 1
                    assert queue.add_item(Item(b"x", id="b"))
                    assert queue.stats().items == 2
        lines = [record.message for record in caplog.records]
        assert len([line for line in lines if line.startswith("the server refuses writes, trying on")]) == 1
        assert lines.count("the server answers again") == 1

    async def test_a_server_that_refuses_writes_at_the_start(self, own_server: servers.StartServer) -> None:
        server = own_server()
        with server.client() as client, leaseq.WorkQueue("q", server.url) as queue:
            queue.add_item(Item(b"x"))
            refuse_writes(server, client, "NOREPLICAS")
            cleaner = Cleaner(server.url, light_secs=0.05)
            async with at_work(cleaner):
                await until(lambda: cleaner.unready == "the server refuses writes")
                assert value(cleaner, "leaseq_cleaner_server_up") == 0
                take_writes(server, client, "NOREPLICAS")
                await until(lambda: not cleaner.unready)

    async def test_one_node_of_a_cluster_that_refuses_writes(self, cluster: servers.RedisCluster) -> None:
        with contextlib.ExitStack() as stack:
            client = stack.enter_context(servers.cluster_client(cluster.url))
            ports: set[int] = set()
            for name in ["a", "b", "c", "d", "e", "f"]:
                queue = stack.enter_context(leaseq.WorkQueue(name, client))
                queue.add_item(Item(b"x"))
                ports.add(client.get_node_from_key(queue.keys.key("ready")).port)  # type: ignore[no-untyped-call]
            cleaner = Cleaner(f"redis+cluster://127.0.0.1:{cluster.nodes[1].port}", light_secs=0.05)
            async with at_work(cleaner):
                assert len(ports) > 1
                for node in [node for node in cluster.nodes if node.port in ports]:
                    await until(lambda: not cleaner.unready)
                    with node.client() as admin:
                        admin.config_set("min-replicas-to-write", 1)
                        await until(lambda: cleaner.unready == "the server refuses writes")
                        admin.config_set("min-replicas-to-write", 0)

    async def test_it_is_not_ready_before_it_has_looked(
        self, url: str, open_queue: OpenQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """From the first question on, through the first call that is under way, to the first look at the queue."""
        open_queue("q").add_item(Item(b"x"))
        monkeypatch.setattr(Intervals, "first_look", lambda _: 3600.0)
        cleaner = Cleaner(url)
        seen = {cleaner.unready}
        real = leaseq.aio.WorkQueue.light_clean

        async def light_clean(self: leaseq.aio.WorkQueue) -> LightClean:
            seen.add(cleaner.unready)
            return await real(self)

        monkeypatch.setattr(leaseq.aio.WorkQueue, "light_clean", light_clean)
        async with at_work(cleaner):
            seen.add(cleaner.unready)
        assert seen == {"not started", "1 queues were not looked at yet"}

    async def test_a_script_flush(self, url: str, redis_client: redis.Redis, open_queue: OpenQueue) -> None:
        queue = open_queue("q")
        cleaner = Cleaner(url, queues=["q"], light_secs=0.05)
        async with at_work(cleaner):
            for _ in range(3):
                redis_client.script_flush()
                queue.add_item(Item(b"x"), delay=0.001)
                await until(lambda: queue.stats().delayed == 0)
        assert value(cleaner, "leaseq_cleaner_errors_total") == 0

    async def test_one_damaged_queue_is_told_once_and_hinders_no_other(
        self, url: str, redis_client: redis.Redis, open_queue: OpenQueue, caplog: pytest.LogCaptureFixture
    ) -> None:
        redis_client.set("leaseq:{bad}:bad:items", "mine")
        cleaner = Cleaner(url, queues=["bad", "good"], light_secs=0.05)
        good = open_queue("good")
        with caplog.at_level(logging.INFO, "leaseq_cleaner"):
            async with at_work(cleaner):
                await until(lambda: value(cleaner, "leaseq_cleaner_errors_total", call="light_clean") > 3)
                good.add_item(Item(b"x"), delay=0.001)
                await until(lambda: good.stats().ready == 1)
                await until(lambda: not cleaner.unready)
                redis_client.delete("leaseq:{bad}:bad:items")
                await until(lambda: "light_clean of bad works again" in caplog.text)
        assert caplog.text.count("light_clean of bad fails") == 1

    async def test_a_queue_that_goes_during_a_call_leaves_no_trouble(
        self, url: str, redis_client: redis.Redis, open_queue: OpenQueue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("goes", "stays"):
            open_queue(name).add_item(Item(b"x"))
        begun, go_on = asyncio.Event(), asyncio.Event()
        real = leaseq.aio.WorkQueue.light_clean

        async def light_clean(self: leaseq.aio.WorkQueue) -> LightClean:
            if self.name == "goes" and cleaner.unready != "not started":
                begun.set()
                await go_on.wait()
                raise leaseq.UnavailableError("its node is away")
            return await real(self)

        monkeypatch.setattr(leaseq.aio.WorkQueue, "light_clean", light_clean)
        cleaner = Cleaner(url, light_secs=0.05, deep_secs=0)
        async with at_work(cleaner):
            await asyncio.wait_for(begun.wait(), TIMEOUT_SECS)
            redis_client.srem("leaseq:queues", "goes:goes")
            await until(lambda: value(cleaner, "leaseq_cleaner_queues") == 1)
            go_on.set()
            await until(lambda: value(cleaner, "leaseq_cleaner_errors_total", call="light_clean") == 1)
            await until(lambda: not cleaner.unready)
            await until(lambda: value(cleaner, "leaseq_cleaner_server_up") == 1)

    async def test_a_failover(self, sentinel: SentinelSet) -> None:
        hosts = ",".join(f"{host}:{port}" for host, port in sentinel.sentinels)
        with leaseq.WorkQueue("q", sentinel.primary.url) as queue:
            queue.add_item(Item(b"x", id="a"))
            queue.add_item(Item(b"x", id="b"))
            queue.lease(0.001)
            cleaner = Cleaner(f"redis+sentinel://{hosts}/{sentinel.service}", light_secs=0.05)
            async with at_work(cleaner):
                await until(lambda: queue.stats().reclaimed == 1)
                with sentinel.primary.client() as client:
                    client.wait(2, 0)
                await asyncio.to_thread(sentinel.primary.kill)

                def primary() -> servers.SpawnedServer | None:
                    for replica in sentinel.replicas:
                        with replica.client() as client:
                            role: Any = client.role()
                            if role[0] == b"master":
                                return replica
                    return None

                await until(primary)
                promoted = primary()
                assert promoted
                with leaseq.WorkQueue("q", promoted.url) as moved:
                    moved.lease(0.001)
                    await until(lambda: moved.stats().reclaimed == 2)
                    await until(lambda: value(cleaner, "leaseq_cleaner_server_restarts_total") == 1)

    async def test_a_cluster(self, cluster: servers.RedisCluster) -> None:
        names = ["a", "b", "c", "d", "e", "f"]
        port = cluster.nodes[1].port
        with contextlib.ExitStack() as stack:
            client = stack.enter_context(servers.cluster_client(cluster.url))
            queues = [stack.enter_context(leaseq.WorkQueue(name, client)) for name in names]
            for queue in queues:
                queue.add_item(Item(b"x"), delay=0.001)
            cleaner = Cleaner(f"redis+cluster://127.0.0.1:{port}", light_secs=0.05)
            async with at_work(cleaner):
                await until(lambda: all(queue.stats().ready == 1 for queue in queues))
            assert value(cleaner, "leaseq_cleaner_errors_total") == 0


class TestServersAndRights:
    async def test_an_own_client_stays_open(self, url: str) -> None:
        async with contextlib.AsyncExitStack() as stack:
            client: redis.asyncio.Redis = redis.asyncio.Redis.from_url(url)
            stack.push_async_callback(client.aclose)
            async with at_work(Cleaner(client, queues=["q"])):
                pass
            assert await client.ping()

    @pytest.mark.parametrize(
        ("server", "error"),
        [
            ("redis+sentinel://", leaseq.BadArgumentError),
            ("redis+sentinel://h:1/service/x", leaseq.BadArgumentError),
            ("redis+cluster://h:1/0", leaseq.BadArgumentError),
            ("redis+what://h:1", leaseq.BadArgumentError),
            ("what://h", leaseq.BadArgumentError),
            (7, leaseq.BadTypeError),
        ],
    )
    async def test_what_is_no_server(self, server: Any, error: type[Exception]) -> None:
        with pytest.raises(error):
            await Cleaner(server).run()

    async def test_the_access_rules_of_a_cleaner_are_enough(
        self, url: str, redis_client: redis.Redis, open_queue: OpenQueue
    ) -> None:
        """LQ-SAFE-1 for the cleaner's row."""
        queue = open_queue("q")
        queue.add_item(Item(b"x", id="a"), max_attempts=1, keep=3600)
        queue.lease(0.001)
        queue.add_items([Item(b"x", id="old"), Item(b"x", id="late")], max_attempts=1)
        for item in queue.lease_items(2, 60):
            queue.release(item)
        user = ["reset", "on", ">password", "~leaseq:*", "-@all", *roles()["cleaner"][1]]
        redis_client.execute_command("ACL", "SETUSER", "janitor", *user)  # type: ignore[no-untyped-call]
        try:
            cleaner = Cleaner(url.replace("//", "//janitor:password@"), light_secs=0.05, dead_most=1)
            async with at_work(cleaner):
                await until(lambda: (s := queue.stats()).purged == 2 and s.dead == 1)
                await until(lambda: value(cleaner, "leaseq_cleaner_deep_clean_timestamp_seconds") > 0)
            assert value(cleaner, "leaseq_cleaner_errors_total") == 0
        finally:
            redis_client.execute_command("ACL", "DELUSER", "janitor")  # type: ignore[no-untyped-call]


async def test_counts_that_are_old_are_not_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cleaner = Cleaner(url, queues=["q"])
    async with at_work(cleaner):
        await until(lambda: "leaseq_items" in samples(cleaner))
    monkeypatch.setattr("leaseq_cleaner.queue_metrics.STALE_SECS", -1.0)
    assert STALE_SECS > 2 * intervals.STATS_SECS
    assert "leaseq_items" not in samples(cleaner)


def samples(cleaner: Cleaner) -> set[str]:
    from prometheus_client import generate_latest

    text = generate_latest(cleaner.metrics.registry).decode()
    return {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}
