"""Loops beside the main one, and signals.

Written by hand for threads and for asyncio.
"""

import contextlib
import queue
import signal
import threading
from collections.abc import Callable
from typing import TypeVar

from leaseq import signals
from leaseq._sync import race

T = TypeVar("T")

SIGNALS = (signal.SIGTERM, signal.SIGINT)

END_SECS = 5.0
"""Seconds that a loop may take to end once it is interrupted: as long as a reply may be on its way."""


class BackgroundLoop:
    """A loop that runs beside the main one until it is interrupted."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._stop = race.Stop(1)
        self._work = work
        self._thread = threading.Thread(target=self._run, name="leaseq worker", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        race.interrupt_by(self._stop)
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


def run_with_signals(work: Callable[[], T], stop: Callable[[], None], *, handle_signals: bool) -> T:
    """Run the main loop in a thread of its own, while this one hears signals, each of which calls `stop`.

    A signal only leaves a word: one that comes while `stop` holds a lock must not wait for that lock. Interrupted
    (KeyboardInterrupt), the loop is stopped at once.
    """
    answers: list[T] = []
    failures: list[BaseException] = []
    # no other queue, nor join: what a signal may interrupt in the middle has to bear being called from there
    words: queue.SimpleQueue[str] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # noqa: BLE001 (raised below)
            failures.append(error)
        words.put("ended")

    with (
        signals.handling(SIGNALS, lambda _: words.put("stop")) if handle_signals else contextlib.nullcontext()
    ):
        threading.Thread(target=run, name="leaseq worker", daemon=True).start()
        try:
            while words.get() == "stop":
                stop()
        except BaseException:
            stop()
            stop()
            with contextlib.suppress(queue.Empty):
                while words.get(timeout=END_SECS) == "stop":
                    pass
            raise
    if failures:
        raise failures[0]
    return answers[0]
