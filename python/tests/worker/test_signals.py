"""Signals, in separate processes: SIGTERM stops, a second one ends at once, and what is held goes back uncounted."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import servers
from support.background_worker import TIMEOUT_SECS

import leaseq
import leaseq.worker.registry
from leaseq import Item

if TYPE_CHECKING:
    from collections.abc import Iterator

THREADS = """
import os, sys, time, leaseq, leaseq.worker

def handle(item):
    os.write(1, b"started\\n")  # one write: print's line and its end are two, and another thread's may come between
    if item.id == "long":
        time.sleep(3600)
    sys.stdin.readline()

with leaseq.WorkQueue("q", sys.argv[1]) as queue:
    options = {"grace_secs": 3600, "handle_signals": sys.argv[2] == "signals", "concurrency": 2}
    print("done", leaseq.worker.Worker(queue, handle, **options).run(), flush=True)
"""

ASYNCIO = """
import asyncio, sys, leaseq.aio, leaseq.worker.aio

async def handle(item):
    print("started", flush=True)
    if item.id == "long":
        await asyncio.sleep(3600)
    await asyncio.to_thread(sys.stdin.readline)

async def main():
    async with leaseq.aio.WorkQueue("q", sys.argv[1]) as queue:
        options = {"grace_secs": 3600, "handle_signals": sys.argv[2] == "signals", "concurrency": 2}
        print("done", await leaseq.worker.aio.Worker(queue, handle, **options).run(), flush=True)

asyncio.run(main())
"""


@contextlib.contextmanager
def program(text: str, url: str, signals: str, begun: int) -> Iterator[subprocess.Popen[str]]:
    """A worker at work on `begun` items."""
    command = [sys.executable, "-c", text, url, signals]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert [process.stdout.readline() for _ in range(begun)] == ["started\n"] * begun
            yield process
        finally:
            process.kill()


@pytest.fixture
def queue(url: str) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("q", url) as queue:
        yield queue


FLAVOURS = pytest.mark.parametrize("text", [THREADS, ASYNCIO], ids=["threads", "asyncio"])


def stopping(url: str) -> None:
    """Wait until the worker leases no more: it says so where it is seen."""
    servers.wait_until(
        lambda: any(worker.stopping for worker in leaseq.worker.registry.live_workers(url)), TIMEOUT_SECS
    )


@FLAVOURS
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_handlers_finish(
    text: str, number: signal.Signals, url: str, queue: leaseq.WorkQueue
) -> None:
    queue.add_items([Item(b"", id="a"), Item(b"", id="b")])
    with program(text, url, "signals", 2) as process:
        process.send_signal(number)
        stopping(url)
        queue.add_item(Item(b"", id="later"))
        out, err = process.communicate("go\ngo\n", timeout=TIMEOUT_SECS)
    assert (process.returncode, out) == (0, "done 2\n"), err
    assert queue.inspect("later").state == "ready"


@FLAVOURS
def test_a_second_signal_ends_it_at_once(text: str, url: str, queue: leaseq.WorkQueue) -> None:
    queue.add_item(Item(b"", id="long"))
    with program(text, url, "signals", 1) as process:
        process.send_signal(signal.SIGTERM)
        stopping(url)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=TIMEOUT_SECS)
    assert (process.returncode, out) == (0, "done 0\n"), err
    assert (queue.inspect("long").state, queue.inspect("long").attempt) == ("ready", 0)


@FLAVOURS
def test_an_interrupt_that_is_not_handled_gives_back_what_is_held(
    text: str, url: str, queue: leaseq.WorkQueue
) -> None:
    """Ctrl-C ends the program as it does any, and no attempt is lost."""
    queue.add_item(Item(b"", id="long"))
    with program(text, url, "none", 1) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_SECS)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in err
    assert out == ""
    assert (queue.inspect("long").state, queue.inspect("long").attempt) == ("ready", 0)


SIGNALS_PROGRAM = """
import os, signal, sys, threading, leaseq, leaseq.worker
from leaseq.worker._sync.worker_loop import WorkerLoop

guard, real = threading.Lock(), WorkerLoop.stop

def stop(self, **options):
    # as a lock inside would be held when the next signal comes
    if not guard.acquire(timeout=5):
        print("a signal waits for itself", flush=True)
        os._exit(3)
    signal.raise_signal(signal.SIGTERM) if self._stops < 2 else None
    real(self, **options)
    guard.release()

WorkerLoop.stop = stop
with leaseq.WorkQueue("q", sys.argv[1]) as queue:
    worker = leaseq.worker.Worker(queue, lambda item: os.kill(os.getpid(), signal.SIGTERM), grace_secs=3600)
    worker.run()
print("ended", flush=True)
"""


def test_a_signal_in_the_middle_of_a_signal_waits_for_nobody(url: str, queue: leaseq.WorkQueue) -> None:
    """In threads a signal interrupts the main thread anywhere, also where it sees to an earlier one."""
    queue.add_item(Item(b""))
    command = [sys.executable, "-c", SIGNALS_PROGRAM, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECS, check=False)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
