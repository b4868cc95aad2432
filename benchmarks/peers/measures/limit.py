"""What the server could do: plain commands and the floor's scripts, sent by a client that costs next to nothing.

Over 50 connections, one or sixteen commands at a time on each. The figure is the server's CPU time for one command; a
million over it is the most that one server does in a second. Where the append-only file is synced always the server
waits more than it computes: there the most in a second is by the clock. Scripts copy data: from 100 kB on plain
commands do more than the floor, so they are measured too.
"""

from __future__ import annotations

import contextlib
import random
import re
import socket
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import floor
from peers.bench import Record, Step, start_server
from peers.figures import percentile
from peers.load import ANSWER_SECS, Load, Spent, packed
from peers.measures.growth import NAME as GROWTH
from peers.measures.latency import PERCENTILES
from peers.measures.sweeps import PAYLOAD, SERVERS, other_servers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench_server import BenchServer
    from peers.bench import Bench

NAME: Final = "limit"
CASES: Final = "limit-cases"
"""The floor again where its figures differ: by size of the data, with many waiting, on other servers."""
WHO: Final = "server"
WAKE_UP: Final = "BLPOP that waits"
CONNECTIONS: Final = 50
DEPTHS: Final = (1, 16)
DATA: Final = b"x" * 100
BATCH: Final = 100
BATCH_BYTES: Final = 1_000_000
"""A batch has no more data than that, as far as it has more than one item."""
LEASE_MS: Final = 60_000
CASE_SHARE: Final = 0.1
"""Of the commands of the plain figure: there are many cases."""
MOST_BYTES: Final = 30_000_000
HEAVY_BYTES: Final = 100_000
"""From here on an item costs what its data cost."""
SYNCED: Final = "AOF always"
WAKE_UPS: Final = 200
GAP_SECS: Final = (0.002, 0.008)
LEASED: Final = re.compile(rb"(f\d{8})\r\n\$\d+\r\nx*\r\n:1\r\n\$\d+\r\n(\d+)\r\n")
LEASED_MANY: Final = re.compile(rb"\*\d+\r\n\$16\r\n(\d+)\r\n((?:\$9\r\nf\d{8}\r\n\$\d+\r\nx*\r\n:1\r\n)+)")
LEASED_IDS: Final = re.compile(rb"(f\d{8})\r\n")
FILL: Final = (
    "for n=ARGV[1],ARGV[2] do local id=string.format('f%08d',n); redis.call('HSET',KEYS[3],id,ARGV[3]) "
    "redis.call('ZADD',KEYS[1],redis.call('INCR',KEYS[4]),id) end return 1"
)
FILL_AT_ONCE: Final = 10_000


def steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One in each repetition, whatever libraries there are."""
    if not libraries:
        return
    for repetition in range(1, bench.size.repetitions + 1):
        secs = bench.size.limit_commands * 9 * 12e-6 * len(DEPTHS) + 2.2
        yield Step(NAME, (WHO,), repetition, secs, partial(limit, bench, repetition))


def case_steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """By size of the data and by server one in each repetition; with many waiting one for all, since filling takes long."""
    if not libraries:
        return
    size = bench.size
    for repetition in range(1, size.repetitions + 1):
        yield Step(CASES, (WHO,), repetition, 2.0, partial(by_payload, bench, repetition), PAYLOAD)
        yield Step(CASES, (WHO,), repetition, 2.5, partial(by_server, bench, repetition), SERVERS)
    secs = sum(size.waiting) * 4e-6 + 0.3 * len(size.waiting) * size.repetitions
    yield Step(CASES, (WHO,), 1, secs, partial(by_waiting, bench), GROWTH)


def batch_of(size: int) -> int:
    """So many items of so many bytes are in a batch."""
    return max(1, min(BATCH, BATCH_BYTES // size))


def limit(bench: Bench, repetition: int) -> list[Record]:
    """All commands at both depths, the floor's scripts in batches, and what wakes who waits."""
    found: dict[str, Spent] = {}
    count = bench.size.limit_commands
    for depth in DEPTHS:
        bench.empty()
        with Load(bench.server, CONNECTIONS) as load:
            several = plain(bench.server, load, count, depth) | singles(bench.server, load, count, depth)
        found |= {f"{name}, {depth} at a time": spent for name, spent in several.items()}
    bench.empty()
    with Load(bench.server, CONNECTIONS) as load:
        found |= batches(bench.server, load, count)
    woken = Record(NAME, WHO, repetition, wake_ups(bench.server), WAKE_UP)
    return [*(_record(NAME, repetition, case, spent) for case, spent in found.items()), woken]


