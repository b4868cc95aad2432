"""The context of a job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs.serializer import CODECS

Report = Callable[[Any, float | None], None]
"""Takes how much is done, and of how much; or any plain value, and None."""

MAX_REPORT_BYTES: Final = 4096
"""Bytes of a report of progress as JSON."""


@dataclass(slots=True, kw_only=True)
class Context:
    """The context of an attempt, for middleware and for a function whose first parameter is annotated with this class.

    Attributes:
        id: the id of the job.
        function: the name of the function.
        queue: the queue of the job.
        attempt: the number of this attempt: 1 for the first, unless the call set another.
        enqueued: when the job was enqueued: seconds since 1970, by the clock of the program that enqueued it.
        due: when the job was due: seconds since 1970 by the same clock. Without a delay it is `enqueued`.
        headers: the headers of the call.
        token: the token of its lease. It grows with each attempt, so it works as a fencing token.
        worker: the id of the worker that runs the job.
    """

    id: str
    function: str
    queue: str
    attempt: int
    enqueued: float
    due: float
    headers: Mapping[str, str]
    token: int
    worker: str
    _report: Report = field(repr=False)

    def progress(self, done: Any, total: float | None = None) -> None:
        """Report that `done` of `total` is done, in any unit; `Handle.info` shows it within a second.

        `total` is None if it is not known. Without it, `done` can be any value of JSON, such as `{"step": "upload", "files": 3}`,
        of up to 4096 bytes. Raises BadTypeError if it is not JSON, or not a number beside a total, BadArgumentError if it is
        too long. It is readable on the server, also with a codec.
        """
        if is_number(done) and (total is None or is_number(total)):
            self._report(done, total)
        elif total is None:
            self._report(_copied(done), None)
        else:
            wrong = done if is_number(total) else total
            raise BadTypeError(
                f"progress takes numbers, how much is done and of how much, or one value of JSON; not {type(wrong).__name__}"
            )


def is_number(value: object) -> bool:
    """Return whether a report is a number. A whole one has at most 64 bits: the way from the process of a job has no more."""
    if isinstance(value, int) and not isinstance(value, bool):
        return -(2**63) <= value < 2**64
    return isinstance(value, float)


def _copied(value: Any) -> Any:
    """Return a report as it is read: what the function changes later does not change it. Raises BadTypeError, BadArgumentError."""
    codec = CODECS["json"]
    try:
        encoded = codec.encode(value)
        copy = codec.decode(encoded)
        CODECS["msgpack"].encode(copy)  # the way to a worker from the process of a job
    except (
        TypeError,
        ValueError,
        NotImplementedError,
        OverflowError,
        RecursionError,
        msgspec.DecodeError,
    ) as error:
        raise BadTypeError(f"progress takes numbers, or one value of JSON: {error}") from error
    if len(encoded) > MAX_REPORT_BYTES:
        raise BadArgumentError(
            f"a report of progress has at most {MAX_REPORT_BYTES} bytes as JSON, not {len(encoded)}: report less, or store it"
            " elsewhere and report where"
        )
    return copy
