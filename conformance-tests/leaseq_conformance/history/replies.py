"""The reply that a frame of RESP holds: what scripts answer is integers, byte strings and flat lists of them."""

from __future__ import annotations

from typing import Any


def decoded(frame: bytes) -> Any:
    """The value of a reply that is no error.

    Raises:
        ValueError: it is none that a script of the protocol gives.
    """
    value, rest = _value(frame)
    if rest:
        raise ValueError(f"more than one reply: {frame!r}")
    return value


def _value(frame: bytes) -> tuple[Any, bytes]:
    head, _, rest = frame.partition(b"\r\n")
    kind, payload = head[:1], head[1:]
    if kind == b":":
        return int(payload), rest
    if kind == b"$":
        size = int(payload)
        return (None, rest) if size < 0 else (rest[:size], rest[size + 2 :])
    if kind == b"*":
        values = []
        for _ in range(int(payload)):
            value, rest = _value(rest)
            values.append(value)
        return values, rest
    if kind == b"_":
        return None, rest
    raise ValueError(f"no reply of a script: {frame!r}")
