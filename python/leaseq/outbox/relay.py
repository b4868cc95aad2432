"""The relay: hands rows of an outbox on to their queues."""

import contextlib
import queue
import signal
from types import TracebackType
from typing import Final, Self

from leaseq import signals
from leaseq._scripts import MAX_ENTRIES
from leaseq._sync.concurrency import Client
from leaseq._sync.server_handle import ServerHandle
from leaseq.durability import Durability, checked
from leaseq.durations import Duration, seconds_of
from leaseq.errors import BadArgumentError, BadNameError, LeaseqError, ReplyLostError, UnavailableError
from leaseq.jobs.store._sync.store import Store
from leaseq.outbox.batch import Batch, refuse
from leaseq.outbox.rows import Place, Rows
from leaseq.outbox.troubles import Troubles

FIRST_PAUSE_SECS: Final = 0.05
"""Seconds before a relay looks again after it has found nothing; doubled each time, up to `poll`."""
DATABASE: Final = "the database"
SERVER: Final = "the server"


class Relay:
    """Hands on what was committed to an outbox: adds each row's item to its queue, and deletes the row once the queue has answered.

    `server` is that of the queues: a URL or a redis client; None is $REDIS_URL. `rows` is `rows(engine)` of
    `leaseq.outbox.sqlalchemy` or `rows()` of `leaseq.outbox.django`. `poll` is the longest pause between two looks at an empty
    table, in seconds, and so the longest that a job waits there. With `durable`, a row is deleted only once replicas or
    disks have its item. Raises NoServerError, BadArgumentError, BadTypeError.

    Use it as a context manager, or close it. Any number of relays may work on one table.
    """

    def __init__(
        self,
        server: str | Client | None,
        rows: Rows,
        *,
        poll: Duration | str = 1.0,
        durable: Durability | None = None,
    ) -> None:
        self._poll = seconds_of(poll, "poll")
        if self._poll <= 0:
            raise BadArgumentError("poll must be above 0 seconds")
        self._durable = None if durable is None else checked(durable)
        self._rows = rows
        self._opened = ServerHandle(server, "the relay", "Relay('redis://localhost', rows)")
        self._stores: dict[str, Store] = {}
        self._troubles = Troubles()
        self._stops: queue.SimpleQueue[None] = (
            queue.SimpleQueue()
        )  # its `put` may be called in a signal handler
        self._stopping = False
        self.refused = 0
        """The number of rows that were set apart since it was made."""

    def run(self, *, handle_signals: bool = True) -> int:
        """Hand on until `stop` is called. Return the number of items that were handed on.

        In the main thread SIGTERM and Ctrl-C stop it, unless `handle_signals` is false; a second signal raises
        KeyboardInterrupt. If the database or the server is away, it tries again with growing pauses, up to 5 s.
        """
        numbers = (signal.SIGTERM, signal.SIGINT) if handle_signals else ()
        done, pause = 0, 0.0
        with signals.handling(numbers, self._on_signal):
            while not self._stopped_within(pause):
                try:
                    handed_on = self._step()
                except self._rows.errors as error:
                    pause = self._troubles.failed(DATABASE, self._rows.name, error)
                except LeaseqError as error:
                    is_away = isinstance(error, UnavailableError | ReplyLostError)
                    pause = self._troubles.failed(SERVER, SERVER, error) if is_away else 0.0
                else:
                    self._troubles.worked(DATABASE, self._rows.name)
                    if handed_on is None:
                        pause = min(self._poll, max(FIRST_PAUSE_SECS, 2 * pause))
                    else:
                        done, pause = done + handed_on, 0.0
        return done

    def run_once(self) -> int:
        """Hand on what is there, and return the number of items. Raises errors of the database and of the server.

        Items of a queue that is full stay.
        """
        done = 0
        while not self._stopping:
            handed_on = self._step()
            if handed_on is None:
                break
            done += handed_on
        return done

    def left(self) -> bool:
        """Return whether rows wait. Those that were refused do not."""
        return self._rows.oldest(()) is not None

    def stop(self) -> None:
        """Let `run` return when the rows that it has locked are handed on. From any thread, or a signal handler."""
        self._stopping = True
        self._stops.put(None)

    def close(self) -> None:
        """Close what it opened: connections to the server."""
        for store in self._stores.values():
            store.close()
        self._opened.close()

    def _on_signal(self, _number: int) -> None:
        if self._stopping:
            raise KeyboardInterrupt
        self.stop()

    def _stopped_within(self, pause: float) -> bool:
        if pause and not self._stopping:
            with contextlib.suppress(queue.Empty):
                self._stops.get(timeout=pause)
        return self._stopping

    def _step(self) -> int | None:
        """Hand on the first rows of the queue that has the oldest one. Return their number; None if there was nothing to do."""
        place = self._rows.oldest([what for what in self._troubles.pausing() if isinstance(what, Place)])
        if place is None:
            return None
        try:
            done = self._hand_on(place)
        except (UnavailableError, ReplyLostError):
            self._troubles.pause(
                place
            )  # the next try is for another queue, which may be on another node of a cluster
            raise
        except LeaseqError as error:
            self._troubles.failed(place, str(place), error)
            raise
        self._troubles.worked(SERVER, SERVER)
        return done

    def _hand_on(self, place: Place) -> int:
        """Hand on the first rows of a queue that no other relay has locked. Return their number."""
        store = self._stores.get(place.group) or self._open(place.group)
        try:
            now = store.now(place.queue)
        except BadNameError as error:  # a row that no program of ours has written
            return self._refuse_all(place, error)
        numbers = self._rows.try_now(place, MAX_ENTRIES, now)
        with self._rows.locked(numbers) as locked:
            batch = Batch(store, place, locked, self._durable)
            batch.hand_on(now)
        self.refused += batch.refused
        if batch.full is not None:
            self._troubles.failed(place, str(place), batch.full)
        elif locked.rows:
            self._troubles.worked(place, str(place))
        else:
            self._troubles.pause(place)  # another relay has them
        return batch.done

    def _open(self, group: str) -> Store:
        store = self._stores[group] = Store(self._opened.client, group)
        return store

    def _refuse_all(self, place: Place, error: LeaseqError) -> int:
        with self._rows.locked(self._rows.try_now(place, MAX_ENTRIES, 0.0)) as locked:
            for row in locked.rows:
                refuse(place, row, locked, error)
        self.refused += len(locked.rows)
        return 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
