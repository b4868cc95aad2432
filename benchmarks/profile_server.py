"""Where the server's microseconds and bytes go: each hot call in layers, a waiting item in parts.

    python benchmarks/profile_server.py             some twenty seconds; writes results/breakdown.json
    python benchmarks/profile_server.py --quick     does it run? the figures mean nothing, nothing is written
    python benchmarks/profile_server.py --json      JSON in place of the tables

The layers of a call, in the server's CPU time over 127.0.0.1: the round trip (PING), entering a script that has as many
keys and arguments and does nothing, the data commands, and the rest: checks, packing, the reply. The commands that a script
runs are recorded with MONITOR. A script with nothing else runs them again with the same arguments, on a queue in the
same state; what it leaves is compared. Each part of a waiting item is built alone on an empty server and weighed by
used_memory: so it comes with what the allocator rounds up and with its share of a table's slots. `make generate` puts the
tables into benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import redis

from bench_server import BenchServer, Progress, ServerNotFoundError, environment, free_port, pin
from leaseq import _scripts, commands
from leaseq.item import Item
from leaseq.keys import QueueKeys
from lifecycle import leased_items

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from leaseq.commands import Argument
    from leaseq.item import LeasedItemBase

RESULTS: Final = Path(__file__).parent / "results" / "breakdown.json"
SIZES: Final = {"full": (400, 20, 25, 3_000), "quick": (20, 2, 2, 1_500)}
"""Calls of one item and of a hundred in a slice, rounds, items that are weighed."""
KEYS: Final = QueueKeys("bench")
DATA: Final = b"x" * 100
LEASE_SECS: Final = 3600.0
SCRIPTS: Final = (_scripts.ADD, _scripts.LEASE, _scripts.COMPLETE_AND_LEASE)
NOTHING: Final = "return 1"
MONITORED: Final = re.compile(rb'\+?[\d.]+ \[\d+ (?P<who>[^\]]+)\] (?P<command>".*")')
QUOTED_ARGUMENT: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
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
        self._connection: Any = self.client.connection_pool.make_connection()
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
        """Lease `count` items in one call."""
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
        """Make the state before the calls."""
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
    """Return the hot calls: some of one item, and some of a hundred items."""
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
    """Requests that the calls of a case sent, the commands that ran inside each, and the sizes of the keys they left."""

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
            line_match = MONITORED.fullmatch(line)
            if line_match is None:
                raise AssertionError(line)
            words = [
                ast.literal_eval("b" + word.decode())
                for word in QUOTED_ARGUMENT.findall(line_match["command"])
            ]
            if words[0].upper() == b"ECHO":
                break
            if line_match["who"] == b"lua":
                record.inside[-1].append(words)
            elif words[0].upper() == b"EVALSHA":  # a connection that is new says who it is
                record.inside.append([])
    record.left = sizes(caller)
    return record


def sizes(caller: Caller) -> dict[bytes, int]:
    """Return how much every key has."""
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
        made.append(("\n".join(lines), (str(len(keys)), *keys, *arguments)))
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
    subjects: Sequence[Subject], rounds: int, log: Callable[[str], None]
) -> dict[str, dict[str, Any]]:
    """Of each case the server's us for one call, by layer. All cases and layers take turns in each round."""
    took: list[dict[str, list[float]]] = [{layer: [] for layer in subject.layers} for subject in subjects]
    for number in range(rounds):
        for subject, of in zip(subjects, took, strict=True):
            for layer in sorted(of, reverse=number % 2 == 0):
                of[layer].append(subject.time(layer))
        log(f"round {number + 1} of {rounds}")
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


BATCH: Final = 100


class Scale:
    """Weighs the keys on a server, in bytes per item."""

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
        """Return what the server has allocated once it rests, without the buffers of connections."""
        self.server.used_memory()
        line_match: dict[str, int] = self.server.client.info("memory")
        return line_match["used_memory"] - line_match["mem_clients_normal"]

    def usage(self) -> dict[str, float]:
        """MEMORY USAGE of the keys that have something of every item, for each item."""
        client: Any = self.server.client
        found = {key.decode(): client.memory_usage(key, samples=0) / self.items for key in client.keys("*")}
        return {key: round(value, 1) for key, value in sorted(found.items()) if value >= 1}


def weigh_leaseq(scale: Scale) -> dict[str, Any]:
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
    """Return the weights of floor and leaseq, in bytes per item."""
    scale = Scale(server, items)
    return {"items": items, "leaseq": weigh_leaseq(scale), "redis-work-queue": redis_work_queue(scale)}


def run(name: str, *, quick: bool) -> dict[str, Any]:
    """All calls and both memories. Raises ServerNotFoundError."""
    singles, batches, rounds, items = SIZES["quick" if quick else "full"]
    machine = environment(pin())
    with Progress(stderr=True) as progress, BenchServer(name, free_port()) as server:
        caller = Caller(server)
        try:
            subjects = [Subject(case, caller) for case in cases(singles, batches)]
            found = measure(subjects, rounds, progress.log)
        finally:
            caller.close()
        version, memory = server.version(), weights(server, items)
        memory["allocator"] = server.allocator()
        progress.log("memory weighed")
    return {
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "quick": quick,
        "server": version,
        "environment": machine,
        "rounds": rounds,
        "calls": found,
        "memory": memory,
    }


def tables(found: dict[str, Any]) -> list[str]:
    """All tables in Markdown."""
    lines = [
        "| server us for one call | round trip | entering, keys + arguments | data commands | the rest | all |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, of in found["calls"].items():
        entering = f"{of['entering_us']:.1f} ({of['keys']:.0f} + {of['arguments']:.0f})"
        data = f"{of['data_us']:.1f} ({of['commands']:.0f})"
        lines.append(
            f"| {name} | {of['round_trip_us']:.1f} | {entering} | {data} | {of['rest_us']:.1f} | {of['all_us']:.1f} |"
        )
    lines += ["", "| inside the script, us by `INFO commandstats` | |", "| --- | --- |"]
    for name, of in found["calls"].items():
        inside = ", ".join(f"{command} {usec:.1f}" for command, usec in of["usec"].items() if usec >= 0.05)
        lines.append(f"| {name} | {inside} |")
    lines += ["", "| bytes of a waiting item | leaseq | redis-work-queue |", "| --- | ---: | ---: |"]
    own, other = (found["memory"][name] for name in ("leaseq", "redis-work-queue"))
    lines += [f"| {part} | {value or 0:g} | |" for part, value in own["parts"].items()]
    lines += [f"| {part} | | {value or 0:g} |" for part, value in other["parts"].items()]
    lines.append(f"| all | {own['all']:g} | {other['all']:g} |")
    machine = found["environment"]
    where = f"{machine['cpu_model']}, {found['server']} with {found['memory']['allocator']}"
    how = f"lower quartile of {found['rounds']} rounds; {found['memory']['items']:,} items of 100 bytes with ids of 15"
    lines += ["", f"Measured {found['measured_at']} on {where}, {how}."]
    return lines


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", default="redis-7.0", metavar="NAME", help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="small counts, nothing under results/")
    parser.add_argument("--json", action="store_true", help="JSON in place of the tables")
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"default: results/{RESULTS.name}")
    options = parser.parse_args()
    try:
        found = run(options.server, quick=options.quick)
    except ServerNotFoundError as error:
        parser.error(str(error))
    if output := options.output or (None if options.quick else RESULTS):
        output.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found) if options.json else "\n".join(tables(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
