"""Taking over queues of redis-work-queue: real ones, made and used by the original's own client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
import redis_work_queue as original_client
from support import servers
from support.cli_runner import Calls

import leaseq
from leaseq import Item
from leaseq.transfer import ImportRunningError, Migration, OriginalQueue, StillLeasedError, migrate
from leaseq.transfer.redis_work_queue import LOCK_SECS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

# the original calls SETEX, which redis-py has come to discourage
pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated setex:DeprecationWarning")

PREFIX = "shop:orders"
HOUR = 3600


@pytest.fixture(params=["0.1.5", "0.3"])
def old(request: pytest.FixtureRequest) -> Any:
    """The original's own client, 0.1.5; as 0.3, it writes the key of a lease as version 0.3 does in every language."""
    client = original_client.WorkQueue(original_client.KeyPrefix(PREFIX))
    if request.param == "0.3":
        client._lease_key = original_client.KeyPrefix(f"{PREFIX}:lease:")
    return client


@pytest.fixture
def taken(redis_client: redis.Redis) -> OriginalQueue:
    return OriginalQueue(redis_client, PREFIX)


@pytest.fixture
def queue(redis_client: redis.Redis) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("orders", redis_client) as made:
        yield made


def fill(old: Any, client: redis.Redis, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        old.add_item(client, original_client.Item(f"data {number}".encode(), id=f"{number:04}"))


def drained(queue: leaseq.WorkQueue) -> list[tuple[str, bytes]]:
    """All items, leased and completed as a worker does, in order."""
    found = []
    while item := queue.lease(HOUR, block=False):
        found.append((item.id, item.data))
        assert queue.complete(item)
    return found


def of_the_original(client: redis.Redis) -> list[str]:
    return sorted(str(key) for key in client.keys(f"{PREFIX}*"))


def abandon(client: redis.Redis, item: Any) -> None:
    """The worker that leased this is gone, and its lease is over."""
    assert client.delete(f"{PREFIX}:leased_by_session:{item.id()}", f"{PREFIX}:lease:{item.id()}") == 1


def test_all_items_move_in_order_and_are_drained(
    old: Any, taken: OriginalQueue, queue: leaseq.WorkQueue, redis_client: redis.Redis
) -> None:
    fill(old, redis_client, 600)
    done = migrate(taken, queue)
    assert (done.added, done.exist, done.left) == (600, 0, 0)
    assert of_the_original(redis_client) == []
    assert drained(queue) == [(f"{n:04}", f"data {n}".encode()) for n in range(600)]


def test_any_data_and_ids_move(
    old: Any, taken: OriginalQueue, queue: leaseq.WorkQueue, redis_client: redis.Redis
) -> None:
    given = {"a b\n{c}": bytes(range(256)), "\u00e9": b"", "x" * 256: b"x"}
    for item_id, data in given.items():
        old.add_item(redis_client, original_client.Item(data, id=item_id))
    assert migrate(taken, queue).added == 3
    assert dict(drained(queue)) == given


def test_leases_of_the_originals_workers_are_respected(
    old: Any, taken: OriginalQueue, queue: leaseq.WorkQueue, redis_client: redis.Redis
) -> None:
    fill(old, redis_client, 3)
    held = old.lease(redis_client, HOUR)
    before = {key: redis_client.dump(key) for key in redis_client.keys(f"{PREFIX}*")}
    with pytest.raises(StillLeasedError, match=r"hold 1 items, for up to 3\d+ s"):
        migrate(taken, queue)
    assert {key: redis_client.dump(key) for key in redis_client.keys(f"{PREFIX}*")} == before
    assert queue.stats().added == 0
    # the worker's item stays its own, and it can complete it
    done = migrate(taken, queue, waiting_only=True)
    assert (done.added, queue.inspect("0000").state) == (2, "absent")
    assert old.complete(redis_client, held)
    assert of_the_original(redis_client) == []


def test_a_lease_without_an_end_is_respected(
    old: Any, taken: OriginalQueue, queue: leaseq.WorkQueue, redis_client: redis.Redis
) -> None:
    fill(old, redis_client, 2)
    held = old.lease(redis_client, HOUR)
    leases = (f"{PREFIX}:lease:{held.id()}", f"{PREFIX}:leased_by_session:{held.id()}")
    assert [redis_client.persist(key) for key in leases].count(True) == 1
    with pytest.raises(StillLeasedError, match="hold 1 items"):
        migrate(taken, queue)
    assert queue.stats().added == 0


def test_what_dead_workers_left_moves_too(
    old: Any, taken: OriginalQueue, queue: leaseq.WorkQueue, redis_client: redis.Redis
) -> None:
    fill(old, redis_client, 3)
    abandon(redis_client, old.lease(redis_client, HOUR))
    counts = taken.counts()
    assert (counts.waiting, counts.processing, counts.leased) == (2, 1, 0)
    assert migrate(taken, queue).added == 3
    assert [item_id for item_id, _ in drained(queue)] == ["0000", "0001", "0002"]
    assert of_the_original(redis_client) == []


def test_what_the_originals_cleaner_left_moves_too(
    old: Any, taken: OriginalQueue, queue: leaseq.WorkQueue, redis_client: redis.Redis
) -> None:
    fill(old, redis_client, 1)
    # its cleaner died between taking the id out of one list and putting it into the other
    redis_client.rpoplpush(f"{PREFIX}:queue", f"{PREFIX}:cleaning")
    assert migrate(taken, queue).added == 1


def test_an_id_twice_is_one_item(
    old: Any, taken: OriginalQueue, queue: leaseq.WorkQueue, redis_client: redis.Redis
) -> None:
    fill(old, redis_client, 2)
    fill(old, redis_client, 1)
    queue.add_item(Item(b"here already", id="0001"))
    done = migrate(taken, queue)
    # the second of the two has lost its data
    assert (done.added, done.exist, done.without_data, done.refused) == (1, 1, 1, 0)
    assert "'0000' has no data" in done.why[0]
    assert dict(drained(queue)) == {"0000": b"data 0", "0001": b"here already"}


def test_what_leaseq_does_not_take_stays_and_is_named(
    old: Any, taken: OriginalQueue, queue: leaseq.WorkQueue, redis_client: redis.Redis
) -> None:
    queue.configure(max_data=10)
    for item_id, data in (("a", b"x"), ("big", b"x" * 11), ("i" * 257, b"x"), ("b", b"x")):
        old.add_item(redis_client, original_client.Item(data, id=item_id))
    redis_client.set(f"{PREFIX}:item:".encode() + b"\xff", "x")
    redis_client.lpush(f"{PREFIX}:queue", b"\xff")
    done = migrate(taken, queue)
    assert (done.added, done.refused) == (2, 3)
    assert {why.split(" ")[0] for why in done.why} == {r"'\\xff'", "'big'", f"'{'i' * 257}'"}
    assert redis_client.get(f"{PREFIX}:item:big") == b"x" * 11
    # with room for it, the next run takes it
    queue.configure(max_data=100)
    again = migrate(taken, queue)
    assert (again.added, again.refused) == (1, 2)
    assert queue.inspect("big").state == "ready"


def test_a_full_queue_loses_nothing(
    old: Any, taken: OriginalQueue, queue: leaseq.WorkQueue, redis_client: redis.Redis
) -> None:
    fill(old, redis_client, 300)
    queue.configure(max_items=100)
    with pytest.raises(leaseq.QueueFullError):
        migrate(taken, queue)
    assert queue.stats().items == 100
    assert taken.counts().total == 200
    queue.configure(max_items=0)
    done = migrate(taken, queue)
    assert (done.added, done.exist) == (200, 0)
    assert [item_id for item_id, _ in drained(queue)] == [f"{n:04}" for n in range(300)]


KILLED = """
import os, signal, sys, redis, leaseq
from leaseq.transfer import OriginalQueue, migrate

url, prefix, commands = sys.argv[1], sys.argv[2], int(sys.argv[3])
client = redis.Redis.from_url(url)
sent = 0

def count(send):
    def counted(*args, **options):
        global sent
        if sent == commands:
            os.kill(os.getpid(), signal.SIGKILL)
        sent += 1
        return send(*args, **options)
    return counted

kind = client.connection_pool.connection_class
kind.send_packed_command = count(kind.send_packed_command)
with leaseq.WorkQueue("orders", client) as queue:
    migrate(OriginalQueue(client, prefix), queue)
"""


@pytest.mark.slow
def test_killed_before_each_command_it_loses_nothing_and_doubles_nothing(
    old: Any, taken: OriginalQueue, queue: leaseq.WorkQueue, redis_client: redis.Redis, url: str
) -> None:
    script = textwrap.dedent(KILLED)
    kills = 0
    while True:
        fill(old, redis_client, 3)
        abandon(redis_client, old.lease(redis_client, HOUR))
        run = subprocess.run(
            [sys.executable, "-c", script, url, PREFIX, str(kills)],
            check=False,
            capture_output=True,
            timeout=300,
            env={**os.environ},
        )
        if run.returncode == 0:
            break
        assert run.returncode == -signal.SIGKILL, run.stderr
        kills += 1
        # wherever it died, each item is in the one queue or the other, or on its way
        there = {n for n in ("0000", "0001", "0002") if redis_client.exists(f"{PREFIX}:item:{n}")}
        here = {listed.id for listed in queue.list_items("ready").items}
        assert there | here == {"0000", "0001", "0002"}
        if redis_client.exists(taken.lock_key):
            assert 0 < redis_client.ttl(taken.lock_key) <= LOCK_SECS
            with pytest.raises(ImportRunningError, match=r"run this again in \d+ s"):
                migrate(taken, queue)
            redis_client.delete(taken.lock_key)  # its time is over
        migrate(taken, queue)
        assert dict(drained(queue)) == {f"{n:04}": f"data {n}".encode() for n in range(3)}
        assert of_the_original(redis_client) == []
    assert kills >= 8  # connect, counts, leases, claim, read, add, forget, ...
    assert len(drained(queue)) == 3


def test_a_second_import_is_refused_and_the_first_goes_on(
    old: Any, taken: OriginalQueue, queue: leaseq.WorkQueue, redis_client: redis.Redis
) -> None:
    fill(old, redis_client, 600)
    refused: list[str] = []

    def second(_done: Migration) -> None:
        with pytest.raises(ImportRunningError) as raised:
            migrate(OriginalQueue(redis_client, PREFIX), queue)
        refused.append(str(raised.value))

    done = migrate(taken, queue, on_progress=second)
    assert (done.added, done.left) == (600, 0)
    assert len(refused) >= 2
    assert refused[0].startswith("another import of shop:orders runs")
    assert of_the_original(redis_client) == []
    assert len(drained(queue)) == 600


def test_an_import_that_has_lost_its_lock_moves_nothing_more(
    old: Any, taken: OriginalQueue, queue: leaseq.WorkQueue, redis_client: redis.Redis
) -> None:
    fill(old, redis_client, 600)

    def stalled(_done: Migration) -> None:
        redis_client.delete(taken.lock_key)  # it stood still so that another started
        redis_client.set(taken.lock_key, "another", ex=LOCK_SECS)

    with pytest.raises(ImportRunningError, match="did not go on for 30 s"):
        migrate(taken, queue, on_progress=stalled)
    assert queue.stats().items == 256
    assert redis_client.get(taken.lock_key) == b"another"
    redis_client.delete(taken.lock_key)
    done = migrate(taken, queue)
    assert (done.added, done.exist, done.left) == (344, 0, 0)
    assert len(drained(queue)) == 600


@pytest.mark.parametrize("prefix", [PREFIX, "a[b]*?\\"])
def test_items_in_no_list_move_too(queue: leaseq.WorkQueue, redis_client: redis.Redis, prefix: str) -> None:
    # a producer of 0.3 died behind SETNX; of the others one waits, one is leased, one belongs to another queue
    redis_client.set(f"{prefix}:item:stranded", "x")
    redis_client.set(f"{prefix}:item:waits", "y")
    redis_client.lpush(f"{prefix}:queue", "waits")
    redis_client.set(f"{prefix}:item:leased", "z")
    redis_client.set(f"{prefix}:lease:leased", "worker", ex=HOUR)
    redis_client.set("abb:item:other", "n")
    original = OriginalQueue(redis_client, prefix)
    assert (original.counts().stranded, original.counts().total) == (1, 2)
    assert migrate(original, queue, waiting_only=True).added == 1
    assert migrate(original, queue).added == 1
    assert sorted(drained(queue)) == [("stranded", b"x"), ("waits", b"y")]
    assert set(redis_client.keys("*:item:*")) == {f"{prefix}:item:leased".encode(), b"abb:item:other"}


def test_a_prefix_of_something_else_is_refused(
    redis_client: redis.Redis, taken: OriginalQueue, queue: leaseq.WorkQueue
) -> None:
    redis_client.set(f"{PREFIX}:queue", "mine")
    with pytest.raises(leaseq.WrongKeyTypeError, match="no prefix of a queue"):
        migrate(taken, queue)
    assert redis_client.get(f"{PREFIX}:queue") == b"mine"


def test_a_cluster_is_refused(cluster: servers.RedisCluster) -> None:

    with (
        servers.cluster_client(cluster.url) as client,
        pytest.raises(leaseq.BadTypeError, match="one server"),
    ):
        OriginalQueue(client, PREFIX)


def test_the_command(old: Any, queue: leaseq.WorkQueue, redis_client: redis.Redis, url: str) -> None:
    fill(old, redis_client, 5)
    held = old.lease(redis_client, HOUR)
    command = ("import-redis-work-queue", PREFIX, "orders")
    dry = Calls(url)(*command, "--dry-run")
    assert "4 wait, 1 were taken by workers, 1 under a lease" in dry.out
    refused = Calls(url)(*command)
    assert refused.code == dry.code == 3
    assert refused.err.count("\n") == 1
    assert "stop those workers" in refused.err
    assert queue.stats().added == 0
    assert old.complete(redis_client, held)
    done = Calls(url)(*command, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["added"] == 4
    again = Calls(url)(*command)
    assert (again.code, "nothing to move" in again.err) == (1, True)
    assert len(drained(queue)) == 4


def test_from_another_server(old: Any, redis_client: redis.Redis, url: str) -> None:
    fill(old, redis_client, 3)
    with servers.SpawnedServer() as other:
        done = Calls(other.url)("import-redis-work-queue", PREFIX, "orders", "--from", url)
        assert done.code == 0, done.err
        with leaseq.WorkQueue("orders", other.url) as queue:
            assert len(drained(queue)) == 3
    assert of_the_original(redis_client) == []
