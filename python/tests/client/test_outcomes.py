"""What is kept of finished items: results and failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.client_flavours import unwrap
from support.redis_probe import calls, look
from support.servers import PATIENCE

import leaseq
from leaseq import Item
from leaseq.flows import CHUNK_BYTES

if TYPE_CHECKING:
    import redis
    from support.client_flavours import ClientFlavour

MIB = 1024 * 1024


def test_results_are_kept(queue: Any) -> None:
    """LQ-COMPLETE-1: for as long as the item or the call says, with all that is known of the item."""
    queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")], keep=60)
    queue.add_items([Item(b"x", id="c"), Item(b"x", id="d"), Item(b"x", id="e")])
    assert [outcome.keep for outcome in queue.outcomes(["a", "c"])] == [60, 0]
    assert look(queue, "a", "c", "nothing") == [("ready", b""), ("ready", b""), ("absent", b"")]
    a, b, c, d, e = queue.lease_items(5, 30)
    assert (a.keep, c.keep) == (60, 0)
    assert look(queue, "a") == [("leased", b"")]
    assert queue.complete(a, result="dön\0e") is True
    assert queue.complete(b) is True
    assert queue.complete(c, result=b"nobody asked for it") is True
    assert queue.complete(d, result=bytearray(b"\xff"), keep=3600) is True
    e.result = "from the item"
    assert queue.complete(e, keep=60) is True
    assert look(queue, *"abcde") == [
        ("result", "dön\0e".encode()),
        ("result", b""),
        ("absent", b""),
        ("result", b"\xff"),
        ("result", b"from the item"),
    ]
    outcome = queue.outcomes(["d"])[0]
    assert (outcome.id, outcome.attempt, outcome.keep, outcome.finished) == ("d", 1, 0, True)
    assert outcome.error is None
    assert 0 < outcome.ended - outcome.created < 60
    assert {listed.id for listed in queue.list_items("kept").items} == set("abde")
    stats = queue.stats()
    assert (stats.kept, stats.items, stats.completed) == (4, 0, 5)


def test_many_at_once(queue: Any, redis_client: redis.Redis) -> None:
    """LQ-CALL-8, LQ-CLIENT-7: items with and without a kept outcome, answered in their order; results split by their size."""
    ids = [str(n) for n in range(600)]
    for n in ids:
        queue.add_item(Item(b"x", id=n), keep=60 if int(n) % 3 else None)
    items = [item for _ in range(3) for item in queue.lease_items(200, 30)]
    for item in items:
        item.result = item.id
    assert queue.complete_items(items) == [True] * 600
    expected = [("result", n.encode()) if int(n) % 3 else ("absent", b"") for n in ids]
    assert look(queue, *ids) == expected
    assert queue.complete_items(items) == [bool(int(n) % 3) for n in ids], "only what is kept is known again"
    queue.add_items([Item(b"x", id=str(n)) for n in range(20)], keep=60)
    large = queue.lease_items(20, 30)
    for item in large:
        item.result = b"x" * MIB
    redis_client.config_resetstat()
    assert queue.complete_items(large) == [True] * 20
    assert calls(redis_client) == 20 * MIB // CHUNK_BYTES
    assert [len(outcome.content) for outcome in queue.outcomes(ids[:20])] == [MIB] * 20


def test_large_results_are_asked_for_again(queue: Any, redis_client: redis.Redis) -> None:
    """LQ-OUTCOME-9: one call tells about 4 MiB, whatever their number."""
    ids = [f"i{n}" for n in range(12)]
    queue.add_items([Item(b"", id=item_id) for item_id in ids], keep=60)
    for item in queue.lease_items(12, 30):
        queue.complete(item, result=b"x" * MIB)
    queue.outcomes(["nothing"])  # the server knows the script now
    redis_client.config_resetstat()
    assert [len(outcome.content) for outcome in queue.outcomes([*ids, "nothing"])] == [MIB] * 12 + [0]
    assert calls(redis_client) == 3, "five, five, and two with the one that is absent"


def test_a_result_that_is_too_large(queue: Any) -> None:
    """LQ-ERROR-1: nothing has happened, and the end of a block gives the item back as after any other failure."""
    queue.configure(max_data=10)
    queue.add_item(Item(b"x", id="a"), keep=60)
    item = queue.lease(30)
    with pytest.raises(leaseq.TooLargeError):
        queue.complete(item, result=b"x" * 11)
    assert queue.inspect("a").state == "leased"
    with pytest.raises(leaseq.TooLargeError), item:
        item.result = b"x" * 11
    info = queue.inspect("a")
    assert info.state == "delayed"
    assert "LEASEQ_TOO_LARGE" in info.error


def test_the_end_of_a_block_keeps_the_result(queue: Any) -> None:
    """LQ-CLIENT-7: item.result, where the item keeps it; where it does not, it is dropped."""
    queue.add_item(Item(b"x", id="a"), keep=60)
    queue.add_items([Item(b"x", id="b"), Item(b"x", id="c")])
    for item in queue.items(30, timeout=0.1):
        with item:
            item.result = f"result of {item.id}"
    assert look(queue, *"abc") == [("result", b"result of a"), ("absent", b""), ("absent", b"")]
    with pytest.raises(leaseq.BadTypeError):
        unwrap(item).result = 5
    with pytest.raises(leaseq.BadArgumentError):
        unwrap(item).result = "\ud800"
    assert item.result == b"result of c"


def test_complete_and_lease_keeps_the_outcome(queue: Any) -> None:
    """LQ-CLIENT-7: of an item that keeps it, in two calls; bad arguments are refused before the first."""
    queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")], keep=60)
    first = queue.lease(30)
    for lease_secs in (0, 31 * 86400, float("nan")):
        with pytest.raises(leaseq.BadArgumentError):
            queue.complete_and_lease(first, lease_secs)
    assert queue.inspect("a").state == "leased"
    first.result = b"1"
    done, second = queue.complete_and_lease(first, 30)
    assert done
    second.result = b"2"
    assert queue.complete_and_lease(second, 30) == (True, None)
    assert look(queue, "a", "b") == [("result", b"1"), ("result", b"2")]


def test_failures_are_kept(queue: Any, redis_client: redis.Redis) -> None:
    """LQ-RELEASE-3: by whatever call the item died; a revived item has none any more."""
    queue.add_items([Item(b"x", id=name) for name in ("a", "b", "c")], keep=60, max_attempts=1)
    a, b, c = queue.lease_items(3, 30)
    assert queue.release(a, error="bad a") == "dead"
    assert queue.dead_letter(b, error="bad b")
    with pytest.raises(ValueError, match="bad c"), c:
        raise ValueError("bad c")
    for name in ("a", "b", "c"):
        assert redis_client.exists(f"leaseq:{{q}}:q:result:{name}"), "published by the call itself"
    assert look(queue, *"abc") == [
        ("failure", b"bad a"),
        ("failure", b"bad b"),
        ("failure", b"ValueError: bad c"),
    ]
    failure = queue.outcomes(["a"])[0]
    assert (failure.finished, failure.error, failure.keep, failure.attempt) == (True, "bad a", 60, 1)
    assert queue.revive("a")
    assert look(queue, "a") == [("ready", b"")]


@pytest.mark.parametrize("how", ["lease", "complete_and_lease", "light_clean"])
def test_a_death_by_reclaiming_is_published(queue: Any, redis_client: redis.Redis, how: str) -> None:
    """LQ-CLIENT-8: the client whose call reclaimed it does so, without anybody asking for the outcome."""
    queue.add_item(Item(b"x", id="held"))
    held = queue.lease(30)
    queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")], keep=60, max_attempts=1)
    queue.add_item(Item(b"x", id="plain"), max_attempts=1)
    lost = queue.lease_items(3, 0.05)
    servers.wait_until(lambda: queue.stats().now > max(item.deadline for item in lost))
    if how == "lease":
        assert queue.lease(30, block=False) is None
    elif how == "complete_and_lease":
        assert queue.complete_and_lease(held, 30) == (True, None)
    else:
        assert queue.light_clean().died == 3
    for name in ("a", "b"):
        servers.wait_until(lambda name=name: redis_client.exists(f"leaseq:{{q}}:q:result:{name}"))  # type: ignore[misc]
    assert not redis_client.exists("leaseq:{q}:q:result:plain")
    assert [state for state, _ in look(queue, "a", "b", "plain")] == ["failure", "failure", "dead"]


def test_a_waiter_that_reclaims_publishes(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis
) -> None:
    """LQ-CLIENT-8: also where nothing comes of the lease, which goes on waiting."""
    queue.add_item(Item(b"x", id="a"), keep=60, max_attempts=1)
    assert queue.lease(0.2) is not None
    waiting = flavour.start(queue.lease, 30, timeout=20)
    servers.wait_until(lambda: redis_client.exists("leaseq:{q}:q:result:a"))
    assert not waiting.done()
    queue.add_item(Item(b"x", id="b"))
    assert waiting.result(PATIENCE).id == "b"


def test_publishing_is_best_effort(queue: Any, redis_client: redis.Redis) -> None:
    """LQ-CLIENT-8: an outcome's key that holds something else does not hurt the lease that found the death."""
    queue.add_item(Item(b"x", id="a"), keep=60, max_attempts=1)
    item = queue.lease(0.05)
    redis_client.set("leaseq:{q}:q:result:a", "foreign")
    servers.wait_until(lambda: queue.stats().now > item.deadline)
    assert queue.light_clean().died == 1
    queue.revive("a")
    assert queue.lease(0.05) is not None
    servers.wait_until(lambda: queue.stats().overdue == 1)
    assert queue.lease(30, block=False) is None
    assert redis_client.get("leaseq:{q}:q:result:a") == b"foreign"
