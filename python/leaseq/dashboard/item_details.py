"""All that is known of one item: its record, data, outcome, and what they mean if it is a job."""

import contextlib
from dataclasses import dataclass
from typing import Final

from leaseq import Outcome
from leaseq.dashboard.source import Source
from leaseq.errors import FormatError
from leaseq.jobs import BadEnvelopeError, JobInfo, envelope
from leaseq.jobs.envelope import Envelope, Stage
from leaseq.keys import RegisteredQueue
from leaseq.results import ItemInfo
from leaseq.transfer import records
from leaseq.transfer.records import Stored

MAX_SHOWN_BYTES: Final = 1 << 20
"""Data that are longer are not read: the server sends an item's data whole."""

_EVENTS: Final = {
    "ready": "ready since, attempts so far: {attempt}",
    "delayed": "due, attempts so far: {attempt}",
    "leased": "the lease of attempt {attempt} ends",
    "dead": "died in attempt {attempt}",
}
"""The meaning of the time of an item, by its state."""

_ENDS: Final = {"result": "completed in attempt {attempt}", "failure": "died in attempt {attempt}"}
"""The end of an item, by the state of its outcome."""


@dataclass(frozen=True, slots=True)
class ItemDetails:
    """An item.

    Attributes:
        queue: its queue.
        item: its record.
        stored: its data and headers; None if it is gone, if its data are too long to be read, or if its record is
            of a later version.
        outcome: its result or failure, or its state.
        job: the job that it is; None if its data are no job.
        then: the jobs behind it in its chain.
        history: what is known to have happened to it, and what will, in the order of time: seconds since 1970.
    """

    queue: RegisteredQueue
    item: ItemInfo
    stored: Stored | None
    outcome: Outcome
    job: JobInfo | None
    then: list[Stage]
    history: list[tuple[float, str]]

    @property
    def is_known(self) -> bool:
        """True if there is such an item, or something is kept of it."""
        return self.item.state != "absent" or self.outcome.state != "absent" or self.job is not None


def read(source: Source, queue: RegisteredQueue, item_id: str) -> ItemDetails:
    """Read an item. Raises the errors of leaseq."""
    with source.queue(queue) as opened:
        item = opened.inspect(item_id)
        stored = None
        if item.size <= MAX_SHOWN_BYTES:
            with contextlib.suppress(FormatError):
                (stored,) = records.read(opened, [item_id])
        outcome = opened.outcome(item_id, timeout=0)
    job = _job(source, queue, item_id) if item.size <= MAX_SHOWN_BYTES else None
    then = _then(stored) if job else []
    return ItemDetails(queue, item, stored, outcome, job, then, history(item, outcome, job))


def history(item: ItemInfo, outcome: Outcome, job: JobInfo | None) -> list[tuple[float, str]]:
    """Return what is known to have happened to an item, and what will, in the order of time."""
    attempt = item.attempt or outcome.attempt
    events = [(item.created or outcome.created, "added")]
    if job is not None:
        worker = f" by worker {job.worker}" if job.worker else ""
        events += [(job.enqueued, "enqueued"), (job.started, f"attempt {attempt} started{worker}")]
    events.append((item.time, _EVENTS.get(item.state, "").format(attempt=attempt)))
    if item.state != "dead":
        events.append((outcome.ended, _ENDS.get(outcome.state, "ended").format(attempt=attempt)))
    events.append((item.expires, "expires, unless it is leased before"))
    known = sorted((moment, text) for moment, text in events if moment and text)
    # a job is added when it is enqueued
    return [each for each in known if each[1] != "enqueued" or not item.created]


def _job(source: Source, queue: RegisteredQueue, item_id: str) -> JobInfo | None:
    with source.app(queue) as app:
        (info,) = app.inspect_jobs([app.handle(item_id, queue.name)])
    return info if info.function or info.status == "cancelled" else None


def _then(stored: Stored | None) -> list[Stage]:
    """Return the jobs that a job hands on to."""
    if stored is not None:
        with contextlib.suppress(BadEnvelopeError):
            return envelope.read(stored.data, Envelope, {}).then
    return []
