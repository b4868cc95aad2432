"""A queue of redis-work-queue (MeVitae), as its clients lay it out, all of them alike.

PREFIX:queue is a list of ids (added on the left, leased from the right), PREFIX:processing one of those that workers
took, PREFIX:cleaning one that its cleaner uses; PREFIX:item:ID holds data, and PREFIX:leased_by_session:ID exists for as
long as a lease lasts. Keys have no hash tag, so that this is for one server and not for a cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import redis

from leaseq.errors import BadTypeError, WrongKeyTypeError

PAGE: Final = 256

_CLAIM: Final = ("processing", "cleaning", "queue")
"""The lists to take from, in the order in which their items would be run."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many ids there are: in the queue, taken by workers (and how many of them under a lease), and claimed.

    `longest` is for how many seconds the last of the leases goes on. `cleaning` ids are between two lists, `claimed` ones
    were taken by an import that has not ended.
    """

    waiting: int
    processing: int
    leased: int
    longest: float
    cleaning: int
    claimed: int

    @property
    def total(self) -> int:
        """All ids."""
        return self.waiting + self.processing + self.cleaning + self.claimed


class OriginalQueue:
    """A queue of redis-work-queue that is taken over. Raises what redis-py raises."""

    def __init__(self, client: redis.Redis | redis.RedisCluster, prefix: str) -> None:
        """Raises BadTypeError for a client that is none of one server."""
        if not isinstance(client, redis.Redis):
            raise BadTypeError(
                f"redis-work-queue runs on one server: this takes a redis.Redis, not {type(client).__name__}"
            )
        self._client: Any = client
        self._prefix = prefix
        self.claimed_key = f"{prefix}:leaseq-import"
        """The list of ids on their way: those that an import which died had taken are still there."""

    def counts(self) -> Counts:
        """What is there. Raises WrongKeyTypeError where a list of it is something else."""
        try:
            waiting, processing, cleaning, claimed = (
                int(self._client.llen(key))
                for key in (
                    self._key("queue"),
                    self._key("processing"),
                    self._key("cleaning"),
                    self.claimed_key,
                )
            )
        except redis.ResponseError as error:
            if "WRONGTYPE" not in str(error):
                raise
            raise WrongKeyTypeError(
                f"{self._prefix} is no prefix of a queue of redis-work-queue: {self._prefix}:queue or another key is no list"
            ) from error
        leased, longest = self._leases(processing)
        return Counts(waiting, processing, leased, longest, cleaning, claimed)

    def claim(self, *, waiting_only: bool) -> int:
        """Take ids out of the original's lists, where its workers find them no more; answers how many, at most a page.

        They stand in `claimed_key` then: each is in one list at any time, whoever dies.
        """
        for name in _CLAIM[2:] if waiting_only else _CLAIM:
            moved = self._moved(self._key(name))
            if moved:
                return moved
        return 0

    def claimed(self, skip: int, limit: int = PAGE) -> list[bytes]:
        """The ids on their way, oldest first, without the `skip` first."""
        ids: list[bytes] = self._ask("LRANGE", self.claimed_key, -(skip + limit), -(skip + 1))
        return ids[::-1]

    def sizes(self, ids: Sequence[bytes]) -> list[int]:
        """How long the data are, 0 also where there are none."""
        return self._pipe([("STRLEN", self._item(item_id)) for item_id in ids])

    def data(self, ids: Sequence[bytes]) -> list[bytes | None]:
        """The data of items; None where there are none."""
        return self._ask("MGET", *map(self._item, ids)) if ids else []

    def forget(self, ids: Sequence[bytes]) -> None:
        """Delete items that are in their new queue: id and data go together."""
        if ids:
            commands: list[tuple[Any, ...]] = [("LREM", self.claimed_key, -1, item_id) for item_id in ids]
            self._pipe([*commands, ("DEL", *map(self._item, ids))], transaction=True)

    def _leases(self, count: int) -> tuple[int, float]:
        """How many of those in `processing` are under a lease, and how long the last of them goes on, in seconds."""
        ttls_ms: list[int] = []
        for start in range(0, count, PAGE):
            ids = self._ask("LRANGE", self._key("processing"), start, start + PAGE - 1)
            ttls_ms += self._pipe([("PTTL", self._key(b"leased_by_session:" + item_id)) for item_id in ids])
        # -2: none; -1: one without an end, which its clients do not make, but an operator may
        ttls_of_leases_ms = [milliseconds for milliseconds in ttls_ms if milliseconds != -2]
        return len(ttls_of_leases_ms), max(ttls_of_leases_ms, default=0) / 1000

    def _moved(self, key: bytes) -> int:
        answers = self._pipe([("RPOPLPUSH", key, self.claimed_key)] * PAGE)
        return sum(answer is not None for answer in answers)

    def _key(self, name: str | bytes) -> bytes:
        return f"{self._prefix}:".encode() + (name.encode() if isinstance(name, str) else name)

    def _item(self, item_id: bytes) -> bytes:
        return self._key(b"item:" + item_id)

    def _ask(self, *command: Any) -> Any:
        return self._client.execute_command(*command, NEVER_DECODE=True)

    def _pipe(self, commands: Sequence[tuple[Any, ...]], *, transaction: bool = False) -> list[Any]:
        with self._client.pipeline(transaction=transaction) as pipe:
            for command in commands:
                pipe.execute_command(*command)
            answers: list[Any] = pipe.execute()
        return answers
