"""The text of a failure: what a worker writes as the last error, and what is read from it (LQ-JOB-9)."""

import asyncio
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import leaseq
from leaseq import exception_text
from leaseq.jobs.errors import JobFailed, Retry

MAX_BYTES = 8192
"""Bytes of a last error that are kept."""

NOT_THE_USERS = tuple(str(Path(each).parent) + os.sep for each in (leaseq.__file__, asyncio.__file__))

MAX_LINE_CHARS = 500
"""Characters of the first line: the traceback has the whole message."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure. `started` and `refused` are in seconds since 1970, 0 if they are not known."""

    type: str = ""
    message: str = ""
    traceback: str = ""
    worker: str = ""
    started: float = 0.0
    refused: float = 0.0


def text_of(error: BaseException, worker: str, started: float) -> str:
    """Return the text of an exception; its traceback starts in the code of the user. A planned Retry has none."""
    begin = error.__traceback__
    while begin is not None and begin.tb_frame.f_code.co_filename.startswith(NOT_THE_USERS):
        begin = begin.tb_next
    message = exception_text.written(error)
    planned = isinstance(error, Retry) and not (error.__cause__ or error.__context__)
    frames = "" if planned else exception_text.formatted(error, begin)
    return written(exception_text.name_of(error), message, frames, worker, started)


def written(
    kind: str, message: str, frames: str, worker: str, started: float, *, refused: float = 0.0
) -> str:
    """Return the text, cut so that all of it is kept: of the traceback the end says most."""
    lines = [f"{kind}: {_one_line(message)}"]
    if worker:
        lines.append(f"worker: {worker}")
    times = {"started": started, "refused": refused}
    lines += [f"{name}: {_date(time)}" for name, time in times.items() if time]
    head = "\n".join(lines) + "\n\n"
    room = MAX_BYTES - len(head.encode())
    tail = frames.encode()
    if len(tail) > room:
        tail = b"...\n" + tail[len(tail) - room + 4 :]
    return head + tail.decode(errors="ignore")


def read(text: str) -> Failure:
    """Read a failure from its text; a text of another form is only a message."""
    head, _, frames = text.partition("\n\n")
    first, *lines = head.split("\n")
    kind, colon, message = first.partition(": ")
    # names in other languages have `$`, and both signs can come first
    if not colon or not kind.replace("$", "_").replace(".", "_").isidentifier():
        return Failure(message=text)
    fields = dict(line.partition(": ")[::2] for line in lines)
    started, refused = (_time(fields.get(name, "")) for name in ("started", "refused"))
    return Failure(kind, message, frames, fields.get("worker", ""), started, refused)


def exception(job_id: str, text: str, attempt: int) -> JobFailed:
    """Return an exception with a failure's text, for an attempt of a job in another process."""
    known = read(text)
    return JobFailed(
        job_id, type=known.type, message=known.message, traceback=known.traceback, attempt=attempt
    )


def _date(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")


def _time(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def _one_line(message: str) -> str:
    line = " ".join(message[: 10 * MAX_LINE_CHARS].split())
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 3] + "..."
