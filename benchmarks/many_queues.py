"""Measure what thousands of queues on one server cost: the cleaner, its /metrics, `leaseq queues`, `leaseq doctor --all`.

    python benchmarks/many_queues.py [--queues 10000] [--scrapes 5] [--server redis-7.0] [--output FILE]

Starts a server and fills it: half of the queues have a group to themselves, the others share groups of 100. Seven queues in
ten are empty again; the others hold items in each state, and outcomes. Then it runs `leaseq-cleaner` with its default
settings, until it has looked at every queue, scrapes it, and stops it; then each command. Prints one JSON object: bytes and lines of what was printed,
seconds, CPU seconds, and what the server saw of each command: connections, reads from them (several calls that were sent
together are few reads), and script calls. Exits with 1 if a figure misses its target.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from bench_server import BenchServer, environment
from cleaner import Cleaner
from leaseq import _scripts, commands
from leaseq.item import Item
from leaseq.keys import REGISTRY, QueueKeys
from lifecycle import leased_items

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from leaseq.commands import Command

TARGETS: Final = {
    "metrics_bytes": 2_000_000,
    "scrape_seconds": 1.0,
    "cleaner_peak_mib": 100.0,
    "queues_seconds": 5.0,
    "doctor_seconds": 5.0,
}
"""The most that each figure may be."""

PROGRAM: Final = Path(sys.executable).with_name("leaseq")
COMMANDS: Final = {
    "queues": ["queues"],
    "queues_json": ["queues", "--json"],
    "doctor": ["doctor", "--all"],
    "doctor_json": ["doctor", "--all", "--json"],
}
QUEUES_OF_A_GROUP: Final = 100
DATA: Final = b"x" * 100
GROUP_OF_CALLS: Final = 200
"""Calls of the filling that are sent together."""

DAY_SECS: Final = 86_400.0
REST_SECS: Final = 10.0
"""In which the cost of the cleaner between scrapes is measured."""


def names(count: int) -> Iterator[QueueKeys]:
    """Yield the queues."""
    for number in range(count):
        group = None if number % 2 else f"group-{number // (2 * QUEUES_OF_A_GROUP):03}"
        yield QueueKeys(f"queue-{number:05}", group)


class Filling:
    """Fills a server with queues. Calls of many queues are sent together."""

    def __init__(self, server: BenchServer, queues: Sequence[QueueKeys]) -> None:
        self._server = server
        self._queues = queues

    def fill(self) -> None:
        """Add items to each queue; lease, complete and drop them."""
        server = self._server
        server.empty(*_scripts.SCRIPTS)
        for at in range(0, len(self._queues), GROUP_OF_CALLS):
            server.call("SADD", REGISTRY, *(keys.entry for keys in self._queues[at : at + GROUP_OF_CALLS]))
        keep = commands.add_options(keep=DAY_SECS)
        self._all(
            [commands.add(keys, [Item(DATA, f"i{n}") for n in range(4)], keep) for keys in self._queues]
        )
        leases = self._all([commands.lease(keys, 4, DAY_SECS) for keys in self._queues])
        held = [leased_items(reply) for reply in leases]
        ended: list[Command[Any]] = []
        for number, (keys, items) in enumerate(zip(self._queues, held, strict=True)):
            if number % 10 < 7:
                ended.append(commands.complete(keys, [commands.Completion(item) for item in items]))
                continue
            dead, done = items[0], items[1]
            ended.append(commands.complete(keys, [commands.Completion(done)]))
            ended.append(
                commands.release_each(
                    keys, [commands.ReleaseRequest(dead, error="no such customer", dead=True)]
                )
            )
            ended.append(commands.add(keys, [Item(DATA, f"ready-{n}") for n in range(number % 50)]))
            later = commands.add_options(delay=DAY_SECS)
            ended.append(commands.add(keys, [Item(DATA, "delayed")], later))
        self._all(ended)

    def _all(self, calls: Sequence[Command[Any]]) -> list[Any]:
        answers: list[Any] = []
        for at in range(0, len(calls), GROUP_OF_CALLS):
            group = calls[at : at + GROUP_OF_CALLS]
            for call in group:
                self._server.send(*call.evalsha())
            answers += [call.parse(self._server.read()) for call in group]
        return answers


def scraped(url: str) -> tuple[float, bytes]:
    """Return how long a scrape took, in seconds, and the page."""
    begun = time.perf_counter()
    with urllib.request.urlopen(f"{url}/metrics", timeout=300) as answer:  # noqa: S310 (its own address)
        page: bytes = answer.read()
    return time.perf_counter() - begun, page


def of_cleaner(server: BenchServer, scrapes: int) -> dict[str, Any]:
    """Return the figures of the cleaner."""
    begun = time.monotonic()
    cleaner = Cleaner(server.url)
    try:
        ready_secs = time.monotonic() - begun
        deadline = (
            begun + 45.0
        )  # by then it has looked at the counts of every queue, and again at the first ones
        time.sleep(max(0.0, deadline - time.monotonic()))
        before = cleaner.memory_mib()
        cpu, called, rested = cleaner.cpu_secs(), calls(server), time.monotonic()
        time.sleep(REST_SECS)
        secs = time.monotonic() - rested
        used, made = cleaner.cpu_secs() - cpu, calls(server) - called
        pages = [scraped(cleaner.url) for _ in range(scrapes)]
        return {
            "ready_seconds": round(ready_secs, 1),
            "cpu_percent": round(used / secs * 100, 1),
            "script_calls_per_second": round(made / secs, 1),
            "mib_before_a_scrape": before["now"],
            "mib_after_scrapes": cleaner.memory_mib()["now"],
            "mib_peak": cleaner.memory_mib()["peak"],
            "metrics_bytes": max(len(page) for _, page in pages),
            "metrics_lines": max(page.count(b"\n") for _, page in pages),
            "scrape_seconds": [round(secs, 3) for secs, _ in pages],
        }
    finally:
        cleaner.close()


def calls(server: BenchServer) -> int:
    """Return how many scripts clients have called."""
    made = server.calls()
    return made.get("evalsha", 0) + made.get("eval", 0)


def of_command(server: BenchServer, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the figures of one command."""
    environ = os.environ | {"REDIS_URL": server.url}
    stats: Any = server.client.info("stats")
    called = calls(server)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    done = subprocess.run(
        [str(PROGRAM), *arguments], capture_output=True, env=environ, check=False, timeout=600
    )
    secs = time.perf_counter() - begun
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.stderr or done.returncode > 1:
        raise AssertionError(done.stderr)
    after: Any = server.client.info("stats")
    return {
        "seconds": round(secs, 2),
        "cpu_seconds": round(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime, 2),
        "bytes": len(done.stdout),
        "lines": done.stdout.count(b"\n"),
        "connections": after["total_connections_received"] - stats["total_connections_received"],
        # the server's own count; two are our questions
        "reads": after["total_reads_processed"] - stats["total_reads_processed"] - 2,
        "script_calls": calls(server) - called,
    }


