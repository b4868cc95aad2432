"""Where the server's time goes in a call: the round trip, entering a script, its data commands, and the rest.

The commands that a script runs are recorded with MONITOR. A script with nothing else runs the same commands with the
same arguments again, on a queue in the same state; what it leaves is compared. All figures are the server's CPU time
for one call, by INFO, over 127.0.0.1.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import redis

from leaseq import _scripts, commands
from leaseq.item import Item
from leaseq.keys import QueueKeys
from lifecycle import leased_items

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench_server import BenchServer
    from leaseq.commands import Argument
    from leaseq.item import LeasedItemBase

KEYS: Final = QueueKeys("bench")
DATA: Final = b"x" * 100
LEASE_SECS: Final = 3600.0
SCRIPTS: Final = (_scripts.ADD, _scripts.LEASE, _scripts.COMPLETE_AND_LEASE)
NOTHING: Final = "return 1"
MONITORED: Final = re.compile(rb'\+?[\d.]+ \[\d+ (?P<who>[^\]]+)\] (?P<command>".*")')
WORD: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
UNPACKED: Final = 20
"""A command with more arguments than this gets them by unpack, as in leaseq's own scripts."""
QUARTILE: Final = 4

Wire = tuple["Argument", ...]
"""A command with its arguments."""


class Caller:
    """One connection over 127.0.0.1, which makes calls and can note them."""

    def __init__(self, server: BenchServer) -> None:
        self.server = server
        self.client: Any = redis.Redis(port=server.port)
        self._connection: Any = self.client.connection_pool.get_connection()
        self.sent: list[Wire] | None = None
        self.held: list[LeasedItemBase] = []

    def send(self, wire: Wire) -> Any:
        """Send one command and read its reply."""
        if self.sent is not None:
            self.sent.append(wire)
        self._connection.send_command(*wire)
        return self._connection.read_response()

    def add(self, first: int, count: int) -> None:
        """Add items with these numbers in one call."""
        items = [Item(DATA, f"item-{number:010d}") for number in range(first, first + count)]
        self.send(commands.add(KEYS, items).evalsha())

    def lease(self, count: int) -> None:
        """Lease so many in one call."""
        call = commands.lease(KEYS, count, LEASE_SECS)
        self.held = leased_items(call.parse(self.send(call.evalsha())))

    def complete_and_lease(self, count: int) -> None:
        """Complete what is held and lease as many."""
        call = commands.complete_and_lease(KEYS, self.held, count, LEASE_SECS)
        self.held = leased_items(call.parse(self.send(call.evalsha())))

    def close(self) -> None:
        """Close the connection."""
        self._connection.disconnect()
        self.client.close()


@dataclass(frozen=True)
class Case:
    """One hot call: what waits and is held before, and the call itself with its number."""

    name: str
    items: int
    calls: int
    waiting: int
    held: int
    call: Callable[[Caller, int], None]

    def ready(self, caller: Caller) -> None:
        """Make the state that the calls begin with."""
        caller.client.flushall()
        for first in range(0, self.waiting, 100):
            caller.add(first, min(100, self.waiting - first))
        if self.held:
            caller.lease(self.held)

    def run(self, caller: Caller) -> None:
        """Make all calls."""
        for number in range(self.calls):
            self.call(caller, number)


def cases(singles: int, batches: int) -> tuple[Case, ...]:
    """The hot calls, with so many of one item and so many of a hundred."""
    return (
        Case("add, 1 item", 1, singles, 0, 0, lambda caller, number: caller.add(number, 1)),
        Case("add, 100 items", 100, batches, 0, 0, lambda caller, number: caller.add(number * 100, 100)),
        Case("lease, 1 item", 1, singles, singles, 0, lambda caller, _: caller.lease(1)),
        Case(
            "complete_and_lease, 1 item",
            1,
            singles,
            singles + 1,
            1,
            lambda caller, _: caller.complete_and_lease(1),
        ),
        Case(
            "complete_and_lease, 100 items",
            100,
            batches,
            100 * batches + 100,
            100,
            lambda caller, _: caller.complete_and_lease(100),
        ),
    )


@dataclass
class Record:
    """What the calls of a case sent, the commands that ran inside each, and what they left."""

    sent: list[Wire]
    inside: list[list[list[bytes]]] = field(default_factory=list)
    left: dict[bytes, int] = field(default_factory=dict)


def recorded(case: Case, caller: Caller) -> Record:
    """Make the calls once while MONITOR tells what runs."""
    case.ready(caller)
    caller.sent = []
    with caller.client.monitor() as monitor:
        case.run(caller)
        record, caller.sent = Record(caller.sent), None
        caller.client.echo("end")
        while True:
            line = monitor.connection.read_response(disable_decoding=True)
            told = MONITORED.fullmatch(line)
            if told is None:
                raise AssertionError(line)
            words = [ast.literal_eval("b" + word.decode()) for word in WORD.findall(told["command"])]
            if words[0].upper() == b"ECHO":
                break
            if told["who"] == b"lua":
                record.inside[-1].append(words)
            elif words[0].upper() == b"EVALSHA":  # a connection that is new says who it is
                record.inside.append([])
    record.left = sizes(caller)
    return record


