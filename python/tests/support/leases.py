"""Letting leases end: the time is forged in the keys, not waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leaseq_conformance.scenarios.key_inspector import NEXT_DUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    import redis

EXPIRE: Final = f"""
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZADD', KEYS[1], 'XX', 1, id) end
if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('SETRANGE', KEYS[2], {NEXT_DUE}, string.rep('\\0', 8)) end
"""


def expire_leases(client: redis.Redis, prefixes: Iterable[str]) -> None:
    """Let every lease of some queues be over now, also those of live workers. `prefixes` are those of their keys."""
    with client.pipeline(transaction=False) as pipe:
        for prefix in prefixes:
            pipe.eval(EXPIRE, 2, prefix + "leased", prefix + "state")
        pipe.execute()
