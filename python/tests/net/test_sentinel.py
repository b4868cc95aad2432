"""A Sentinel failover under clients that are blocked and at work."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import redis.asyncio.sentinel
import redis.sentinel
from support import servers
from support.sentinel_set import SentinelSet, Watcher

import leaseq
import leaseq.aio
from leaseq import Item
from leaseq._aio import sentinels as aio_sentinels
from leaseq._sync import sentinels as sync_sentinels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.client_flavours import ClientFlavour

SAFE = 90.0
LIMIT_SECS = 0.6


@pytest.fixture
def frozen() -> Iterator[list[tuple[str, int]]]:
    """Three Sentinels that are connected to and say nothing."""
    with contextlib.ExitStack() as opened:
        yield [
            opened.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[:2] for _ in range(3)
        ]


def of_sentinels(
    flavour: ClientFlavour,
    places: list[tuple[str, int]],
    service: str,
    limit_secs: float = LIMIT_SECS,
    **options: Any,
) -> Any:
    """A client of redis-py with these options, which asks these Sentinels, each within a limit."""
    kind: Any = (redis.sentinel if flavour.name == "sync" else redis.asyncio.sentinel).Sentinel
    asked = kind(places, socket_timeout=limit_secs)
    for each in asked.sentinels:
        flavour.own(each)
    return flavour.own(asked.master_for(service, **options))


@pytest.mark.promise("G18")
def test_sentinels_that_are_frozen(flavour: ClientFlavour, frozen: list[tuple[str, int]]) -> None:
    """LQ-CLIENT-22: all are asked within the time for connecting, which was over after 80 s."""
    queue = flavour.queue("q", of_sentinels(flavour, frozen, "mymaster"))
    began = time.monotonic()
    with pytest.raises(leaseq.UnavailableError, match="nothing was sent"):
        queue.stats()
    assert time.monotonic() - began < 2 * LIMIT_SECS


def test_a_sentinel_that_answers_behind_frozen_ones(
    flavour: ClientFlavour, frozen: list[tuple[str, int]], sentinel: SentinelSet
) -> None:
    """LQ-CLIENT-22: it is asked first from then on."""
    client = of_sentinels(flavour, [*frozen[:2], *sentinel.sentinels], sentinel.service)
    queue: Any = flavour.queue("q", client)
    assert queue.stats().ready == 0
    route = queue.executor.route
    route.close_idle()
    route._sentinels.forget()
    began = time.monotonic()
    assert queue.stats().ready == 0
    assert time.monotonic() - began < LIMIT_SECS / 3
    with pytest.raises(leaseq.UnavailableError, match="no Sentinel knows a primary of 'other'"):
        flavour.queue("q", of_sentinels(flavour, sentinel.sentinels, "other")).stats()


def test_a_frozen_sentinel_leaves_the_others_time(
    flavour: ClientFlavour, frozen: list[tuple[str, int]], sentinel: SentinelSet
) -> None:
    """LQ-CLIENT-22: also if it may take as long as connecting may in all."""
    limit = {"limit_secs": 3.0, "socket_connect_timeout": 3.0, "socket_timeout": 3.0}
    client = of_sentinels(flavour, [frozen[0], *sentinel.sentinels], sentinel.service, **limit)
    began = time.monotonic()
    assert flavour.queue("q", client).stats().ready == 0
    assert time.monotonic() - began < 2.5  # all of the time has 3 s


@pytest.mark.slow
def test_sentinels_and_their_primary_share_the_time_for_connecting(
    flavour: ClientFlavour, frozen: list[tuple[str, int]], startable_name: str
) -> None:
    """LQ-CLIENT-22: two Sentinels are silent, and so is the primary that the third one knows."""
    with Watcher(startable_name, "mymaster", frozen[2][1]) as third:
        limit = {"limit_secs": 3.0, "socket_connect_timeout": 3.0, "socket_timeout": 3.0}
        places = [*frozen[:2], ("127.0.0.1", third.port)]
        queue = flavour.queue("q", of_sentinels(flavour, places, "mymaster", client_name="x", **limit))
        began = time.monotonic()
        with pytest.raises(leaseq.UnavailableError, match="nothing was sent"):
            queue.stats()
        assert 2.5 < time.monotonic() - began < 4.0


def test_sentinels_of_a_custom_class_are_refused(flavour: ClientFlavour) -> None:
    kind: Any = (redis.sentinel if flavour.name == "sync" else redis.asyncio.sentinel).Sentinel

    class Custom(kind):  # type: ignore[misc]
        def discover_master(self, service_name: str) -> tuple[str, int]:
            return service_name, 1

    with pytest.raises(leaseq.BadTypeError, match=r"custom class, .*Custom"):
        flavour.queue("q", Custom([("127.0.0.1", 1)]).master_for("mymaster"))


@pytest.mark.parametrize("refused", ["add", "wait"])
def test_behind_readonly_the_sentinels_are_asked_however_fresh_their_last_answer_is(
    flavour: ClientFlavour,
    own_server: servers.StartServer,
    startable_name: str,
    monkeypatch: pytest.MonkeyPatch,
    refused: str,
) -> None:
    """LQ-CLIENT-5: the connection is still open, to a server that has become a replica."""
    for module in (sync_sentinels, aio_sentinels):
        monkeypatch.setattr(module, "FRESH_SECS", 3600.0)
    old, new, service = own_server(), own_server(), SentinelSet.service
    with (
        Watcher(startable_name, service, old.port) as watcher,
        watcher.client() as asked,
        old.client() as client,
        leaseq.WorkQueue("q", new.url) as there,
    ):
        place = [("127.0.0.1", watcher.port)]
        queue = flavour.queue("q", of_sentinels(flavour, place, service, limit_secs=SAFE))
        assert queue.stats().items == 0
        asked.execute_command("SENTINEL", "REMOVE", service)
        asked.execute_command("SENTINEL", "MONITOR", service, "127.0.0.1", new.port, 1)
        client.execute_command("REPLICAOF", "127.0.0.1", new.port)
        with pytest.raises(leaseq.ServerError, match="read only replica") as raised:
            queue.add_item(Item(b"")) if refused == "add" else queue.lease(SAFE, timeout=SAFE)
        assert raised.value.definite
        assert queue.add_item(Item(b"", id="a"))
        assert there.inspect("a").state == "ready"


@pytest.mark.promise("G26", "G27")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_failover(sentinel: SentinelSet) -> None:  # noqa: C901 (one scenario)
    """LQ-SCRIPT-2, LQ-LEASE-2, LQ-COMPLETE-2, LQ-FAIL-5, LQ-BLOCK-5: the primary is killed; both flavours go on without help.

    LQ-CLIENT-5: what was added, leased and completed after the failover was so on the new primary.

    Tokens grow over the failover, nothing that the new primary has is completed twice, NOSCRIPT is answered.
    """
    sentinel_class: Any = redis.sentinel.Sentinel
    sync = sentinel_class(sentinel.sentinels, socket_timeout=1).master_for(sentinel.service)
    queue = leaseq.WorkQueue("q", sync)
    completed: list[str] = []
    tokens: list[int] = []
    failed: list[leaseq.LeaseqError] = []
    stop = threading.Event()
    guard = threading.Lock()

    def work(lease: Callable[[], Any], complete: Callable[[Any], bool]) -> None:
        while not stop.is_set():
            try:
                item = lease()
                if item is not None:
                    with guard:
                        tokens.append(item.token)
                    if complete(item):
                        with guard:
                            completed.append(item.id)
            except leaseq.LeaseqError as error:
                failed.append(error)
                stop.wait(0.05)

    loop = asyncio.new_event_loop()
    looping = threading.Thread(target=loop.run_forever)
    looping.start()

    def in_loop(awaitable: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(awaitable, loop).result(60)

    async_class: Any = redis.asyncio.sentinel.Sentinel
    watchers = async_class(sentinel.sentinels, socket_timeout=1)
    client: Any = watchers.master_for(sentinel.service)

    async def make() -> leaseq.aio.WorkQueue:
        return leaseq.aio.WorkQueue("q", client)

    async def end() -> None:
        await aqueue.close()
        for closing in (client, *watchers.sentinels):
            await closing.aclose()
        await asyncio.sleep(0.05)  # closed transports end in the next turns of the loop

    aqueue = in_loop(make())
    workers = [
        threading.Thread(target=work, args=(lambda: queue.lease(5, timeout=2), queue.complete)),
        threading.Thread(target=work, args=(lambda: queue.lease(5, timeout=2), queue.complete)),
        threading.Thread(
            target=work,
            args=(lambda: in_loop(aqueue.lease(5, timeout=2)), lambda item: in_loop(aqueue.complete(item))),
        ),
    ]
    try:
        # a held item that the replicas have
        queue.add_item(Item(b"x", id="held"))
        held = queue.lease(600)
        assert held is not None
        queue.add_items([Item(b"x", id=f"before-{n}") for n in range(100)])
        wait_for_replicas(sync)
        for worker in workers:
            worker.start()
        servers.wait_until(lambda: len(completed) >= 100, SAFE)
        wait_for_replicas(sync)
        before = max(tokens)
        known = len(tokens)
        sentinel.primary.kill()
        assert add_until_it_works(queue, [f"after-{n}" for n in range(100)]) > 0
        servers.wait_until(lambda: queue.queue_len() + queue.processing() == 1, SAFE)
        assert queue.complete(held) is True, "a lease from before the failover still counts"
        assert min(tokens[known:]) > before, "tokens only grow"
        assert len(tokens) == len(set(tokens))
        after = [item_id for item_id in completed if item_id.startswith("after-")]
        assert len(after) == len(set(after))
        assert len(completed) == len(set(completed))
        assert queue.stats().items == 0
        assert queue.deep_clean().total == 0
        # blocked workers are woken by an add again
        queue.add_item(Item(b"x", id="last"))
        servers.wait_until(lambda: "last" in completed)
    finally:
        stop.set()
        for worker in workers:
            if worker.ident:
                worker.join()
        in_loop(end())
        loop.call_soon_threadsafe(loop.stop)
        looping.join()
        loop.close()
        queue.close()
        sync.close()


def wait_for_replicas(client: Any) -> None:
    """Everything so far is on both replicas."""
    assert client.execute_command("WAIT", 2, 5000) == 2


def add_until_it_works(queue: leaseq.WorkQueue, ids: list[str]) -> int:
    """Add the items one after the other, through the failover. Return the number of failed calls."""
    failures = 0
    until = time.monotonic() + 200
    for item_id in ids:
        while True:
            assert time.monotonic() < until
            try:
                queue.add_item(Item(b"x", id=item_id))
                break
            except leaseq.LeaseqError as error:
                failures += 1
                if not error.definite:
                    with contextlib.suppress(leaseq.LeaseqError):
                        if queue.inspect(item_id).state != "absent":
                            break
                threading.Event().wait(0.05)
    return failures


def test_a_primary_that_its_sentinel_finds_down_is_not_taken(
    flavour: ClientFlavour, sentinel: SentinelSet, startable_name: str
) -> None:
    """LQ-CLIENT-5: the next Sentinel is asked, even where the first one alone finds its primary down (s_down)."""
    with (
        servers.SpawnedServer(startable_name) as primary,
        Watcher(startable_name, sentinel.service, primary.port) as alone,
    ):
        places = [("127.0.0.1", alone.port), *sentinel.sentinels]
        primary.stop()
        with alone.client(decode_responses=True) as client:

            def flags() -> str:
                state: Any = client.sentinel_master(sentinel.service)
                return str(state["flags"])

            servers.wait_until(lambda: "s_down" in flags(), SAFE)
            assert "o_down" not in flags()  # that takes two of them
        assert flavour.queue("q", of_sentinels(flavour, places, sentinel.service)).stats().ready == 0


def test_a_set_whose_name_only_begins_as_the_service_is_not_taken(
    flavour: ClientFlavour, sentinel: SentinelSet
) -> None:
    """LQ-CLIENT-27: a Sentinel may look after `orders` and `orders-archive`."""
    for name in (sentinel.service[:-1], sentinel.service[1:], sentinel.service.upper()):
        queue = flavour.queue("q", of_sentinels(flavour, sentinel.sentinels, name, SAFE))
        with pytest.raises(leaseq.UnavailableError, match="nothing was sent"):
            queue.stats()


def test_a_sentinel_that_sees_too_few_others_is_not_believed(
    flavour: ClientFlavour, sentinel: SentinelSet
) -> None:
    """LQ-CLIENT-27: each of three sees two others."""
    kind: Any = (redis.sentinel if flavour.name == "sync" else redis.asyncio.sentinel).Sentinel
    for others, is_believed in ((2, True), (3, False)):
        asked = kind(sentinel.sentinels, min_other_sentinels=others, socket_timeout=SAFE)
        for each in asked.sentinels:
            flavour.own(each)
        queue: Any = flavour.queue("q", flavour.own(asked.master_for(sentinel.service)))
        if is_believed:
            assert queue.stats().ready == 0
        else:
            with pytest.raises(leaseq.UnavailableError, match="nothing was sent"):
                queue.stats()
