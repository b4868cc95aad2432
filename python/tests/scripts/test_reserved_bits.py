"""Spec 10: what a later protocol marks with a reserved bit, the scripts of today refuse, and change nothing (LQ-VERSION-1, 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import leaseq
from leaseq import Item
from leaseq.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import redis

FLAGS = (4, 8, 16, 32, 64, 128)
OPTIONS = (8, 16, 32, 64, 128)
SECOND = 1

READS_THE_STATE: dict[str, Callable[[leaseq.WorkQueue, leaseq.LeasedItem], Any]] = {
    "add": lambda queue, _: queue.add_item(Item(b"x")),
    "lease": lambda queue, _: queue.lease(30, block=False),
    "lease of several": lambda queue, _: leaseq.WorkQueues([queue, queue_beside(queue)]).lease(
        30, block=False
    ),
    "complete and lease": lambda queue, item: queue.complete_and_lease(item, 30),
    "complete with": lambda queue, item: queue.complete(item, then=[(queue, Item(b"x"))]),
    "extend": lambda queue, item: queue.extend(item, 30),
    "release": lambda queue, item: queue.release(item),
    "revive": lambda queue, _: queue.revive("dead"),
    "inspect": lambda queue, item: queue.inspect(item.id),
    "outcome": lambda queue, item: queue.outcome(item.id, timeout=0),
    "stats": lambda queue, _: queue.stats(),
    "configure": lambda queue, _: queue.configure(max_items=9),
    "light clean": lambda queue, _: queue.light_clean(),
    "deep clean": lambda queue, _: queue.deep_clean(),
}
READS_THE_RECORD: dict[str, Callable[[leaseq.WorkQueue, leaseq.LeasedItem], Any]] = {
    "complete": lambda queue, item: queue.complete(item),
    "complete many": lambda queue, item: queue.complete_items([item, item]),
    "complete with": lambda queue, item: queue.complete(item, result=b"x"),
    "complete and lease": lambda queue, item: queue.complete_and_lease(item, 30),
    "extend": lambda queue, item: queue.extend(item, 30),
    "release": lambda queue, item: queue.release(item),
    "inspect": lambda queue, item: queue.inspect(item.id),
    "outcome": lambda queue, item: queue.outcome(item.id, timeout=0),
    "deep clean": lambda queue, _: queue.deep_clean(),
}


def queue_beside(queue: leaseq.WorkQueue) -> leaseq.WorkQueue:
    """Another queue of the group."""
    return leaseq.WorkQueue("beside", queue.executor.client, group=queue.group)


@pytest.fixture
def leased(url: str) -> Iterator[tuple[leaseq.WorkQueue, leaseq.LeasedItem]]:
    """A queue with a waiting, a leased and a dead item."""
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_item(Item(b"x", id="dead"))
        dead = queue.lease(3600)
        assert dead is not None
        queue.dead_letter(dead)
        queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")])
        item = queue.lease(3600)
        assert item is not None
        yield queue, item


def dumped(client: redis.Redis) -> dict[bytes, bytes | None]:
    """All that the server has."""
    found: dict[bytes, bytes | None] = {key: client.dump(key) for key in client.scan_iter()}
    return found


def with_bit(stored: bytes, bit: int) -> bytes:
    """The same with a bit of its second byte set."""
    return stored[:SECOND] + bytes([stored[SECOND] | bit]) + stored[SECOND + 1 :]


@pytest.mark.parametrize("flag", FLAGS)
def test_a_state_with_a_reserved_flag_is_refused(
    redis_client: redis.Redis, leased: tuple[leaseq.WorkQueue, leaseq.LeasedItem], flag: int
) -> None:
    queue, item = leased
    key = queue.keys.key("state")
    stored: Any = redis_client.get(key)
    redis_client.set(key, with_bit(stored, flag))
    before = dumped(redis_client)
    for name, call in READS_THE_STATE.items():
        with pytest.raises(FormatError):
            call(queue, item)
        assert dumped(redis_client) == before, name


@pytest.mark.parametrize("option", OPTIONS)
def test_a_record_with_a_reserved_option_is_refused(
    redis_client: redis.Redis, leased: tuple[leaseq.WorkQueue, leaseq.LeasedItem], option: int
) -> None:
    queue, item = leased
    key = queue.keys.key("meta")
    stored: Any = redis_client.hget(key, item.id)
    redis_client.hset(key, item.id, with_bit(stored, option))
    before = dumped(redis_client)
    for name, call in READS_THE_RECORD.items():
        with pytest.raises(FormatError):
            call(queue, item)
        assert dumped(redis_client) == before, name
