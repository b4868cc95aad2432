"""A laboratory for single scripts: queues in every state, built by the scripts themselves in a time of the test's own,
and calls whose inner commands are seen.

Every call runs at a virtual time (one line before the source shadows `redis` and answers TIME), so the same call on
the same keyspace gives the same reply and the same keyspace, byte for byte.
"""

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import redis

from leaseq import _scripts

Arg = str | int | bytes

GROUP, NAME = "lab", "queue"
PREFIX = f"leaseq:{{{GROUP}}}:{NAME}:"
OTHER = f"leaseq:{{{GROUP}}}:other:"
"""Another queue of the same group; its keys are called `other:items` and so on here."""
SCRIPTS = {script.name: script for script in _scripts.SCRIPTS}
MANIFEST = json.loads((Path(__file__).parents[3] / "lua/manifest.json").read_text())
ERRORS: dict[str, set[str]] = {name: set(said["errors"]) for name, said in MANIFEST["scripts"].items()}
"""The errors that the header of each script names."""
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


@dataclass(frozen=True)
class Stored:
    """One key: what it holds (a hash as a dict, a sorted set flat, others as serialised), and serialised."""

    content: Any
    dump: bytes = field(compare=False, repr=False)


Snapshot = dict[bytes, Stored]


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
    *("LINDEX", "LLEN", "LPUSH", "PEXPIRE", "RPUSH"),
    *("ZADD", "ZCARD", "ZCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZREM", "ZREVRANGE", "ZSCAN", "ZSCORE"),
}


SNAPSHOT = """
local out = {}
for i, name in ipairs(redis.call('KEYS', '*')) do
  local kind, content = redis.call('TYPE', name).ok, ''
  if kind == 'hash' then
    content = redis.call('HGETALL', name)
  elseif kind == 'zset' then
    content = redis.call('ZRANGE', name, '0', '-1', 'WITHSCORES')
  end
  out[i] = {name, kind, redis.call('DUMP', name), content}
end
return out
"""


def pairs(flat: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """What the server answers as one flat array."""
    return zip(flat[::2], flat[1::2], strict=True)


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
            if not each.startswith(b"\0")
        }

    @property
    def path(self) -> tuple[tuple[str, str | None], ...]:
        """The way that the call took through the script: what it did to which key, repetitions left out."""
        steps = [(command.name, command.key) for command in self.commands]
        return tuple(step for at, step in enumerate(steps) if step not in steps[max(0, at - 3) : at])


def send(client: redis.Redis, *command: Arg) -> Any:
    """The reply to a command."""
    return client.execute_command(*command)  # type: ignore[no-untyped-call]


def key(name: str) -> str:
    """The whole key."""
    return OTHER + name.removeprefix("other:") if name.startswith("other:") else PREFIX + name


def short(whole: bytes) -> str:
    """A key without the prefix; a key of a queue that is not one of the two stays whole."""
    name = whole.decode()
    return f"other:{name.removeprefix(OTHER)}" if name.startswith(OTHER) else name.removeprefix(PREFIX)


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


