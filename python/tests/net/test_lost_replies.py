"""Calls whose connection breaks: what has taken effect, whether the caller knows, that no call is sent twice.

The conformance suite breaks the connections of both clients before and after every command of every operation. Here are the
errors of Python, redis-py clients of the caller's, and calls that are made of several.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.client_flavours import unwrap
from support.redis_probe import EVALS, calls, load
from support.servers import PATIENCE

import leaseq
from leaseq import Completed, Finished, Item

if TYPE_CHECKING:
    import redis
    from support.client_flavours import ClientFlavour

    from leaseq_conformance.fault_proxy import Listener

pytestmark = pytest.mark.usefixtures("cap_of_an_hour")

# name -> what it does with a queue that has a ready item "ready" and the given leased item "held", and what was
# counted on the server when it has happened once
Operation = tuple[Callable[[Any, Any], object], Callable[[Any], object], object]
OPERATIONS: dict[str, Operation] = {
    "add": (lambda q, _: q.add_item(Item(b"x", id="new")), lambda q: q.stats().added, 3),
    "blocking lease": (lambda q, _: q.lease(30, timeout=PATIENCE), lambda q: q.stats().leases, 2),
    "complete and lease": (
        lambda q, i: q.complete_and_lease(i, 30),
        lambda q: (q.stats().completed, q.stats().leases),
        (1, 2),
    ),
    "hand off": (
        lambda q, i: q.complete(i, then=[(unwrap(q), Item(b"y", id="new"))]),
        lambda q: (q.stats().completed, q.stats().added),
        (1, 3),
    ),
    "remove": (lambda q, _: q.remove("ready"), lambda q: q.stats().removed, 1),
    "configure": (lambda q, _: q.configure(max_data=77), lambda q: q.stats().max_data, 77),
}
every_operation = pytest.mark.parametrize("name", OPERATIONS)


@pytest.fixture
def watcher(flavour: ClientFlavour, redis_client: redis.Redis, url: str) -> leaseq.WorkQueue:
    """The queue as somebody has it who is not disturbed; the server knows every script."""
    load(redis_client)
    return flavour.queue("q", url)


def prepare(queue: leaseq.WorkQueue) -> Any:
    """Items held and ready."""
    queue.add_item(Item(b"x", id="held"))
    item = queue.lease(60)
    assert item is not None
    queue.add_item(Item(b"x", id="ready"))
    return item


@every_operation
def test_a_lost_reply_is_no_second_run(
    flavour: ClientFlavour, watcher: leaseq.WorkQueue, redis_client: redis.Redis, proxy: Listener, name: str
) -> None:
    """LQ-CLIENT-1, LQ-ERROR-4: not definite; run once by one call, with a client of redis-py and its ten retries."""
    held = prepare(watcher)
    call, effect, expected = OPERATIONS[name]
    queue = flavour.queue("q", flavour.client(proxy.url))
    queue.stats()
    redis_client.config_resetstat()
    proxy.cut_replies_after = 2
    with pytest.raises(leaseq.ReplyLostError) as caught:
        call(queue, held)
    assert caught.value.definite is False
    assert calls(redis_client, *EVALS) == 1
    assert effect(watcher) == expected
    assert queue.stats().items >= 1, "the next call connects again"


@every_operation
def test_no_connection_is_definite(
    flavour: ClientFlavour, watcher: leaseq.WorkQueue, proxy: Listener, name: str
) -> None:
    """LQ-ERROR-4: refused before anything is sent; nothing has happened, and the next call works."""
    held = prepare(watcher)
    before = watcher.stats()
    call, effect, expected = OPERATIONS[name]
    queue = flavour.queue("q", proxy.url)
    proxy.refuse = True
    with pytest.raises(leaseq.UnavailableError) as caught:
        call(queue, held)
    assert caught.value.definite is True
    after = watcher.stats()
    assert (after.added, after.leases, after.items) == (before.added, before.leases, before.items)
    proxy.refuse = False
    call(queue, held)
    assert effect(watcher) == expected


@pytest.mark.parametrize("ours", [False, True])
def test_a_server_that_replies_nothing(
    flavour: ClientFlavour, watcher: leaseq.WorkQueue, proxy: Listener, *, ours: bool
) -> None:
    """LQ-ERROR-4: a call ends with the read timeout; whether it has run nobody knows, and no reply is taken for another's.

    The replies of connections that are opened here are read in another way.
    """
    opened = f"{proxy.url}?socket_timeout=0.3" if ours else flavour.client(proxy.url, socket_timeout=0.3)
    queue = flavour.queue("q", opened)
    queue.stats()
    proxy.discard_replies = True
    with pytest.raises(leaseq.ReplyLostError):
        queue.add_item(Item(b"x", id="a"))
    assert watcher.stats().added == 1
    proxy.discard_replies = False
    assert queue.inspect("a").state == "ready"
    proxy.discard_commands = True
    with pytest.raises(leaseq.ReplyLostError):
        queue.add_item(Item(b"x", id="b"))
    proxy.discard_commands = False
    assert watcher.stats().added == 1
    assert queue.add_item(Item(b"x", id="b"))


def test_without_a_read_timeout_no_call_hangs_for_ever(
    flavour: ClientFlavour, watcher: leaseq.WorkQueue, proxy: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LQ-ERROR-4: a client of the caller's may have none; then ours holds."""
    monkeypatch.setattr("leaseq.flows.LONGEST_REPLY", 0.3)
    queue = flavour.queue("q", flavour.client(proxy.url, socket_timeout=None))
    queue.stats()
    proxy.discard_replies = True
    with pytest.raises(leaseq.ReplyLostError):
        flavour.start(queue.add_item, Item(b"x", id="a")).result(PATIENCE)
    proxy.discard_replies = False
    assert watcher.inspect("a").state == "ready"


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        (lambda q, i: q.release(i, delay=60), "delayed"),
        (lambda q, i: q.complete_and_lease(i, 30, only_current=True), "absent"),
    ],
    ids=["release", "fused"],
)
def test_a_block_that_ended_its_item_and_lost_the_reply(
    flavour: ClientFlavour,
    watcher: leaseq.WorkQueue,
    redis_client: redis.Redis,
    proxy: Listener,
    ending: Callable[[Any, Any], object],
    state: str,
) -> None:
    """LQ-ERROR-4: nobody knows whether it has run, so the end of the block adds nothing."""
    queue = flavour.queue("q", proxy.url)
    queue.add_item(Item(b"x", id="a"))
    item = queue.lease(30)
    assert item is not None
    with item:
        proxy.cut_replies_after = 0
        with pytest.raises(leaseq.ReplyLostError):
            ending(queue, item)
        redis_client.config_resetstat()
    assert calls(redis_client, *EVALS) == 0
    assert watcher.inspect("a").state == state


