"""What is mostly waiting, of all libraries side by side, each with a server of its own: recovery and idle cost."""

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

from peers.bench import Record, Step, start_server
from peers.processes import Process, RoleError, Traces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench_server import BenchServer
    from peers.bench import Bench

RECOVERY, RECOVERY_1S, IDLE = "recovery", "recovery-1s", "idle"
SETTINGS: Final = ("default", "quickest")
STAGGER_SECS: Final = 25.0
"""Between the starts of two repetitions of the recovery: they overlap."""
HELD_SECS: Final = 1.0
START_SECS: Final = 90.0
LOOK_SECS: Final = 0.05
AT_ONCE: Final = threading.Semaphore(4)
"""So many roles start side by side: more would take each other's CPU until their deadlines."""


def recovery_steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One for all repetitions of all libraries."""
    if libraries:
        secs = bench.size.recovery_secs + STAGGER_SECS * (bench.size.repetitions - 1) + 30
        yield Step(RECOVERY, tuple(libraries), 1, secs, partial(recovery, bench, libraries))


def own_recovery_steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """Leaseq with a lease of 1 s, alone on the machine."""
    for repetition in range(1, bench.size.repetitions + 1):
        for name in libraries:
            for cleaned in (False, True):
                case = "with a cleaner" if cleaned else "without a cleaner"
                run = partial(own_recovery, bench, name, repetition, case, cleaned=cleaned)
                yield Step(RECOVERY_1S, (name,), repetition, 5.5, run, case)


def idle_steps(bench: Bench, libraries: Sequence[str]) -> Iterator[Step]:
    """One for all repetitions of all libraries."""
    if libraries:
        secs = bench.size.idle_secs * bench.size.repetitions + 15
        yield Step(IDLE, tuple(libraries), 1, secs, partial(idle, bench, libraries))


def recovery(bench: Bench, libraries: Sequence[str]) -> list[Record]:
    """How long until an item runs again whose worker was killed, at default settings and at the quickest."""

    def trial(name: str, repetition: int, setting: str) -> Record:
        time.sleep((repetition - 1) * STAGGER_SECS)
        with start_server(bench.server_name) as server:
            seconds = recovered_after(bench, server, name, setting)
        return Record(RECOVERY, name, repetition, {"seconds": seconds}, setting)

    return _side_by_side(
        bench,
        [
            partial(trial, name, repetition, setting)
            for repetition in range(1, bench.size.repetitions + 1)
            for name in libraries
            for setting in SETTINGS
        ],
    )


def own_recovery(bench: Bench, name: str, repetition: int, case: str, *, cleaned: bool) -> list[Record]:
    """The same for leaseq with a lease of 1 s."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(start_server(bench.server_name))
        if cleaned:
            url = f"redis://127.0.0.1:{server.port}"
            program = str(Path(sys.executable).with_name("leaseq-cleaner"))
            stack.enter_context(Process([program, "--url", url, "--listen", "127.0.0.1:0"]))
        seconds = recovered_after(bench, server, name, "quickest")
    return [Record(RECOVERY_1S, name, repetition, {"seconds": seconds}, case)]


def recovered_after(bench: Bench, server: BenchServer, name: str, setting: str) -> float | None:
    """Kill the worker that holds the one item, beside an idle one; seconds until that has it, None for never."""
    library = bench.library(name)
    with contextlib.ExitStack() as stack:
        traces = stack.enter_context(Traces())
        with AT_ONCE:
            holder = stack.enter_context(
                bench.worker(library, traces, server, handler="hold", recovery=setting, concurrency=1)
            )
            with bench.producer(library, server, recovery=setting) as producer:
                producer.enqueue("one", 1)
            _wait(traces.is_held, START_SECS, holder)
            other = stack.enter_context(
                bench.worker(library, traces, server, handler="hold", recovery=setting, concurrency=1)
            )
            other.wait_idle()
        time.sleep(HELD_SECS)
        if traces.times():
            return 0.0  # given to the other one while its holder lived
        killed = time.monotonic_ns()
        holder.kill()
        deadline = time.monotonic() + bench.size.recovery_secs
        while not (times := traces.times()):
            other.check()
            if time.monotonic() > deadline:
                return None
            time.sleep(LOOK_SECS)
    return round((times[0][1] - killed) / 1e9, 3)


def _wait(condition: Callable[[], bool], seconds: float, process: Process) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        process.check()
        if time.monotonic() > deadline:
            raise process.failure(f"no handler began in {seconds:.0f} s")
        time.sleep(LOOK_SECS)


def idle(bench: Bench, libraries: Sequence[str]) -> list[Record]:
    """Commands that one worker sends while there is nothing to do."""

    def watched(name: str) -> list[Record]:
        library = bench.library(name)
        found = []
        with start_server(bench.server_name) as server, Traces() as traces:
            with AT_ONCE:
                worker = bench.worker(library, traces, server)
            with worker:
                worker.wait_idle()
                for repetition in range(1, bench.size.repetitions + 1):
                    server.reset()
                    began = time.monotonic()
                    time.sleep(bench.size.idle_secs)
                    seen = sum(server.calls().values())
                    rate = round(seen / (time.monotonic() - began), 3)
                    found.append(Record(IDLE, name, repetition, {"commands_per_second": rate}))
        return found

    nested: list[list[Record]] = _side_by_side(bench, [partial(watched, name) for name in libraries])
    return [record for several in nested for record in several]


def _side_by_side(bench: Bench, calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Make all calls, each in a thread, on all CPUs. What fails is left out, and told at the end."""
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
        if isinstance(error, RoleError):
            bench.failures.append(str(error))
        elif error is not None:
            raise error
        else:
            done.append(future.result())
    return done
