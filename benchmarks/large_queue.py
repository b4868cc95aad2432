"""Times of single calls, most of them with 256 entries, on a queue that holds very many items."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from leaseq import _scripts, commands
from leaseq.item import Item
from leaseq.keys import QueueKeys
from lifecycle import leased_items

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench_server import BenchServer
    from leaseq.commands import Command
    from leaseq.item import LeasedItemBase

ENTRIES = 256
DATA = b"x" * 100
SHORT_MS, LONG_MS = 1, 86_400_000
DEEP_CLEAN_PHASES = 8
"""The phases of deep_clean."""


class LargeQueue:
    """A queue filled to a size, and the latencies of the calls made on it.

    Attributes:
        client_ms: for each operation, the time of each call on the client, from packing the command to the parsed reply.
        server_us: for each operation, the time of each call inside the script on the server.
    """

    def __init__(self, server: BenchServer, items: int, entries: int = ENTRIES) -> None:
        self._server = server
        self.keys = QueueKeys("large")
        self._entries = entries
        self._next_id = 0
        self._cursors: dict[int, str] = {}
        self.items = items
        self.client_ms: dict[str, list[float]] = {}
        self.server_us: dict[str, list[int]] = {}

    def fill(self) -> None:
        """Add the items: a tenth delayed, a tenth leased, the rest ready. Sends several calls at once, to save time."""
        self._server.empty(*_scripts.SCRIPTS)
        delayed = self.items // 10
        for count, delay in ((delayed, 86400), (self.items - delayed, 0)):
            options = commands.add_options(delay=delay)
            adds = [
                commands.add(self.keys, self._new_items(min(self._entries, count - at)), options)
                for at in range(0, count, self._entries)
            ]
            self._all(adds)
        leases = self.items // 10 // self._entries
        self._all([commands.lease(self.keys, self._entries, LONG_MS / 1000) for _ in range(leases)])

    def _new_items(self, count: int) -> list[Item]:
        self._next_id += count
        return [Item(DATA, f"i{number:09d}") for number in range(self._next_id - count, self._next_id)]

    def _all(self, calls: Sequence[Command[Any]]) -> None:
        for at in range(0, len(calls), 20):
            group = calls[at : at + 20]
            for command in group:
                self._server.send(*command.evalsha())
            for _ in group:
                self._server.read()

    def _timed(self, name: str, command: Command[Any]) -> Any:
        before = self._server.script_usec()
        started = time.perf_counter_ns()
        reply = self._server.call(*command.evalsha())
        took = time.perf_counter_ns() - started
        self.client_ms.setdefault(name, []).append(round(took / 1e6, 4))
        self.server_us.setdefault(name, []).append(self._server.script_usec() - before)
        return command.parse(reply)

    def _lease(self, name: str, count: int, milliseconds: int = LONG_MS) -> list[LeasedItemBase]:
        reply = self._timed(name, commands.lease(self.keys, count, milliseconds / 1000))
        if len(reply.items) != count:
            raise AssertionError(f"{name}: {len(reply.items)} items instead of {count}")
        return leased_items(reply)

    def _expire(self, entries: int) -> None:
        """Make this number of leases expire, and as many delayed items become due, all at once."""
        keys = self.keys
        short = commands.add_options(delay=SHORT_MS / 1000)
        # lease first: a lease after the add would promote the delayed items
        self._server.call(*commands.lease(keys, entries, SHORT_MS / 1000).evalsha())
        self._server.call(*commands.add(keys, self._new_items(entries), short).evalsha())
        time.sleep(2 * SHORT_MS / 1000)

    def rounds(self, count: int, log: Callable[[str], None]) -> None:
        """Make every call `count` times."""
        for number in range(count):
            self._one_item()
            self._many_items()
            self._cleaning()
            self._deep_cleaning(phase=number % DEEP_CLEAN_PHASES + 1)
            if number % 50 == 49:
                log(f"{number + 1} of {count} rounds at {self.items:,} items")

    def _one_item(self) -> None:
        keys = self.keys
        self._timed("add, 1", commands.add(keys, self._new_items(1)))
        held = self._lease("lease, 1", 1)
        self._timed("complete, 1", commands.complete(keys, [commands.Completion(item) for item in held]))

    def _many_items(self) -> None:
        keys, n = self.keys, self._entries
        self._timed(f"add, {n}", commands.add(keys, self._new_items(n)))
        held = self._lease(f"lease, {n}", n)
        ids = [item.id for item in held]
        self._timed(f"extend, {n}", commands.extend(keys, [(item, LONG_MS / 1000) for item in held]))
        self._timed(f"inspect, {n}", commands.inspect(keys, ids))
        self._timed(
            f"release, {n}", commands.release_each(keys, [commands.ReleaseRequest(item) for item in held])
        )
        held = self._lease(f"lease, {n}", n)
        self._timed(f"complete, {n}", commands.complete(keys, [commands.Completion(item) for item in held]))
        self._server.call(*commands.add(keys, self._new_items(n)).evalsha())
        page = self._timed(f"list, {n}", commands.list_items(keys, "ready", self.items // 4, n))
        self._timed(f"remove, {n}", commands.remove(keys, [item.id for item in page.items]))
        self._timed("stats", commands.stats(keys))

    def _cleaning(self) -> None:
        keys, n = self.keys, self._entries
        self._expire(n)
        cleaned = self._timed(f"light_clean, {n} due and {n} expired", commands.light_clean(keys, n))
        if cleaned.done.promoted + cleaned.done.reclaimed != 2 * n:
            raise AssertionError(cleaned)
        self._expire(n)
        # a lease promotes at most 64 items and reclaims at most 64 (LQ-LEASE-5); light_clean does the rest
        self._lease(f"lease, {n}, after 64 due and 64 expired", n)
        self._server.call(*commands.light_clean(keys, n).evalsha())
        held = self._lease(f"lease, {n}", n)
        both = commands.complete_and_lease(keys, held, n, LONG_MS / 1000)
        reply = self._timed(f"complete_and_lease, {n}", both)
        self._server.call(
            *commands.complete(keys, [commands.Completion(item) for item in leased_items(reply)]).evalsha()
        )

    def _deep_cleaning(self, phase: int) -> None:
        """Look at the next page of one phase; after its last page, start again."""
        first = f"{phase}:0"
        n, cursor = self._entries, self._cursors.get(phase, first)
        page = self._timed(f"deep_clean, page of {n}", commands.deep_clean(self.keys, cursor, n))
        if page.done.total:
            raise AssertionError(f"deep_clean repaired a healthy queue: {page.done}")
        self._cursors[phase] = page.cursor if page.cursor.startswith(f"{phase}:") else first


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that this share of the values (0.99: 99%) does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def measure(
    server: BenchServer, *, items: int, rounds: int, entries: int, log: Callable[[str], None]
) -> dict[str, Any]:
    """Fill a queue and make every call on it."""
    queue = LargeQueue(server, items, entries)
    queue.fill()
    log(f"filled a queue with {items:,} items")
    preempted = server.preemptions()
    queue.rounds(rounds, log)
    operations: dict[str, dict[str, Any]] = {
        name: {
            "calls": len(taken),
            "client_ms": {
                "median": percentile(taken, 0.5),
                "p99": percentile(taken, 0.99),
                "max": max(taken),
            },
            "server_us": {
                "median": percentile(queue.server_us[name], 0.5),
                "p99": percentile(queue.server_us[name], 0.99),
                "max": max(queue.server_us[name]),
            },
            "client_ms_each": taken,
            "server_us_each": queue.server_us[name],
        }
        for name, taken in sorted(queue.client_ms.items())
    }
    return {
        "items": items,
        "rounds": rounds,
        "preemptions": server.preemptions() - preempted,
        "p99_call_ms": max(operation["client_ms"]["p99"] for operation in operations.values()),
        "p99_of_all_calls_ms": percentile([t for taken in queue.client_ms.values() for t in taken], 0.99),
        "operations": operations,
    }
