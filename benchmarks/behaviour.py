"""Requests that the Python client sends: per call, and while a worker waits on an empty queue."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import leaseq
from leaseq import _scripts

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench_server import BenchServer

REQUESTS = ("evalsha", "eval", "blpop")
"""Commands that a client sends. All others in the statistics ran inside a script, or were sent while connecting."""


def requests(server: BenchServer) -> dict[str, int]:
    """Requests of clients since the last reset."""
    return {name: count for name, count in server.calls().items() if name in REQUESTS}


def round_trips(server: BenchServer) -> dict[str, int]:
    """Requests of each call of `leaseq.WorkQueue` on a queue that has what the call wants."""
    server.empty(*_scripts.SCRIPTS)
    counts: dict[str, int] = {}
    with leaseq.WorkQueue("bench", server.url) as queue:

        def fresh() -> Any:
            queue.add_item(leaseq.Item(b"data"))
            return queue.lease(60)

        def bulk() -> list[Any]:
            queue.add_items([leaseq.Item(b"data") for _ in range(100)])
            return queue.lease_items(100, 60)

        def ready() -> str:
            item = leaseq.Item(b"data")
            queue.add_item(item)
            return item.id

        calls: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
            "add_item": (lambda: leaseq.Item(b"data"), queue.add_item),
            "add_items, 100": (lambda: [leaseq.Item(b"data") for _ in range(100)], queue.add_items),
            "lease": (ready, lambda _: queue.lease(60)),
            "lease_items, 100": (
                lambda: queue.add_items([leaseq.Item(b"data") for _ in range(100)]),
                lambda _: queue.lease_items(100, 60),
            ),
            "lease, nothing there": (lambda: None, lambda _: queue.lease(60, block=False)),
            "complete": (fresh, queue.complete),
            "complete_items, 100": (bulk, queue.complete_items),
            "complete_and_lease": (
                lambda: (ready(), fresh())[1],
                lambda item: queue.complete_and_lease(item, 60),
            ),
            "extend": (fresh, lambda item: queue.extend(item, 60)),
            "release": (fresh, queue.release),
            "remove": (ready, queue.remove),
            "inspect": (ready, queue.inspect),
            "list_items": (ready, lambda _: queue.list_items("ready")),
            "stats": (lambda: None, lambda _: queue.stats()),
            "light_clean": (ready, lambda _: queue.light_clean()),
        }
        for name, (prepare, call) in calls.items():
            given = prepare()
            server.reset()
            call(given)
            counts[name] = sum(requests(server).values())
            for item in queue.lease_items(256, 60, block=False):
                queue.complete(item)
    return counts


def idle_worker(server: BenchServer, *, seconds: float) -> dict[str, Any]:
    """Requests of one worker that blocks on an empty queue."""
    server.empty(*_scripts.SCRIPTS)
    with leaseq.WorkQueue("bench", server.url) as queue:
        worker = threading.Thread(target=_wait, args=(queue,), daemon=True)
        worker.start()
        time.sleep(1)  # it connects, asks once and blocks
        server.reset()
        started = time.monotonic()
        time.sleep(seconds)
        seen, took = requests(server), time.monotonic() - started
        queue.add_item(leaseq.Item(b"the end"))
        worker.join(10)
        woke = not worker.is_alive()
    if not woke:
        raise AssertionError("the worker did not wake up")
    total = sum(seen.values())
    return {"seconds": round(took, 2), "requests": seen, "requests_per_4s": round(total * 4 / took, 2)}


def _wait(queue: leaseq.WorkQueue) -> None:
    queue.lease(60)
