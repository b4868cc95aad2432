"""Handlers of signals, which belong to the process that set them.

A forked child inherits handlers. A handler that only sets something in its process would make the child ignore the signal,
so that nothing could end it; with an event loop, a signal for the child would even reach the parent.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_replaced: list[dict[int, Any]] = []
"""The handlers before those that are set now, the last ones last."""


@contextlib.contextmanager
def handling(numbers: Iterable[int], handle: Callable[[int], object]) -> Iterator[None]:
    """Inside this block, call `handle` with the number of each of these signals that comes.

    Only in the main thread, since Python runs handlers there; in another thread nothing is set. A child that is forked
    inside the block has the handlers from before.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    owner = os.getpid()
    before = handle_from_now_on(numbers, handle)
    try:
        yield
    finally:
        if os.getpid() == owner:
            _replaced.remove(before)
            _restore(before)


def handle_from_now_on(numbers: Iterable[int], handle: Callable[[int], object]) -> dict[int, Any]:
    """Call `handle` with the number of each of these signals, in this process alone; return what stood before.

    Call it in the main thread.
    """
    owner = os.getpid()

    def on_signal(number: int, _frame: object) -> None:
        if os.getpid() == owner:
            handle(number)
        else:  # forked below Python, where its hooks do not run
            _leave_to_child()
            os.kill(os.getpid(), number)

    before: dict[int, Any] = {}
    _replaced.append(before)
    for number in numbers:
        before[number] = signal.signal(number, on_signal)
    return before


def _restore(before: dict[int, Any]) -> None:
    for number, handler in before.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _leave_to_child() -> None:
    """In a child: undo what its parent has set. No byte for a signal of the child reaches the parent's event loop."""
    if _replaced:
        signal.set_wakeup_fd(-1)
    while _replaced:
        _restore(_replaced.pop())


if hasattr(os, "register_at_fork"):  # where there are forks
    os.register_at_fork(after_in_child=_leave_to_child)