def _record(measure: str, repetition: int, case: str, spent: Spent, *, waits: bool = False) -> Record:
    """Items a second are by CPU time; where the server waits, by the clock."""
    values = {
        "server_us": round(spent.server_us, 3),
        "per_second": round(1e6 / (spent.wall_us if waits else spent.server_us)),
        "commands": round(spent.commands, 3),
    }
    return Record(measure, WHO, repetition, values, case)


def plain(server: BenchServer, load: Load, count: int, depth: int) -> dict[str, Spent]:
    """Commands, and a script that does nothing."""
    nothing = server.load("return 1")
    commands = {
        "PING": [b"PING\r\n"] * count,
        "SET": [packed("SET", f"key-{n:08d}", DATA) for n in range(count)],
        "LPUSH": [packed("LPUSH", "list", DATA)] * count,
        "EVALSHA return 1": [packed("EVALSHA", nothing, 0)] * count,
    }
    return {name: load.run(each, depth=depth)[0] for name, each in commands.items()}


def singles(
    server: BenchServer, load: Load, count: int, depth: int = 1, data: bytes = DATA, first: int = 0
) -> dict[str, Spent]:
    """The floor's scripts for one item, on so many items with numbers from `first` on, and as many after them."""
    add, lease, fused, complete = (
        server.load(source) for source in (floor.ADD, floor.LEASE, floor.COMPLETE_AND_LEASE, floor.COMPLETE)
    )
    three = (3, *floor.KEYS[:3])
    found = {}
    ids = [f"f{first + n:08d}" for n in range(count)]
    found["floor add"], _ = load.run(
        [packed("EVALSHA", add, 4, *floor.KEYS, each, data) for each in ids], depth=depth
    )
    fill(server, first + count, count, data)
    found["floor lease"], replies = load.run([packed("EVALSHA", lease, *three, LEASE_MS)] * count, 8, depth)
    calls = [packed("EVALSHA", fused, *three, LEASE_MS, *each) for each in _held(replies, count)]
    found["floor complete and lease"], replies = load.run(calls, 9, depth)
    ends = [packed("EVALSHA", complete, *three, *each) for each in _held(replies, count)]
    found["floor complete"], _ = load.run(ends, depth=depth)
    return found  # fmt: skip


def _held(replies: bytes, count: int) -> list[tuple[bytes, bytes]]:
    """Id and deadline of each item that was leased. Raises RuntimeError where some were not."""
    held = LEASED.findall(replies)
    if len(held) != count:
        raise RuntimeError(f"{len(held)} of {count} were leased")
    return held


def fill(server: BenchServer, first: int, count: int, data: bytes = DATA) -> None:
    """Have so many items wait, in no time."""
    script = server.load(FILL)
    for at in range(first, first + count, FILL_AT_ONCE):
        last = min(at + FILL_AT_ONCE, first + count) - 1
        server.call("EVALSHA", script, 4, *floor.KEYS, at, last, data)


