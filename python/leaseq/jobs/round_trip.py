"""The check that a value arrives as it is sent (LQ-JOB-60): written, read and converted, it must be equal in type and value."""

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from itertools import zip_longest
from typing import Any, Final

import msgspec

from leaseq.jobs.errors import SerializationError
from leaseq.jobs.serializer import CODECS, Format, converted
from leaseq.jobs.signature import Signature

_ABSENT: Final = object()
FEW: Final = 8
"""Values that are looked at one by one: of more, all types are found first."""

_WHOLE: Final = frozenset({str, bool, type(None)})
_STRS: Final = frozenset({str})
_INTS: Final = {int}
_LEAST: Final = -(2**53)
_MOST: Final = 2**53
"""Whole numbers that a float keeps too, where a parameter asks for one."""


def are_plain(values: Collection[Any]) -> bool:
    """Return whether both formats keep these values as they are; false if that must be tried."""
    try:
        if len(values) < FEW:
            return all(map(is_plain, values))
        kinds = set(map(type, values))
        if kinds <= _WHOLE:
            return True
        if kinds == _INTS:
            return bool(min(values) >= _LEAST and max(values) <= _MOST)
        return all(map(is_plain, values))
    except RecursionError:
        return False


def is_plain(value: Any) -> bool:
    """Return whether both formats keep this value as it is; false if that must be tried."""
    kind = type(value)
    if kind in _WHOLE:
        return True
    if kind is int:
        return bool(_LEAST <= value <= _MOST)
    if kind is float:
        return math.isfinite(value)
    if kind is list:
        return are_plain(value)
    return kind is dict and _STRS.issuperset(map(type, value)) and are_plain(value.values())


def check_call(
    function: str, args: Sequence[Any], kwargs: Mapping[str, Any], signature: Signature | None, form: Format
) -> None:
    """Raise SerializationError for an argument that would not arrive as it is sent; no signature is that of another program."""
    for value in args:
        kind = type(value)  # here, since most calls have a few of these
        if kind not in _WHOLE and not (kind is int and _LEAST <= value <= _MOST):
            break
    else:
        if not kwargs:
            return
    if are_plain(args) and are_plain(kwargs.values()):
        return
    for number, value in enumerate(args):
        name, annotation = ("", None) if signature is None else signature.place(number)
        what = f"argument {name!r}" if name else f"argument {number + 1}"
        check(value, annotation, form, f"{what} of {function}", _way(name, function))
    for name, value in kwargs.items():
        annotation = None if signature is None else signature.named(name)
        way = _way("" if signature is None else name, function)
        check(value, annotation, form, f"argument {name!r} of {function}", way)


def check_result(value: Any, function: str, signature: Signature, form: Format) -> None:
    """Raise SerializationError for a result that would not arrive as it was returned."""
    way = f"annotate what {function} returns with its type"
    check(value, signature.returned, form, f"the result of {function}", way)


def check_handed_on(value: Any, function: str, signature: Signature | None, form: Format) -> None:
    """Raise SerializationError for a result that would not arrive as the first argument of the next job of a chain."""
    name, annotation = ("", None) if signature is None else signature.place(0)
    what = f"what is handed on to {function}"
    check(value, annotation, form, what, _way(name, function))


def _way(name: str, function: str) -> str:
    if name:
        return f"annotate parameter {name!r} of {function} with its type"
    return f"use an App that has {function}, with an annotation"


def check(value: Any, annotation: Any, form: Format, what: str, way: str) -> None:
    """Raise SerializationError for a value that would not arrive as it is sent, with a way to send it."""
    if is_plain(value):
        return
    codec = CODECS[form]
    try:
        received = codec.decode(codec.encode(value))
        received = received if annotation is None else converted(received, annotation)
        differences = next(_differences("", value, received), None)
    except Exception as error:
        reason = (
            f"{error}" if isinstance(error, msgspec.ValidationError) else f"it cannot be written: {error}"
        )
        raise _refused(value, form, what, way, reason) from error
    if differences is not None:
        raise _refused(value, form, what, way, differences)


def _refused(value: Any, form: Format, what: str, way: str, reason: str) -> SerializationError:
    return SerializationError(
        f"{what}, of type {type(value).__name__}, would not arrive as it is in {form}: {reason}; {way}, use a value that"
        f" {form} has (such as a str or a list), or give the App a serializer"
    )


def _differences(path: str, sent: Any, received: Any) -> Iterator[str]:
    """Yield the differences, the first one first."""
    if type(sent) is not type(received):
        yield f"{path or 'it'} would be {_named(received)}, not {_named(sent)}"
    elif isinstance(sent, Mapping):
        yield from _differences(f"the keys of {path or 'it'}", list(sent), list(received))
        for key in sent:
            yield from _differences(f"{path}[{key!r:.40}]", sent[key], received.get(key, _ABSENT))
    elif isinstance(sent, list | tuple):
        for number, (one, other) in enumerate(zip_longest(sent, received, fillvalue=_ABSENT)):
            yield from _differences(f"{path}[{number}]", one, other)
    elif names := _fields(sent):
        for name in names:
            yield from _differences(
                f"{path}.{name}", getattr(sent, name, _ABSENT), getattr(received, name, _ABSENT)
            )
    elif not _are_equal(sent, received):
        yield f"{path or 'it'} would have another value"


def _are_equal(sent: Any, received: Any) -> bool:
    if isinstance(sent, set | frozenset):
        return {(type(each), _exact(each)) for each in sent} == {
            (type(each), _exact(each)) for each in received
        }
    sent, received = _exact(sent), _exact(received)
    return bool(sent == received or (sent != sent and received != received))  # noqa: PLR0124 (NaN)


def _exact(value: Any) -> Any:
    """A value as it is compared: of a time of day that a change of the clock repeats, Python's `==` says too little or too much."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return (value, value.fold) if isinstance(value, datetime | time) else value


def _named(value: Any) -> str:
    return "missing" if value is _ABSENT else f"{type(value).__name__}"


def _fields(value: Any) -> list[str]:
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return [each.name for each in dataclasses.fields(kind)]
    found = getattr(kind, "__struct_fields__", None)
    return list(found or [each.name for each in getattr(kind, "__attrs_attrs__", ())])
