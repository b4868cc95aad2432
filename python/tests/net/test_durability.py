"""Calls that wait for replicas or for disks: WAIT and WAITAOF behind the call, on its connection."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio.sentinel
import redis.sentinel
from support.cli_runner import Calls
from support.client_flavours import unwrap
from support.redis_probe import EVALS, calls, count_blocked, load
from support.servers import RedisCluster, SpawnedServer, startable, wait_until

import leaseq
import leaseq.aio
import leaseq.jobs
from leaseq import Completed, Completion, Disk, Item, NotDurableError, Replicas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.client_flavours import ClientFlavour
    from support.sentinel_set import SentinelSet
    from support.servers import StartServer

    from leaseq_conformance.fault_proxy import Listener

LONG = Replicas(1, timeout=60)
SHORT = Replicas(1, timeout=0.05)
ITEMS = "leaseq:{q}:q:items"
AT_ONCE = ("--repl-diskless-sync-delay", "0")
AOF = ("--appendonly", "yes", "--appendfsync", "always")


def replica_of(primary: SpawnedServer, *options: str) -> tuple[str, ...]:
    """The options of a replica."""
    return ("--replicaof", "127.0.0.1", str(primary.port), *AT_ONCE, *options)


def in_step(replica: SpawnedServer) -> None:
    """Wait until a replica has its first copy."""
    with replica.client() as client:
        wait_until(lambda: dict(client.info("replication"))["master_link_status"] == "up")


@pytest.fixture(scope="module")
def servers_of_the_file(server_name: str) -> Iterator[tuple[SpawnedServer, SpawnedServer]]:
    """A primary and a replica."""
    with (
        SpawnedServer(startable(server_name), *AT_ONCE) as primary,
        SpawnedServer(startable(server_name), *replica_of(primary)) as replica,
    ):
        in_step(replica)
        yield primary, replica


@pytest.fixture
def pair(
    servers_of_the_file: tuple[SpawnedServer, SpawnedServer],
) -> Iterator[tuple[SpawnedServer, SpawnedServer]]:
    """A primary and a replica, empty; the primary knows the scripts."""
    primary, replica = servers_of_the_file
    primary.flush()
    with primary.client() as client:
        load(client)
        client.wait(1, 60_000)
        client.config_resetstat()
    yield primary, replica
    os.kill(replica.pid, signal.SIGCONT)


@contextlib.contextmanager
def paused(server: SpawnedServer) -> Iterator[None]:
    """A server that stands still."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def prepared(queue: leaseq.WorkQueue, **options: Any) -> list[Any]:
    """Two items of three, leased."""
    queue.add_items([Item(b"x", id=item_id) for item_id in "abc"], **options)
    return queue.lease_items(2, 60)


# each call that takes `durable`, with two leased items: what it returns, and how many items of three are left
Call = tuple[Callable[[Any, Any, Any], Any], Any, int]
CALLS: dict[str, Call] = {
    "add_item": (lambda q, _, o: q.add_item(Item(b"x"), **o), True, 4),
    "add_item of an id that exists": (lambda q, _, o: q.add_item(Item(b"x", id="a"), **o), False, 3),
    "add_items": (lambda q, _, o: q.add_items([Item(b"x", id="a"), Item(b"x")], **o), [False, True], 4),
    "add_item_when_room": (lambda q, _, o: q.add_item_when_room(Item(b"x"), timeout=0, **o), True, 4),
    "add_items_when_room": (lambda q, _, o: q.add_items_when_room([Item(b"x")], timeout=0, **o), [True], 4),
    "complete": (lambda q, i, o: q.complete(i[0], **o), True, 2),
    "complete with a follow-up": (
        lambda q, i, o: q.complete(i[0], then=[(unwrap(q), Item(b"y"))], **o),
        Completed(completed=True, added=[True]),
        3,
    ),
    "complete_items": (lambda q, i, o: q.complete_items(i, **o), [True, True], 1),
    "complete_items of Completions": (
        lambda q, i, o: q.complete_items([Completion(unwrap(i[0]), keep=9)], **o),
        [Completed(completed=True, added=[])],
        2,
    ),
}
every_call = pytest.mark.parametrize("name", CALLS)


