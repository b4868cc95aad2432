"""Outcomes kept of finished items: results and failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.client_flavours import unwrap
from support.redis_probe import look

import leaseq
from leaseq import Item
from leaseq.commands import Completion

if TYPE_CHECKING:
    import redis


def test_a_result_of_the_call_goes_before_that_of_the_item(queue: Any) -> None:
    queue.add_items([Item(b"x", id=name) for name in ("call", "item", "several")], keep=60)
    items = queue.lease_items(3, 60)
    for item in items:
        item.result = b"draft"
    assert queue.complete(items[0], result=b"final")
    assert queue.complete(items[1])
    (done,) = queue.complete_items([Completion(unwrap(items[2]), result=b"final")])
    assert done.completed
    found = [queue.outcome(name, timeout=0).content for name in ("call", "item", "several")]
    assert found == [b"final", b"draft", b"final"]


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


def test_a_completion_that_is_to_keep_nothing_keeps_nothing(queue: Any) -> None:
    """LQ-CLIENT-7: 0 of a call is no outcome, also of an item that was added with `keep`; without it the item decides."""
    queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")], keep=60)
    first, second = queue.lease_items(2, 30)
    assert queue.complete(first, result=b"dropped", keep=0) is True
    assert queue.complete(second, result=b"kept") is True
    assert [outcome.state for outcome in queue.outcomes(["a", "b"])] == ["absent", "result"]


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


@pytest.mark.parametrize("keep", [None, 60])
def test_nothing_is_completed_if_the_next_lease_is_too_long(queue: Any, keep: float | None) -> None:
    """LQ-ERROR-4: the error is definite, also if an item that keeps its outcome takes two calls."""
    queue.add_item(Item(b"x", id="a"), keep=keep)
    item = queue.lease(30)
    with pytest.raises(leaseq.BadArgumentError) as raised:
        queue.complete_and_lease(item, 31 * 86400)
    assert (raised.value.definite, raised.value.answers) == (True, [])
    assert queue.inspect("a").state == "leased"
    assert queue.complete(item)


def test_all_that_died_in_one_clean_is_published(queue: Any, redis_client: redis.Redis) -> None:
    """LQ-CLIENT-8: one step finds up to 256 items whose lease is over, and up to 256 that expired; an outcome call takes 256."""
    queue.add_items([Item(b"x", id=f"leased-{number}") for number in range(150)], max_attempts=1, keep=60)
    assert len(queue.lease_items(150, 0.001)) == 150
    late = [Item(b"x", id=f"late-{number}") for number in range(150)]
    queue.add_items(late, expires_in=0.001, dead_on_expiry=True, keep=60)
    added = queue.stats().now
    servers.wait_until(lambda: queue.stats().now > added + 0.002)
    assert queue.light_clean().died == 300
    assert sum(1 for _ in redis_client.scan_iter("leaseq:{q}:q:result:*")) == 300
