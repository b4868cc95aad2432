"""The job worker program of `leaseq.jobs`: python -m conformance_adapter.job_worker threads|asyncio|fork CONFIG.

Its functions and schedules are those of conformance-tests/ADAPTER.md. They run in threads, in the event loop or in processes.
"""

import asyncio
import functools
import json
import math
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from leaseq.jobs import App, Context, DeadLetter

SLICE_SECS: Final = 0.01
"""Threads are interrupted between two slices."""
MARK_SECS: Final = 0.02
GRACE_SECS: Final = 0.5
HOUR_SECS: Final = 3600.0
ZONE: Final = "Europe/Berlin"
LINES: Final = {
    "hourly": ("0 * * * *", "UTC"),
    "skipped": ("30 2 30 3 *", ZONE),
    "skipped-several": ("*/15 2 30 3 *", ZONE),
    "twice": ("30 2 26 10 *", ZONE),
    "skipped-each-hour": ("*/30 * 30 3 *", ZONE),
    "twice-several": ("*/30 2,3 26 10 *", ZONE),
    "twice-each-hour": ("*/30 * 26 10 *", ZONE),
}


def echo(value: Any) -> Any:
    """Return what it is given."""
    return value


def add(a: int, b: int = 0) -> int:
    """Return the sum."""
    return a + b


def fail(message: str) -> None:
    """Fail."""
    raise ValueError(message)


def fail_times(context: Context, times: int) -> int:
    """Fail in the first `times` attempts. Return the number of the attempt after them."""
    if context.attempt <= times:
        raise ValueError(f"attempt {context.attempt}")
    return context.attempt


def never_again(message: str) -> None:
    """Report that it must not run again."""
    raise DeadLetter(message)


def fail_for_good(message: str) -> None:
    """Fail in a way that allows no other attempt."""
    raise LookupError(message)


def not_a_number() -> float:
    """Return NaN."""
    return math.nan


def tick() -> str:
    """Return a text; schedules call it."""
    return "tick"


def sleep(ms: int) -> int:
    """Sleep, and return for how long."""
    end = time.monotonic() + ms / 1000
    while time.monotonic() < end:
        time.sleep(SLICE_SECS)
    return ms


def mark(path: str) -> None:
    """Append a byte to the file again and again, until this is ended."""
    while True:
        _mark(path)
        time.sleep(MARK_SECS)


def fail_late(ms: int, how: str) -> None:
    """Sleep, and once its time is over fail, or report that it must not run again."""
    try:
        sleep(ms)
    except BaseException as error:
        raise _late(how) from error


def progress(context: Context, done: int, total: int, ms: int) -> None:
    """Report progress, then sleep."""
    context.progress(done, total)
    sleep(ms)


async def sleep_on_loop(ms: int) -> int:
    """Sleep, and return for how long."""
    await asyncio.sleep(ms / 1000)
    return ms


async def mark_on_loop(path: str) -> None:
    """Append a byte to the file again and again, until this is ended."""
    while True:
        _mark(path)
        await asyncio.sleep(MARK_SECS)


async def fail_late_on_loop(ms: int, how: str) -> None:
    """Sleep, and once its time is over fail, or report that it must not run again."""
    try:
        await asyncio.sleep(ms / 1000)
    except BaseException as error:
        raise _late(how) from error


async def progress_on_loop(context: Context, done: int, total: int, ms: int) -> None:
    """Report progress, then sleep."""
    context.progress(done, total)
    await asyncio.sleep(ms / 1000)


def _mark(path: str) -> None:
    with Path(path).open("ab") as file:
        file.write(b"x")


def _late(how: str) -> Exception:
    return DeadLetter("late") if how == "never_again" else KeyError("late")


def on_loop(function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a coroutine function that calls this one."""

    @functools.wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return run


QUICK: Final = (echo, add, fail, fail_times, never_again, fail_for_good, not_a_number, tick)
SLOW: Final = {"sleep": sleep, "mark": mark, "fail_late": fail_late, "progress": progress}
SLOW_ON_LOOP: Final = {
    "sleep": sleep_on_loop,
    "mark": mark_on_loop,
    "fail_late": fail_late_on_loop,
    "progress": progress_on_loop,
}


def main() -> None:
    """Work until stopped."""
    flavour, config = sys.argv[1], json.loads(sys.argv[2])
    app = App(config["url"], group=config["group"], queue=config["queues"][0])
    is_async = flavour == "asyncio"
    functions: dict[str, Any] = {each.__name__: on_loop(each) if is_async else each for each in QUICK}
    functions |= SLOW_ON_LOOP if is_async else SLOW
    for name, function in functions.items():
        app.job(name=name, fork=flavour == "fork", retry_on=ValueError)(function)
    app.job(name="limited", fork=flavour == "fork", timeout=0.3)(functions["sleep"])
    for name, (line, zone) in LINES.items() if config["schedules"] else ():
        app.cron(line, tz=zone, missed="all", name=name, keep=HOUR_SECS)(app.functions["tick"])
    app.run_worker(
        processes=1,
        queues=config["queues"],
        concurrency=config["concurrency"],
        lease_secs=config["lease_ms"] / 1000,
        grace_secs=GRACE_SECS,
    )


if __name__ == "__main__":
    main()
