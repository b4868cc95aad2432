"""A queue of redis-work-queue (MeVitae), as its clients lay it out.

PREFIX:queue is a list of ids (added on the left, leased from the right), PREFIX:processing one of those that workers
took, PREFIX:cleaning a list of the cleaner of versions before 0.3; PREFIX:item:ID holds data. A key exists for as long
as a lease lasts: PREFIX:lease:ID since version 0.3, PREFIX:leased_by_session:ID before. Keys have no hash tag, so that
this is for one server and not for a cluster.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import redis

from leaseq.commands.encoding import argument
from leaseq.errors import BadTypeError, LeaseqError, WrongKeyTypeError

PAGE: Final = 256

SCAN_COUNT: Final = 1000

LOCK_SECS: Final = 30
"""Seconds that the lock of a killed import lasts."""

_LEASES: Final = (b"lease:", b"leased_by_session:")
"""The starts of the keys of leases, since version 0.3 and before."""

_RENEW: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('EXPIRE', KEYS[1], ARGV[2]) end
return 0
"""
_UNLOCK: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""

_CLAIM: Final = ("processing", "cleaning", "queue")
"""The lists to take from, in the order in which their items would be run."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of ids: in the queue, taken by workers (and of these under a lease), and claimed.

    `longest` is for how many seconds the last of the leases goes on. `cleaning` ids are between two lists, `claimed` ones
    were taken by an import that has not ended. `stranded` ones have data and are in no list: their producer died while it
    added them.
    """

    waiting: int
    processing: int
    leased: int
    longest: float
    cleaning: int
    claimed: int
    stranded: int

    @property
    def total(self) -> int:
        """All ids."""
        return self.waiting + self.processing + self.cleaning + self.claimed + self.stranded


class ImportRunningError(LeaseqError):
    """Another import takes the same queue over. Nothing was changed."""


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
        self.lock_key = f"{prefix}:leaseq-import-lock"
        """The lock of the import that runs."""
        self._lock = os.urandom(16).hex()

    def counts(self) -> Counts:
        """Return what is there. Raises WrongKeyTypeError where a list of it is something else."""
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
        return Counts(waiting, processing, leased, longest, cleaning, claimed, len(self._stranded()))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Be the one import of this queue, until the block ends. Raises ImportRunningError."""
        while not self._execute("SET", self.lock_key, self._lock, "NX", "EX", LOCK_SECS):
            left_secs = self._execute("TTL", self.lock_key)
            if self._execute("GET", self.lock_key) == self._lock.encode():
                break  # the reply of an earlier try was lost
            if left_secs != -2:  # it has not ended just now
                raise ImportRunningError(
                    f"another import of {self._prefix} runs: wait until it ends; if it was killed, run this again in"
                    f" {max(left_secs, 1)} s"
                )
        try:
            yield
        finally:
            with contextlib.suppress(redis.RedisError):  # the lock expires
                self._client.eval(_UNLOCK, 1, self.lock_key, self._lock)

    def renew_lock(self) -> None:
        """Keep the lock for another LOCK_SECS. Raises ImportRunningError if it is lost."""
        if not self._client.eval(_RENEW, 1, self.lock_key, self._lock, LOCK_SECS):
            raise ImportRunningError(
                f"this import of {self._prefix} did not go on for {LOCK_SECS} s, and another may run now: run it again"
            )

    def claim(self, *, waiting_only: bool) -> int:
        """Move ids out of the original's lists, where its workers would find them; return how many, at most a page.

        They are in `claimed_key` then. Each is in one list at any time, also if this is killed.
        """
        for name in _CLAIM[2:] if waiting_only else _CLAIM:
            moved = self._moved(self._key(name))
            if moved:
                return moved
        return 0 if waiting_only else self._claim_stranded()

    def claimed(self, skip: int, limit: int = PAGE) -> list[bytes]:
        """The ids on their way, oldest first, without the `skip` first."""
        ids: list[bytes] = self._execute("LRANGE", self.claimed_key, -(skip + limit), -(skip + 1))
        return ids[::-1]

    def sizes(self, ids: Sequence[bytes]) -> list[int]:
        """Return how long the data are, 0 also where there are none."""
        return self._pipe([("STRLEN", self._item(item_id)) for item_id in ids])

    def data(self, ids: Sequence[bytes]) -> list[bytes | None]:
        """The data of items; None where there are none."""
        return self._execute("MGET", *map(self._item, ids)) if ids else []

    def forget(self, ids: Sequence[bytes]) -> None:
        """Delete items that are in their new queue: id and data go together."""
        if ids:
            commands: list[tuple[Any, ...]] = [("LREM", self.claimed_key, -1, item_id) for item_id in ids]
            self._pipe([*commands, ("DEL", *map(self._item, ids))], transaction=True)

    def _leases(self, count: int) -> tuple[int, float]:
        """Return how many of those in `processing` are under a lease, and how long the last of them goes on, in seconds."""
        ttls_ms: list[int] = []
        for start in range(0, count, PAGE):
            ids = self._execute("LRANGE", self._key("processing"), start, start + PAGE - 1)
            ttls_ms += self._pipe([("PTTL", self._key(lease + each)) for each in ids for lease in _LEASES])
        # -2: none; -1: one without an end, which its clients do not make, but an operator may
        ttls_of_leases_ms = [milliseconds for milliseconds in ttls_ms if milliseconds != -2]
        return len(ttls_of_leases_ms), max(ttls_of_leases_ms, default=0) / 1000

    def _stranded(self) -> list[bytes]:
        """The ids that have data, are in no list and under no lease. Lists are read last: an id may be added meanwhile."""
        start = len(self._item(b""))
        pattern = re.sub(rb"([*?\[\]\\])", rb"\\\1", self._item(b"")) + b"*"
        found: set[bytes] = set()
        cursor = b"0"
        while True:
            cursor, keys = self._execute("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT)
            found.update(key[start:] for key in keys)
            if int(cursor) == 0:
                break
        for key in (*map(self._key, _CLAIM), self.claimed_key.encode()):
            place = 0
            while found and (ids := self._execute("LRANGE", key, place, place + SCAN_COUNT - 1)):
                found.difference_update(ids)
                place += len(ids)
        ids = sorted(found)
        leased = self._pipe([("EXISTS", *(self._key(lease + each) for lease in _LEASES)) for each in ids])
        return [item_id for item_id, exists in zip(ids, leased, strict=True) if not exists]

    def _claim_stranded(self) -> int:
        ids = self._stranded()[:PAGE]
        if ids:
            self._execute("LPUSH", self.claimed_key, *ids)
        return len(ids)

    def _moved(self, key: bytes) -> int:
        answers = self._pipe([("RPOPLPUSH", key, self.claimed_key)] * PAGE)
        return sum(answer is not None for answer in answers)

    def _key(self, name: str | bytes) -> bytes:
        return f"{self._prefix}:".encode() + (name.encode() if isinstance(name, str) else name)

    def _item(self, item_id: bytes) -> bytes:
        return self._key(b"item:" + item_id)

    def _execute(self, *command: Any) -> Any:
        return self._client.execute_command(*map(argument, command), NEVER_DECODE=True)

    def _pipe(self, commands: Sequence[tuple[Any, ...]], *, transaction: bool = False) -> list[Any]:
        with self._client.pipeline(transaction=transaction) as pipe:
            for command in commands:
                pipe.execute_command(*map(argument, command))
            answers: list[Any] = pipe.execute()
        return answers
