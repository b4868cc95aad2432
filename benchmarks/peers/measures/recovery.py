"""Seconds until the item of a killed worker runs again.

"recovery" measures all libraries at once, each on a separate server; "recovery-1s" measures leaseq alone, with a lease of 1 s.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peers.bench import FAILURES, Record, Step, start_server
from peers.processes import AdapterError, Process, Traces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench_server import BenchServer
    from peers.bench import Bench
    from peers.processes import Worker

RECOVERY, RECOVERY_1S = "recovery", "recovery-1s"
SETTINGS: Final = ("default", "quickest")
STAGGER_SECS: Final = 30.0
"""Seconds between the starts of two repetitions of "recovery", which overlap."""
HELD_SECS: Final = 0.1
START_SECS: Final = 90.0
POLL_SECS: Final = 0.02
CONCURRENT_CASES: Final = threading.Semaphore(4)
"""The number of adapters that start at the same time. More would take each other's CPU until their deadlines."""


def recovery_steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """Yield one step for all repetitions of all libraries."""
    if libraries:
        secs = bench.size.recovery_secs + STAGGER_SECS * (bench.size.repetitions - 1) + 30
        yield Step(RECOVERY, tuple(libraries), 1, secs, partial(recovery, bench, libraries))


def own_recovery_steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """Yield the steps of "recovery-1s"."""
    for repetition in range(1, bench.size.repetitions + 1):
        for name in libraries:
            for cleaned in (False, True):
                case = "with a cleaner" if cleaned else "without a cleaner"
                run = partial(own_recovery, bench, name, repetition, case, cleaned=cleaned)
                yield Step(RECOVERY_1S, (name,), repetition, 3.6, run, case)


def recovery(bench: Bench, libraries: Sequence[str]) -> list[Record]:
    """Measure every library with its default settings and with its quickest."""

    def trial(name: str, repetition: int, setting: str) -> Record:
        time.sleep((repetition - 1) * STAGGER_SECS)
        with own_server(bench) as server:
            seconds = recovered_after(bench, server, name, setting)
        return Record(RECOVERY, name, repetition, {"seconds": seconds}, setting)

    return side_by_side(
        bench,
        [
            partial(trial, name, repetition, setting)
            for repetition in range(1, bench.size.repetitions + 1)
            for name in libraries
            for setting in SETTINGS
        ],
    )


def own_recovery(bench: Bench, name: str, repetition: int, case: str, *, cleaned: bool) -> list[Record]:
    """Measure leaseq with a lease of 1 s, its quickest setting, with or without a cleaner."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(start_server(bench.server_name))
        if cleaned:
            url = f"redis://127.0.0.1:{server.port}"
            program = str(Path(sys.executable).with_name("leaseq-cleaner"))
            stack.enter_context(Process([program, "--url", url, "--listen", "127.0.0.1:0"]))
        seconds = recovered_after(bench, server, name, "quickest")
    return [Record(RECOVERY_1S, name, repetition, {"seconds": seconds}, case)]


def recovered_after(bench: Bench, server: BenchServer, name: str, setting: str) -> float | None:
    """Kill the one of two workers that has the only item. Return seconds until the other has it, None if it never does.

    The kill is soon after the start of the handler, since several libraries do not extend a lease while it runs.
    """
    library = bench.library(name)
    orders = {"handler": "hold", "recovery": setting, "concurrency": 1}
    with contextlib.ExitStack() as stack:
        traces = stack.enter_context(Traces())
        with CONCURRENT_CASES:
            workers = [stack.enter_context(bench.worker(library, traces, server, **orders)) for _ in range(2)]
            for worker in workers:
                worker.wait_idle()
            with bench.producer(library, server, recovery=setting) as producer:
                producer.enqueue("one", 1)
                holder, other = _holder_and_other(traces, workers)
                time.sleep(HELD_SECS)
                killed = time.monotonic_ns()
                holder.kill()
        deadline = time.monotonic() + bench.size.recovery_secs
        while not (times := traces.times()):
            other.check()
            if time.monotonic() > deadline:
                return None
            time.sleep(POLL_SECS)
    if times[0][1] < killed:
        raise AdapterError(f"{name}, {setting}: the item ran again while its holder lived")
    return round((times[0][1] - killed) / 1e9, 3)


def _holder_and_other(traces: Traces, workers: Sequence[Worker]) -> tuple[Worker, Worker]:
    """Wait until one of two workers has the item. Return that one, then the other."""
    deadline = time.monotonic() + START_SECS
    while (pid := traces.holder()) is None:
        for worker in workers:
            worker.check()
        if time.monotonic() > deadline:
            raise workers[0].failure(f"no handler started in {START_SECS:.0f} s")
        time.sleep(POLL_SECS)
    one, two = workers
    return (one, two) if os.getsid(pid) == one.session else (two, one)


def own_server(bench: Bench) -> BenchServer:
    """Start a server for one case. Waits if too many adapters or servers are starting."""
    with CONCURRENT_CASES:
        return start_server(bench.server_name)


def side_by_side(bench: Bench, calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Make all calls, each in a thread, on all CPUs. Return their results; a failure goes to `bench.failures` instead."""
    pinned = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        with ThreadPoolExecutor(len(calls)) as pool:
            futures = [pool.submit(call) for call in calls]
    finally:
        os.sched_setaffinity(0, pinned)
    done = []
    for future in futures:
        error = future.exception()
        if isinstance(error, FAILURES):
            bench.failures.append(f"{type(error).__name__}: {error}")
        elif error is not None:
            raise error
        else:
            done.append(future.result())
    return done
