"""Puts a vector's keyspace on a server, calls the script at the vector's time, and sees what came of it.

Three commands for each vector, sent many at once: a script that clears the database and puts the keys there, the call, and a script
that reads every key. The script runs as it is but for one line before it, which answers TIME and counts times to live in
units that no test outlasts.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import redis
from redis.crc import key_slot

from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.model.keyspace import KEYS as QUEUE_KEYS
from leaseq_conformance.vectors.compare import Observed, Run
from leaseq_conformance.vectors.vector import (
    HASHES,
    Dump,
    Kept,
    Refused,
    Value,
    Vector,
    bare,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PREFIX: Final = "leaseq:{vectors}:queue:"
OTHER: Final = "leaseq:{vectors}:other:"
USER: Final = "leaseq-vectors"
"""A user who lacks a right, and the password."""
BATCH: Final = 50
"""Vectors sent at once."""
# Takes the time off the end of ARGV and answers it to TIME, as a server does, which tells microsecond 77 as 77. A millisecond to live lasts 1000 s, so that none has passed
# when the keys are read. One line, so that line numbers in errors stay right.
PRELUDE: Final = (
    "local redis = (function(real) "
    "local s, us = string.match(table.remove(ARGV), '^(%d+)(%d%d%d%d%d%d)$') us = tostring(us + 0) "
    "local function via(f) return function(c, ...) if c == 'TIME' then f(c) return {s, us} end "
    "if c == 'PEXPIRE' then local k, ttl = ... return f(c, k, ttl .. '000000') end return f(c, ...) end end "
    "return setmetatable({call = via(real.call), pcall = via(real.pcall)}, {__index = real}) end)(redis) "
)
PUT: Final = """
redis.call('FLUSHDB', 'ASYNC')
for i = 1, #KEYS do redis.call('RESTORE', KEYS[i], ARGV[2 * i - 1] .. (ARGV[2 * i - 1] == '0' and '' or '000000'), ARGV[2 * i]) end
return #KEYS
"""
# Every key with its type, its content in a fixed order, and its time to live; as one digest where that is enough.
READ: Final = """
local out, flat = {}, {}
for i, key in ipairs(KEYS) do
  local kind, content = redis.call('TYPE', key).ok, {}
  if kind == 'hash' then
    local all, names = redis.call('HGETALL', key), {}
    for n = 1, #all, 2 do names[#names + 1] = all[n]; flat[all[n]] = all[n + 1] end
    table.sort(names)
    for n, name in ipairs(names) do content[2 * n - 1] = name; content[2 * n] = flat[name] end
  elseif kind == 'zset' then
    content = redis.call('ZRANGE', key, '0', '-1', 'WITHSCORES')
  elseif kind == 'list' then
    content = redis.call('LRANGE', key, '0', '-1')
  elseif kind == 'string' then
    content = {redis.call('GET', key)}
  end
  out[i] = {kind, content, math.ceil(redis.call('PTTL', key) / 1000000)}
