"""Several queues as one: order, fairness, and waiting on all of them at once. No waiter sleeps while an item is ready."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.client_flavours import connections_in_use
from support.redis_probe import blocked, blocked_ids, count_blocked, due_for_a_beat, load, until
from support.servers import TIMEOUT_SECS

import leaseq
import leaseq.aio
from leaseq import Item, flows
from leaseq._sync import race
from leaseq.commands import LeaseReply
from leaseq.keys import QueueKeys

if TYPE_CHECKING:
    import redis
    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener

pytestmark = pytest.mark.usefixtures("cap_of_an_hour")

GROUPS = {"one group": ("g", "g", "g"), "two groups": ("g", "h", "g")}


@pytest.fixture(params=GROUPS)
def groups(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The groups of the queues a, b and c."""
    return GROUPS[request.param]


def three(flavour: ClientFlavour, server: Any, groups: tuple[str, ...]) -> list[Any]:
    """The queues a, b and c."""
    return [flavour.queue(name, server, group=group) for name, group in zip("abc", groups, strict=True)]


def connections(groups: tuple[str, ...]) -> int:
    """Return how many connections wait on the queues, which are asked in order: c cannot be asked with a before b."""
    return 1 if len(set(groups)) == 1 else 3


def test_queues_of_one_group_in_two_databases(flavour: ClientFlavour, url: str) -> None:
    """LQ-CLIENT-9: one call reaches one database, so each takes a call."""
    first = flavour.queue("first", url, group="g")
    second = flavour.queue("second", f"{url.rpartition('/')[0]}/1", group="g")
    second.add_item(Item(b"x", id="a"))
    item = flavour.queues([first, second]).lease(30)
    assert (item.id, item.queue.name) == ("a", "second")
    assert second.complete(item)


def test_fair(flavour: ClientFlavour, url: str, groups: tuple[str, ...]) -> None:
    """LQ-CLUSTER-2: each call starts with the next queue, so each gets its share while all have items."""
    a, b, c = three(flavour, url, groups)
    queues = flavour.queues([a, b, c], fair=True)
    for queue in (a, b, c):
        queue.add_items([Item(b"x") for _ in range(10)])
    assert [queues.lease(30).queue.name for _ in range(9)] == list("abcabcabc")
    a.add_items([Item(b"x") for _ in range(20)])
    names = [queues.lease(30).queue.name for _ in range(21)]
    assert names == list("abc" * 7)
    assert {queues.lease(30).queue.name for _ in range(3)} == {"a"}, "the others are empty"


def test_queues_of_one_name(flavour: ClientFlavour, url: str) -> None:
    """In two groups, or in two databases, they are two queues."""
    other_database = f"{url.rpartition('/')[0]}/1"
    a, b = flavour.queue("mail", url, group="a"), flavour.queue("mail", url, group="b")
    c = flavour.queue("mail", other_database, group="a")
    for queue, name in ((a, "a"), (b, "b"), (c, "c")):
        queue.add_item(Item(b"x", id=name))
    queues = flavour.queues([a, b, c], fair=True)
    assert [queues.lease(30).id for _ in range(3)] == ["a", "b", "c"]


def test_what_it_refuses(flavour: ClientFlavour, url: str) -> None:
    """LQ-ERROR-1: what is no list of queues."""
    a, other = flavour.queue("a", url), flavour.queue("a", url)
    wrong: Any
    for wrong in (a, "a", [b"a"], [a, None]):
        with pytest.raises(leaseq.BadTypeError):
            flavour.queues(wrong)
    for wrong in ([], [a, a], [a, other]):
        with pytest.raises(leaseq.BadArgumentError):
            flavour.queues(wrong)
    queues = flavour.queues([a, flavour.queue("b", url)])
    with pytest.raises(leaseq.BadArgumentError):
        queues.lease(0)
    with pytest.raises(leaseq.BadArgumentError):
        queues.lease(30, timeout=-1)
    with pytest.raises(leaseq.BadTypeError):
        queues.lease(30, timeout="1")
    assert repr(queues).endswith("WorkQueues ['a', 'b']>")


