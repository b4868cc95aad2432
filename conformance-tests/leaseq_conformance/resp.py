"""RESP, as far as a proxy needs it: where a frame ends, what a command says, and how a reply is written.

Nothing is decoded that need not be: a frame is passed on as the bytes that it came in.
"""

from __future__ import annotations

from typing import Any, Final

_AGGREGATES: Final = b"*~>%|"
_SIZED: Final = b"$=!"


class Stream:
    """Bytes as they come in, cut into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._end = 0
        self._parts = 1

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        self._buffer += data

    def frame(self) -> bytes | None:
        """Take the next whole frame off; None while more bytes have to come first."""
        while self._parts:
            found = _part(self._buffer, self._end)
            if found is None:
                return None
            self._end, inside = found
            self._parts += inside - 1
        frame = bytes(self._buffer[: self._end])
        del self._buffer[: self._end]
        self._end, self._parts = 0, 1
        return frame


def _part(data: bytearray, start: int) -> tuple[int, int] | None:
    """Return where the part that starts here ends, and how many parts follow inside it; None while it is incomplete."""
    line_end = data.find(b"\r\n", start)
    if line_end < 0:
        return None
    kind, end = data[start : start + 1], line_end + 2
    if not kind or kind not in _SIZED + _AGGREGATES:
        return end, 0
    size = max(-1, int(data[start + 1 : line_end]))
    if kind in _SIZED:
        end += size + 2 if size >= 0 else 0
        return (end, 0) if end <= len(data) else None
    return end, max(0, size) * (2 if kind in b"%|" else 1) + (kind == b"|")


def arguments(frame: bytes) -> tuple[bytes, ...]:
    """Return the arguments of a command."""
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
    """Return an error reply."""
    return b"-" + (text.encode() if isinstance(text, str) else text) + b"\r\n"


def reply(value: Any) -> bytes:
    """Return a reply: None, an integer, bytes, text (as bytes) or a list of replies. RESP2; RESP3 clients take it too."""
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
    """Return whether the server sent this frame on its own, not as a reply."""
    return frame.startswith(b">")


def shown(frame: bytes, limit: int = 300) -> str:
    """Return a frame as one line for people."""
    text = frame.replace(b"\r\n", b" ").decode("utf-8", "backslashreplace").rstrip()
    return text if len(text) <= limit else text[:limit] + "..."
