"""Calls whose connection breaks: what has taken effect, whether the caller knows, that no call is sent twice.

The conformance suite breaks the connections of both clients before and after every command of every operation. Here are the
errors of Python, redis-py clients of the caller's, and calls that are made of several.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from support.client_flavours import unwrap
from support.redis_probe import EVALS, calls, load
from support.servers import TIMEOUT_SECS

import leaseq
from leaseq import Item

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
    "blocking lease": (lambda q, _: q.lease(30, timeout=TIMEOUT_SECS), lambda q: q.stats().leases, 2),
    "hand off": (
        lambda q, i: q.complete(i, then=[(unwrap(q), Item(b"y", id="new"))]),
        lambda q: (q.stats().completed, q.stats().added),
        (1, 3),
    ),
}
every_operation = pytest.mark.parametrize("name", OPERATIONS)


@pytest.fixture
def watcher(flavour: ClientFlavour, redis_client: redis.Redis, url: str) -> leaseq.WorkQueue:
    """The queue of an undisturbed client; the server knows every script."""
    load(redis_client)
    return flavour.queue("q", url)


def prepare(queue: leaseq.WorkQueue) -> Any:
    """Items held and ready."""
    queue.add_item(Item(b"x", id="held"))
    item = queue.lease(60)
    assert item is not None
    queue.add_item(Item(b"x", id="ready"))
    return item


@pytest.mark.promise("G7", "G8")
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


@pytest.mark.promise("G7")
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


def test_without_a_read_timeout_no_call_hangs_for_ever(
    flavour: ClientFlavour, watcher: leaseq.WorkQueue, proxy: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LQ-ERROR-4: a client of the caller's may have none; then ours holds."""
    monkeypatch.setattr("leaseq.endpoint.DEFAULT_REPLY_SECONDS", 0.3)
    queue = flavour.queue("q", flavour.client(proxy.url, socket_timeout=None))
    queue.stats()
    proxy.discard_replies = True
    with pytest.raises(leaseq.ReplyLostError):
        flavour.start(queue.add_item, Item(b"x", id="a")).result(TIMEOUT_SECS)
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
    """LQ-ERROR-4: it is unknown if it has run, so the end of the block adds nothing."""
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


# Calls that are made of several.


def hold(queue: Any) -> list[Any]:
    """Lease 600 items; a call takes 256."""
    items = []
    for chunk in range(3):
        queue.add_items([Item(b"x", id=f"{chunk}-{number}") for number in range(200)])
        items += queue.lease_items(200, 3600)
    return items


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
