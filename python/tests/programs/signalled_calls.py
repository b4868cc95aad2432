"""Calls that `net/test_signals.py` has interrupted: `python -m programs.signalled_calls TEST NAME URL`.

The signal is sent before each bytecode of a call in turn, so that Python runs its handler at each point at which it can. In
a separate program: CPython 3.11 can hang where a process that runs tests is traced.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import leaseq
from leaseq import Item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_send = ctypes.PyDLL(None).PyErr_SetInterrupt
_send.argtypes, _send.restype = [ctypes.py_object] * 3, None
"""Sends SIGINT without running its handler: as a trace function it is called from C, and what is traced runs the handler."""

TRIES = 3
"""From CPython 3.12 on, code that is traced for the first time can have fewer points."""

MOST = 3000
"""More bytecodes than a call has."""


class Interrupted(BaseException):
    """Raised by the signal handler."""


@contextlib.contextmanager
def handler(handle: Callable[[], object]) -> Iterator[None]:
    def once(*_: object) -> None:
        sys.settrace(None)
        handle()

    before = signal.signal(signal.SIGINT, once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def signalled(call: Callable[[], object], number: int) -> bool:
    """Call, with a signal before the bytecode of this number in leaseq; whether there was one."""
    left = itertools.count(number, -1)
    sent = False

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal sent
        if "leaseq/" not in frame.f_code.co_filename:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if event == "opcode" and not sent and next(left) <= 0:
            sent = True
            return _send
        return None if sent else trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return sent


def once_signalled(call: Callable[[], object], number: int, after: Callable[[], object]) -> bool:
    sent = True
    with contextlib.suppress(Interrupted):
        sent = signalled(call, number)
    after()
    return sent


def each_point(call: Callable[[], object], after: Callable[[], object], every: int = 1) -> int:
    """Have a call signalled at each of its points, and look at what comes after it. Returns how many points there were."""
    for number in range(0, MOST, every):
        if not any(once_signalled(call, number, after) for _ in range(TRIES)):
            return number
    raise AssertionError("the call has more bytecodes")


def raises() -> None:
    raise Interrupted


def bounded_queue(url: str) -> leaseq.WorkQueue:
    """A queue with one connection, and an item that looks know."""
    bounded = f"{url}{'&' if '?' in url else '?'}max_connections=1"
    made = leaseq.WorkQueue("q", bounded)
    made.add_item(Item(b"x", id="known"), delay=3600)
    made.stats()
    made.inspect("known")
    return made


def with_block(queue: leaseq.WorkQueue) -> None:
    """Lease an item and work on it, with its heartbeat."""
    queue.add_item(Item(b"x", id="worked on"))
    item = queue.lease(60, block=False)
    if item is not None:
        with item:
            pass


def opening(queue: leaseq.WorkQueue) -> None:
    """A call that opens a connection."""
    queue.executor.route.close_idle()  # type: ignore[union-attr]
    queue.stats()


PLAIN: dict[str, Callable[[leaseq.WorkQueue], object]] = {
    "stats": lambda queue: queue.stats(),
    "add": lambda queue: queue.add_item(Item(b"x")),
    "opening": opening,
}
GIVES_BACK: dict[str, Callable[[leaseq.WorkQueue], object]] = {
    "lease": lambda queue: queue.lease(60, block=False),
    "wait": lambda queue: queue.lease(60, timeout=0.002),
    "with": with_block,
}
"""Calls after which what they still bring is given back in the background, on their connection."""

CALLS = {**PLAIN, **GIVES_BACK}


def looks(queue: leaseq.WorkQueue) -> None:
    """The next call has a connection, and its own reply."""
    answer = queue.inspect("known")
    assert (answer.id, answer.state) == ("known", "delayed")


def leave_the_next_the_only_connection(url: str, name: str) -> None:
    """Interrupt calls of a queue with one connection."""
    queue = bounded_queue(url)
    with handler(raises):
        assert each_point(lambda: PLAIN[name](queue), lambda: looks(queue)) > 50
    began = time.monotonic()
    queue.close()
    assert time.monotonic() - began < 2


def leave_no_reply_to_the_next(url: str, name: str) -> None:
    """Interrupt calls that bring items."""
    queue = leaseq.WorkQueue("q", url)
    queue.add_item(Item(b"x", id="known"), delay=3600)
    with handler(raises):
        assert each_point(lambda: GIVES_BACK[name](queue), lambda: looks(queue), every=5) > 50
    queue.close()


def call_from_the_handler(url: str, name: str) -> None:
    """A call from a signal handler waits for no lock of the call that it interrupted, also with a limit of connections."""
    bounded = f"{url}{'&' if '?' in url else '?'}max_connections=4"
    with leaseq.WorkQueue("q", bounded) as queue:
        queue.add_item(Item(b"x", id="known"), delay=3600)
        with handler(lambda: CALLS[name](queue)):
            each_point(lambda: CALLS[name](queue), lambda: looks(queue), every=7)


if __name__ == "__main__":
    test, call, server = sys.argv[1:]
    globals()[test](server, call)
