"""The App of tests that run workers as programs: `python -m programs.jobs_worker '{"processes": 2}'`, the server in $REDIS_URL.

What a job does is seen in Redis, under the names of its arguments.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import fcntl
import json
import logging
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import termios
import time
from logging.handlers import MemoryHandler
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import redis
from support.job_app import extend_program_timeouts

from leaseq import Item
from leaseq.jobs import App, Backoff, Context
from leaseq.jobs.worker import forkserver, worker_process
from leaseq.jobs.worker.job_worker import JobWorker

extend_program_timeouts()
URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:1")
AT_ONCE = Backoff(0.001, 0.001)


def note(name: str, value: Any) -> None:
    """Append to a list, on a separate connection."""
    with redis.Redis.from_url(URL) as client:
        client.rpush(name, str(value))


def has(name: str) -> bool:
    """Return whether a key is there."""
    with redis.Redis.from_url(URL) as client:
        return bool(client.exists(name))


def wait_for(name: str) -> None:
    """Wait for a key, for two minutes."""
    end = time.monotonic() + 120
    while not has(name) and time.monotonic() < end:
        time.sleep(0.01)


class KilledWorker(JobWorker):
    """Where a test wants that, each process gets a signal before it can listen to any."""

    def __init__(self, *given: Any, **options: Any) -> None:
        if has("strike"):
            os.kill(os.getpid(), signal.SIGTERM)
            note("struck", os.getpid())
        super().__init__(*given, **options)


setattr(worker_process, "JobWorker", KilledWorker)  # noqa: B010 (mypy knows what was there)
app = App(URL)
kept = [TemporaryDirectory()]
"""The first one is the supervisor's."""


@app.job(name="effect", retries=None, backoff=AT_ONCE)
async def effect(ctx: Context, number: int) -> int:
    """Leave its number, once for each attempt."""
    await asyncio.sleep(0)
    note("effects", f"{number}:{ctx.attempt}")
    return number


@app.job(name="forked", retries=None, backoff=AT_ONCE, fork=True)
def forked(ctx: Context, number: int) -> int:
    """The same in a separate process."""
    note("pids", os.getpid())
    note("effects", f"{number}:{ctx.attempt}")
    return number


@app.job(name="lingers", retries=None, backoff=AT_ONCE, fork=True)
def lingers(ctx: Context, number: int) -> int:
    """The same, so slow at first that a test can kill it."""
    if ctx.attempt < 3:
        time.sleep(1)
    note("effects", f"{number}:{ctx.attempt}")
    return number


@app.job(name="pid")
def pid() -> int:
    """The process that it runs in."""
    return os.getpid()


@app.job(name="leave")
def leave() -> int:
    """Leave a process running, which has inherited all that is open here."""
    child = os.fork()
    if child == 0:
        time.sleep(3600)
        os._exit(0)
    return child


@app.job(name="hold", retries=None, backoff=AT_ONCE)
def hold(ctx: Context, go: str) -> str:
    """Say who runs it and wait to be let go."""
    note("holding", f"{os.getpid()}:{ctx.attempt}")
    wait_for(go)
    return "whole"


@app.job(name="fhold", retries=None, backoff=AT_ONCE, fork=True)
def fhold(ctx: Context, go: str) -> str:
    """The same in a separate process."""
    note("holding", f"{os.getpid()}:{ctx.attempt}")
    wait_for(go)
    return "whole"


@app.job(name="ahold", retries=None)
async def ahold(ctx: Context) -> int:
    """Say who runs it and sleep; ended in the first attempts alone."""
    note("holding", f"{os.getpid()}:{ctx.attempt}")
    if not has("go"):
        await asyncio.sleep(3600)
    return ctx.attempt


@app.job(name="poison", retries=2)
async def poison(ctx: Context) -> None:
    """Kill the process that runs it."""
    note("poisoned", ctx.attempt)
    os.kill(os.getpid(), signal.SIGKILL)


@app.job(name="exit", retries=0)
def exit_at_once(code: int) -> None:
    """End the process that runs it, as if all were well."""
    os._exit(code)


mails = app.queue("mails")
"""A queue that each process has from its supervisor."""


@app.job(name="mail")
async def mail(number: int) -> bool:
    """Use a queue that was made before the process."""
    return await asyncio.to_thread(mails.add_item, Item(str(number)))


@app.job(name="nap", retries=0)
async def nap(ctx: Context, secs: float) -> int:
    """Sleep where it can be cut short."""
    note("headers", ctx.headers.get("shop", ""))
    note("napping", f"{ctx.id}:{ctx.attempt}")
    await asyncio.sleep(secs)
    return ctx.attempt


@app.job(name="thread-nap", retries=None)
async def thread_nap(ctx: Context, secs: float) -> None:
    """Sleep in a thread of the event loop's, which nothing cuts short."""
    note("napping", f"{ctx.id}:{ctx.attempt}")
    await asyncio.to_thread(time.sleep, secs)


@app.job(name="stand-still", retries=1, backoff=AT_ONCE)
def stand_still(ctx: Context) -> None:
    """Keep the interpreter to itself: no other thread of the process runs."""
    note("stood", ctx.attempt)
    ctypes.PyDLL(None).sleep(3600)