@every_call
def test_a_replica_has_what_was_answered(
    flavour: ClientFlavour, pair: tuple[SpawnedServer, SpawnedServer], name: str
) -> None:
    """One call, one wait behind it, and the replica has it."""
    primary, replica = pair
    call, answer, left = CALLS[name]
    queue = flavour.queue("q", primary.url)
    items = prepared(queue)
    with primary.client() as observer, replica.client() as client:
        before, waits = calls(observer, *EVALS), calls(observer, "cmdstat_wait")
        assert call(queue, items, {"durable": LONG}) == answer
        assert client.hlen(ITEMS) == left
        assert calls(observer, *EVALS) == before + 1
        assert calls(observer, "cmdstat_wait") == waits + 2, "the look ahead of the first call, and the wait"
        queue.add_item(Item(b"x"), durable=LONG)
        assert calls(observer, "cmdstat_wait") == waits + 3


@every_call
@pytest.mark.parametrize("given_to", ["call", "queue"])
def test_too_few_replicas(
    flavour: ClientFlavour, pair: tuple[SpawnedServer, SpawnedServer], name: str, given_to: str
) -> None:
    """The error has the answer of a call that ran once and is not sent again."""
    primary, replica = pair
    call, answer, left = CALLS[name]
    queue = flavour.queue("q", primary.url, durable=SHORT if given_to == "queue" else None)
    options = {} if given_to == "queue" else {"durable": SHORT}
    items = prepared(queue, durable=LONG)
    with primary.client() as observer, paused(replica):
        before = calls(observer, *EVALS)
        started = time.monotonic()
        with pytest.raises(NotDurableError, match=r"the call was done, but .*: 0 of 1 have it") as caught:
            call(queue, items, options)
        assert time.monotonic() - started >= 0.05
        error = caught.value
        assert (error.answer, error.reached, error.wanted) == (answer, 0, 1)
        assert error.answers == (answer if isinstance(answer, list) else [answer])
        assert (error.definite, error.in_doubt) == (True, 0)
        assert calls(observer, *EVALS) == before + 1
        assert queue.stats().items == left
        assert calls(observer, "cmdstat_wait") >= 2


def test_a_call_in_parts_stops_at_the_first_that_is_not_durable(
    flavour: ClientFlavour, pair: tuple[SpawnedServer, SpawnedServer]
) -> None:
    """LQ-CLIENT-2, LQ-CLIENT-11: the answers are those of the calls that were sent."""
    primary, replica = pair
    queue = flavour.queue("q", primary.url)
    with paused(replica):
        with pytest.raises(NotDurableError) as caught:
            queue.add_items([Item(b"x") for _ in range(600)], durable=SHORT)
        assert caught.value.answer == [True] * 256
        assert queue.stats().items == 256
        items = queue.lease_items(256, 60)
        with pytest.raises(NotDurableError) as caught:
            queue.complete_items(items + items, durable=SHORT)
        assert caught.value.answers == [True] * 256


def test_a_queue_without_room(flavour: ClientFlavour, pair: tuple[SpawnedServer, SpawnedServer]) -> None:
    """An add that added nothing raises QueueFullError; the answers of another have None for the rest."""
    primary, replica = pair
    queue = flavour.queue("q", primary.url, durable=SHORT)
    queue.configure(max_items=2)
    with paused(replica):
        with pytest.raises(NotDurableError) as caught:
            queue.add_items([Item(b"x") for _ in range(3)])
        assert caught.value.answer == [True, True, None]
        for add in (
            lambda: queue.add_item(Item(b"x")),
            lambda: queue.add_items([Item(b"x")]),
            lambda: queue.add_item_when_room(Item(b"x"), timeout=0.05),
        ):
            with pytest.raises(leaseq.QueueFullError):
                add()
        adding = flavour.start(queue.add_items_when_room, [Item(b"y"), Item(b"z")])
        with primary.client() as observer:
            wait_until(lambda: count_blocked(observer) == 1)
        taken = queue.lease_items(2, 60)
        with pytest.raises(NotDurableError):
            queue.complete_items(taken)
        with pytest.raises(NotDurableError) as caught:
            adding.result(60)
        assert caught.value.answer == [True, True]
        assert queue.stats().items == 2


