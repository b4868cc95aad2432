"""The rows of one queue that a relay has locked, and how they are handed on."""

import contextlib
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from leaseq.commands.additions import Options
from leaseq.durability import Durability
from leaseq.errors import (
    BadArgumentError,
    BadIdError,
    BadTypeError,
    LeaseqError,
    QueueFullError,
    TooLargeError,
)
from leaseq.item import Item
from leaseq.jobs.job_state import JobState
from leaseq.jobs.store._sync.store import Store
from leaseq.outbox import record
from leaseq.outbox.rows import LockedRows, Place, Row
from leaseq.parts import Parts
from leaseq.results import Outcome

log = logging.getLogger("leaseq.outbox")

REFUSALS: Final = (BadArgumentError, BadIdError, BadTypeError, TooLargeError)
"""Errors that are about one item, and stay however often it is sent."""


class Entry(NamedTuple):
    """A row that was read, and whether notes about an earlier job of its id are there."""

    row: Row
    item: Item
    options: Options
    noted: bool = False


class Batch:
    """Hands on the rows of one queue.

    Attributes:
        done: the number of rows that were handed on.
        refused: the number of rows that were set apart.
        full: the error, if the queue had no room for all.
    """

    def __init__(self, store: Store, place: Place, locked: LockedRows, durable: Durability | None) -> None:
        self.done = 0
        self.refused = 0
        self.full: QueueFullError | None = None
        self._store = store
        self._place = place
        self._locked = locked
        self._durable = durable

    def hand_on(self, now: float) -> None:
        """Add the items in the order of their rows, and delete the rows. `now` is the server's time. Raises errors of the server.

        After an error the transaction is to be rolled back: the next try finds which items were added.
        """
        parts = Parts(self._without_ended(self._read(now)))
        for part in parts:
            try:
                entries = [(entry.item, entry.options) for entry in part]
                answers: Sequence[bool | None] = self._store.add(self._place.queue, entries, self._durable)
            except REFUSALS as error:
                if not parts.halve(part):
                    self._refuse(part[0].row, error)
            except QueueFullError as error:
                self.full = error
                self._answered(part, error.answers)
                _, rest = parts.sent_and_remaining()
                self._locked.put_back([entry.row.number for entry in rest])
                return
            else:
                self._answered(part, answers)

    def _read(self, now: float) -> list[Entry]:
        """Return the rows whose items are to be added. Refuse what cannot be read, and delete what has expired."""
        entries: list[Entry] = []
        expired: list[int] = []
        for row in self._locked.rows:
            try:
                found = record.read(row.item, now)
            except LeaseqError as error:
                self._refuse(row, error)
                continue
            if found is None:
                log.warning(
                    "row %d: %s of %s expired before it was handed on", row.number, row.item_id, self._place
                )
                expired.append(row.number)
            else:
                entries.append(Entry(row, *found))
        self._locked.delete(expired)
        return entries

    def _without_ended(self, entries: list[Entry]) -> list[Entry]:
        """Return the entries that no relay has handed on before it died. Delete the rows of the others.

        Those that are still in the queue need no look: the queue refuses a second one.
        """
        ids = [entry.item.id for entry in entries]
        outcomes = self._store.outcomes(self._place.queue, ids)
        left: list[Entry] = []
        ended: list[int] = []
        for entry, (outcome, state) in zip(entries, outcomes, strict=True):
            if _has_ended(entry.row, outcome, state):
                ended.append(entry.row.number)
            else:
                left.append(entry._replace(noted=state != JobState()))
        self._locked.delete(ended)
        self.done += len(ended)
        return left

    def _answered(self, part: list[Entry], answers: Sequence[bool | None]) -> None:
        """Delete the rows whose items the queue has now, and put back those without an answer."""
        known = dict(zip((entry.row.number for entry in part), answers, strict=False))
        done = [number for number, answer in known.items() if answer is not None]
        self._locked.delete(done)
        self._locked.put_back([entry.row.number for entry in part if known.get(entry.row.number) is None])
        self.done += len(done)
        noted = [entry.item.id for entry in part if entry.noted and known.get(entry.row.number)]
        with contextlib.suppress(LeaseqError):  # as in an enqueue: they are notes for people
            self._store.forget(self._place.queue, noted)

    def _refuse(self, row: Row, error: LeaseqError) -> None:
        refuse(self._place, row, self._locked, error)
        self.refused += 1


def refuse(place: Place, row: Row, locked: LockedRows, error: LeaseqError) -> None:
    """Set a row apart, and log it."""
    log.error("row %d: %s cannot be handed on to %s: %s", row.number, row.item_id, place, error)
    locked.refuse(row.number, str(error))


def _has_ended(row: Row, outcome: Outcome, state: JobState) -> bool:
    """Return whether the item of a row was added and has ended: an item of its id, added since it was first tried, has."""
    if outcome.finished:
        return outcome.created >= row.tried
    return state.cancelled is not None and state.cancelled / 1000 >= row.tried