@app.job(name="block", retries=0)
async def block(ctx: Context, secs: float) -> None:
    """Block the event loop."""
    note("napping", f"{ctx.id}:{ctx.attempt}")
    time.sleep(secs)  # noqa: ASYNC251 (that is the test)


@app.job(name="pool", timeout=60, retries=0)
def pool(method: str) -> list[int]:
    """Use processes of multiprocessing, which are ended by SIGTERM when the block ends."""
    with multiprocessing.get_context(method).Pool(2) as workers:
        return workers.map(abs, [-1, -2])


app.job(name="fpool", timeout=60, retries=0, fork=True)(pool.function)


@app.job(name="deaf", retries=0)
async def deaf(below: bool) -> int:
    """Fork a process and end it by SIGTERM, `below` Python's hooks or not; how it ended."""
    read, write = os.pipe()
    child: int = ctypes.PyDLL(None).fork() if below else os.fork()
    if child == 0:
        os.write(write, b"x")
        for _ in range(6000):
            time.sleep(0.01)  # noqa: ASYNC251 (in the child)
        os._exit(0)
    os.read(read, 1)
    os.kill(child, signal.SIGTERM)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])  # noqa: ASYNC222 (it ends at once)


def shell() -> int:
    """Start a program that starts another one, and wait for it; the other one's number is noted."""
    command = "sleep 3600 & echo $!; wait"
    with subprocess.Popen(["/bin/sh", "-c", command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        note("shells", process.stdout.readline().strip())
        return process.wait()


app.job(name="shell", retries=0, timeout=None)(shell)
app.job(name="fshell", retries=0, timeout=None, fork=True)(shell)


@app.job(name="leaves", retries=0, fork=True)
def leaves() -> int:
    """Return while a program that was started still runs."""
    return subprocess.Popen(["/bin/sleep", "3600"]).pid


@app.job(name="orphan", retries=0)
def orphan() -> int:
    """Have a process whose parent ends first, and which ends a moment later."""
    command = "(sleep 0.05 & echo $!) "
    return int(
        subprocess.run(["/bin/sh", "-c", command], stdout=subprocess.PIPE, check=True, text=True).stdout
    )


@app.job(name="exits", retries=0, fork=True)
def exits() -> None:
    """Register what the end of the process calls, and log to a handler that keeps its records for later."""
    atexit.register(note, "exited", "atexit")
    logging.getLogger("kept").addHandler(MemoryHandler(100, target=NotingHandler()))
    logging.getLogger("kept").warning("logged")


def reads() -> list[int]:
    """Read from what the worker was started with, and from its terminal; how each ended."""
    commands = ["read line", "read line < /dev/tty"]
    return [subprocess.run(["/bin/sh", "-c", each], check=False).returncode for each in commands]


app.job(name="reads", retries=0)(reads)
app.job(name="freads", retries=0, fork=True)(reads)


def shares() -> list[str]:
    """Leave shared memory and a folder, which end with the process."""
    memory = SharedMemory(create=True, size=1)
    memory.close()
    kept.append(TemporaryDirectory())
    return [str(Path("/dev", "shm", memory.name)), kept[-1].name]


app.job(name="shares", retries=0)(shares)
app.job(name="fshares", retries=0, fork=True)(shares)


@app.job(name="lasts", retries=0, timeout=60, fork=True)
def lasts() -> str:
    """Return; what multiprocessing does at the end of the process waits for another one."""
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(3600,)).start()
    atexit.register(time.sleep, 3600)
    return "whole"


class NotingHandler(logging.Handler):
    """Leaves records in Redis."""

    def emit(self, record: logging.LogRecord) -> None:
        note("exited", record.getMessage())


@app.on_fork_shutdown
async def end_of_fork() -> None:
    """Say that a process of one job ends."""
    await asyncio.sleep(0)
    note("exited", "hook")


@app.on_startup
def begin() -> None:
    """Report that a process has started; wait, or fail, if a test wants that."""
    note("moments", time.time())
    note("begun", os.getpid())
    if has("fail-at-start"):
        message = "no database"
        raise ConnectionError(message)
    if has("exit-at-start"):
        os._exit(0)
    while has("wait-at-start"):
        time.sleep(0.01)


@app.on_shutdown
def end() -> None:
    """Say that a process has ended as it should; hang, where a test wants that."""
    while has("hang-at-end"):
        time.sleep(0.01)
    note("ended", os.getpid())


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    from programs.jobs_worker import app as importable  # jobs are those of the module, not of __main__

    options = json.loads(sys.argv[1])
    if options.pop("subreaper", False):
        ctypes.CDLL(None).prctl(36, 1)
    if options.pop("terminal", False):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if options.pop("ignores_children", False):
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if opened := options.pop("opens", 0):
        resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 100, opened + 100))
        files = [os.open(os.devnull, os.O_RDONLY) for _ in range(opened)]
    if "exit_secs" in options:
        setattr(forkserver, "EXIT_SECS", options.pop("exit_secs"))  # noqa: B010
    print(importable.run_worker(**options))  # noqa: T201
