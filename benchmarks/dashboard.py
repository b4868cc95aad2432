"""Measure what the dashboard costs: the server, itself, and the time of a page, with viewers that keep pages open.

    python benchmarks/dashboard.py                  100 queues, one with 1,000,000 items; then 10,000 queues; 50 viewers
    python benchmarks/dashboard.py --quick          a smoke run of seconds with small counts

Prints one JSON object for each scene. A viewer asks for the part of its page that changes every 2 s, as a browser does.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil

import leaseq
from bench_server import BenchServer

SERVER: Final = "valkey-9.1.2"
PROGRAM: Final = Path(sys.executable).with_name("leaseq")
LIVE_SECS: Final = 2.0
"""Seconds between two requests of a viewer."""

FIRST_PAGES: Final = 20
"""Whole pages that one viewer asks for, to time them."""

PATHS: Final = ("/", "/?sort=ready", "/queue?queue=q0", "/queue?queue=q1", "/dead?queue=q1", "/workers")
"""The pages of viewers, in turn."""


@dataclass(frozen=True)
class Scene:
    """The size of a measurement."""

    queues: int
    items: int
    viewers: int
    seconds: float


FULL: Final = (Scene(100, 1_000_000, 50, 30.0), Scene(10_000, 0, 50, 40.0))
QUICK: Final = (Scene(10, 1000, 5, 3.0),)


def fill(client: Any, scene: Scene) -> None:
    """Add a few items to each queue, some of them dead letters, and many to the first queue."""
    for number in range(scene.queues):
        with leaseq.WorkQueue(f"q{number}", client) as queue:
            queue.add_items(leaseq.Item(b"x" * 20, id=str(each)) for each in range(4))
            queue.dead_letter_items(queue.lease_items(2, 60), error=f"ValueError: no {number % 7}")
    with leaseq.WorkQueue("q0", client) as queue:
        queue.add_items(leaseq.Item(b"x" * 20, id=f"many-{each}") for each in range(scene.items))


def look(port: int, path: str, until: float, took: list[float], pause: float = LIVE_SECS) -> None:
    """Ask for a page at least once, again until that moment, and note the seconds that each answer took."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"HX-Request": "true"} if pause else {}
    while True:
        start = time.perf_counter()
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        reply.read()
        if reply.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{path}: {reply.status}")
        took.append(time.perf_counter() - start)
        if time.monotonic() + pause >= until:
            break
        time.sleep(pause)
    connection.close()


def visited(port: int, scene: Scene) -> list[float]:
    """Let all viewers look for the time of the scene; return the seconds that each answer took."""
    took: list[float] = []
    until = time.monotonic() + scene.seconds
    viewers = [
        threading.Thread(target=look, args=(port, PATHS[number % len(PATHS)], until, took))
        for number in range(scene.viewers)
    ]
    for each in viewers:
        each.start()
        time.sleep(LIVE_SECS / scene.viewers)  # people do not come at the same moment
    for each in viewers:
        each.join()
    return took


def used(client: Any) -> tuple[float, int]:
    """Return the seconds of CPU that the server has used, and how many scripts and pages of the registry were asked for."""
    info = client.info("all")
    calls = sum(info.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "eval", "sscan"))
    return info["used_cpu_user"] + info["used_cpu_sys"], calls


def measure(server: BenchServer, scene: Scene) -> dict[str, Any]:
    """Run the dashboard with viewers, and return what that cost."""
    fill(server.client, scene)
    command = [str(PROGRAM), "dashboard", "--allow-actions", "--url", server.url, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            (port,) = re.findall(r":(\d+)/", next(iter(process.stderr or ())))
            return _measured(server.client, psutil.Process(process.pid), int(port), scene)
        finally:
            process.send_signal(signal.SIGTERM)


def _measured(client: Any, process: psutil.Process, port: int, scene: Scene) -> dict[str, Any]:
    whole: list[float] = []
    look(port, "/", 0.0, [], 0.0)  # the first page waits for the first read
    for number in range(FIRST_PAGES):  # each another one: viewers share the answer of the same page
        look(port, f"/?sort=ready&page={number}", 0.0, whole, 0.0)
    start, cpu, (server_cpu, calls) = time.monotonic(), process.cpu_times(), used(client)
    took = sorted(visited(port, scene))
    seconds, cpu_after, (server_cpu_after, calls_after) = (
        time.monotonic() - start,
        process.cpu_times(),
        used(client),
    )
    own = cpu_after.user + cpu_after.system - cpu.user - cpu.system
    return {
        **asdict(scene),
        "page_ms": round(statistics.median(whole) * 1000, 1),
        "fragment_ms": round(statistics.median(took) * 1000, 1),
        "fragment_p99_ms": round(took[len(took) * 99 // 100] * 1000, 1),
        "requests": len(took),
        "server_cpu_percent": round((server_cpu_after - server_cpu) / seconds * 100, 2),
        "calls_per_sec": round((calls_after - calls) / seconds, 1),
        "dashboard_cpu_percent": round(own / seconds * 100, 1),
        "dashboard_mib": round(process.memory_info().rss / (1 << 20)),
    }


def main() -> None:
    """Measure each scene on an empty server."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small counts, for a test")
    parser.add_argument("--server", default=SERVER, help="the server to measure on, such as redis-7.0")
    options = parser.parse_args()
    for scene in QUICK if options.quick else FULL:
        with BenchServer(options.server) as server:
            print(json.dumps(measure(server, scene)), flush=True)


if __name__ == "__main__":
    main()
