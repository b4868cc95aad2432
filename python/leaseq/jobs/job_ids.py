"""Ids that are made of a function and its arguments: the same in every program and language (spec/jobs.md)."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from leaseq.jobs.errors import SerializationError
from leaseq.jobs.serializer import write_model

DIGITS: Final = 32
"""Hexadecimal digits of the SHA-256 that an id has."""


def unique_id(function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the id of a unique job. Raises SerializationError for arguments that JSON does not have."""
    return f"unique-{_digest(function, args, kwargs)}"


def slot_id(function: str, args: Sequence[Any], kwargs: Mapping[str, Any], length: int, now: int) -> str:
    """Return the id of a throttled job in the slot of a time; `length` and `now` in ms. Raises SerializationError."""
    return f"throttle-{_digest(function, args, kwargs)}-{length}-{now // length}"


def _digest(function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    try:
        plain = msgspec.to_builtins(
            [function, list(args), dict(kwargs)], str_keys=True, enc_hook=write_model, order="sorted"
        )
        text = canonical(plain)
        return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise SerializationError(
            f"the id of a job that is unique or throttled is made of its arguments as JSON, which has none for a call of"
            f" {function}: {error}; choose an id yourself, with the option id"
        ) from error


def canonical(value: Any) -> str:
    """Return JSON as RFC 8785 writes it. Raises ValueError."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        members = (f"{canonical(name)}:{canonical(value[name])}" for name in names)
        return f"{{{','.join(members)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(canonical, value))}]"
    if isinstance(value, float):
        return _number(value)
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """Return the shortest digits that give the number back, with an exponent from 1e21 on and below 1e-6."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number of JSON")
    if value == 0:
        return "0"
    if not 1e-6 <= abs(value) < 1e21:
        digits, _, power = repr(value).partition("e")
        return f"{digits}e{int(power):+d}"
    return f"{Decimal(repr(value)):f}".removesuffix(".0")
