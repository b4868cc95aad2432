"""The whole life of an item when connections break and servers end: what has happened, what a second call answers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
import servers
from colours import bare
from life_calls import CALLS, Scene, finished, follow_up
from servers import PATIENCE
from watching import EVALS, blocked, calls, load

import leaseq
from leaseq import Completed, Finished, Item

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis
    from colours import Colour
    from faultproxy import FaultProxy

every_call = pytest.mark.parametrize("name", CALLS)


@pytest.fixture
def scene(colour: Colour, url: str, redis_client: redis.Redis) -> Scene:
    load(redis_client)  # so that a reply that is lost is that of the call and not NOSCRIPT
    return Scene(colour, "q", url)


@every_call
def test_undisturbed(scene: Scene, name: str) -> None:
    """The table is right."""
    call = CALLS[name]
    call.prepare(scene)
    assert call.run(scene.queue, scene) == call.answer
    before = call.check(scene)
    assert call.run(scene.queue, scene) == call.again
    if call.repeatable:
        assert call.check(scene) == before, "a second call writes nothing"


@pytest.mark.parametrize("received", [0, 2], ids=["nothing", "the beginning"])
@pytest.mark.parametrize("retries", [False, True], ids=["our client", "redis-py with its ten retries"])
@every_call
def test_a_lost_reply_and_a_second_call(
    colour: Colour,
    scene: Scene,
    redis_client: redis.Redis,
    proxy: FaultProxy,
    name: str,
    retries: bool,
    received: int,
) -> None:
    """LQ-CLIENT-1, LQ-ERROR-4, LQ-OUTCOME-2: indefinite, run once by one call; what the caller's own second answers."""
    call = CALLS[name]
    call.prepare(scene)
    queue = scene.open(colour.client(proxy.url) if retries else proxy.url)
    queue.stats()
    redis_client.config_resetstat()
    proxy.cut_after_down = received
    with pytest.raises(leaseq.ReplyLostError) as caught:
        call.run(queue, scene)
    assert caught.value.definite is False
    assert calls(redis_client, *EVALS) == 1
    before = call.check(scene)
    assert call.run(queue, scene) == call.again
    if call.repeatable:
        assert call.check(scene) == before, "a second call writes nothing"


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call.repeatable])
def test_a_lost_call(colour: Colour, scene: Scene, proxy: FaultProxy, name: str) -> None:
    """LQ-ERROR-4: swallowed on its way: indefinite as well, nothing has happened, and the second call does it all."""
    call = CALLS[name]
    call.prepare(scene)
    queue = scene.open(colour.client(proxy.url, socket_timeout=0.2))
    queue.stats()
    before = scene.queue.stats(), scene.next.stats()
    proxy.blackhole_up = True
    with pytest.raises(leaseq.ReplyLostError) as caught:
        colour.start(call.run, queue, scene).result(20)
    proxy.blackhole_up = False
    assert caught.value.definite is False
    for stats, now in zip(before, (scene.queue.stats(), scene.next.stats()), strict=True):
        assert [getattr(stats, name) for name in COUNTS] == [getattr(now, name) for name in COUNTS]
    assert call.run(queue, scene) == call.answer
    call.check(scene)


COUNTS = ("added", "leases", "completed", "released", "died", "revived", "purged", "items", "kept", "paused")


@every_call
def test_no_connection(scene: Scene, proxy: FaultProxy, name: str) -> None:
    """LQ-ERROR-4: refused before anything is sent: definite, and the next call is as if it were the first."""
    call = CALLS[name]
    call.prepare(scene)
    queue = scene.open(proxy.url)
    proxy.refuse = True
    with pytest.raises(leaseq.UnavailableError) as caught:
        call.run(queue, scene)
    assert caught.value.definite is True
    proxy.refuse = False
    assert call.run(queue, scene) == call.answer
    call.check(scene)


@every_call
def test_scripts_that_are_forgotten(scene: Scene, redis_client: redis.Redis, name: str) -> None:
    """LQ-SCRIPT-2: NOSCRIPT before the call, and before the second one."""
    call = CALLS[name]
    call.prepare(scene)
    redis_client.script_flush()
    assert call.run(scene.queue, scene) == call.answer
    redis_client.script_flush()
    call.check(scene)
    redis_client.script_flush()
    assert call.run(scene.queue, scene) == call.again


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_server_that_ends_in_between(
    colour: Colour, own_server: Callable[..., servers.Server], how: str
) -> None:
    """LQ-FAIL-5: nobody notices; outcomes, limits, extras and what died are there as before."""
    server = own_server("--appendonly", "yes", "--appendfsync", "always")

    def end() -> None:
        server.kill9() if how == "kill" else server.stop()
        server.start()

    scenes = [Scene(colour, f"q{number}", server.url) for number in range(len(CALLS))]
    each = list(zip(CALLS.values(), scenes, strict=True))
    for call, scene in each:
        call.prepare(scene)
    end()
    for call, scene in each:
        assert call.run(scene.queue, scene) == call.answer
    end()
    seen = [call.check(scene) for call, scene in each]
    for call, scene in each:
        assert call.run(scene.queue, scene) == call.again
    end()
    for (call, scene), before in zip(each, seen, strict=True):
        assert not call.repeatable or call.check(scene) == before
        assert scene.queue.deep_clean(dry_run=True).repairs == {}