def test_complete_and_lease(flavour: ClientFlavour, pair: tuple[SpawnedServer, SpawnedServer]) -> None:
    """The wait is for the completion; nothing is leased if that is not durable."""
    primary, replica = pair
    queue = flavour.queue("q", primary.url)
    items = prepared(queue)
    done, item = queue.complete_and_lease(items[0], 60, durable=LONG)
    assert done
    assert item is not None
    with paused(replica):
        with pytest.raises(NotDurableError) as caught:
            queue.complete_and_lease(items[1], 60, durable=SHORT)
        assert caught.value.answer is True
        assert queue.stats().leased == 1


def test_a_with_block_has_nothing_to_add(
    flavour: ClientFlavour, pair: tuple[SpawnedServer, SpawnedServer]
) -> None:
    """The item is completed: it is not completed again, and not released because of the error."""
    primary, replica = pair
    queue = flavour.queue("q", primary.url, durable=SHORT)
    first, second = prepared(queue, durable=LONG)
    with primary.client() as observer, paused(replica):
        before = calls(observer, *EVALS)
        with pytest.raises(NotDurableError), first:
            pass
        with pytest.raises(NotDurableError), second:
            queue.complete(second)
        assert calls(observer, *EVALS) == before + 2
        assert queue.stats().items == 1


def test_a_call_that_changes_nothing_has_nothing_to_wait_for(
    flavour: ClientFlavour, pair: tuple[SpawnedServer, SpawnedServer]
) -> None:
    """The server counts the writes of a connection: false does not say that the earlier call is durable. A later write does."""
    primary, replica = pair
    queues = [flavour.queue("q", primary.url, durable=SHORT) for _ in range(2)]
    item = Item(b"x", id="a")
    with paused(replica):
        with pytest.raises(NotDurableError):
            queues[0].add_item(item)
        assert queues[1].add_item(item) is False
    assert queues[1].add_item(Item(b"x"), durable=LONG)
    with replica.client() as client:
        assert client.hlen("leaseq:{q}:q:items") == 2


def test_the_time_limit_of_the_client_covers_the_wait(
    flavour: ClientFlavour, pair: tuple[SpawnedServer, SpawnedServer]
) -> None:
    """A reply may take 0.2 s, and the wait takes 0.5 s."""
    primary, replica = pair
    queue = flavour.queue("q", flavour.client(primary.url, socket_timeout=0.2))
    with paused(replica), pytest.raises(NotDurableError) as caught:
        queue.add_item(Item(b"x"), durable=Replicas(1, timeout=timedelta(seconds=0.5)))
    assert (caught.value.answer, caught.value.reached) == (True, 0)


def test_a_script_that_the_server_does_not_know(
    flavour: ClientFlavour, pair: tuple[SpawnedServer, SpawnedServer]
) -> None:
    """LQ-SCRIPT-2: it is sent as text, with another wait behind it."""
    primary, replica = pair
    with primary.client() as client:
        client.script_flush()
        queue = flavour.queue("q", primary.url)
        assert queue.add_item(Item(b"x"), durable=LONG)
        client.script_flush()
        client.config_resetstat()
        with paused(replica), pytest.raises(NotDurableError):
            queue.add_item(Item(b"x"), durable=SHORT)
        assert calls(client, "cmdstat_eval") == 1
        assert queue.stats().items == 2


def test_an_error_of_the_call_is_that_of_the_call(
    flavour: ClientFlavour, pair: tuple[SpawnedServer, SpawnedServer]
) -> None:
    """The caller does not wait for the wait behind it."""
    primary, replica = pair
    queue = flavour.queue("q", primary.url)
    queue.add_item(Item(b"x"), durable=LONG)
    with paused(replica):
        queue.add_item(Item(b"x"))
        started = time.monotonic()
        with pytest.raises(leaseq.BadArgumentError):
            queue.add_item(Item(b"x"), priority=9, durable=LONG)
        assert time.monotonic() - started < LONG.wait_secs / 4
        assert queue.stats().items == 2