def measure(server: BenchServer, queues: int, scrapes: int) -> dict[str, Any]:
    """Fill the server and run everything. Return the figures that are printed."""
    Filling(server, list(names(queues))).fill()
    found: dict[str, Any] = {"queues": queues, "server": server.version(), "environment": environment(None)}
    found["cleaner"] = of_cleaner(server, scrapes)
    found["commands"] = {name: of_command(server, arguments) for name, arguments in COMMANDS.items()}
    figures = {
        "metrics_bytes": found["cleaner"]["metrics_bytes"],
        "scrape_seconds": median(found["cleaner"]["scrape_seconds"]),
        "cleaner_peak_mib": found["cleaner"]["mib_peak"],
        "queues_seconds": found["commands"]["queues"]["seconds"],
        "doctor_seconds": found["commands"]["doctor"]["seconds"],
    }
    found["targets"] = {
        name: {"measured": figures[name], "at_most": most, "met": figures[name] <= most}
        for name, most in TARGETS.items()
    }
    return found


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queues", type=int, default=10_000)
    parser.add_argument("--scrapes", type=int, default=5)
    parser.add_argument("--server", default="redis-7.0")
    parser.add_argument("--output", type=Path, help="a file that gets the JSON too")
    options = parser.parse_args()
    with BenchServer(options.server) as server:
        found = measure(server, options.queues, options.scrapes)
    text = json.dumps(found, indent=2)
    print(text)
    if options.output:
        options.output.write_text(f"{text}\n", encoding="utf-8")
    return 0 if all(target["met"] for target in found["targets"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
