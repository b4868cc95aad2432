"""What is known of a job beside its item: who runs it and how far it is, or that it was cancelled (LQ-JOB-10)."""

import struct
from typing import Final

import msgspec

from leaseq.keys import QueueKeys

LIFE_SECS = 600
"""How long a note stays whose worker writes it no more."""

_ENCODER = msgspec.json.Encoder()


class JobState(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The members of LQ-JOB-10 and LQ-JOB-11; times are ms since 1970."""

    v: int = 1
    token: int = 0
    worker: str = ""
    started: int = 0
    done: float | None = None
    total: float | None = None
    cancelled: int | None = None
    job: bytes = b""


def key(keys: QueueKeys, job_id: str) -> str:
    """Where it stands who runs a job: in the slot of its queue."""
    return keys.key(f"job:{job_id}")


def trace_key(keys: QueueKeys, job_id: str) -> str:
    """The key of a cancelled job: the worker that runs it may not know yet, and writes the other key."""
    return keys.key(f"cancelled:{job_id}")


def wake_key(keys: QueueKeys, job_id: str) -> str:
    """What becomes, for a moment, the list on which they block who wait for an outcome; in no transaction is it seen."""
    return keys.key(f"woken:{job_id}")


NO_OUTCOME: Final = struct.pack("<BBIddd", 1, 2, 0, 0.0, 0.0, 0.0) + b"cancelled"
"""An outcome that does not count, since its id is not in `kept` (LQ-KEY-10)."""


def write(note: JobState) -> bytes:
    """JSON, so that whatever looks after a queue can read it."""
    return _ENCODER.encode(note)


def read(data: bytes | None, trace: bytes | None) -> JobState:
    """What both keys say of a job; an empty note where there is nothing, or nothing that can be read."""
    note, cancelled = _read(data), _read(trace)
    note.cancelled, note.job = cancelled.cancelled, cancelled.job
    return note


def _read(data: bytes | None) -> JobState:
    try:
        return JobState() if data is None else msgspec.json.decode(data, type=JobState)
    except (msgspec.DecodeError, RecursionError):
        return JobState()
