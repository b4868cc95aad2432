"""What a waiting item weighs in the server's memory, part by part, beside the parts of redis-work-queue.

Each part is built alone on an empty server, from what the whole has, and weighed by used_memory: so it comes with what
the allocator rounds up and with its share of a table's slots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import redis

from layers import DATA, KEYS, SCRIPTS
from leaseq import commands
from leaseq.item import Item

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench_server import BenchServer

BATCH: Final = 100


class Scale:
    """Weighs what is built on a server, in bytes for each of so many items."""

    def __init__(self, server: BenchServer, items: int) -> None:
        self.server, self.items = server, items
        self.ids = [f"item-{number:010d}" for number in range(items)]

    def weigh(self, build: Callable[[Any, Sequence[str]], object]) -> float:
        """Build it on an empty server, a batch of ids at a time."""
        self.server.client.flushall()
        for script in SCRIPTS:
            self.server.load(script.source)
        before = self._memory()
        with redis.Redis.from_url(self.server.url) as client:
            for at in range(0, self.items, BATCH):
                build(client, self.ids[at : at + BATCH])
        return round((self._memory() - before) / self.items, 1)

    def _memory(self) -> int:
        """What the server has allocated once it rests, without the buffers of connections."""
        self.server.used_memory()
        told: dict[str, int] = self.server.client.info("memory")
        return told["used_memory"] - told["mem_clients_normal"]

    def usage(self) -> dict[str, float]:
        """MEMORY USAGE of the keys that have something of every item, for each item."""
        client: Any = self.server.client
        found = {key.decode(): client.memory_usage(key, samples=0) / self.items for key in client.keys("*")}
        return {key: round(value, 1) for key, value in sorted(found.items()) if value >= 1}


def leaseq(scale: Scale) -> dict[str, Any]:
    """The whole, its sorted set of ids, its table of records with and without them."""

    def whole(client: Any, ids: Sequence[str]) -> None:
        client.execute_command(*commands.add(KEYS, [Item(DATA, id=each) for each in ids]).evalsha())

    scale.weigh(whole)  # what a server allocates once, the first time, is no item's
    all_of_it = scale.weigh(whole)
    usage = scale.usage()
    client: Any = scale.server.client
    table_key, ready_key = (
        next(
            key
            for key in client.keys("*")
            if client.type(key) == kind and client.memory_usage(key) > scale.items
        )
        for kind in (b"hash", b"zset")
    )
    records = {key.decode(): value for key, value in client.hgetall(table_key).items()}
    places = {key.decode(): place for key, place in client.zrange(ready_key, 0, -1, withscores=True)}
    if not records.keys() == places.keys() == set(scale.ids):
        raise AssertionError(len(records), len(places))

    def entries(client: Any, ids: Sequence[str]) -> None:
        client.hset(table_key, mapping=dict.fromkeys(ids, b""))

    def table(client: Any, ids: Sequence[str]) -> None:
        client.hset(table_key, mapping={each: records[each] for each in ids})

    def ready(client: Any, ids: Sequence[str]) -> None:
        client.zadd(ready_key, {each: places[each] for each in ids})

    bare, full, placed = (scale.weigh(build) for build in (entries, table, ready))
    length = sum(map(len, records.values())) / len(records)
    return {
        "all": all_of_it,
        "parts": {
            "`items`: the entry of a hash, with the id": bare,
            f"`items`: the record of {length:g} bytes": round(full - bare, 1),
            "`ready`: the place in a sorted set, with the id again": placed,
            "leaseq, the rest": round(all_of_it - full - placed, 1),
        },
        "memory_usage": usage,
    }


def redis_work_queue(scale: Scale) -> dict[str, Any]:
    """The same of the keys that redis-work-queue 0.1.5 writes: a string for each item, a list of the ids."""

    def strings(client: Any, ids: Sequence[str], data: bytes) -> None:
        client.mset({f"bench:item:{each}": data for each in ids})

    def listed(client: Any, ids: Sequence[str]) -> None:
        client.lpush("bench:queue", *ids)

    def whole(client: Any, ids: Sequence[str]) -> None:
        strings(client, ids, DATA)
        listed(client, ids)

    scale.weigh(whole)  # what a server allocates once, the first time, is no item's
    all_of_it = scale.weigh(whole)
    client: Any = scale.server.client
    usage = {
        "bench:queue": round(client.memory_usage("bench:queue", samples=0) / scale.items, 1),
        "bench:item:ID": float(client.memory_usage(f"bench:item:{scale.ids[0]}")),
    }
    bare = scale.weigh(lambda client, ids: strings(client, ids, b""))
    full = scale.weigh(lambda client, ids: strings(client, ids, DATA))
    places = scale.weigh(listed)
    return {
        "all": all_of_it,
        "parts": {
            "a key for each item, with the id": bare,
            f"its string of {len(DATA)} bytes": round(full - bare, 1),
            "the place in a list, with the id again": places,
            "redis-work-queue, the rest": round(all_of_it - full - places, 1),
        },
        "memory_usage": usage,
    }


def weights(server: BenchServer, items: int) -> dict[str, Any]:
    """Both, for each of so many items."""
    scale = Scale(server, items)
    return {"items": items, "leaseq": leaseq(scale), "redis-work-queue": redis_work_queue(scale)}
