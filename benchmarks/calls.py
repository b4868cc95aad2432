"""Measure the cost of one call of the Python client: the client's CPU time, and the server's time inside the script.

    python benchmarks/calls.py                 25 rounds of 300 calls, threads and asyncio; about half a minute
    python benchmarks/calls.py --quick         does it run? the figures mean nothing
    python benchmarks/calls.py --json          the same as JSON: every round
    python benchmarks/calls.py --beside PYTHON another version of leaseq beside this one: that which PYTHON imports

In each round threads and asyncio take turns, each on a separate queue: 300 times add_item, then lease, complete and
complete_and_lease as often; in asyncio also 3,000 times add_item by 100 tasks at once. `client` is the CPU time of this process, without its waits; `server` is
`usec` of EVALSHA by INFO commandstats, so the script without the network. PING by redis-py is there to compare. The
table has the least of the rounds and their median: what else runs on the machine makes a round slower, never faster.

With --beside each version has a separate process, on one server; they take rounds in turns, and the ratio is that of
the medians.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Protocol

import redis.asyncio

import leaseq
import leaseq.aio

sys.path.insert(0, str(Path(__file__).parent))
from bench_server import BenchServer, ServerNotFoundError, environment, pin

if TYPE_CHECKING:
    from collections.abc import Iterator

LEASE_SECS: Final = 3600.0
DATA: Final = b"x" * 100
MODES: Final = ("threads", "asyncio")
CROWD: Final = "add_item, 100 tasks"
CALLS: Final = ("PING", "add_item", "lease", "complete", "complete_and_lease", CROWD)
AT_ONCE, ROUNDS_OF_CROWD = 100, 10
Costs = dict[str, dict[str, float]]
"""Of each call, us of the client and of the server."""


class Server(Protocol):
    """The server of a measurement, as the rounds use it."""

    @property
    def url(self) -> str:
        """Where it is."""

    def script_usec(self) -> float:
        """Return how long scripts have run."""


class Reached:
    """A server that another process has started."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client: Any = redis.Redis.from_url(url)

    def script_usec(self) -> float:
        """Return how long scripts have run."""
        return float(self.client.info("commandstats").get("cmdstat_evalsha", {"usec": 0})["usec"])


class Meter:
    """Notes what calls cost on both sides."""

    def __init__(self, server: Server, count: int) -> None:
        self._server, self.count = server, count
        self.costs: Costs = {}

    @contextlib.contextmanager
    def calls(self, name: str, times: int = 1) -> Iterator[None]:
        """Measure a block that makes this call `count` times `times`."""
        count = times * self.count
        gc.collect()
        inside, began = self._server.script_usec(), time.process_time()
        yield
        spent = (time.process_time() - began) * 1e6
        inside = self._server.script_usec() - inside
        self.costs[name] = {
            "client_us": round(spent / count, 2),
            "server_us": round(inside / count, 2),
        }

    def items(self, first: int = 0) -> list[leaseq.Item]:
        """As many as there are calls."""
        return [leaseq.Item(DATA, id=f"item-{first + number:010d}") for number in range(self.count)]


def threads(server: Server, count: int) -> Costs:
    """One round of the client for threads."""
    meter = Meter(server, count)
    with leaseq.WorkQueue("threads", server.url) as queue, redis.Redis.from_url(server.url) as plain:
        queue.add_item(leaseq.Item(DATA))  # the first call connects, and makes the script known
        first = queue.lease(LEASE_SECS, block=False)
        plain.ping()
        with meter.calls("PING"):
            for _ in range(count):
                plain.ping()
        items = meter.items()
        with meter.calls("add_item"):
            for item in items:
                queue.add_item(item)
        with meter.calls("lease"):
            held = [queue.lease(LEASE_SECS, block=False) for _ in range(count)]
        with meter.calls("complete"):
            for each in held:
                if each is None or not queue.complete(each):
                    raise AssertionError(each)
        queue.add_items(meter.items(count))
        with meter.calls("complete_and_lease"):
            for _ in range(count):
                if first is None:
                    raise AssertionError
                _, first = queue.complete_and_lease(first, LEASE_SECS)
    return meter.costs


async def tasks(server: Server, count: int) -> Costs:
    """One round of the client for asyncio."""
    meter = Meter(server, count)
    plain = redis.asyncio.Redis.from_url(server.url)
    async with leaseq.aio.WorkQueue("asyncio", server.url) as queue, plain:
        await queue.add_item(leaseq.Item(DATA))
        first = await queue.lease(LEASE_SECS, block=False)
        await plain.ping()
        with meter.calls("PING"):
            for _ in range(count):
                await plain.ping()
        items = meter.items()
        with meter.calls("add_item"):
            for item in items:
                await queue.add_item(item)
        with meter.calls("lease"):
            held = [await queue.lease(LEASE_SECS, block=False) for _ in range(count)]
        with meter.calls("complete"):
            for each in held:
                if each is None or not await queue.complete(each):
                    raise AssertionError(each)
        await queue.add_items(meter.items(count))
        with meter.calls("complete_and_lease"):
            for _ in range(count):
                if first is None:
                    raise AssertionError
                _, first = await queue.complete_and_lease(first, LEASE_SECS)
        crowd = [meter.items((2 + number) * count) for number in range(ROUNDS_OF_CROWD)]
        waiting = itertools.chain.from_iterable(crowd)
        with meter.calls(CROWD, ROUNDS_OF_CROWD):
            await asyncio.gather(*(_add_all(queue, waiting) for _ in range(AT_ONCE)))
    return meter.costs


