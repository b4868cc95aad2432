"""Measure the server's cost of leaseq next to the floor, and check its targets.

Writes results/core.json and the tables of results/core.md.

    python benchmarks/core.py                  all measurements on three servers, about 4 minutes
    python benchmarks/core.py --quick          a smoke run of seconds with small counts; no targets

The targets are judged on the first server (Redis 7.0); the others are there to compare. README.md explains the measurements.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import behaviour
import large_queue
import lifecycle
import report
from bench_server import BenchServer, Progress, ServerNotFoundError, environment, pin

SERVERS = "redis-7.0,valkey-9.1.2,redis-6.2.14"
RESULTS = Path(__file__).parent / "results" / "core.json"


@dataclass(frozen=True)
class Size:
    """Counts and times of a run."""

    single_items: int
    batch_items: int
    repetitions: int
    memory_items: int
    large_items: int
    large_entries: int
    rounds: int
    idle_secs: float


FULL = Size(20_000, 30_000, 11, 100_000, 1_000_000, 256, 150, 8.0)
QUICK = Size(200, 1_000, 2, 2_000, 2_000, 32, 6, 0.5)


@dataclass(frozen=True)
class Target:
    """The most that a figure may be, and what was measured."""

    name: str
    limit: float
    value: float

    @property
    def passed(self) -> bool:
        """True if the figure is at most the limit."""
        return self.value <= self.limit


def measure(name: str, size: Size, progress: Progress) -> dict[str, Any]:
    """Return all measurements on one server program; each part starts a fresh server."""

    def log(text: str) -> None:
        progress.log(f"{name}: {text}")

    with BenchServer(name) as server:
        record: dict[str, Any] = {
            "version": server.version(),
            "allocator": server.allocator(),
            "script_time": {},
        }
        for kind, batch, items in (("single", 1, size.single_items), ("batch", 100, size.batch_items)):
            record["script_time"][kind] = lifecycle.script_time(
                server, batch=batch, items=items, repetitions=size.repetitions, log=log
            )
        record["inner_commands"] = {
            kind: lifecycle.inner_commands(server, batch=batch)
            for kind, batch in (("single", 1), ("batch", 100))
        }
        record["round_trips"] = behaviour.round_trips(server)
        record["idle_worker"] = behaviour.idle_worker(server, seconds=size.idle_secs)
        log("requests counted")
    with BenchServer(name) as server:
        record["memory"] = lifecycle.memory(server, items=size.memory_items)
        log("memory weighed")
    with BenchServer(name) as server:
        record["large_queue"] = large_queue.measure(
            server, items=size.large_items, rounds=size.rounds, entries=size.large_entries, log=log
        )
    return record


def figures(record: dict[str, Any]) -> dict[str, float]:
    """Return the figures of one server that have a limit in LIMITS."""
    return {
        "floor_ratio_single": record["script_time"]["single"]["ratio"]["total"]["median"],
        "floor_ratio_batch": record["script_time"]["batch"]["ratio"]["total"]["median"],
        "bytes_waiting": record["memory"]["bytes_waiting"],
        "bytes_leased": record["memory"]["bytes_leased"],
        "round_trips_per_call": max(record["round_trips"].values()),
        "idle_requests_per_4s": record["idle_worker"]["requests_per_4s"],
        "p99_call_ms_at_1m": record["large_queue"]["p99_call_ms"],
    }


LIMITS = {
    "floor_ratio_single": 1.75,
    "floor_ratio_batch": 1.4,
    "bytes_waiting": 310,
    "bytes_leased": 400,
    "round_trips_per_call": 1,
    "idle_requests_per_4s": 2,
    "p99_call_ms_at_1m": 5,
}


def run(names: list[str], size: Size) -> dict[str, Any]:
    """Measure on every server, and judge the figures of the first."""
    machine = environment(pin())
    with Progress() as progress:
        servers = {name: measure(name, size, progress) for name in names}
    machine["load_after"] = [round(load, 2) for load in os.getloadavg()]
    judged = figures(servers[names[0]])
    targets = [Target(name, LIMITS[name], value) for name, value in judged.items()]
    return {
        **judged,
        "judged_on": names[0],
        "targets": [asdict(target) | {"passed": target.passed} for target in targets],
        "quick": size is QUICK,
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "environment": machine,
        "size": asdict(size),
        "servers": servers,
    }


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--server",
        default=SERVERS,
        metavar="NAME,...",
        help="servers as fetched by `make servers`, or paths of programs; the first is judged (default: %(default)s)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small counts, no targets, nothing under results/"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help=f"where the JSON goes, with the tables beside it as .md (default: {RESULTS.name} in results/)",
    )
    options = parser.parse_args()
    output: Path | None = options.output or (None if options.quick else RESULTS)
    try:
        results = run(options.server.split(","), QUICK if options.quick else FULL)
    except ServerNotFoundError as error:
        parser.error(str(error))
    if output:
        output.write_text(report.compact_json(results))
        output.with_suffix(".md").write_text(report.markdown(results))
    print(report.markdown(results))
    missed = [target["name"] for target in results["targets"] if not target["passed"]]
    if missed and not options.quick:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