def test_a_queue_of_the_other_flavour(url: str) -> None:
    """LQ-ERROR-1: its calls would return coroutines."""
    with leaseq.WorkQueue("a", url) as queue, pytest.raises(leaseq.BadTypeError):
        leaseq.aio.WorkQueues([queue])  # type: ignore[list-item]


def test_a_worker_loop(flavour: ClientFlavour, url: str, groups: tuple[str, ...]) -> None:
    """LQ-EXTEND-1: items are extended by their own queue, completed, and released with their error."""
    queues = three(flavour, url, groups)
    for queue in queues:
        queue.add_items([Item(b"x"), Item(b"fails")])
    item = flavour.queues(queues).lease(30)
    first = item.deadline
    due_for_a_beat(item)
    with item:
        servers.wait_until(lambda: item.deadline > first)
        assert not item.lost
    for item in flavour.queues(queues, fair=True).items(30, timeout=0.05):
        with contextlib.suppress(ZeroDivisionError), item:
            assert item.data == b"x" or 1 / 0
    assert [queue.stats().completed for queue in queues] == [1, 1, 1]
    errors = [
        info.error
        for queue in queues
        for info in queue.inspect_items([listed.id for listed in queue.list_items("delayed").items])
    ]
    assert errors == ["ZeroDivisionError: division by zero"] * 3


def test_a_closed_queue_leaves_the_heartbeats_of_the_others(
    flavour: ClientFlavour, url: str, groups: tuple[str, ...]
) -> None:
    """LQ-CLIENT-13: the first queue extends its item although those that it was waited on with are closed, which takes no time."""
    first, *others = three(flavour, url, groups)
    first.add_item(Item(b"x"))
    queues = flavour.queues([first, *others])
    item = queues.lease(3)
    with item:
        began = time.monotonic()
        for queue in others:
            queue.close()
        assert time.monotonic() - began < flows.REPLY_GRACE
        deadline = item.deadline
        servers.wait_until(lambda: item.deadline > deadline or item.lost)
        assert not item.lost
    assert first.stats().completed == 1


def add_at_once(client: redis.Redis, *queues: Any) -> None:
    """Add an item to each queue in one step: the blocked clients are served when all of them are there."""
    with client.pipeline(transaction=True) as pipe:
        for queue in queues:
            command = leaseq.commands.add(queue.keys, [Item(b"x", id=f"{queue.name}-item")])
            pipe.execute_command(*command.eval())  # type: ignore[no-untyped-call]
        pipe.execute()


def at_rest(queues: list[Any], waiting: list[tuple[list[Any], Any]]) -> bool:
    """Return whether each that was answered has its item, no loser has one, and no waiter sleeps while an item is ready."""
    stats = {queue.name: queue.stats() for queue in queues}
    asleep = [queue.name for names, call in waiting if not call.done() for queue in names]
    answered = sum(call.done() for _, call in waiting)
    return sum(each.leased for each in stats.values()) == answered and not any(
        stats[name].ready for name in asleep
    )


@pytest.mark.promise("G6")
def test_nobody_sleeps_beside_an_item(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, groups: tuple[str, ...]
) -> None:
    """LQ-BLOCK-7: the first waiter is woken by b and leases from a; the waiter on b alone is woken for b's item.

    Where a and b have a connection each, the first waiter may take b's item instead; then a's is ready, uncounted.
    """
    a, b, c = queues = three(flavour, url, groups)
    for _ in range(5):
        first = flavour.start(flavour.queues(queues).lease, 30)
        blocked(redis_client, connections(groups))
        second = flavour.start(b.lease, 30)
        blocked(redis_client, connections(groups) + 1)
        add_at_once(redis_client, b, a)
        item = first.result(TIMEOUT_SECS)
        if connections(groups) == 1:
            assert item.id == "a-item"
        if item.id == "a-item":
            other = second.result(TIMEOUT_SECS)
        else:
            other = a.lease(30, timeout=TIMEOUT_SECS)
            b.add_item(Item(b"x"))
            assert b.complete(second.result(TIMEOUT_SECS))
        assert (item.attempt, other.attempt) == (1, 1)
        assert {item.id, other.id} == {"a-item", "b-item"}
        for each in (item, other):
            assert each.queue.complete(each)
        blocked(redis_client, 0)
        assert c.stats().items == 0


