"""The state of a job beside its item: who runs it and how far it is, or that it was cancelled (LQ-JOB-10)."""

import struct
from typing import Any, Final, NamedTuple

import msgspec

from leaseq.jobs.envelope import Integer
from leaseq.jobs.serializer import UNREADABLE
from leaseq.keys import QueueKeys

VERSION: Final = 1

LIFE_SECS = 600
"""Seconds that a state stays after its worker last wrote it."""

_ENCODER = msgspec.json.Encoder()


class JobState(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The members of LQ-JOB-10 and LQ-JOB-11; times are ms since 1970."""

    v: int = 0
    token: int = 0
    n: int = 0
    worker: str = ""
    started: Integer = 0
    done: float | None = None
    total: float | None = None
    progress: Any = None
    cancelled: Integer | None = None
    job: bytes = b""


def key(keys: QueueKeys, job_id: str) -> str:
    """Key of the state that the worker of a job writes, in the slot of its queue."""
    return keys.key(f"job:{job_id}")


def cancelled_key(keys: QueueKeys, job_id: str) -> str:
    """The key of a cancelled job: the worker that runs it may not know yet, and writes the other key."""
    return keys.key(f"cancelled:{job_id}")


class Change(NamedTuple):
    """A change of a job, for which a program can wait that watches it: the next state that its worker writes, or the end of an attempt.

    Attributes:
        id: of the job.
        attempt: the number of leases, as the item has it.
        number: 0 for the first change of an attempt, one more for each that follows.
    """

    id: str
    attempt: int
    number: int


def change_key(keys: QueueKeys, change: Change) -> str:
    """Key of a list that has an element for a few seconds once a job has changed so (LQ-JOB-63)."""
    return keys.key(f"changed:{change.id}:{change.attempt}.{change.number}")


def wake_key(keys: QueueKeys, job_id: str) -> str:
    """Key of a temporary list. It is renamed to `result:<id>` in one transaction, to wake waiters."""
    return keys.key(f"woken:{job_id}")


def slot_key(keys: QueueKeys, job_id: str) -> str:
    """Key that says that the slot of a throttled job is taken; the slot is a part of the id."""
    return keys.key(f"slot:{job_id}")


NO_OUTCOME: Final = struct.pack("<BBIddd", 1, 2, 0, 0.0, 0.0, 0.0) + b"cancelled"
"""An outcome that does not count, since its id is not in `kept` (LQ-KEY-10)."""


def write(state: JobState) -> bytes:
    """Return a state as JSON, so that any tool can read it."""
    state.v = VERSION
    return _ENCODER.encode(state)


def read(data: bytes | None, trace: bytes | None) -> JobState:
    """Read both keys of a job; an empty state if there is nothing, or nothing that can be read."""
    state, cancelled = _read(data), _read(trace)
    state.cancelled, state.job = cancelled.cancelled, cancelled.job
    return state


def _read(data: bytes | None) -> JobState:
    try:
        return JobState() if data is None else msgspec.json.decode(data, type=JobState)
    except UNREADABLE:
        return JobState()
