"""The background reader: reads the stats of all queues in few round trips, once for all viewers."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from leaseq import commands, registry
from leaseq._sync.survey import read_all
from leaseq.dashboard.history import QueueHistory
from leaseq.dashboard.source import Source
from leaseq.errors import LeaseqError, UnavailableError
from leaseq.keys import QueueKeys, RegisteredQueue
from leaseq.results import QueueStats

log = logging.getLogger("leaseq.dashboard")

CALLS_PER_SEC: Final = 300
"""Calls to the server in a second, at most. More queues than that are read in turn."""

LIVE_SECS: Final = 2.0
"""Seconds between two reads while a page is open."""

IDLE_SECS: Final = 10.0
"""Seconds between two reads while no page is open: the history goes on."""

VIEWED_SECS: Final = 6.0
"""Seconds for which a queue counts as on screen after a page showed it."""

REGISTRY_SECS: Final = 10.0
"""Seconds between two reads of the registry."""

FIRST_READ_SECS: Final = 10.0
"""Seconds for which the first page waits for the first read."""


class QueueRecord:
    """A queue as it was read last.

    Attributes:
        queue: its name and group.
        stats: its counts; None before the first read.
        history: its last hour.
        error: why it could not be read the last time, or "".
    """

    __slots__ = ("error", "history", "queue", "stats")

    def __init__(self, queue: RegisteredQueue) -> None:
        self.queue = queue
        self.stats: QueueStats | None = None
        self.history = QueueHistory()
        self.error = ""

    def record(self, answer: QueueStats | LeaseqError) -> None:
        """Take in the answer of a read."""
        if isinstance(answer, LeaseqError):
            self.error = str(answer)
            return
        self.error = ""
        self.stats = answer
        self.history.add(answer)

    def rate(self, name: str) -> float:
        """Return by how much a counter such as "completed" grows per minute now."""
        return 0.0 if self.stats is None else self.history.rate(self.stats, name)


class Reader:
    """Reads queues in a thread, from the first page on until the dashboard is closed.

    Attributes:
        error: why the server could not be read the last time, or "".
    """

    def __init__(self, source: Source, chore: Callable[[], None] | None = None) -> None:
        """`chore` is called after each read."""
        self.error = ""
        self._source = source
        self._chore = chore
        self._records: dict[RegisteredQueue, QueueRecord] = {}
        self._viewed: dict[RegisteredQueue, float] = {}
        self._viewed_at = self._registry_at = float("-inf")
        self._next = 0
        self._guard = threading.Lock()
        self._wake = threading.Event()
        self._has_read = threading.Event()
        self._closed = self._is_visited = False
        self._thread: threading.Thread | None = None
        self._pid = 0

    @property
    def has_read(self) -> bool:
        """False before the first read has ended."""
        return self._has_read.is_set()

    def records(self) -> list[QueueRecord]:
        """Return all queues, sorted by name. The first call waits for the first read, for up to 10 s."""
        if not self._is_visited:
            self._is_visited = True
            self._wake.set()
        self.start()
        self._has_read.wait(FIRST_READ_SECS)
        return list(self._records.values())

    def record(self, queue: RegisteredQueue) -> QueueRecord | None:
        """Return a queue, or None if the registry does not have it."""
        self.records()
        return self._records.get(queue)

    def view(self, queues: Iterable[RegisteredQueue]) -> None:
        """Read these queues with every read for a while: a page shows them."""
        now = time.monotonic()
        was_idle = now - self._viewed_at > VIEWED_SECS
        self._viewed_at = now
        with self._guard:
            self._viewed.update(dict.fromkeys(queues, now))
        if was_idle:
            self._wake.set()

    def read_now(self) -> None:
        """Read again at once: something has changed."""
        self._wake.set()

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def start(self) -> None:
        """Start the thread, in the child of a fork again. Before the first page, it only does the chore."""
        with self._guard:
            if self._pid != os.getpid() and not self._closed:
                self._pid = os.getpid()
                self._thread = threading.Thread(target=self._run, name="leaseq dashboard", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._closed:
            is_viewed = time.monotonic() - self._viewed_at <= VIEWED_SECS
            pause = LIVE_SECS if is_viewed else IDLE_SECS
            if self._is_visited:
                self._try_to_read(int(CALLS_PER_SEC * pause) - 1)  # the chore makes a call too
            self._do_chore()
            self._wake.wait(pause)
            self._wake.clear()

    def _try_to_read(self, max_calls: int) -> None:
        try:
            self._read(max_calls)
        except LeaseqError as error:
            self.error = str(error)
        self._has_read.set()

    def _do_chore(self) -> None:
        try:
            if self._chore is not None and not self.error:
                self._chore()
        except LeaseqError as error:
            log.warning("planned purges wait: %s", error)

    def _read(self, max_calls: int) -> None:
        """Read queues: those on screen first, then others in turn. Raises the errors of leaseq."""
        if time.monotonic() - self._registry_at >= REGISTRY_SECS:
            self._read_registry()
        chosen = self._chosen(max_calls)
        answers = read_all(self._source.client, [commands.stats(QueueKeys(*each.queue)) for each in chosen])
        away = [answer for answer in answers if isinstance(answer, UnavailableError)]
        if away and len(away) == len(answers):
            raise away[0]
        for record, answer in zip(chosen, answers, strict=True):
            record.record(answer)
        self.error = ""

    def _read_registry(self) -> None:
        found = registry.queues(self._source.client)
        self._records = {queue: self._records.get(queue) or QueueRecord(queue) for queue in found}
        self._registry_at = time.monotonic()

    def _chosen(self, max_calls: int) -> list[QueueRecord]:
        """Return the queues to read now."""
        records, oldest = list(self._records.values()), time.monotonic() - VIEWED_SECS
        if len(records) <= max_calls:
            return records
        with self._guard:
            self._viewed = {queue: at for queue, at in self._viewed.items() if at >= oldest}
            viewed = [self._records[queue] for queue in self._viewed if queue in self._records]
        chosen = dict.fromkeys(viewed[:max_calls])
        for _ in range(len(records)):
            if len(chosen) >= max_calls:
                break
            self._next = (self._next + 1) % len(records)
            chosen[records[self._next]] = None
        return list(chosen)