def test_waiters_on_overlapping_sets(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, groups: tuple[str, ...]
) -> None:
    """LQ-BLOCK-7, LQ-SETTLE-3: items on all queues at once, waiters on pairs of them: none sleeps beside an item."""
    a, b, c = queues = three(flavour, url, groups)
    sets = [[a, b], [b, c], [c, a]]
    for turn in range(6):
        waiting = [
            (each, flavour.start(flavour.queues(each, fair=True).lease, 30))
            for each in sets[turn % 3 :] + sets[: turn % 3]
        ]
        blocked(redis_client, sum(len({queue.group for queue in each}) for each in sets))
        add_at_once(redis_client, *(queues if turn % 2 else queues[::-1]))
        servers.wait_until(lambda now=waiting: at_rest(queues, now), TIMEOUT_SECS)  # type: ignore[misc]
        assert any(call.done() for _, call in waiting)
        for each, call in waiting:
            if not call.done():
                each[0].add_item(Item(b"x"))
            item = call.result(TIMEOUT_SECS)
            assert item.attempt == 1
            assert item.queue.complete(item)
        for item in flavour.queues(queues).items(30, timeout=0.01):
            assert item.attempt == 1
            assert item.queue.complete(item)
        blocked(redis_client, 0)


def test_closing_any_queue_ends_the_wait(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, groups: tuple[str, ...]
) -> None:
    """LQ-BLOCK-6: at once; a worker on another queue of the set is not left behind."""
    for which in range(3):
        queues = three(flavour, url, groups)
        other = flavour.queue("a", url, group=groups[0])
        several = flavour.queues(queues)
        waiting = flavour.start(several.lease, 30)
        blocked(redis_client, connections(groups))
        stays = flavour.start(other.lease, 30)
        blocked(redis_client, connections(groups) + 1)
        queues[which].close()
        with pytest.raises(leaseq.QueueClosedError, match=repr("abc"[which])):
            waiting.result(TIMEOUT_SECS)
        blocked(redis_client, 1)
        other.add_item(Item(b"x"))
        assert other.complete(stays.result(TIMEOUT_SECS))
        with pytest.raises(leaseq.QueueClosedError):
            several.lease(30)


def test_a_queue_that_was_closed_before_the_first_call(
    flavour: ClientFlavour, url: str, groups: tuple[str, ...]
) -> None:
    client = flavour.client(url)
    queues = three(flavour, client, groups)
    queues[0].add_item(Item(b"x"))
    several = flavour.queues(queues)
    queues[0].close()
    with pytest.raises(leaseq.QueueClosedError, match="'a'"):
        several.lease(30)
    assert queues[1].stats().leased == 0


@pytest.mark.parametrize("which", [0, 1])
def test_closing_a_queue_leaves_alone_a_connection_that_waits_no_more(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, which: int
) -> None:
    """A call of another queue can have it by now."""
    client = flavour.client(url)
    a, b, other = (flavour.queue(name, client, group="g") for name in ("a", "b", "other"))
    waiting = flavour.start(flavour.queues([a, b]).lease, 30)
    blocked(redis_client, 1)
    (waited,) = blocked_ids(redis_client)
    a.add_item(Item(b"x"))
    assert waiting.result(TIMEOUT_SECS)
    (a, b)[which].close()
    assert other.stats().items == 0
    assert waited in {int(entry["id"]) for entry in redis_client.client_list()}


def test_queues_of_two_servers(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, own_server: servers.StartServer
) -> None:
    """LQ-CLUSTER-2: even queues of one group: each is waited for separately; a server that goes away is reported."""
    server = own_server()
    a, b = flavour.queue("a", url, group="g"), flavour.queue("b", server.url, group="g")
    several = flavour.queues([a, b])
    with server.client() as client:
        for queue in (a, b, a):
            waiting = flavour.start(several.lease, 30)
            blocked(redis_client, 1)
            blocked(client, 1)
            queue.add_item(Item(b"x"))
            item = waiting.result(TIMEOUT_SECS)
            assert item.queue.name == queue.name
            assert item.queue.complete(item)
            blocked(redis_client, 0)
            blocked(client, 0)
        waiting = flavour.start(several.lease, 30)
        blocked(redis_client, 1)
        blocked(client, 1)
    server.kill()
    with pytest.raises(leaseq.UnavailableError):
        waiting.result(TIMEOUT_SECS)
    blocked(redis_client, 0)