def batches(
    server: BenchServer, load: Load, count: int, data: bytes = DATA, first: int = 0
) -> dict[str, Spent]:
    """The floor's scripts for many, by their cases: what one item takes."""
    batch = batch_of(len(data))
    add, lease, complete = (
        server.load(source) for source in (floor.ADD_MANY, floor.LEASE_MANY, floor.COMPLETE_MANY)
    )
    three = (3, *floor.KEYS[:3])
    several = [
        range(first + at, first + at + batch) for at in range(0, max(count // batch, 1) * batch, batch)
    ]
    found = {}
    adds = [packed("EVALSHA", add, 4, *floor.KEYS, *_arguments(numbers, data)) for numbers in several]
    found["floor add"], _ = load.run(adds, items=batch)
    leases = [packed("EVALSHA", lease, *three, LEASE_MS, batch)] * len(several)
    found["floor lease"], replies = load.run(leases, 3 + 5 * batch, items=batch)
    ends = [packed("EVALSHA", complete, *three, *held) for held in _held_many(replies, len(several) * batch)]
    found["floor complete"], _ = load.run(ends, items=batch)
    return {f"{name}, batches of {batch}": spent for name, spent in found.items()}


def _arguments(numbers: range, data: bytes) -> list[bytes | str]:
    """Id and data of each."""
    return [part for number in numbers for part in (f"f{number:08d}", data)]


def _held_many(replies: bytes, count: int) -> list[list[bytes]]:
    """Of each reply, id and deadline of each of its items in turn. Raises RuntimeError where some were not leased."""
    several = [(LEASED_IDS.findall(each[2]), each[1]) for each in LEASED_MANY.finditer(replies)]
    if (held := sum(len(ids) for ids, _ in several)) != count:
        raise RuntimeError(f"{held} of {count} were leased")
    return [[part for each in ids for part in (each, deadline)] for ids, deadline in several]


def wake_ups(server: BenchServer) -> dict[str, Any]:
    """From sending an LPUSH to having the reply of a BLPOP that waited for it on another connection, in ms."""
    took = []
    wait, push = packed("BLPOP", "{floor}:wake", 0), packed("LPUSH", "{floor}:wake", DATA)
    with contextlib.ExitStack() as stack:
        waits, pushes = (
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), ANSWER_SECS))
            for _ in range(2)
        )
        for _ in range(WAKE_UPS):
            waits.sendall(wait)
            time.sleep(random.uniform(*GAP_SECS))
            began = time.perf_counter_ns()
            pushes.sendall(push)
            waits.recv(1000)
            took.append(round((time.perf_counter_ns() - began) / 1e6, 4))
            pushes.recv(1000)
    took.sort()
    return {figure: percentile(took, share) for figure, share in PERCENTILES.items()} | {"all_ms": took}


def floor_records(
    server: BenchServer, repetition: int, case: str, count: int, *, data: bytes = DATA, first: int = 0
) -> list[Record]:
    """The floor's scripts one at a time and in batches, in one case."""
    with Load(server, min(CONNECTIONS, batch_of(len(data)))) as load:
        one = singles(server, load, count, data=data, first=first)
        one |= heavy(load, count, data) if len(data) >= HEAVY_BYTES else {}
        found = {f"{name}, 1 at a time": spent for name, spent in one.items()}
        found |= batches(server, load, count, data, first + 2 * count)
    return [
        _record(CASES, repetition, f"{name}, {case}", spent, waits=case == SYNCED)
        for name, spent in found.items()
    ]


def heavy(load: Load, count: int, data: bytes) -> dict[str, Spent]:
    """Data in and out by plain commands."""
    keys = [f"key-{n:08d}" for n in range(count)]
    taken, _ = load.run([packed("SET", key, data) for key in keys])
    given, _ = load.run([packed("GET", key) for key in keys], lines=2)
    return {"SET": taken, "GET": given}


def _count(bench: Bench) -> int:
    return int(bench.size.limit_commands * CASE_SHARE)


def by_payload(bench: Bench, repetition: int) -> list[Record]:
    """By size of the data."""
    found = []
    for size in bench.size.payloads:
        bench.empty()
        count = min(_count(bench), MOST_BYTES // size)
        found += floor_records(bench.server, repetition, f"{size:,} bytes", count, data=b"x" * size)
    bench.empty()
    return found


def by_server(bench: Bench, repetition: int) -> list[Record]:
    """On the servers that the measure `servers` has."""
    found = []
    for case, (name, options) in other_servers(bench).items():
        with start_server(name, options) as server:
            found += floor_records(server, repetition, case, _count(bench))
    return found


def by_waiting(bench: Bench) -> list[Record]:
    """While many others wait: a server for each number, filled once."""
    found = []
    count = _count(bench)
    with contextlib.ExitStack() as stack:
        servers = {size: stack.enter_context(start_server(bench.server_name)) for size in bench.size.waiting}
        for size, server in servers.items():
            fill(server, 0, size)
        for repetition in range(1, bench.size.repetitions + 1):
            for size, server in servers.items():
                first = max(bench.size.waiting) + 3 * count * repetition
                found += floor_records(server, repetition, f"{size:,} waiting", count, first=first)
    return found
