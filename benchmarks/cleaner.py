"""Measure the cost of a cleaner: requests for each idle queue, CPU and memory of its process, while other queues are busy.

    python benchmarks/cleaner.py [--seconds 120] [--queues 50] [--cleaners 1] [--server valkey-9.1.2]

Starts a server and `leaseq-cleaner` with its default settings. Half of the queues are idle: they hold items
and long leases that no client touches. In the others items are added, leased for half a second and completed, and one in
four is dropped, so that its lease expires. The requests for idle queues are counted at the server, with MONITOR. Prints
one JSON object; exits with 1 if an idle queue costs more than 0.3 requests a second.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.parser import text_string_to_metric_families

import leaseq
from bench_server import BenchServer
from leaseq._guard import GuardedProcess

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TARGET: Final = 0.3
"""The most requests a second that a cleaner may make for an idle queue."""

PROGRAM: Final = Path(sys.executable).with_name("leaseq-cleaner")
TICKS: Final = os.sysconf("SC_CLK_TCK")
SETTLE_SECS: Final = 5.0
"""Waited after the cleaners have looked at every idle queue once, before requests are counted."""


class Requests:
    """Counts the calls for idle queues that reach the server."""

    def __init__(self, server: BenchServer) -> None:
        self.count = 0
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(server.url.removeprefix("unix://"))
        self._socket.sendall(b"MONITOR\r\n")
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        rest = b""
        while chunk := self._socket.recv(1 << 20):
            *lines, rest = (rest + chunk).split(b"\n")
            # commands inside scripts are shown too, as from "lua"
            self.count += sum(b'] "EVAL' in line and b'"leaseq:{idle-' in line for line in lines)

    def close(self) -> None:
        """Stop counting."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()


class Cleaner:
    """A process `leaseq-cleaner`, its CPU time, memory and metrics."""

    def __init__(self, url: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            listen = f"127.0.0.1:{free.getsockname()[1]}"
        self.url = f"http://{listen}"
        self._process = GuardedProcess([str(PROGRAM), "--url", url, "--listen", listen], Path.cwd())
        while not self._is_ready():
            self.check()
            time.sleep(0.05)

    def check(self) -> None:
        """Raise RuntimeError if the process has ended."""
        if not self._process.running():
            raise RuntimeError("leaseq-cleaner does not run")

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=10):  # noqa: S310 (its own address)
                return True
        except OSError:
            return False

    def cpu_secs(self) -> float:
        """Return the CPU time so far, in seconds."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mib(self) -> dict[str, float]:
        """Return the memory now, and the most so far."""
        status = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        values = dict(line.split(":", 1) for line in status)
        return {
            "now": round(int(values["VmRSS"].split()[0]) / 1024, 1),
            "peak": round(int(values["VmHWM"].split()[0]) / 1024, 1),
        }

    def metric(self, name: str) -> float:
        """Return a metric of the cleaner, summed over all labels."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:  # noqa: S310 (its own address)
            families = text_string_to_metric_families(answer.read().decode())
        return sum(sample.value for family in families for sample in family.samples if sample.name == name)

    def close(self) -> None:
        """Stop it."""
        self._process.stop()


@contextlib.contextmanager
def churn(url: str, names: Sequence[str]) -> Iterator[None]:
    """Add, lease and complete items on these queues until the block ends; one in four is leased and dropped."""
    ended = threading.Event()

    def work(queue: leaseq.WorkQueue) -> None:
        with queue:
            while not ended.wait(1.0):
                queue.add_items((leaseq.Item(b"x" * 100) for _ in range(4)), delay=0.2)
                held = queue.lease_items(4, 0.5, block=False)
                queue.complete_items(held[1:])

    threads = [threading.Thread(target=work, args=[leaseq.WorkQueue(name, url)]) for name in names]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def fill(url: str, names: Sequence[str]) -> None:
    """Give each queue items that stay ready, delayed or leased for a day."""
    for name in names:
        with leaseq.WorkQueue(name, url) as queue:
            queue.add_items(leaseq.Item(b"x" * 100) for _ in range(100))
            queue.add_items((leaseq.Item(b"x" * 100) for _ in range(100)), delay=86_400)
            queue.lease_items(50, 86_400)


def measure(server: BenchServer, queues: int, cleaners: int, seconds: float) -> dict[str, Any]:
    """Run the queues and cleaners. Return the figures that are printed."""
    idle = [f"idle-{n}" for n in range(queues // 2)]
    fill(server.url, idle)
    with contextlib.ExitStack() as stack:
        stack.enter_context(churn(server.url, [f"busy-{n}" for n in range(queues - len(idle))]))
        requests = Requests(server)
        stack.callback(requests.close)
        running = [Cleaner(server.url) for _ in range(cleaners)]
        for each in running:
            stack.callback(each.close)
        while requests.count < len(idle) * cleaners:
            for each in running:
                each.check()
            time.sleep(0.05)
        time.sleep(SETTLE_SECS)
        begun, cpu, counted = time.monotonic(), [each.cpu_secs() for each in running], requests.count
        time.sleep(seconds)
        secs = time.monotonic() - begun
        per_queue = (requests.count - counted) / secs / len(idle) / cleaners
        return {
            "seconds": round(secs, 1),
            "queues": queues,
            "idle": len(idle),
            "cleaners": cleaners,
            "requests_before": counted,
            "requests_per_second_per_idle_queue": round(per_queue, 3),
            "cpu_percent": [
                round((each.cpu_secs() - before) / secs * 100, 2)
                for each, before in zip(running, cpu, strict=True)
            ],
            "memory_mib": [each.memory_mib() for each in running],
            "moved": [each.metric("leaseq_cleaner_moved_total") for each in running],
            "errors": [each.metric("leaseq_cleaner_errors_total") for each in running],
        }


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--queues", type=int, default=50)
    parser.add_argument("--cleaners", type=int, default=1)
    parser.add_argument("--server", default="valkey-9.1.2")
    options = parser.parse_args()
    server = BenchServer(options.server)
    try:
        found = measure(server, options.queues, options.cleaners, options.seconds)
    finally:
        server.close()
    found |= {"target": TARGET, "met": found["requests_per_second_per_idle_queue"] <= TARGET}
    print(json.dumps(found, indent=2))
    return 0 if found["met"] else 1


if __name__ == "__main__":
    sys.exit(main())