async def _add_all(queue: leaseq.aio.WorkQueue, items: Iterator[leaseq.Item]) -> None:
    for item in items:
        await queue.add_item(item)


def one_round(server: BenchServer | Reached, count: int) -> dict[str, Costs]:
    """Sync and async, on an empty server."""
    server.client.flushdb()
    return {"threads": threads(server, count), "asyncio": asyncio.run(tasks(server, count))}


def measure(server: BenchServer, rounds: int, count: int) -> dict[str, Any]:
    """All rounds, and what they come to."""
    one_round(server, count)  # what is done once is not counted
    return summary([one_round(server, count) for _ in range(rounds)])


def summary(found: list[dict[str, Costs]]) -> dict[str, Any]:
    """The least and the median of each figure."""
    calls = {
        mode: {
            call: {
                f"{side}_us": {"least": min(of), "median": round(median(of), 2)}
                for side in ("client", "server")
                for of in [[each[mode][call][f"{side}_us"] for each in found]]
            }
            for call in found[0][mode]
        }
        for mode in MODES
    }
    return {"calls": calls, "rounds": found}


def table(found: dict[str, Any]) -> list[str]:
    """In Markdown: the least, and the median in brackets."""
    lines = [
        "| us for each call | client, threads | client, asyncio | in the script |",
        "|---|---:|---:|---:|",
    ]
    for call in CALLS:
        own = [found["calls"][mode].get(call) for mode in MODES]
        cells = [
            f"{of['client_us']['least']:.1f} ({of['client_us']['median']:.1f})" if of else "-" for of in own
        ]
        inside = min(of["server_us"]["least"] for of in own if of)
        lines.append(f"| `{call}` | {' | '.join(cells)} | {f'{inside:.1f}' if inside else '-'} |")
    return lines


def answer_rounds(url: str, count: int) -> None:
    """Run a round for each line that comes, and print what it cost."""
    server = Reached(url)
    for _ in sys.stdin:
        print(json.dumps(one_round(server, count)), flush=True)


def measure_beside(server: BenchServer, other: str, rounds: int, count: int) -> dict[str, Any]:
    """Rounds of this version and of another, in turns."""
    argv = [__file__, "--rounds-for", server.url, "--count", str(count)]
    found: dict[str, list[dict[str, Costs]]] = {"here": [], "beside": []}
    with contextlib.ExitStack() as stack:
        processes = {
            name: stack.enter_context(
                subprocess.Popen(
                    [python, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
                )
            )
            for name, python in (("here", sys.executable), ("beside", other))
        }
        for number in range(rounds + 1):
            for name in ("here", "beside") if number % 2 else ("beside", "here"):
                process = processes[name]
                if process.stdin is None or process.stdout is None:
                    raise AssertionError(name)
                process.stdin.write("\n")
                found[name].append(json.loads(process.stdout.readline()))
        for process in processes.values():
            process.communicate()
    return {name: summary(of[1:]) for name, of in found.items()}  # what is done once is not counted


def table_beside(found: dict[str, Any]) -> list[str]:
    """In Markdown: the medians, and their ratio."""
    lines = [
        "| client us for each call | threads, here | beside | ratio | asyncio, here | beside | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for call in CALLS:
        cells = []
        for mode in MODES:
            own = [found[name]["calls"][mode].get(call) for name in ("here", "beside")]
            if all(own):
                here, beside = (each["client_us"]["median"] for each in own)
                cells += [f"{here:.1f}", f"{beside:.1f}", f"{here / beside:.2f}"]
            else:
                cells += ["-"] * 3
        lines.append(f"| `{call}` | {' | '.join(cells)} |")
    return lines


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", default="redis-7.0", metavar="NAME", help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="two short rounds")
    parser.add_argument("--json", action="store_true", help="JSON in place of the table")
    parser.add_argument("--beside", metavar="PYTHON", help="the interpreter that has another version")
    parser.add_argument("--rounds-for", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    rounds, count = (2, 20) if options.quick else (25, 300)
    if options.rounds_for:
        answer_rounds(options.rounds_for, options.count)
        return 0
    machine = environment(pin())
    try:
        with BenchServer(options.server) as server:
            version = server.version()
            if options.beside:
                found = measure_beside(server, options.beside, rounds, count)
            else:
                found = measure(server, rounds, count)
    except ServerNotFoundError as error:
        parser.error(str(error))
    if options.json:
        print(json.dumps({"server": version, "environment": machine, "calls_in_a_round": count, **found}))
    else:
        what = "the median" if options.beside else "the least (the median)"
        print("\n".join(table_beside(found) if options.beside else table(found)))
        print(f"\n{version} on {machine['cpu_model']}; {what} of {rounds} rounds of {count} calls.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