# A retried hand-off, whatever became of what it added.


@pytest.mark.parametrize("fate", ["waits", "is leased", "was completed", "was removed"])
def test_a_follow_up_is_added_no_second_time(scene: Scene, proxy: FaultProxy, fate: str) -> None:
    """LQ-OUTCOME-2, LQ-HANDOFF-2: the lease that won answers true again, and adds nothing: the follow-up may be done by now."""
    scene.hold("a", keep=60)
    (item,) = scene.held
    queue = scene.open(proxy.url)
    queue.stats()
    proxy.cut_after_down = 0
    with pytest.raises(leaseq.ReplyLostError):
        queue.complete(item, result=b"first", then=follow_up(scene))
    if fate in {"is leased", "was completed"}:
        leased = scene.next.lease(30, block=False)
        if fate == "was completed":
            assert scene.next.complete(leased)
    elif fate == "was removed":
        assert scene.next.remove("b") == "ready"
    left = scene.next.stats()
    for _ in range(3):
        done = queue.complete(item, result=b"second", then=follow_up(scene))
        assert (bool(done), done.added) == (True, [None])
    now = scene.next.stats()
    assert (now.added, now.items, now.leased) == (1, left.items, left.leased)
    assert scene.queue.stats().completed == 1
    assert scene.outcome("a")[:2] == ("result", b"first"), "a repetition keeps what was kept"


def test_only_the_lease_that_won_answers_true_again(scene: Scene, proxy: FaultProxy) -> None:
    """LQ-OUTCOME-2: not the one before it, nor the one behind it; and nobody once the id is added again."""
    scene.queue.add_item(Item(b"x", id="a"), keep=60)
    leases = []
    for _ in range(3):
        leases.append(scene.queue.lease(0.02))
        deadline = leases[-1].deadline
        servers.wait_until(lambda deadline=deadline: scene.queue.stats().now > deadline)  # type: ignore[misc]
    queue = scene.open(proxy.url)
    queue.stats()
    proxy.cut_after_down = 0
    with pytest.raises(leaseq.ReplyLostError):
        queue.complete(leases[1], result=b"r")
    assert [queue.complete(lease, result=b"other") for lease in leases] == [False, True, False]
    assert scene.outcome("a")[:2] == ("result", b"r")
    assert scene.queue.stats().completed == 1
    scene.queue.add_item(Item(b"x", id="a"), keep=60)
    assert [queue.complete(lease) for lease in leases] == [False] * 3
    assert scene.queue.stats().ready == 1


def test_without_an_outcome_nobody_knows_who_won(scene: Scene, proxy: FaultProxy) -> None:
    """LQ-COMPLETE-2, LQ-HANDOFF-2: a second call answers false then, and its caller cannot tell; the follow-up is there once all the same."""
    scene.hold("a")
    (item,) = scene.held
    queue = scene.open(proxy.url)
    queue.stats()
    proxy.cut_after_down = 0
    with pytest.raises(leaseq.ReplyLostError):
        queue.complete(item, then=follow_up(scene))
    done = queue.complete(item, then=follow_up(scene))
    assert (bool(done), done.added) == (False, [None])
    assert scene.counts("completed", "next.added") == (1, 1)


@pytest.mark.parametrize("keep", [None, 60])
@pytest.mark.parametrize("at", [0, 6000], ids=["first call", "second call"])
def test_finishing_more_than_a_call_takes(
    scene: Scene, proxy: FaultProxy, keep: float | None, at: int
) -> None:
    """LQ-CLIENT-2: three calls, a reply lost: the error has the answers before it; all again adds nothing twice.

    The reply to a call of 256 items with a follow-up each has 5894 bytes.
    """
    for chunk in range(3):
        scene.hold(*(f"{chunk}-{number}" for number in range(200)))
    before = 256 if at else 0
    queue = scene.open(proxy.url)
    queue.stats()
    proxy.cut_after_down = at
    with pytest.raises(leaseq.ReplyLostError) as caught:
        queue.finish_items(finished(scene, keep=keep))
    assert caught.value.definite is False
    assert caught.value.answers == [Completed(completed=True, added=[True])] * before
    assert scene.counts("completed", "next.added") == (before + 256, before + 256)
    again = queue.finish_items(finished(scene, keep=keep))
    done = before + 256
    assert again[:done] == [Completed(completed=keep is not None, added=[None])] * done
    assert again[done:] == [Completed(completed=True, added=[True])] * (600 - done)
    assert scene.counts("completed", "items", "next.added", "next.items") == (600, 0, 600, 600)
    assert scene.queue.stats().kept == (600 if keep else 0)