def test_scripts_that_are_forgotten_under_a_blocked_lease(
    flavour: ClientFlavour, watcher: leaseq.WorkQueue, redis_client: redis.Redis
) -> None:
    """LQ-SCRIPT-2: the lease behind the block sends its source again."""
    for _ in range(3):
        waiting = flavour.start(watcher.lease, 30, timeout=PATIENCE)
        servers.wait_until(lambda: redis_client.info("clients")["blocked_clients"] == 1)
        redis_client.script_flush()
        watcher.add_item(Item(b"x"))
        redis_client.script_flush()
        assert waiting.result(PATIENCE).attempt == 1


# Calls that are made of several.


def hold(queue: Any) -> list[Any]:
    """600 leased items, of which a call takes 256."""
    items = []
    for chunk in range(3):
        queue.add_items([Item(b"x", id=f"{chunk}-{number}") for number in range(200)])
        items += queue.lease_items(200, 3600)
    return items


def finished(queue: Any, items: list[Any], **options: Any) -> list[Finished]:
    """Each with a follow-up."""
    return [
        Finished(unwrap(item), then=[(unwrap(queue), Item(b"y", id=item.derived_id("next")))], **options)
        for item in items
    ]


@pytest.mark.parametrize("at", [0, 6000], ids=["first call", "second call"])
def test_finishing_more_than_a_call_takes(
    flavour: ClientFlavour, watcher: leaseq.WorkQueue, proxy: Listener, at: int
) -> None:
    """LQ-CLIENT-2: three calls, a reply lost: the error has the answers before it; all again adds nothing twice.

    The reply to a call of 256 items with a follow-up each has 5894 bytes.
    """
    items, before = hold(watcher), 256 if at else 0
    queue = flavour.queue("q", proxy.url)
    following = flavour.queue("next", proxy.url, group="q")
    queue.stats()
    proxy.cut_replies_after = at
    with pytest.raises(leaseq.ReplyLostError) as caught:
        queue.finish_items(finished(following, items, keep=60))
    assert caught.value.definite is False
    assert caught.value.answers == [Completed(completed=True, added=[True])] * before
    done = before + 256
    assert (watcher.stats().completed, following.stats().added) == (done, done)
    again = queue.finish_items(finished(following, items, keep=60))
    assert again[:done] == [Completed(completed=True, added=[None])] * done
    assert again[done:] == [Completed(completed=True, added=[True])] * (600 - done)
    assert (watcher.stats().completed, following.stats().added) == (600, 600)


def test_a_call_that_is_refused_between_others(watcher: leaseq.WorkQueue) -> None:
    """LQ-CLIENT-2, LQ-ERROR-1: what came before it is answered and done, what was in it and behind it is not."""
    all_of_them = finished(watcher, hold(watcher))
    all_of_them[300] = Finished(all_of_them[300].item, then=[(unwrap(watcher), Item(b"y", id=""))])
    with pytest.raises(leaseq.BadIdError) as caught:
        watcher.finish_items(all_of_them)
    assert caught.value.definite is True
    assert caught.value.answers == [Completed(completed=True, added=[True])] * 256
    assert (watcher.stats().completed, watcher.stats().added) == (256, 600 + 256)


@pytest.mark.parametrize("operation", ["revive", "purge"])
def test_all_the_dead_with_replies_lost_at_any_byte(
    flavour: ClientFlavour, watcher: leaseq.WorkQueue, proxy: Listener, operation: str
) -> None:
    """LQ-ERROR-4: an error that says so, or the end; called until it ends, each item was moved once."""
    watcher.dead_letter_items(hold(watcher)[:300], error="boom")
    # no bound on replies: a call given up while its reply is on its way would leave the next cut to that reply
    queue = flavour.queue("q", flavour.client(proxy.url, socket_timeout=None))
    queue.stats()
    lost = 0
    # a cut between two replies loses none: the call goes on with a new connection, and that is the end as well
    for received in itertools.count(0, 2900):
        proxy.cut_replies_after = received
        try:
            queue.purge_all() if operation == "purge" else queue.revive_all("oom")
            break
        except leaseq.ReplyLostError:
            lost += 1
    proxy.cut_replies_after = None
    assert lost >= 1, "nothing of the first reply came"
    stats = watcher.stats()
    assert (stats.purged, stats.revived) == ((300, 0) if operation == "purge" else (0, 300))
    assert (stats.dead, stats.ready) == (0, 0 if operation == "purge" else 300)
