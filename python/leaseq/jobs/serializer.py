"""The formats of arguments and results: JSON or MessagePack, which every language reads, or a custom serializer."""

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, Protocol, runtime_checkable

import msgspec

from leaseq.errors import BadArgumentError, BadTypeError

Format = Literal["msgpack", "json"]

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding, for bytes of any kind: a string that is no UTF-8 raises no DecodeError."""


@runtime_checkable
class Serializer(Protocol):
    """A custom serializer of arguments and results: an object with a `name` and these two methods.

    Attributes:
        name: at least one character. Each job carries it, so that an App without this serializer raises BadEnvelopeError.
    """

    name: str

    def dumps(self, value: Any) -> bytes:
        """Return the arguments or the result of a job as bytes. If it raises, SerializationError is raised."""

    def loads(self, data: bytes) -> Any:
        """Return the value that these bytes encode. If it raises, BadEnvelopeError is raised."""


class FormatCodec(NamedTuple):
    """One of the two formats. Encoders may be shared by threads."""

    encode: Callable[[Any], bytes]
    decode: Callable[..., Any]
    """Data, and the `type` to make of it. Raises one of UNREADABLE; ValidationError is a subclass of the first."""


def has_model(kind: type) -> bool:
    """Return whether a class makes and writes its values itself, as those of Pydantic do."""
    return hasattr(kind, "model_validate") and hasattr(kind, "model_dump")


def converted(value: Any, kind: Any) -> Any:
    """Convert a decoded value to this type. Raises msgspec.ValidationError."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:  # the common case costs no hooks
        pass
    return msgspec.convert(value, kind, dec_hook=_read_model, str_keys=True)


def write_model(value: Any) -> Any:
    """Return a model of Pydantic as plain values. Raises NotImplementedError for a value of another class."""
    if has_model(type(value)):
        return value.model_dump(mode="json", by_alias=True)
    raise NotImplementedError(f"no {type(value).__name__} can be written")


def _read_model(kind: Any, value: Any) -> Any:
    return kind.model_validate(value)


CODECS: dict[str, FormatCodec] = {
    "msgpack": FormatCodec(msgspec.msgpack.Encoder(enc_hook=write_model).encode, msgspec.msgpack.decode),
    "json": FormatCodec(msgspec.json.Encoder(enc_hook=write_model).encode, msgspec.json.decode),
}


def check_format(given: Any) -> Format:
    """A format. Raises BadArgumentError."""
    if given not in CODECS:
        raise BadArgumentError(f"format is 'msgpack' or 'json', not {given!r}")
    return "json" if given == "json" else "msgpack"


def check_serializer(given: Any) -> Serializer | None:
    """A serializer, or none. Raises BadTypeError, BadArgumentError."""
    if given is None:
        return None
    if not isinstance(given, Serializer):
        raise BadTypeError(
            f"a serializer has name, dumps and loads; {type(given).__name__} lacks some of them"
        )
    name: Any = given.name
    if not isinstance(name, str) or not name:
        raise BadArgumentError("a serializer has a name, a str of at least one character")
    return given