def test_the_queue_is_registered(flavour: ClientFlavour, pair: tuple[SpawnedServer, SpawnedServer]) -> None:
    """LQ-REGISTRY-2: also if no add is durable; the cleaner finds it."""
    primary, replica = pair
    with primary.client() as client, paused(replica):
        with pytest.raises(NotDurableError):
            flavour.queue("q", primary.url).add_item(Item(b"x"), durable=SHORT)
        assert client.smembers("leaseq:queues")


# lost connections


@pytest.mark.parametrize("name", ["add_item", "complete with a follow-up"])
def test_a_connection_that_breaks_during_the_wait(
    flavour: ClientFlavour, url: str, proxy: Listener, redis_client: redis.Redis, name: str
) -> None:
    """The answer was there, so the error has it; it is not known how far the call got."""
    load(redis_client)
    call, answer, left = CALLS[name]
    queue = flavour.queue("q", proxy.url)
    items = prepared(queue)
    before = calls(redis_client, *EVALS)
    point = proxy.add_breakpoint("WAIT", "after", nth=2)  # the first is the look ahead
    running = flavour.start(call, queue, items, {"durable": SHORT})
    point.wait()
    point.disconnect()
    with pytest.raises(NotDurableError, match="the connection broke during the wait") as caught:
        running.result(60)
    assert (caught.value.answer, caught.value.reached) == (answer, None)
    assert caught.value.definite
    assert calls(redis_client, *EVALS) == before + 1
    assert queue.stats().items == left


def test_a_connection_that_breaks_before_the_answer(
    flavour: ClientFlavour, proxy: Listener, redis_client: redis.Redis
) -> None:
    """LQ-CLIENT-1: as without `durable`."""
    load(redis_client)
    queue = flavour.queue("q", proxy.url)
    with pytest.raises(NotDurableError):
        queue.add_item(Item(b"x"), durable=SHORT)
    proxy.add_breakpoint("EVALSHA", "after", "disconnect")
    with pytest.raises(leaseq.ReplyLostError) as caught:
        queue.add_item(Item(b"x"), durable=SHORT)
    assert caught.value.definite is False
    assert queue.stats().items == 2
    proxy.reset()
    proxy.add_breakpoint("WAIT", "before", "disconnect")
    with pytest.raises(leaseq.UnavailableError, match="nothing was sent"):
        queue.add_item(Item(b"x"), durable=SHORT)
    assert queue.stats().items == 2


def test_a_server_that_refuses_the_wait_behind_the_call(
    flavour: ClientFlavour, proxy: Listener, redis_client: redis.Redis
) -> None:
    """Its right was taken away behind the look, or the server became a replica meanwhile."""
    load(redis_client)
    queue = flavour.queue("q", proxy.url)
    proxy.add_breakpoint("WAIT", "before", b"-UNBLOCKED instance state changed\r\n", nth=2)
    with pytest.raises(NotDurableError, match=r"the server did not wait: .*UNBLOCKED") as caught:
        queue.add_item(Item(b"x"), durable=LONG)
    assert (caught.value.answer, caught.value.reached) == (True, None)


@pytest.mark.slow
def test_a_queue_that_is_closed_during_the_wait(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str
) -> None:
    """Closing lets calls finish; a longer wait ends, with the answer of its call."""
    queue = flavour.queue("q", url)
    queue.add_item(Item(b"x"))
    waits = [Replicas(1, timeout=0.5), LONG]
    adding = [flavour.start(queue.add_item, Item(b"x"), durable=wait) for wait in waits]
    wait_until(lambda: count_blocked(redis_client) == 2)
    queue.close()
    for each, reached in zip(adding, (0, None), strict=True):
        with pytest.raises(NotDurableError) as caught:
            each.result(60)
        assert (caught.value.answer, caught.value.reached) == (True, reached)
    with pytest.raises(leaseq.QueueClosedError):
        queue.add_item(Item(b"x"), durable=LONG)


