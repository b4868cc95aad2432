"""The App of the fleet under rolling restarts, for `leaseq worker programs.fleet_jobs:app`; the server in $REDIS_URL.

A good job counts, under its number, that it runs and that it has done its work. A bad one ends in the way of its name;
`REASONS` has what must be reported of it then.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import multiprocessing
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Final

import redis
from support.job_app import extend_program_timeouts

from leaseq.jobs import App

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

URL: Final = os.environ.get("REDIS_URL", "redis://127.0.0.1:1")
WORKER: Final = os.environ.get("LEASEQ_WORKER", "")
"""Which worker of the fleet this is; "" in the test."""
if WORKER:
    extend_program_timeouts()

RUNS, EFFECTS, BEGUN = "runs", "effects", "begun"
HOUR = 3600.0

app = App(URL)
GOOD: list[str] = []
"""The names of the good jobs; each takes its number and returns it."""
REASONS: dict[str, str] = {}
"""The names of the bad jobs, with a pattern of the failure that is kept of each."""
LEFT: list[subprocess.Popen[bytes]] = []
"""Programs that jobs leave running."""


def count(name: str, field: str) -> None:
    """Count one more, on a separate connection."""
    with redis.Redis.from_url(URL) as client:
        client.hincrby(name, field, 1)


@app.on_startup
def begin() -> None:
    """Report that a process of this worker starts."""
    count(BEGUN, WORKER)


# -- good jobs


@contextlib.contextmanager
def effect(number: int) -> Iterator[None]:
    """Count the run that starts, and its effect if it comes to its end."""
    count(RUNS, str(number))
    yield
    count(EFFECTS, str(number))


def good(name: str, work: Callable[[], object], *, fork: bool) -> None:
    """Define a good job in a thread or in a separate process."""

    def perform(number: int) -> int:
        with effect(number):
            work()
        return number

    GOOD.append(name)
    app.job(name=name, fork=fork)(perform)


def good_on_loop(name: str, secs: float) -> None:
    """Define a good job in the event loop."""

    async def perform(number: int) -> int:
        with effect(number):
            await asyncio.sleep(secs)
        return number

    GOOD.append(name)
    app.job(name=name)(perform)


def use_pool(method: str) -> None:
    """Use processes of multiprocessing."""
    with multiprocessing.get_context(method).Pool(2) as workers:
        assert workers.map(abs, [-1, -2]) == [1, 2]


def run_program() -> None:
    """Run a program that starts another one."""
    subprocess.run(["/bin/sh", "-c", "sleep 0.05 & wait"], check=True)


def leave_program() -> None:
    """Leave a program running, which ends with the process of the job."""
    LEFT.append(subprocess.Popen(["/bin/sleep", "3600"]))


good_on_loop("glance", 0.02)
good_on_loop("nap", 0.5)
good_on_loop("long-nap", 3)
"""Longer than the grace time: a restart gives it back."""
for place, forks in (("thread", False), ("fork", True)):
    good(f"{place}-nap", lambda: time.sleep(0.1), fork=forks)
    good(f"{place}-program", run_program, fork=forks)
    good(f"{place}-leaves", leave_program, fork=forks)
good("fork-pool", lambda: use_pool("fork"), fork=True)
good("thread-pool", lambda: use_pool("spawn"), fork=False)


# -- bad jobs


class Panic(BaseException):
    """An exception that is no `Exception`."""


def bad(
    name: str, reason: str, work: Callable[[], object], *, fork: bool = False, timeout: float = HOUR
) -> None:
    """Define a bad job in a thread or in a separate process. The test gives it one attempt."""

    def perform() -> None:
        work()

    REASONS[name] = reason
    app.job(name=name, fork=fork, timeout=timeout)(perform)


def bad_on_loop(name: str, reason: str, work: Callable[[], object]) -> None:
    """Define a bad job in the event loop; the test gives it one attempt."""

    async def perform() -> None:
        work()

    REASONS[name] = reason
    app.job(name=name, timeout=HOUR)(perform)


def kill() -> None:
    """Kill the process that runs it."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_group() -> None:
    """Kill the group of the process that runs it."""
    os.killpg(0, signal.SIGKILL)


def crash() -> None:
    """Read what is not there."""
    ctypes.string_at(0)


def leave_and_crash() -> None:
    """Leave a program running and die."""
    leave_program()
    kill()


def panic() -> None:
    """Raise what is no Exception."""
    raise Panic("no more")


def hold_interpreter() -> None:
    """Sleep in C with the interpreter's lock: no other thread of the process runs."""
    ctypes.PyDLL(None).sleep(3600)


def go_on() -> None:
    """Go on past every interruption."""
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(HOUR)


DIED, LATE = "^ProcessDied: its process ", "JobTimeout: took longer than 1 seconds"
bad_on_loop("killed", DIED + "was ended by SIGKILL$", kill)
bad("group-killed", DIED + "was ended by SIGKILL$", kill_group)
bad("leaves-and-dies", DIED + "was ended by SIGKILL$", leave_and_crash)
bad("crashed", DIED + "was ended by SIGSEGV$", crash)
bad("exit-3", DIED + "ended with exit code 3$", lambda: os._exit(3))
bad("exit-0", DIED + "ended with exit code 0$", lambda: os._exit(0))
bad("fork-killed", DIED + "was ended by SIGKILL$", kill, fork=True)
bad("fork-group-killed", DIED + "was ended by SIGKILL$", kill_group, fork=True)
bad("fork-crashed", DIED + "was ended by SIGSEGV$", crash, fork=True)
bad("fork-exit-3", DIED + "ended with exit code 3$", lambda: os._exit(3), fork=True)
bad("fork-exit-0", DIED + "ended with exit code 0$", lambda: os._exit(0), fork=True)
bad_on_loop("panic", "^programs.fleet_jobs.Panic: no more$", panic)
bad("thread-panic", "^programs.fleet_jobs.Panic: no more$", panic)
bad("fork-panic", "^programs.fleet_jobs.Panic: no more$", panic, fork=True)
QUICK: Final = tuple(REASONS)
"""Bad jobs that end at once. The others hang."""
bad("holds-interpreter", DIED + "stood still for 5 s .* needs fork=True$", hold_interpreter)
bad_on_loop("blocks-loop", DIED + "stood still for 5 s .* needs fork=True$", lambda: time.sleep(HOUR))
bad("endless", LATE + "$", lambda: time.sleep(HOUR), timeout=1)
bad("stubborn", LATE, go_on, timeout=1)
bad("fork-stubborn", LATE + ", and was killed 5 later$", go_on, fork=True, timeout=1)
HANGING: Final = tuple(name for name in REASONS if name not in QUICK)
