"""What is kept of finished items: results and failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.client_flavours import unwrap
from support.redis_probe import calls, look

import leaseq
from leaseq import Item
from leaseq.flows import CHUNK_BYTES

if TYPE_CHECKING:
    import redis

MIB = 1024 * 1024


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