QUEUES: dict[str, "Callable[[Lab], None]"] = {}
"""The kinds of queue and what builds them; `script_queues.py` puts them here."""

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
        more: Sequence[str] = (),
        on: str = "",
        keys: Sequence[str] | None = None,
        client: redis.Redis | None = None,
    ) -> Outcome:
        """Call a script; an error is part of the outcome.

        `more` are the keys behind the fixed ones, `on` is the queue ("other:" or this one), `keys` overrides both with
        whole keys.
        """
        source = self.source(name, now)
        if source not in self._loaded:
            self._loaded[source] = str(self.client.script_load(source))
        names = [key(on + each) for each in SCRIPTS[name].keys] + [key(each) for each in more]
        names = names if keys is None else list(keys)
        try:
            reply = send(client or self.client, "EVALSHA", self._loaded[source], len(names), *names, *args)
        except redis.ResponseError as problem:
            outcome = Outcome(None, str(problem))
        else:
            outcome = Outcome(reply, None)
        if str(outcome.code).startswith("LEASEQ_"):
            assert outcome.code in ERRORS[name], f"{name}.lua: the header lacks {outcome.error}"
        return outcome

    def ok(self, name: str, *args: Arg, now: int | None = NOW, more: Sequence[str] = (), on: str = "") -> Any:
        """The reply of a call that must succeed."""
        outcome = self.run(name, args, now=now, more=more, on=on)
        assert outcome.error is None, f"{name}{args}: {outcome.error}"
        return outcome.reply

    def watch(
        self, name: str, args: Sequence[Arg], *, now: int | None = NOW, more: Sequence[str] = ()
    ) -> Outcome:
        """Call a script and see the commands that it executes."""
        if self._watch is None:
            pool = self.client.connection_pool
            self._watch = pool.connection_class(**{**pool.connection_kwargs, "protocol": 2})
            self._watch.connect()
            self._watch.send_command("MONITOR")
            assert self._watch.read_response() == b"OK"
        outcome = self.run(name, args, now=now, more=more)
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

    def well(
        self, kind: str, name: str, args: Sequence[Arg], more: Sequence[str] = ()
    ) -> tuple[Outcome, Snapshot]:
        """What a call does on such a queue, and what it leaves, when nothing is wrong. It is only made once."""
        case = (kind, name, *args, *more)
        if case not in self._wells:
            self.queue(kind)
            self._wells[case] = self.watch(name, args, more=more), self.snapshot()
        return self._wells[case]

    # -- keyspaces

    def snapshot(self) -> Snapshot:
        """Every key of the server with its value."""
        flat: Any = self.client.eval(SNAPSHOT, 0)
        return {
            name: Stored(
                tuple(content) if kind == b"zset" else dict(pairs(content)) if content else dump, dump
            )
            for name, kind, dump, content in sorted(flat)
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Replace everything on the server."""
        with self.client.pipeline(transaction=False) as pipe:
            pipe.flushdb(asynchronous=True)  # flushing at once also makes jemalloc give back pages
            for each, value in snapshot.items():
                # of all keys only outcomes have a time to live, which is the server's own time: long enough for a test
                pipe.restore(each, HOUR_MS if b":result:" in each else 0, value.dump)
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
        assert self.ok("add", 1, item, f"data of {item}", len(options) // 2, *options, now=now)
        reply = self.ok("lease", 1, duration, now=now)
        assert reply[3] == item.encode()
        self.tokens[item] = reply[5]


def tail(priority: int = 0, max_attempts: int = 0, keep: int = 0, expires: float = 0) -> bytes:
    """What follows in the record of an item with options."""
    return (
        struct.pack("<bH", priority, max_attempts) + keep.to_bytes(6, "little") + struct.pack("<d", expires)
    )


def record(
    version: int = 1, options: int = 0, attempt: int = 1, current: float = START, created: float = START - 1
) -> bytes:
    """An item's record: version, options, attempt, current token, created; with options, `tail` follows."""
    return struct.pack("<BBIdd", version, options, attempt, current, created)


def state(
    *,
    version: int = 1,
    flags: int = 0,
    clock: float = START,
    next_due: float = 0,
    largest: int = 0,
    limits: tuple[int, int, int] = (0, 0, 0),
) -> bytes:
    """A queue's state; the limits are max_data, max_items and max_attempts."""
    head = struct.pack("<BBddI", version, flags, clock, next_due, largest)
    return head + bytes(12) + struct.pack("<IIH", *limits)


def stored_state(lab: Lab) -> tuple[Any, ...]:
    """The fields of `state`: format, flags, clock, next_due, largest, added, leases, max_data, max_items, max_attempts."""
    fields = struct.unpack("<BBddI6s6sIIH", lab.client.get(key("state")))  # type: ignore[arg-type]  # it is there
    return (*fields[:5], *(int.from_bytes(count, "little") for count in fields[5:7]), *fields[7:])
