"""A server with very many queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import leaseq
from leaseq.keys import REGISTRY, QueueKeys

if TYPE_CHECKING:
    import redis


def queues(count: int) -> list[QueueKeys]:
    """Return their names: each second queue has a group to itself, the others share one."""
    return [QueueKeys(f"queue-{number:05}", None if number % 2 else "shared") for number in range(count)]


def fill(client: redis.Redis, count: int, *, filled: int) -> list[QueueKeys]:
    """Register queues. The first ones get items: four ready, one delayed, one leased, one dead. Return all."""
    named = queues(count)
    client.sadd(REGISTRY, *(keys.entry for keys in named))
    for keys in named[:filled]:
        with leaseq.WorkQueue(keys.name, client, group=keys.group) as queue:
            queue.add_items(leaseq.Item(b"x", id=f"{number}") for number in range(6))
            _, dies = queue.lease_items(2, 3600)
            queue.dead_letter(dies)
            queue.add_item(leaseq.Item(b"x"), delay=3600)
    return named