end
local size = redis.call('DBSIZE')
if ARGV[1] == '0' then return {out, size} end
local parts = {}
for i, each in ipairs(out) do
  parts[#parts + 1] = each[1] .. ':' .. #each[2] .. ':' .. each[3] .. ':'
  for _, part in ipairs(each[2]) do parts[#parts + 1] = #part .. ':' .. part end
end
parts[#parts + 1] = size
return redis.sha1hex(table.concat(parts))
"""


BEGUN: Final = ["ECHO", "the call starts"]
ENDED: Final = ["ECHO", "the call is over"]
"""Marks around the call, for a reader of MONITOR."""


def whole(name: str) -> str:
    """The key by its name without the prefix; one of another queue altogether is whole already."""
    if name.startswith("leaseq:"):
        return name
    return OTHER + name.removeprefix("other:") if name.startswith("other:") else PREFIX + name


def passed(vector: Vector) -> list[str]:
    """The names of the keys that the call passes."""
    return vector.keys if vector.keys is not None else [*SCRIPTS[vector.script].keys, *vector.more]


def looked_at(vector: Vector) -> list[str]:
    """The names of all keys that are read afterwards."""
    named = {*QUEUE_KEYS, *vector.given, *vector.then, *vector.then_again, *passed(vector)}
    if any(name.startswith("other:") for name in named):
        named |= {"other:" + name for name in QUEUE_KEYS}
    return sorted(named)


def slots(vector: Vector) -> set[int]:
    """The slots of the keys that the call passes."""
    return {key_slot(whole(name).encode("latin-1")) for name in passed(vector)}


class VectorExecutor:
    """Runs vectors on one server, in a database that has to be empty."""

    def __init__(self, client: redis.Redis) -> None:
        assert not client.dbsize(), "vectors need an empty database: they delete what is in it"
        self.client = client
        self.link: Any = client.connection_pool.make_connection()
        self._loaded: dict[str, str] = {}
        self._put, self._read = self._load(PUT), self._load(READ)
        self._stored: dict[tuple[str, str], tuple[bytes, bytes]] = {}

    def close(self) -> None:
        """Leave the database empty and close the connection."""
        self.client.flushdb()
        self.link.disconnect()

    def _load(self, source: str) -> str:
        if source not in self._loaded:
            self._loaded[source] = str(self.client.script_load(source))
        return self._loaded[source]

    def load(self, script: str, source: str | None = None) -> str:
        """Make a script known under virtual time, as it is or with another source."""
        return self._load(PRELUDE + (SCRIPTS[script].source if source is None else source))

    # -- one vector

    def put(self, dump: Dump) -> list[Any]:
        """The command that makes the database this keyspace."""
        names = sorted(dump)
        stored = [part for name in names for part in self._serialised(name, dump[name])]
        return ["EVALSHA", self._put, len(names), *(encoded(name) for name in names), *stored]

    def _serialised(self, name: str, value: Value) -> tuple[bytes, bytes]:
        """The time to live and the value of a key as DUMP gives it."""
        case = (bare(name), repr(value))
        if case not in self._stored:
            key = PREFIX + "serialised"
            with self.client.pipeline(transaction=True) as pipe:
                pipe.delete(key)
                if isinstance(value, Kept):
                    pipe.rpush(key, *value.values)
                elif isinstance(value, bytes):
                    pipe.set(key, value)
                elif isinstance(value, list):
                    pipe.rpush(key, *value)
                elif bare(name) in HASHES:
                    pipe.hset(key, mapping=dict(sorted(value.items())))
                else:
                    pipe.zadd(key, dict(sorted(value.items())))
                pipe.dump(key)
                packed = pipe.execute()[-1]
                self.client.delete(key)
            ttl = value.ttl if isinstance(value, Kept) else 0
            self._stored[case] = (str(ttl).encode(), packed)
        return self._stored[case]

    def call(self, vector: Vector, digest: str) -> list[Any]:
        """The command that is the call."""
        keys = [encoded(name) for name in passed(vector)]
        return ["EVALSHA", digest, len(keys), *keys, *vector.argv, vector.now]

    def _spoilt(self, vector: Vector) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return what makes the server such as the vector says, and what mends it."""
        what, _, command = vector.server.partition(" ")
        if what == "full":
            return [["CONFIG", "SET", "maxmemory", 1]], [["CONFIG", "SET", "maxmemory", 0]]
        if what == "replica":
            return [["REPLICAOF", "127.0.0.1", 1]], [["REPLICAOF", "NO", "ONE"]]
        if what == "without":
            allowed = ["reset", "on", f">{USER}", "~*", "+@all", f"-{command}"]
            me = self.client.connection_pool.connection_kwargs
            back = ["AUTH", me.get("username") or "default", me.get("password") or ""]
            return (
                [["ACL", "SETUSER", USER, *allowed], ["AUTH", USER, USER]],
                [back, ["ACL", "DELUSER", USER]],
            )
        return [], []

    def read(self, vector: Vector, *, as_digest: bool = False) -> list[Any]:
        """The command that reads every key."""
        names = looked_at(vector)
        return ["EVALSHA", self._read, len(names), *map(encoded, names), int(as_digest)]

    def commands(
        self, vector: Vector, digest: str, *, twice: bool, as_digest: bool = False
    ) -> list[list[Any]]:
        """All that a vector sends; each call is followed by a look at every key."""
        spoil, mend = self._spoilt(vector)
        before: list[list[Any]] = [*spoil, BEGUN]
        after: list[list[Any]] = [ENDED, *mend]
        run = [*before, self.call(vector, digest), *after, self.read(vector, as_digest=as_digest)]
        return [self.put(vector.given), *run, *(run if twice else [])]

    # -- many

    def run(
        self, vectors: Sequence[Vector], sources: Mapping[str, str] = MappingProxyType({})
    ) -> Iterator[Run]:
        """Yield what each vector's call does, and what the same call does the second time.

        `sources` are other sources of scripts, by their names: seeded bugs.

        Raises:
            redis.ResponseError: the server refuses what is not the call: it cannot be judged.
        """
        for start in range(0, len(vectors), BATCH):
            batch = vectors[start : start + BATCH]
            digests = [self.load(each.script, sources.get(each.script)) for each in batch]
            sent = [
                self.commands(each, digest, twice=True) for each, digest in zip(batch, digests, strict=True)
            ]
            self.link.send_packed_command(
                self.link.pack_commands([command for commands in sent for command in commands])
            )
            # all answers are read before one is judged: who stops there leaves none behind
            answers = [[self.answer() for _ in commands] for commands in sent]
            for vector, commands, answered in zip(batch, sent, answers, strict=True):
                yield self._run(vector, commands, answered)

    def _run(self, vector: Vector, commands: list[list[Any]], answers: list[Any]) -> Run:
        calls = [at + 1 for at, command in enumerate(commands) if command is BEGUN]
        for at, answer in enumerate(answers):
            if isinstance(answer, Exception) and at not in calls:
                raise answer
        looks = (len(commands) // 2, len(commands) - 1)
        first, second = (
            self._observed(vector, answers[at], answers[look]) for at, look in zip(calls, looks, strict=True)
        )
        return Run(vector, first, second)

    def answer(self) -> Any:
        try:
            return self.link.read_response()
        except redis.ResponseError as error:
            return error

    def _observed(self, vector: Vector, reply: Any, read: Any) -> Observed:
        stored, size = read
        dump = {
            name: value
            for name, each in zip(looked_at(vector), stored, strict=True)
            if (value := _value(*each)) is not None
        }
        return Observed(refused(reply), dump, size - len(dump))


def refused(reply: Any) -> Any:
    """The reply, an error as its code."""
    if isinstance(reply, Exception):
        return Refused(str(reply).split(" ", 1)[0])
    return f"the boolean {reply}" if isinstance(reply, bool) else reply  # 1 is equal to it in Python


def encoded(name: str) -> bytes:
    """A key as it is sent; names of results may have any bytes."""
    return whole(name).encode("latin-1")


def _value(kind: bytes, content: list[bytes], ttl: int) -> Any:
    pairs = zip(content[::2], content[1::2], strict=False)
    if kind == b"hash":
        return dict(pairs)
    if kind == b"zset":
        return {name: float(score) for name, score in pairs}
    if kind == b"list":
        return Kept(tuple(content), ttl) if ttl > 0 else content
    return content[0] if kind == b"string" else None