def sizes(caller: Caller) -> dict[bytes, int]:
    """How much every key has."""
    ask = {b"hash": "HLEN", b"zset": "ZCARD", b"list": "LLEN", b"string": "STRLEN", b"set": "SCARD"}
    return {
        key: int(caller.client.execute_command(ask[caller.client.type(key)], key))
        for key in caller.client.keys("*")
    }


def replays(record: Record) -> list[tuple[str, Wire]]:
    """For each call the text of a script that runs its commands, and its keys and arguments as EVALSHA has them."""
    made: list[tuple[str, Wire]] = []
    for wire, inside in zip(record.sent, record.inside, strict=True):
        keys = [str(key).encode() for key in wire[3 : 3 + int(wire[2])]]
        arguments: list[bytes] = []
        lines = ["local call=redis.call"]
        for name, *words in inside:
            parts = [f"'{name.decode()}'"]
            plain = [word for word in words if word not in keys]
            parts += [f"KEYS[{keys.index(word) + 1}]" for word in words if word in keys]
            if words[: len(words) - len(plain)] != [word for word in words if word in keys]:
                raise AssertionError(words)  # keys come first in every command that scripts run
            first = len(arguments) + 1
            arguments += plain
            if len(plain) > UNPACKED:
                parts.append(f"unpack(ARGV,{first},{len(arguments)})")
            else:
                parts += [f"ARGV[{number}]" for number in range(first, len(arguments) + 1)]
            lines.append(f"call({','.join(parts)})")
        made.append(("\n".join(lines), (len(keys), *keys, *arguments)))
    return made


class Subject:
    """One case on one server: each layer as something that can be run and timed."""

    def __init__(self, case: Case, caller: Caller) -> None:
        self.case, self.caller = case, caller
        for script in SCRIPTS:
            caller.server.load(script.source)
        self.record = recorded(case, caller)
        nothing = caller.server.load(NOTHING)
        scripts = replays(self.record)
        digests = {text: caller.server.load(text) for text in {text for text, _ in scripts}}
        self.inside: dict[str, list[float]] = {}
        self._replays: list[Wire] = [("EVALSHA", digests[text], *rest) for text, rest in scripts]
        self.layers: dict[str, Callable[[], None]] = {
            "ping": lambda: self._send([("PING",)] * case.calls),
            "entered": lambda: self._send([("EVALSHA", nothing, *wire[2:]) for wire in self.record.sent]),
            "entered for replay": lambda: self._send([("EVALSHA", nothing, *rest) for _, rest in scripts]),
            "replay": lambda: self._send(self._replays),
            "call": lambda: case.run(caller),
        }

    def _send(self, wires: Sequence[Wire]) -> None:
        for wire in wires:
            self.caller.send(wire)

    def time(self, layer: str) -> float:
        """Server CPU in us of each call. Raises AssertionError where a replay leaves something else than the calls."""
        server = self.caller.server
        self.case.ready(self.caller)
        before = server.cpu_usec()
        asking = server.cpu_usec() - before
        server.reset()
        before = server.cpu_usec()
        self.layers[layer]()
        took = server.cpu_usec() - before - asking
        if layer == "call":
            for name, usec in server.usec().items():
                self.inside.setdefault(name, []).append(usec / self.case.calls)
        if layer in {"replay", "call"} and sizes(self.caller) != self.record.left:
            raise AssertionError((self.case.name, layer, sizes(self.caller), self.record.left))
        return took / self.case.calls


def measure(
    subjects: Sequence[Subject], rounds: int, tell: Callable[[str], None]
) -> dict[str, dict[str, Any]]:
    """Of each case the server's us for one call, by layer. All cases and layers take turns in each round."""
    took: list[dict[str, list[float]]] = [{layer: [] for layer in subject.layers} for subject in subjects]
    for number in range(rounds):
        for subject, of in zip(subjects, took, strict=True):
            for layer in sorted(of, reverse=number % 2 == 0):
                of[layer].append(subject.time(layer))
        tell(f"round {number + 1} of {rounds}")
    return {subject.case.name: shares(subject, of) for subject, of in zip(subjects, took, strict=True)}


def quartile(values: Sequence[float]) -> float:
    """The lower one."""
    return sorted(values)[len(values) // QUARTILE]


def shares(subject: Subject, took: dict[str, list[float]]) -> dict[str, Any]:
    """Each layer less what is in it of another, and the time of each command; the lower quartile of the rounds."""
    of = {layer: quartile(each) for layer, each in took.items()}
    data = of["replay"] - of["entered for replay"]
    parts = {
        "round_trip_us": of["ping"],
        "entering_us": of["entered"] - of["ping"],
        "data_us": data,
        "rest_us": of["call"] - of["entered"] - data,
        "all_us": of["call"],
    }
    wire = subject.record.sent[-1]
    counts = {
        "keys": float(int(wire[2])),
        "arguments": float(len(wire) - 3 - int(wire[2])),
        "commands": float(len(subject.record.inside[-1])),
    }
    inside = {name.upper(): round(quartile(usec), 2) for name, usec in subject.inside.items()}
    largest = sorted(inside.items(), key=lambda each: -each[1])
    return {name: round(value, 2) for name, value in parts.items()} | counts | {"usec": dict(largest)}