@pytest.mark.slow
def test_groups_on_different_nodes(flavour: ClientFlavour, nodes: servers.RedisCluster) -> None:
    """LQ-CLUSTER-2: a block on each node; whichever wakes first leases, the others are ended."""
    client = flavour.cluster_client(nodes.url)
    clients = [node.client() for node in nodes.nodes]
    # slots 15495, 3300 and 7365: on three nodes
    groups = ("a", "b", "c", "b")
    queues = [
        flavour.queue(f"{number}-{flavour.name}", client, group=group) for number, group in enumerate(groups)
    ]
    several = flavour.queues(queues, fair=True)

    def waits() -> list[int]:
        return [count_blocked(client) for client in clients]

    for queue in queues * 2:
        waiting = flavour.start(several.lease, 30)
        servers.wait_until(lambda: sum(waits()) == 3)
        assert sorted(waits()) == [1, 1, 1]
        queue.add_item(Item(b"x"))
        item = waiting.result(TIMEOUT_SECS)
        assert item.queue.name == queue.name
        assert item.queue.complete(item)
        servers.wait_until(lambda: sum(waits()) == 0)
    assert several.lease(30, timeout=0.1) is None
    for each in clients:
        each.close()


# Interruptions.

WAKE_UP = b"*2\r\n$17\r\nleaseq:{h}:b:wake\r\n$1\r\n1\r\n"
"""The reply to a BLPOP that was woken by b."""


@pytest.mark.parametrize("latency", [0.0, 0.02])
async def test_cancelled_at_any_moment(
    url: str, redis_client: redis.Redis, proxy: Listener, groups: tuple[str, ...], latency: float
) -> None:
    """LQ-BLOCK-6, LQ-BLOCK-7: blocked, woken, or with items of several on their way: the other workers get them, uncounted."""
    async with contextlib.AsyncExitStack() as stack:

        async def three_queues(server: str) -> list[leaseq.aio.WorkQueue]:
            return [
                await stack.enter_async_context(leaseq.aio.WorkQueue(name, server, group=group))
                for name, group in zip("abc", groups, strict=True)
            ]

        mine, others = await three_queues(proxy.url), await three_queues(url)
        several = leaseq.aio.WorkQueues(mine)
        for number in range(12):
            task = asyncio.create_task(several.lease(60))
            await until(lambda: count_blocked(redis_client) == connections(groups))
            waiting = [asyncio.create_task(queue.lease(60)) for queue in others]
            await until(lambda: count_blocked(redis_client) == connections(groups) + 3)
            proxy.latency = latency
            add_at_once(redis_client, *others)
            if latency:
                await asyncio.sleep(latency * number / 3)
            else:
                for _ in range(number):
                    await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                item: Any = await task
                await item.queue.release(item, uncounted=True)
            proxy.latency = 0.0
            for each in waiting:
                got = await each
                assert got is not None
                assert got.attempt == 1
                assert await got.queue.complete(got)
        clients: list[Any] = [queue.executor.client for queue in mine]
        await until(lambda: not any(connections_in_use(client) for client in clients))


