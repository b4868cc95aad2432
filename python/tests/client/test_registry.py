"""The registry of queues: who enters a queue and when, that no call fails or waits by it, and reading it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio
from support import servers
from support.client_flavours import AsyncioFlavour, unwrap
from support.redis_probe import calls, count_blocked

import leaseq
import leaseq.aio.registry
import leaseq.registry
from leaseq import Item
from leaseq._aio import executor as aio_executor
from leaseq._sync import executor as sync_executor
from leaseq.registry import RegisteredQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.client_flavours import ClientFlavour


KEY = "leaseq:queues"
SADD = "cmdstat_sadd"


def entries(client: redis.Redis) -> set[bytes]:
    members: Any = client.smembers(KEY)
    return set(members)


def fill(client: redis.Redis, url: str, name: str, *, group: str | None = None) -> None:
    """Add an item as a client does that keeps no registry."""
    with leaseq.WorkQueue(name, url, group=group) as queue:
        queue.add_item(Item(b"x", id="a"))
    client.delete(KEY)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call comes long after the one before."""
    for module in (aio_executor, sync_executor):
        monkeypatch.setattr(module, "REGISTER_AGAIN_SECS", 0.0)


class TestEntering:
    """LQ-REGISTRY-1, LQ-REGISTRY-2."""

    def test_once_and_again_after_a_while(
        self, queue: Any, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """LQ-REGISTRY-3: the while is what a machine that stalls cannot reach, or nothing at all."""
        for module in (aio_executor, sync_executor):
            assert 60 <= module.REGISTER_AGAIN_SECS <= 600
            monkeypatch.setattr(module, "REGISTER_AGAIN_SECS", 3600.0)
        redis_client.config_resetstat()
        for _ in range(5):
            queue.add_item(Item(b"x"))
            queue.lease(60)
        assert calls(redis_client, SADD) == 1

    def test_a_server_that_lost_it_is_filled_again(
        self, queue: Any, always: None, redis_client: redis.Redis
    ) -> None:
        queue.add_item(Item(b"x"))
        redis_client.flushall()
        queue.add_item(Item(b"x"))
        assert entries(redis_client) == {b"q:q"}

    @pytest.mark.usefixtures("always")
    def test_the_fused_call(self, queue: Any, redis_client: redis.Redis) -> None:
        queue.add_items([Item(b"x", id="a"), Item(b"y", id="b")])
        item = queue.lease(30)
        redis_client.delete(KEY)
        assert queue.complete_and_lease(item, 30)[1].id == "b"
        assert len(entries(redis_client)) == 1

    def test_a_lease_that_waited(
        self, queue: Any, flavour: ClientFlavour, redis_client: redis.Redis, url: str
    ) -> None:
        waiting = flavour.start(queue.lease, 30, timeout=60)
        servers.wait_until(lambda: count_blocked(redis_client) == 1)
        with leaseq.WorkQueue("q", url) as other:
            other.executor._register_at = math.inf  # as a client that keeps no registry
            other.add_item(Item(b"x"))
        assert waiting.result(60)
        assert entries(redis_client) == {b"q:q"}


class TestNoCallSuffers:
    """LQ-REGISTRY-3."""

    def test_a_pool_of_one_connection(
        self, flavour: ClientFlavour, url: str, redis_client: redis.Redis
    ) -> None:
        queue = flavour.queue("q", flavour.client(url, max_connections=1))
        assert queue.add_item(Item(b"x"))
        assert queue.lease(60)
        assert entries(redis_client) == {b"q:q"}

    def test_what_an_interrupted_lease_brought_goes_back(
        self, url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fill(redis_client, url, "q")

        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(sync_executor.Executor, "execute_all", interrupted)
        with leaseq.WorkQueue("q", url) as queue:
            with pytest.raises(KeyboardInterrupt):
                queue.lease(3600)
            servers.wait_until(lambda: queue.stats().ready == 1, 60)
            assert queue.inspect("a").attempt == 0, "uncounted"

    def test_a_cluster_whose_node_of_the_registry_is_gone(
        self, flavour: ClientFlavour, cluster: servers.RedisCluster
    ) -> None:
        for node in cluster.nodes:
            with node.client() as client:
                client.config_set("cluster-require-full-coverage", "no")
        queues = [flavour.queue(f"q{n}", flavour.cluster_client(cluster.url)) for n in range(6)]
        assert all(queue.add_item(Item(b"x", id="a")) for queue in queues)
        clients = [node.client() for node in cluster.nodes]
        counts = [holds(client) for client in clients]
        assert sorted(counts) == [0, 0, 6], "all are entered where the slot of the key is"
        place = counts.index(6)
        fresh = [
            flavour.queue(f"q{n}", flavour.cluster_client(cluster.nodes[place - 1].url)) for n in range(6)
        ]
        homes = [home(clients, queue) for queue in queues]
        assert set(homes) == {0, 1, 2}
        for client in clients:
            client.close()
        cluster.nodes[place].kill()
        for queue, at in zip(fresh, homes, strict=True):
            if at != place:
                assert leased(queue).id == "a"


def leased(queue: leaseq.WorkQueue) -> leaseq.LeasedItem:
    item = queue.lease(60)
    assert item
    return item


def is_elsewhere(error: redis.ResponseError) -> bool:
    """Return whether a node sends on to another; redis-py before 6 names that for clients of clusters alone."""
    return isinstance(error, redis.exceptions.MovedError) or str(error).startswith("MOVED ")


def holds(client: redis.Redis) -> int:
    """Return how many queues are entered on one node."""
    try:
        return len(entries(client))
    except redis.ResponseError as error:
        if is_elsewhere(error):
            return 0
        raise


def home(clients: list[redis.Redis], queue: leaseq.WorkQueue) -> int:
    """Which node has the queue."""
    for place, client in enumerate(clients):
        try:
            client.exists(queue.keys.key("state"))
        except redis.ResponseError as error:
            if not is_elsewhere(error):
                raise
            continue
        return place
    raise AssertionError


class TestReading:
    """LQ-REGISTRY-4."""

    @pytest.fixture
    def read(self, flavour: ClientFlavour) -> Callable[[Any], list[RegisteredQueue]]:
        module = leaseq.aio.registry if isinstance(flavour, AsyncioFlavour) else leaseq.registry

        def read(server: Any) -> list[RegisteredQueue]:
            async def awaited() -> Any:
                return await module.queues(unwrap(server))

            return flavour.run(awaited() if isinstance(flavour, AsyncioFlavour) else module.queues(server))  # type: ignore[no-any-return]

        return read

    def test_an_own_client_stays_open(
        self,
        read: Callable[[Any], list[RegisteredQueue]],
        flavour: ClientFlavour,
        url: str,
        redis_client: redis.Redis,
    ) -> None:
        assert read(url) == []
        flavour.queue("q", url).add_item(Item(b"x"))
        client = flavour.client(url, decode_responses=True)
        assert read(client) == read(client) == [RegisteredQueue("q", "q")]

    def test_errors_are_named(
        self,
        read: Callable[[Any], list[RegisteredQueue]],
        url: str,
        redis_client: redis.Redis,
        closed_url: str,
    ) -> None:
        with pytest.raises(leaseq.UnavailableError):
            read(closed_url)
        redis_client.set(KEY, "mine")
        with pytest.raises(leaseq.ServerError):
            read(url)
        with pytest.raises(leaseq.BadArgumentError):
            read("what://")

    def test_from_the_environment(
        self,
        read: Callable[[Any], list[RegisteredQueue]],
        url: str,
        redis_client: redis.Redis,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        redis_client.sadd(KEY, "g:q")
        monkeypatch.setenv("REDIS_URL", url)
        assert read(None) == [RegisteredQueue("q", "g")]
        monkeypatch.delenv("REDIS_URL")
        with pytest.raises(
            leaseq.NoServerError, match=r"no server for the registry of queues: .*embedded:DIR"
        ):
            read(None)

    def test_a_cluster(
        self,
        read: Callable[[Any], list[RegisteredQueue]],
        flavour: ClientFlavour,
        cluster: servers.RedisCluster,
    ) -> None:
        client = flavour.cluster_client(cluster.url)
        for name in "abcdef":
            flavour.queue(name, client).add_item(Item(b"x"))
        assert [queue.name for queue in read(client)] == list("abcdef")


class TestLeaving:
    """LQ-DELETE-3."""

    def test_a_deleted_queue_is_entered_again_when_it_is_used(
        self, queue: Any, redis_client: redis.Redis
    ) -> None:
        queue.add_item(Item(b"", id="a"))
        with pytest.raises(leaseq.QueueInUseError, match="holds items"):
            queue.delete()
        assert entries(redis_client) == {b"q:q"}
        queue.remove("a")
        assert (queue.delete(), queue.delete()) == (True, False)
        assert not redis_client.keys("*")
        queue.add_item(Item(b"", id="a"))
        assert entries(redis_client) == {b"q:q"}

    def test_a_registry_that_cannot_be_written_fails_no_deletion(
        self, queue: Any, redis_client: redis.Redis
    ) -> None:
        queue.configure(max_items=1)
        redis_client.set(KEY, "of another program")
        assert queue.delete()


def test_each_queue_of_a_group_is_entered(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str
) -> None:
    """A hand-off fills a queue without entering it; leasing from it does."""
    for name in ("a", "b"):
        fill(redis_client, url, name, group="g")
    redis_client.delete(KEY)
    several = flavour.queues([flavour.queue(name, url, group="g") for name in ("a", "b")])
    for entry in (b"g:a", b"g:b"):
        assert entry not in entries(redis_client)
        assert several.lease(30) is not None
        assert entry in entries(redis_client)
