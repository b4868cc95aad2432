"""The notes of the demo's processes, in a few hashes on the same server."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import redis

from leaseq.item import LeasedItemBase

_HOLDS: Final = "holds"  # worker -> the item it leased last, and its token
_AGAIN: Final = "again"  # item -> who leased it again, and when
_COUNTS: Final = "counts"  # item -> what was counted in it
_TRUE: Final = "true"  # item -> how many calls of complete answered true


class Held(NamedTuple):
    """A lease, as the worker that has it wrote it down."""

    id: str
    token: int


class Again(NamedTuple):
    """A lease that is not the first of its item. `time` is the server's, in seconds since 1970."""

    pid: int
    token: int
    time: float


class Scoreboard:
    """The hashes of one run."""

    def __init__(self, client: redis.Redis, name: str) -> None:
        self._client: Any = client
        self._prefix = f"leaseq-demo:{name}:"

    def leased(self, pid: int, item: LeasedItemBase, lease_secs: float) -> None:
        """Write down that a worker starts on an item."""
        self._client.hset(self._key(_HOLDS), pid, json.dumps(Held(item.id, item.token)))
        if item.attempt > 1:
            again = Again(pid, item.token, item.deadline - lease_secs)
            self._client.hset(self._key(_AGAIN), item.id, json.dumps(again))

    def counted(self, item_id: str, counts: Counter[str]) -> None:
        """Write down a result. Twice writes the same, so a worker that dies after this does no harm."""
        self._client.hset(self._key(_COUNTS), item_id, json.dumps(counts))

    def completed(self, item_id: str) -> None:
        """Write down that `complete` answered true."""
        self._client.hincrby(self._key(_TRUE), item_id, 1)

    def held(self, pids: Sequence[int]) -> list[Held | None]:
        """Return what each of the workers wrote down last."""
        found = self._client.hmget(self._key(_HOLDS), pids)
        return [None if held is None else Held(*json.loads(held)) for held in found]

    def again(self) -> dict[str, Again]:
        """All leases that were not the first of their item; the last one of each."""
        found = self._client.hgetall(self._key(_AGAIN))
        return {item_id.decode(): Again(*json.loads(again)) for item_id, again in found.items()}

    def total(self) -> Counter[str]:
        """All results, each item's once."""
        total: Counter[str] = Counter()
        for _, counts in self._client.hscan_iter(self._key(_COUNTS), count=1000):
            total.update(json.loads(counts))
        return total

    def completed_once(self) -> int:
        """Return how many items were completed by exactly one call."""
        return sum(int(count) == 1 for _, count in self._client.hscan_iter(self._key(_TRUE), count=1000))

    def clear(self) -> None:
        """Delete everything."""
        self._client.delete(*map(self._key, (_HOLDS, _AGAIN, _COUNTS, _TRUE)))

    def _key(self, part: str) -> str:
        return self._prefix + part