@pytest.mark.parametrize("moment", ["blocked", "wake-up on its way", "item on its way"])
def test_an_interrupted_thread_leaves_nothing(
    url: str, redis_client: redis.Redis, proxy: Listener, groups: tuple[str, ...], moment: str
) -> None:
    """LQ-BLOCK-6: KeyboardInterrupt in the main thread; the next worker gets the item at once, uncounted."""
    with contextlib.ExitStack() as stack:
        mine, others = (
            [
                stack.enter_context(leaseq.WorkQueue(name, server, group=group))
                for name, group in zip("abc", groups, strict=True)
            ]
            for server in (proxy.url, url)
        )
        load(redis_client)

        def interrupt() -> None:
            blocked(redis_client, connections(groups))
            if moment != "blocked":
                proxy.hold_replies_after = 0 if moment == "wake-up on its way" else len(WAKE_UP)
                others[1].add_item(Item(b"x", id="a"))
            if moment == "item on its way":
                servers.wait_until(lambda: others[1].stats().leased == 1)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            leaseq.WorkQueues(mine).lease(60)
        proxy.hold_replies_after = None
        thread.join()
        if moment == "blocked":
            others[1].add_item(Item(b"x", id="a"))
        got = others[1].lease(60, timeout=TIMEOUT_SECS)
        assert got is not None
        assert got.attempt == 1
        assert got.queue.complete(got)
        blocked(redis_client, 0)
        clients: list[Any] = [queue.executor.client for queue in mine]
        servers.wait_until(lambda: not any(connections_in_use(client) for client in clients))


@pytest.mark.promise("G22")
def test_what_a_loser_leased_goes_back(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, proxy: Listener
) -> None:
    """LQ-BLOCK-6, LQ-BLOCK-7: two groups give an item at the same time: one is handed out, the other is ready, uncounted."""
    fast = flavour.queue("a", url, group="g")
    slow, other = flavour.queue("b", proxy.url, group="h"), flavour.queue("b", url, group="h")
    load(redis_client)
    waiting = flavour.start(flavour.queues([slow, fast]).lease, 30)
    blocked(redis_client, 2)
    proxy.hold_replies_after = len(WAKE_UP)
    add_at_once(redis_client, other)
    servers.wait_until(lambda: other.stats().leased == 1)
    fast.add_item(Item(b"x", id="won"))
    assert waiting.result(TIMEOUT_SECS).id == "won"
    proxy.hold_replies_after = None
    item = other.lease(30, timeout=TIMEOUT_SECS)
    assert item is not None
    assert (item.id, item.attempt) == ("b-item", 1)


def test_threads_that_lose_end(url: str, redis_client: redis.Redis) -> None:
    """LQ-BLOCK-6: no thread, socket or blocked client is left by many waits."""
    names = [("a", "g"), ("b", "h"), ("c", "i")]
    with contextlib.ExitStack() as stack:
        queues = [stack.enter_context(leaseq.WorkQueue(name, url, group=group)) for name, group in names]
        several = leaseq.WorkQueues(queues)
        before = threading.active_count()
        for number in range(30):
            timer = threading.Timer(0, lambda n=number: queues[n % 3].add_item(Item(b"x")))
            timer.start()
            item = several.lease(30, timeout=TIMEOUT_SECS)
            assert item is not None
            assert item.queue.complete(item)
        servers.wait_until(lambda: threading.active_count() <= before)
        blocked(redis_client, 0)
        assert len(redis_client.client_list()) < 20


def test_what_one_was_told_grows_old_while_others_are_asked() -> None:
    """LQ-BLOCK-8: a wait of 2 s that was received 1.5 s ago is a wait of 0.5 s."""
    last_reply = LeaseReply(wait=2.0, deadline=0.0, items=[], sent_at=8.5)
    flow = flows.lease_any(
        [QueueKeys("a", None)], 1, 30, wait_until=math.inf, clock=lambda: 10.0, last_reply=last_reply
    )
    request = next(flow)
    assert isinstance(request, flows.Wait)
    assert request.seconds == 0.5


def test_who_is_interrupted_where_it_waits_for_a_race_loses_nothing() -> None:
    """LQ-BLOCK-6: Ctrl-C lands where the program waits: between the end of a run and its being taken in."""
    undone: list[tuple[int, str]] = []
    running = race._Race(bool, lambda place, answer: undone.append((place, answer)), 2)

    def run(place: int, answer: str) -> None:
        thread = threading.Thread(target=running.run, args=(place, lambda: answer))
        thread.start()
        thread.join()

    run(0, "an item")
    assert running.first(1) == (0, "an item")  # interrupted here, before a caller has it
    running.end()
    run(1, "another")
    assert undone == [(0, "an item"), (1, "another")]