def test_a_caller_that_is_cancelled_during_the_wait(redis_client: redis.Redis, url: str) -> None:
    """The call took effect, and the connection is not used again for another."""

    async def scene() -> None:
        async with leaseq.aio.WorkQueue("q", url) as queue:
            adding = asyncio.create_task(queue.add_item(Item(b"x"), durable=LONG))
            await asyncio.to_thread(
                wait_until, lambda: redis_client.hlen(ITEMS) and count_blocked(redis_client)
            )
            adding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await adding
            assert (await queue.stats()).items == 1

    asyncio.run(scene())


# disks


def has_waitaof(server: SpawnedServer) -> bool:
    """Return whether a server has the command: from 7.2 on."""
    with server.client() as client:
        return "waitaof" in dict(client.command())


def test_disk(flavour: ClientFlavour, own_server: StartServer) -> None:
    """The primary's disk, and those of replicas; a replica does not stand in for the primary."""
    primary = own_server(*AOF, *AT_ONCE)
    if not has_waitaof(primary):
        return  # `test_a_server_that_cannot_wait_for_its_disk` has the refusal
    replica = own_server(*replica_of(primary, *AOF))
    in_step(replica)
    queue = flavour.queue("q", primary.url)
    assert queue.add_item(Item(b"x", id="a"), durable=Disk(timeout=30))
    assert queue.add_item(Item(b"x", id="b"), durable=Disk(timeout=30, replicas=1))
    with paused(replica):
        assert queue.add_item(Item(b"x"), durable=Disk(timeout=30))
        with pytest.raises(NotDurableError, match="1 of 2 have it") as caught:
            queue.add_item(Item(b"x"), durable=Disk(timeout=0.05, replicas=1))
        assert (caught.value.answer, caught.value.reached, caught.value.wanted) == (True, 1, 2)
    item = queue.lease(60)
    assert item is not None
    assert queue.complete(item, durable=Disk(timeout=30, replicas=1))
    primary.kill()
    primary.start()
    assert queue.stats().items == 3
    assert Disk(timeout=1, replicas=1).reached([0, 2]) == 1


def test_a_server_that_cannot_wait_for_its_disk(flavour: ClientFlavour, own_server: StartServer) -> None:
    """Refused by name before anything is sent: without an append-only file, and before 7.2."""
    server = own_server()
    has_command = has_waitaof(server)
    queue = flavour.queue("q", server.url)
    queue.add_item(Item(b"x"))
    item: Any = queue.lease(60)
    attempts: list[Callable[[], Any]] = [
        lambda: queue.add_item(Item(b"x"), durable=Disk(timeout=1)),
        lambda: queue.complete(item, durable=Disk(timeout=1)),
    ]
    # the same connection has run that script, and waits for replicas
    with pytest.raises(leaseq.NotDurableError):
        queue.add_item(Item(b"x", id="a"), durable=Replicas(1, timeout=0.01))
    assert queue.remove("a") == "ready"
    for attempt in attempts:
        advice = "set appendonly yes" if has_command else "no command WAITAOF.* 7.2 or later"
        with pytest.raises(leaseq.NoDurabilityError, match=advice) as caught:
            attempt()
        assert caught.value.definite
    assert queue.stats().items == 1
    if has_command:
        with server.client() as client:
            client.config_set("appendonly", "yes")
        assert queue.add_item(Item(b"x"), durable=Disk(timeout=60)), "the next call asks again"
    assert queue.complete(item)


@pytest.mark.slow
def test_an_old_server_is_refused_by_name(flavour: ClientFlavour) -> None:
    """Redis 7.0 has WAIT and no WAITAOF."""
    with SpawnedServer("redis-7.0", *AOF) as server:
        queue = flavour.queue("q", server.url)
        with pytest.raises(
            leaseq.NoDurabilityError, match="no command WAITAOF, nothing was done: take Redis or"
        ):
            queue.add_item(Item(b"x"), durable=Disk(timeout=1))
        assert queue.stats().items == 0
        with pytest.raises(NotDurableError):
            queue.add_item(Item(b"x"), durable=SHORT)


# rights


