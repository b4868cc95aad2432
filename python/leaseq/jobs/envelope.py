"""A job as the data of an item, and its result as the outcome of that item (spec/jobs.md)."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from leaseq.backoff import MAX_DELAY_SECONDS
from leaseq.jobs.errors import BadEnvelopeError, SerializationError
from leaseq.jobs.serializer import CODECS, UNREADABLE, Format, Serializer

VERSION = 1

MAX_COPY_BYTES = 4096
"""Bytes of an envelope that a result or a cancellation repeats, so that people see what the job was; no longer ones."""

Integer = Annotated[int, msgspec.Meta(ge=1 - 2**53, le=2**53 - 1)]
"""An integer that every language has. JSON can hold more digits than a time in seconds, a float, has room for."""

_Delay = Annotated[int, msgspec.Meta(ge=0, le=MAX_DELAY_SECONDS * 1000)]

NOT_COPIED = msgspec.Raw()


class Envelope(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The members of LQ-JOB-2 to LQ-JOB-5; times are ms since 1970, durations ms."""

    v: int
    function: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    enqueued: Integer = 0
    due: Integer | None = None
    attempt: Integer = 1
    timeout: Integer | None = None
    backoff: tuple[_Delay, _Delay] | None = None
    delays: Annotated[list[_Delay], msgspec.Meta(min_length=1)] | None = None
    description: str | None = None
    codec: str | None = None
    body: bytes | None = None
    then: "list[Stage]" = []

    def time_limit(self, default: float | None) -> float | None:
        """Return the seconds that an attempt may take: as the call said, else `default` (LQ-JOB-4). None: without limit."""
        return default if self.timeout is None else self.timeout / 1000 or None

    def pack(self, serializer: Serializer) -> None:
        """Let the serializer write the arguments of this job and of later ones, unless one has. Raises whatever it raises."""
        for job in (self, *(stage.job for stage in self.then)):
            if job.codec is None:
                job.body = serializer.dumps([list(job.args), job.kwargs])
                job.codec, job.args, job.kwargs = serializer.name, [], {}

    def unpack(self, serializers: Mapping[str, Serializer]) -> None:
        """Read the arguments that a serializer wrote. Raises BadEnvelopeError."""
        pair = _loaded(self.codec or "", self.body, serializers, "arguments")
        try:
            args, kwargs = pair
            self.args, self.kwargs = list(args), dict(kwargs)
        except (TypeError, ValueError) as error:
            message = f"serializer {self.codec!r} gives no pair of arguments: {error}"
            raise BadEnvelopeError(message) from error


class Stage(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A job that is not enqueued yet, the members of LQ-JOB-16: what a chain has behind it, what a schedule enqueues.

    `add` are options of the item, by their names in `add` and in its units.
    """

    queue: str
    job: Envelope
    id: str = ""
    add: dict[str, int | str] = {}
    headers: dict[str, str] = {}


class Result(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The members of LQ-JOB-8."""

    v: int
    result: Any = None
    started: Integer = 0
    ended: Integer = 0
    worker: str = ""
    job: msgspec.Raw = NOT_COPIED
    codec: str | None = None
    body: bytes | None = None

    def pack(self, serializer: Serializer) -> None:
        """Let the serializer write the result. Raises whatever it raises."""
        self.codec, self.body, self.result = serializer.name, serializer.dumps(self.result), None

    def unpack(self, serializers: Mapping[str, Serializer]) -> None:
        """Read the result that a serializer wrote. Raises BadEnvelopeError."""
        self.result = _loaded(self.codec or "", self.body, serializers, "result")


Content = TypeVar("Content", Envelope, Result)


class _Version(msgspec.Struct):
    v: int


def write(content: Envelope | Result, form: Format, serializer: Serializer | None) -> bytes:
    """Return the data of an item, or the content of an outcome. Raises SerializationError."""
    try:
        if serializer is not None:
            content.pack(serializer)
        return CODECS[form].encode(content)
    except Exception as error:
        way = f"serializer {serializer.name!r}" if serializer else form
        what = _unwritten(content, CODECS[form].encode if serializer is None else None)
        raise SerializationError(f"{what} cannot be written as {way}: {error}") from error


def _unwritten(content: Envelope | Result, encode: Callable[[Any], bytes] | None) -> str:
    """Return what cannot be written: the argument that `encode` refuses, if there is one."""
    if isinstance(content, Result):
        return "the result"
    if encode is not None:
        for name, value in [*enumerate(content.args, 1), *content.kwargs.items()]:
            try:
                encode(value)
            except Exception:  # noqa: BLE001 (it is the one)
                return f"argument {name!r}, of type {type(value).__name__}, of {content.function}"
    return f"the arguments of {content.function}"


def read(data: bytes, kind: type[Content], serializers: Mapping[str, Serializer] | None = None) -> Content:
    """Return a job or a result. Without `serializers`, values stay as a serializer wrote them.

    Raises BadEnvelopeError, whose text is fit for a dead letter.
    """
    try:
        content: Content = CODECS[format_of(data)].decode(data, type=kind)
    except UNREADABLE as error:
        _check_version(data, kind)
        raise BadEnvelopeError(f"this is no {_NAMES[kind]} that can be read: {error}") from error
    if content.v != VERSION:
        raise _another_version(content.v, kind)
    if content.codec is not None and serializers is not None:
        content.unpack(serializers)
    return content


def copy_of(data: bytes) -> msgspec.Raw:
    """The envelope as it stands in its result."""
    return msgspec.Raw(data) if len(data) <= MAX_COPY_BYTES else NOT_COPIED


def format_of(data: bytes) -> Format:
    """Return the format of a job or a result. JSON starts with a brace; a map of MessagePack never does (LQ-JOB-1)."""
    return "json" if data.startswith(b"{") else "msgpack"


_NAMES = {Envelope: "job", Result: "result"}


def _check_version(data: bytes, kind: type[Envelope] | type[Result]) -> None:
    """A newer version may differ in everything but `v`. Raises BadEnvelopeError for one."""
    try:
        version = CODECS[format_of(data)].decode(data, type=_Version).v
    except UNREADABLE:
        return
    if version != VERSION:
        raise _another_version(version, kind)


def _another_version(version: int, kind: type[Envelope] | type[Result]) -> BadEnvelopeError:
    return BadEnvelopeError(f"this {_NAMES[kind]} is of version {version}, and this program knows {VERSION}")


def _loaded(name: str, body: bytes | None, serializers: Mapping[str, Serializer], what: str) -> Any:
    if name not in serializers:
        raise BadEnvelopeError(
            f"the {what} were written by serializer {name!r}, which this App does not have"
        )
    try:
        return serializers[name].loads(body or b"")
    except Exception as error:
        message = f"serializer {name!r} cannot read the {what}: {error}"
        raise BadEnvelopeError(message) from error
