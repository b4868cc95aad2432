"""What is known of a job beside its item: who runs it and how far it is, or that it was cancelled (LQ-JOB-10)."""

import msgspec

from leaseq.keys import QueueKeys

LIFE_SECS = 600
"""How long a note stays whose worker writes it no more."""

_ENCODER = msgspec.json.Encoder()


class Note(msgspec.Struct, omit_defaults=True, kw_only=True):
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
    """Where the note of a job is: in the slot of its queue."""
    return keys.key(f"job:{job_id}")


def write(note: Note) -> bytes:
    """JSON, so that whatever looks after a queue can read it."""
    return _ENCODER.encode(note)


def read(data: bytes | None) -> Note:
    """A note; an empty one where there is none, or none that can be read."""
    try:
        return Note() if data is None else msgspec.json.decode(data, type=Note)
    except (msgspec.DecodeError, RecursionError):
        return Note()