def test_a_user_without_the_right(flavour: ClientFlavour, own_server: StartServer) -> None:
    """The right is named before anything is sent, and `leaseq acl --durable` grants it."""
    server = own_server(*AOF)
    with server.client() as client:
        kinds: list[tuple[str, leaseq.Durability]] = [("replicas", SHORT)]
        if has_waitaof(server):
            kinds.append(("disk", Disk(timeout=30)))
        for kind, durable in kinds:
            for options in ((), ("--durable", kind)):
                line = Calls("").yes("acl", "producer", *options).out.split()
                client.execute_command(*line)
                queue = flavour.queue("q", server.url.replace("redis://", "redis://producer:CHANGE-ME@"))
                if options:
                    with contextlib.suppress(NotDurableError):
                        assert queue.add_item(Item(b"x"), durable=durable)
                    continue
                named = rf"\+wait.*nothing was done.*leaseq acl ROLE --durable {kind}"
                with pytest.raises(leaseq.AccessDeniedError, match=named) as caught:
                    queue.add_item(Item(b"x"), durable=durable)
                assert caught.value.definite
        assert queue.outcome("none", timeout=0).state == "absent"
        assert client.hlen(ITEMS) == len(kinds)


# several servers


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_cluster(flavour: ClientFlavour, startable_name: str) -> None:
    """The wait goes to the node that has the slot, also behind a redirection."""
    with RedisCluster(startable_name, replicas=1) as cluster:
        client = flavour.cluster_client(cluster.url)
        queues = [flavour.queue(name, client) for name in "abcd"]
        for queue in queues:
            assert queue.add_item(Item(b"x", id="1"), durable=LONG)
            item = queue.lease(60)
            assert item is not None
            assert queue.complete(item, then=[(unwrap(queue), Item(b"y"))], durable=LONG)
        with contextlib.ExitStack() as stack:
            for replica in cluster.replicas:
                stack.enter_context(paused(replica))
            for queue in queues:
                with pytest.raises(NotDurableError) as caught:
                    queue.add_item(Item(b"z"), durable=SHORT)
                assert (caught.value.answer, caught.value.reached) == (True, 0)
                assert queue.stats().items == 2


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_slot_that_moved(flavour: ClientFlavour, cluster: RedisCluster) -> None:
    """The call and its wait follow MOVED; the call runs once."""
    client = flavour.cluster_client(cluster.url)
    queue = flavour.queue("q", client)
    with pytest.raises(NotDurableError):
        queue.add_item(Item(b"x"), durable=SHORT)
    assert queue.remove(queue.list_items("ready").items[0].id) == "ready"
    slot = slot_of(cluster, queue.keys.key("state"))
    owner = next(node for node in cluster.primaries if has_slot(node, queue.keys.key("state")))
    with owner.client() as node:
        node.flushall()
    cluster.move(slot, next(node for node in cluster.primaries if node is not owner))
    with pytest.raises(NotDurableError) as caught:
        queue.add_item(Item(b"x", id="moved"), durable=SHORT)
    assert caught.value.answer is True
    assert queue.stats().items == 1


def slot_of(cluster: RedisCluster, key: str) -> int:
    """The slot of a key."""
    with cluster.primaries[0].client() as client:
        return int(client.execute_command("CLUSTER", "KEYSLOT", key))


def has_slot(node: SpawnedServer, key: str) -> bool:
    """Return whether a node serves a key."""
    with node.client() as client:
        try:
            client.get(key)
        except redis.ResponseError:
            return False
        return True


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_sentinel(flavour: ClientFlavour, sentinel: SentinelSet) -> None:
    """Through Sentinel, with both replicas and with one of them."""
    kind: Any = (redis.sentinel if flavour.name == "sync" else redis.asyncio.sentinel).Sentinel
    asked = kind(sentinel.sentinels, socket_timeout=5)
    for each in asked.sentinels:
        flavour.own(each)
    queue = flavour.queue("q", flavour.own(asked.master_for(sentinel.service)))
    assert queue.add_item(Item(b"x"), durable=Replicas(2, timeout=60))
    with paused(sentinel.replicas[0]):
        assert queue.add_item(Item(b"x"), durable=LONG)
        with pytest.raises(NotDurableError, match="1 of 2 have it") as caught:
            queue.add_item(Item(b"x"), durable=Replicas(2, timeout=0.05))
        assert (caught.value.answer, caught.value.reached, caught.value.wanted) == (True, 1, 2)


