"""RESP, as far as a proxy needs it: where a frame ends, what a command says, and how a reply is written.

Nothing is decoded that need not be: a frame is handed on as the bytes it came in.
"""

from __future__ import annotations

from typing import Any, Final

_AGGREGATES: Final = b"*~>%|"
_SIZED: Final = b"$=!"


class Stream:
    """Bytes as they come in, cut into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def frame(self) -> bytes | None:
        """The next whole frame, taken off; None where more has to come first."""
        end = _end(self._buffer, 0)
        if end is None:
            return None
        found = bytes(self._buffer[:end])
        del self._buffer[:end]
        return found


def _end(data: bytearray, start: int) -> int | None:
    """Where the frame that begins at `start` ends."""
    todo, place = 1, start
    while todo:
        line_end = data.find(b"\r\n", place)
        if line_end < 0:
            return None
        kind, rest = data[place : place + 1], bytes(data[place + 1 : line_end])
        place = line_end + 2
        todo -= 1
        if kind in _SIZED and kind:
            size = int(rest)
            place += size + 2 if size >= 0 else 0
            if place > len(data):
                return None
        elif kind in _AGGREGATES and kind:
            todo += max(0, int(rest)) * (2 if kind in b"%|" else 1) + (kind == b"|")
    return place


def arguments(frame: bytes) -> tuple[bytes, ...]:
    """The arguments of a command."""
    if not frame.startswith(b"*"):
        return tuple(frame.split())  # an inline command
    found, place = [], frame.index(b"\r\n") + 2
    while place < len(frame):
        line_end = frame.index(b"\r\n", place)
        size = int(frame[place + 1 : line_end])
        found.append(frame[line_end + 2 : line_end + 2 + size])
        place = line_end + 2 + size + 2
    return tuple(found)


def error(text: str | bytes) -> bytes:
    """An error reply."""
    return b"-" + (text.encode() if isinstance(text, str) else text) + b"\r\n"


def reply(value: Any) -> bytes:
    """A reply: None, an integer, bytes, text (as bytes) or a list of replies. RESP2; RESP3 clients take it too."""
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return b"$%d\r\n%s\r\n" % (len(value), value)
    return b"*%d\r\n" % len(value) + b"".join(map(reply, value))


def is_push(frame: bytes) -> bool:
    """Whether it is no reply but something that the server says unasked."""
    return frame.startswith(b">")


def shown(frame: bytes, limit: int = 300) -> str:
    """A frame for people, one line."""
    text = frame.replace(b"\r\n", b" ").decode("utf-8", "backslashreplace").rstrip()
    return text if len(text) <= limit else text[:limit] + "..."
