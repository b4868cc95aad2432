"""A laboratory for single scripts: queues in every state, built by the scripts themselves in a time of the test's own,
and calls whose inner commands are seen.

Every call runs at a virtual time (one line before the source shadows `redis` and answers TIME), so the same call on
the same keyspace gives the same reply and the same keyspace, byte for byte.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import redis

from leaseq import _scripts

Arg = str | int | bytes
Snapshot = dict[bytes, bytes]

GROUP, NAME = "lab", "queue"
PREFIX = f"leaseq:{{{GROUP}}}:{NAME}:"
SCRIPTS = {script.name: script for script in _scripts.SCRIPTS}
EPOCH_2025 = 1_735_689_600_000_000
END_2059 = 2_840_140_800_000_000
START = 1_767_225_600_000_000
"""When the queues of the laboratory begin: 2026-01-01, in microseconds."""
NOW = START + 3_600_000_000
"""When the calls under test are made: an hour later."""
HOUR_MS = 3_600_000

PRELUDE = (
    "local redis = (function(real) local vt = {{'{seconds}', '{micros}'}} "
    "local function via(f) return function(c, ...) if string.upper(c) == 'TIME' then f(c) return vt end "
    "return f(c, ...) end end "
    "return setmetatable({{call = via(real.call), pcall = via(real.pcall)}}, {{__index = real}}) end)(redis) "
)


class Command(NamedTuple):
    """One command that a script executed."""

    name: str
    args: tuple[bytes, ...]

    @property
    def key(self) -> str | None:
        """The key it touches, without the prefix. A command this does not know fails the test that asks."""
        if self.name == "TIME":
            return None
        if self.name == "MEMORY":
            return short(self.args[1])
        assert self.name in ONE_KEY, f"{self.name}: say here which keys it touches"
        return short(self.args[0])


ONE_KEY = {
    *("DEL", "EXISTS", "GET", "SET"),
    *("HDEL", "HEXISTS", "HGET", "HINCRBY", "HLEN", "HMGET", "HSCAN", "HSET", "HSETNX", "HSTRLEN"),
    *("LLEN", "LPUSH"),
    *("ZADD", "ZCARD", "ZCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZREM", "ZREVRANGE", "ZSCAN", "ZSCORE"),
}


@dataclass
class Outcome:
    """What a call did."""

    reply: Any
    error: str | None
    commands: list[Command] = field(default_factory=list)

    @property
    def code(self) -> str | None:
        """The first word of the error."""
        return self.error.split(" ", 1)[0] if self.error else None

    @property
    def touched(self) -> set[str]:
        """The keys that were touched."""
        return {command.key for command in self.commands if command.key is not None}

    @property
    def records_read(self) -> set[bytes]:
        """The ids whose records were read."""
        return {
            each
            for command in self.commands
            if command.name in {"HGET", "HMGET"} and command.key == "meta"
            for each in command.args[1:]
        }


def send(client: redis.Redis, *command: Arg) -> Any:
    """The reply to a command."""
    return client.execute_command(*command)  # type: ignore[no-untyped-call]


def key(name: str) -> str:
    """The whole key."""
    return PREFIX + name


def short(whole: bytes) -> str:
    """A key without the prefix; a key of another queue stays whole."""
    return whole.decode().removeprefix(PREFIX)


def unescape(text: bytes) -> list[bytes]:
    """The arguments in a line of MONITOR."""
    plain = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}
    arguments, at = [], 0
    while at < len(text):
        assert text[at : at + 1] == b'"'
        at += 1
        argument = bytearray()
        while (char := text[at : at + 1]) != b'"':
            if char == b"\\" and text[at + 1 : at + 2] == b"x":
                argument.append(int(text[at + 2 : at + 4], 16))
                at += 4
            elif char == b"\\":
                argument += plain.get(text[at + 1 : at + 2], text[at + 1 : at + 2])
                at += 2
            else:
                argument += char
                at += 1
        arguments.append(bytes(argument))
        at += 2
    return arguments


BUILT: dict[str, tuple[dict[str, tuple[dict[str, int], Snapshot]], dict[Any, tuple[Outcome, Snapshot]]]] = {}
"""For each server that was met: the queues built on it with the tokens of their items, and calls on them."""


class Lab:
    """Runs scripts on one server."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.tokens: dict[str, int] = {}
        self._loaded: dict[str, str] = {}
        self._queues, self._wells = BUILT.setdefault(str(client.info("server")["run_id"]), ({}, {}))
        self._watch: Any = None

    def close(self) -> None:
        """End the MONITOR connection."""
        if self._watch:
            self._watch.disconnect()

    # -- calls

    def source(self, name: str, now: int | None = NOW) -> str:
        """The script's text, in virtual time unless `now` is None."""
        if now is None:
            return SCRIPTS[name].source
        return PRELUDE.format(seconds=now // 1_000_000, micros=now % 1_000_000) + "\n" + SCRIPTS[name].source

    def run(
        self,
        name: str,
        args: Sequence[Arg],
        *,
        now: int | None = NOW,
        keys: Sequence[str] | None = None,
        client: redis.Redis | None = None,
    ) -> Outcome:
        """Call a script; an error is part of the outcome."""
        source = self.source(name, now)
        if source not in self._loaded:
            self._loaded[source] = str((client or self.client).script_load(source))
        names = [key(each) for each in SCRIPTS[name].keys] if keys is None else keys
        try:
            reply = send(client or self.client, "EVALSHA", self._loaded[source], len(names), *names, *args)
        except redis.ResponseError as problem:
            return Outcome(None, str(problem))
        return Outcome(reply, None)

    def ok(self, name: str, *args: Arg, now: int | None = NOW) -> Any:
        """The reply of a call that must succeed."""
        outcome = self.run(name, args, now=now)
        assert outcome.error is None, f"{name}{args}: {outcome.error}"
        return outcome.reply

    def watch(self, name: str, args: Sequence[Arg], *, now: int | None = NOW) -> Outcome:
        """Call a script and see the commands that it executes."""
        if self._watch is None:
            pool = self.client.connection_pool
            self._watch = pool.connection_class(**{**pool.connection_kwargs, "protocol": 2})
            self._watch.connect()
            self._watch.send_command("MONITOR")
            assert self._watch.read_response() == b"OK"
        outcome = self.run(name, args, now=now)
        self.client.echo("end of the call")
        while True:
            head, _, rest = self._watch.read_response().partition(b"] ")
            command, *arguments = unescape(rest)
            if head.endswith(b" lua"):
                outcome.commands.append(Command(command.decode().upper(), tuple(arguments)))
            elif arguments == [b"end of the call"]:
                return outcome
            elif command.upper() == b"EVALSHA":
                outcome.commands.clear()

    def well(self, kind: str, name: str, args: Sequence[Arg]) -> tuple[Outcome, Snapshot]:
        """What a call does on such a queue, and what it leaves, when nothing is wrong. It is only made once."""
        case = (kind, name, *args)
        if case not in self._wells:
            self.queue(kind)
            self._wells[case] = self.watch(name, args), self.snapshot()
        return self._wells[case]

    # -- keyspaces

    def snapshot(self) -> Snapshot:
        """Every key of the server with its serialised value."""
        keys = sorted(self.client.scan_iter(count=1000))
        with self.client.pipeline(transaction=False) as pipe:
            for each in keys:
                pipe.dump(each)
            return dict(zip(keys, pipe.execute(), strict=True))

    def restore(self, snapshot: Snapshot) -> None:
        """Replace everything on the server."""
        with self.client.pipeline(transaction=False) as pipe:
            pipe.flushdb(asynchronous=True)  # flushing at once also makes jemalloc give back pages
            for each, value in snapshot.items():
                pipe.restore(each, 0, value)
            pipe.execute()

    def know(self, kind: str) -> Snapshot:
        """What such a queue is; it need not be on the server."""
        if kind not in self._queues:
            self.client.flushdb()
            self.tokens = {}
            QUEUES[kind](self)
            self._queues[kind] = self.tokens, self.snapshot()
        self.tokens, snapshot = self._queues[kind]
        return snapshot

    def queue(self, kind: str) -> Snapshot:
        """Put a queue of this kind on the server, and nothing else."""
        snapshot = self.know(kind)
        self.restore(snapshot)
        return snapshot

    def lease_new(self, item: str, duration: int, *options: Arg, now: int = START) -> None:
        """Add an item while nothing is ready, and lease it."""
        self.ok("add", 1, item, f"data of {item}", len(options) // 2, *options, now=now)
        reply = self.ok("lease", 1, duration, now=now)
        assert reply[3] == item.encode()
        self.tokens[item] = reply[5]


# -- the kinds of queue


def full(lab: Lab) -> None:
    """Items in every state; some are due, some leases have expired, some have leases of the past."""
    lab.lease_new("x1", HOUR_MS, "max_attempts", 1)
    lab.lease_new("s2", HOUR_MS)
    lab.lease_new("p3", HOUR_MS)
    lab.lease_new("s1", HOUR_MS)
    lab.lease_new("e1", 1000)
    lab.lease_new("e2", 2000, "max_attempts", 1)
    lab.lease_new("e3", 3000, "priority", 2)
    lab.lease_new("c1", 10 * HOUR_MS)
    lab.lease_new("c2", 10 * HOUR_MS, "priority", -7, "max_attempts", 1)
    assert lab.ok("release", 1, "x1", lab.tokens["x1"], 0, now=START) == b"dead"
    assert lab.ok("release", 1, "s2", lab.tokens["s2"], 1, "delay", 10 * HOUR_MS, now=START) == b"delayed"
    assert lab.ok("release", 1, "p3", lab.tokens["p3"], 1, "delay", 3000, now=START) == b"delayed"
    assert lab.ok("release", 1, "s1", lab.tokens["s1"], 0, now=START) == b"ready"
    items: list[list[Arg]] = [
        ["r1", "data of r1", 0],
        ["r2", b"\0\xff\r\n", 0],
        ["r3", "data of r3", 1, "priority", 3],
        ["r4", "", 1, "max_attempts", 2],
        ["f1", "data of f1", 1, "delay", 10 * HOUR_MS],
        ["p1", "data of p1", 1, "delay", 1000],
        ["p2", "data of p2", 3, "delay", 2000, "priority", -2, "max_attempts", 3],
    ]
    lab.ok("add", len(items), *(part for item in items for part in item), now=START)
    lab.client.delete(key("wake"))


def quiet(lab: Lab) -> None:
    """The same after a light clean: nothing is due, the bound is right."""
    full(lab)
    lab.ok("light_clean", 256)
    lab.client.delete(key("wake"))


def awake(lab: Lab) -> None:
    """The same with an element on wake."""
    quiet(lab)
    lab.client.lpush(key("wake"), "1")


def stale(lab: Lab) -> None:
    """Nothing is ready or due, and the bound lies in the past."""
    lab.lease_new("c1", 10 * HOUR_MS)
    lab.ok("add", 1, "p1", "", 1, "delay", 1000, now=START)
    lab.ok("add", 1, "f1", "", 1, "delay", 10 * HOUR_MS, now=START)
    lab.ok("remove", 1, "p1", now=START)
    lab.client.delete(key("wake"))


def stateless(lab: Lab) -> None:
    """The state is lost."""
    full(lab)
    lab.client.delete(key("state"))


def ghosts(lab: Lab) -> None:
    """All that is ready are ids without data; nothing is due."""
    stale(lab)
    lab.ok("light_clean", 256)
    lab.client.zadd(key("ready"), {"g1": 1, "r1": 2})
    lab.client.hset(key("meta"), "g1", record())
    lab.client.delete(key("wake"))


def crowded(lab: Lab) -> None:
    """More is due and expired than one lease sweeps; one of the first of each can be completed."""
    for letter in "pe":
        lab.lease_new(f"{letter}1", 1000, now=START)
    lab.ok("release", 1, "p1", lab.tokens["p1"], 1, "delay", 1000, now=START)
    ids = [f"p{n}" for n in range(2, 71)]
    lab.ok("add", 69, *(part for each in ids for part in (each, "", 1, "delay", 2000)), now=START)
    ids = [f"e{n}" for n in range(2, 71)]
    lab.ok("add", 69, *(part for each in ids for part in (each, "", 0)), now=START)
    reply = lab.ok("lease", 69, 2000, now=START)
    assert reply[2] == 69
    lab.lease_new("c1", 10 * HOUR_MS)
    lab.ok("add", 3, "r1", "", 0, "r2", "", 0, "r3", "", 0, now=START)
    lab.client.delete(key("wake"))


def damaged(lab: Lab) -> None:
    """Every kind of damage that deep clean knows."""
    full(lab)
    client = lab.client
    client.hset(key("items"), "u1", "in no state")
    client.hset(key("items"), "u2", "in no state, with a record")
    client.hset(key("meta"), "u2", record(options=1) + struct.pack("<bH", 5, 3))
    client.zadd(key("leased"), {"r1": NOW + 1_000_000})
    client.zadd(key("dead"), {"r1": NOW - 1_000_000, "r2": START, "g4": START})
    client.zadd(key("delayed"), {"r1": NOW - 1_000_000, "g2": START, "r2": START})
    client.zadd(key("ready"), {"g1": 1})
    client.zadd(key("leased"), {"g3": START, "c2": END_2059})
    client.hdel(key("meta"), "e1")
    client.hset(key("meta"), "g5", record())
    client.hset(key("items"), "f3", "")
    client.zadd(key("delayed"), {"f3": END_2059 - 1})
    client.hset(key("meta"), "f3", record() + b"surplus")
    client.hset(key("items"), "x2", "its token is ahead of the clock")
    client.hset(key("meta"), "x2", record(current=NOW + 1_000_000))
    client.zadd(key("dead"), {"x2": START})
    client.hset(key("items"), "f2", "")
    client.zadd(key("delayed"), {"f2": END_2059 - 1})
    client.hset(key("meta"), "f2", b"short")
    client.hset(key("items"), "r3", b"x" * 60)
    client.set(key("state"), state(next_due=NOW + 20 * HOUR_MS * 1000))


QUEUES: dict[str, Callable[[Lab], None]] = {
    "empty": lambda lab: None,
    "full": full,
    "quiet": quiet,
    "awake": awake,
    "stale": stale,
    "stateless": stateless,
    "ghosts": ghosts,
    "crowded": crowded,
    "damaged": damaged,
}


def record(
    version: int = 1, options: int = 0, attempt: int = 1, current: float = START, created: float = START - 1
) -> bytes:
    """An item's record (LQ: version, options, attempt, current token, created)."""
    return struct.pack("<BBIdd", version, options, attempt, current, created)


def state(
    *, version: int = 1, flags: int = 0, clock: float = START, next_due: float = 0, largest: int = 0
) -> bytes:
    """A queue's state."""
    return struct.pack("<BBddI", version, flags, clock, next_due, largest) + bytes(22)