# arguments


@pytest.mark.parametrize("count", [0, -1, 1001, True, "1", 1.0, None])
def test_wrong_counts(count: Any) -> None:
    with pytest.raises((leaseq.BadTypeError, leaseq.BadArgumentError)):
        Replicas(count, timeout=1)
    if count != 0:
        with pytest.raises((leaseq.BadTypeError, leaseq.BadArgumentError)):
            Disk(timeout=1, replicas=count)


@pytest.mark.parametrize("timeout", [0, -1, 0.0004, None, "1", True, float("inf"), float("nan")])
def test_wrong_times(timeout: Any) -> None:
    """A server takes 0 for a wait without limit."""
    for make in (lambda: Replicas(1, timeout=timeout), lambda: Disk(timeout=timeout)):
        with pytest.raises((leaseq.BadTypeError, leaseq.BadArgumentError), match="timeout"):
            make()


@pytest.mark.parametrize("wrong", [0, 1, True, False, "replicas", Replicas])
def test_wrong_durable(flavour: ClientFlavour, queue: Any, redis_client: redis.Redis, wrong: Any) -> None:
    """Refused before anything is sent."""
    queue.add_item(Item(b"x"))
    item = queue.lease(60)
    for call in (
        lambda: flavour.queue("q", durable=wrong),
        lambda: queue.add_item(Item(b"x"), durable=wrong),
        lambda: queue.add_items([Item(b"x")], durable=wrong),
        lambda: queue.add_item_when_room(Item(b"x"), durable=wrong),
        lambda: queue.complete(item, durable=wrong),
        lambda: queue.complete_items([item], durable=wrong),
        lambda: queue.complete_and_lease(item, 60, durable=wrong),
    ):
        with pytest.raises(leaseq.BadTypeError, match=r"durable takes leaseq\.Replicas"):
            call()
    with pytest.raises(leaseq.BadArgumentError, match="durable does not apply to a pipeline"):
        queue.add_item(Item(b"x"), durable=SHORT, pipe=flavour.client(redis_url(redis_client)).pipeline())
    assert queue.stats().items == 1
    assert queue.complete(item)


def redis_url(client: redis.Redis) -> str:
    """The URL of the server of a client."""
    place = client.connection_pool.connection_kwargs
    return f"redis://{place['host']}:{place['port']}/{place.get('db', 0)}"


def test_the_error_can_be_pickled() -> None:
    """A process pool passes it on."""
    error = NotDurableError("so", 2, 1)
    error.answer = True
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 (ours)
    assert (str(copy), copy.answer, copy.wanted, copy.reached, copy.definite) == ("so", True, 2, 1, True)


def test_they_are_values() -> None:
    assert Replicas(1, timeout=1) == Replicas(1, timeout=1) != Replicas(2, timeout=1)
    assert repr(Disk(timeout=1)) == "Disk(timeout=1, replicas=0)"
    assert len({Disk(timeout=1), Disk(timeout=1)}) == 1


# jobs


def test_an_enqueue(pair: tuple[SpawnedServer, SpawnedServer]) -> None:
    """`App(durable=)`: an enqueue waits; the error has the handle of the job."""
    primary, replica = pair
    with leaseq.jobs.App(primary.url, durable=SHORT) as app:
        double = app.job(name="double", keep=60)(lambda number: 2 * number)
        with paused(replica):
            with pytest.raises(NotDurableError) as caught:
                double.enqueue(2)
            with pytest.raises(NotDurableError) as of_many:
                app.enqueue_many([double.call(3), double.call(4)])
            assert of_many.value.answers == [True, True]
            with pytest.raises(NotDurableError) as of_chain:
                app.chain(double.call(1)).then(double.partial()).enqueue()
        handle, chain = caught.value.answer, of_chain.value.answer
        assert handle.added
        app.run_worker(burst=True, processes=1)
        assert handle.result(timeout=60) == 4
        assert chain.result(timeout=60) == 4