def test_a_call_that_is_refused_between_others(scene: Scene) -> None:
    """LQ-CLIENT-2, LQ-ERROR-1: what came before it is answered and done, what was in it and behind it is not."""
    for chunk in range(3):
        scene.hold(*(f"{chunk}-{number}" for number in range(200)))
    all_of_them = finished(scene)
    first, bad = all_of_them[300].item, Item(b"y", id="")
    all_of_them[300] = Finished(first, then=[(bare(scene.beyond), bad)])
    with pytest.raises(leaseq.BadIdError) as caught:
        scene.queue.finish_items(all_of_them)
    assert caught.value.definite is True
    assert caught.value.answers == [Completed(completed=True, added=[True])] * 256
    assert scene.counts("completed", "items", "next.added") == (256, 344, 256)


# Calls of many steps: they read, then write page by page.


@pytest.mark.parametrize("operation", ["revive", "revive matching", "purge"])
def test_all_the_dead_with_replies_lost_at_any_byte(
    colour: Colour, scene: Scene, proxy: FaultProxy, operation: str
) -> None:
    """LQ-ERROR-4: an error that says so, or the end; called until it ends, each item was moved once."""
    for chunk in range(3):
        scene.hold(*(f"{chunk}-{number}" for number in range(100)))
    scene.queue.dead_letter_items(scene.held, error="boom")
    # no bound on replies: a call given up while its reply is on its way would leave the next cut to that reply
    queue = scene.open(colour.client(proxy.url, socket_timeout=None))
    queue.stats()
    lost = 0
    # a cut between two replies loses none: the call goes on with a new connection, and that is the end as well
    for received in itertools.count(0, 2900):
        proxy.cut_after_down = received
        try:
            if operation == "purge":
                queue.purge_all()
            else:
                queue.revive_all("oom" if operation == "revive matching" else None)
            break
        except leaseq.ReplyLostError:
            lost += 1
    proxy.cut_after_down = None
    assert lost >= 1, "nothing of the first reply came"
    moved = scene.counts("purged", "revived")
    assert moved == ((300, 0) if operation == "purge" else (0, 300))
    assert scene.counts("dead", "ready") == (0, 0 if operation == "purge" else 300)


# Waits, while the server ends. What ends a single connection is in test_waiting.py.


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_server_that_ends_under_a_wait_for_an_outcome(
    colour: Colour, own_server: Callable[..., servers.Server], how: str
) -> None:
    """LQ-FAIL-5, LQ-BLOCK-12: it is told what became of the item, or that nobody can be asked; then it asks again."""
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    scene = Scene(colour, "q", server.url)
    scene.hold("a", keep=3600)
    waiting = colour.start(scene.queue.outcome, "a", timeout=20)
    with server.client() as client:
        blocked(client, 1)
    if how == "kill":
        server.kill9()
        with pytest.raises(leaseq.UnavailableError) as caught:
            waiting.result(PATIENCE)
        assert caught.value.definite
        server.start()
        waiting = colour.start(scene.queue.outcome, "a", timeout=20)
    else:
        server.restart()
    assert scene.queue.complete(scene.held[0], result=b"r") is True
    try:
        found: Any = waiting.result(PATIENCE)
    except leaseq.UnavailableError:  # it may have looked while nobody listened
        found = scene.queue.outcome("a", timeout=5)
    assert (found.state, found.content) == ("result", b"r")


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_server_that_ends_under_a_wait_for_room(
    colour: Colour, own_server: Callable[..., servers.Server], how: str
) -> None:
    """LQ-FAIL-5, LQ-ROOM-2: definite: nothing was added. Who asks again is woken, and the item is there once."""
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    scene = Scene(colour, "q", server.url)
    scene.queue.configure(max_items=1)
    scene.hold("a")
    waiting = colour.start(scene.queue.add_item_when_room, Item(b"x", id="b"), timeout=20)
    with server.client() as client:
        blocked(client, 1)
    server.kill9() if how == "kill" else server.stop()
    with pytest.raises(leaseq.UnavailableError) as caught:
        waiting.result(PATIENCE)
    assert caught.value.definite
    server.start()
    assert scene.counts("added", "items") == (1, 1)
    waiting = colour.start(scene.queue.add_item_when_room, Item(b"x", id="b"), timeout=20)
    with server.client() as client:
        blocked(client, 1)
    item = scene.held[0]
    done, taken = scene.queue.complete_and_lease(item, 30)
    assert (done, taken) == (True, None)
    assert waiting.result(PATIENCE) is True
    assert scene.counts("added", "items", "ready") == (2, 1, 1)
