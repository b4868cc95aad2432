"""Loops beside the main one, and signals.

Written by hand for threads and for asyncio.
"""

import contextlib
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from leaseq._sync import race

T = TypeVar("T")

SIGNALS = (signal.SIGTERM, signal.SIGINT)

END_SECS = 5.0
"""How long a loop may take to end once it is interrupted: as long as a reply may be on its way."""


class Aside:
    """A loop that runs beside the main one until it is interrupted."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._stop = race.Stop(1)
        self._work = work
        self._thread = threading.Thread(target=self._run, name="leaseq worker", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        race._local.stop = self._stop
        try:
            self._work()
        except race.InterruptedWaitError:
            return
        finally:
            self._stop.leave()

    def end(self) -> None:
        """Interrupt it where it waits, and wait for its end."""
        self._stop.stop()
        self._thread.join(END_SECS)


def run_aside(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """Run the main loop in a thread of its own: the main thread hears signals, and must hold no lock when one comes.

    Interrupted (KeyboardInterrupt), the loop is told to stop and to give back what it holds.
    """
    answers: list[T] = []
    failures: list[BaseException] = []
    # not join: a thread whose join was interrupted counts as ended in Python 3.11
    ended: queue.SimpleQueue[None] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # noqa: BLE001 (raised below)
            failures.append(error)
        ended.put(None)

    threading.Thread(target=run, name="leaseq worker", daemon=True).start()
    try:
        ended.get()
    except BaseException:
        stop()
        with contextlib.suppress(queue.Empty):
            ended.get(timeout=END_SECS)
        raise
    if failures:
        raise failures[0]
    return answers[0]


@contextlib.contextmanager
def signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` for SIGTERM and SIGINT, in the main thread; elsewhere signals are not ours."""
    before: dict[signal.Signals, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before[number] = signal.signal(number, lambda _number, _frame: stop())
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
