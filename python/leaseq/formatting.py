"""Values as they are written for people: no control characters, durations and sizes in words."""

import time
from collections.abc import Mapping

PREVIEW_WIDTH = 60
"""The most characters of data that a list shows."""

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def plain(text: str) -> str:
    """The text with control characters written out: an id must not move the cursor, nor add a line to a list."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )


def duration(seconds: float) -> str:
    """A duration in seconds, such as 1.5 s, 12 min, 3.2 h."""
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{_rounded(seconds / unit, 3)} {name}"
    return f"{_rounded(seconds * 1000, 3)} ms" if seconds > 0 else "0 s"


def _rounded(number: float, digits: int) -> str:
    """A number with `digits` digits, or all those before its point: never with an exponent."""
    return f"{number:.{digits}g}" if round(number) < 10**digits else f"{number:.0f}"


def when(seconds: float) -> str:
    """A time, given in seconds from now: in 5 min, 5 min ago."""
    return f"in {duration(seconds)}" if seconds > 0 else f"{duration(-seconds)} ago"


def size(count: float) -> str:
    """A number of bytes, such as 12 B, 1.5 KiB."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{_rounded(count, 4)} {unit}"
        count /= 1024
    return f"{_rounded(count, 4)} GiB"


def moment(seconds: float) -> str:
    """A time in seconds since 1970, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + " UTC"


def queue(name: str, group: str) -> str:
    """Return the name of a queue, behind that of its group if they differ."""
    return name if name == group else f"{group}:{name}"


def one_line(text: object) -> str:
    """A text without line breaks, and without more than one space between two words."""
    return " ".join(str(text).split())


def counted(counts: Mapping[str, int]) -> str:
    """Return what there is any of, such as "promoted 1, died 2"."""
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count)


def preview(data: bytes) -> str:
    """The beginning of the data, on one line."""
    text = plain(data[: 4 * (PREVIEW_WIDTH + 1)].decode(errors="replace"))  # a character has up to 4 bytes
    return text if len(text) <= PREVIEW_WIDTH else f"{text[: PREVIEW_WIDTH - 1]}…"
