"""Texts from outside as a page shows them: nothing in them acts on the terminal, the order or the length of what is around."""

import json
from typing import Any, Final

from leaseq.formatting import plain

MAX_LINE_CHARS: Final = 300
"""Characters of an id or an error in a list."""

MAX_BLOCK_CHARS: Final = 65536
"""Characters of data or a traceback."""

HEX_WIDTH: Final = 16
"""Bytes in a line of a hex dump."""


def line(text: object, max_chars: int = MAX_LINE_CHARS) -> str:
    """Return a text on one line: control characters, and those that change the direction, are written out."""
    given = str(text)
    shown = plain(given[:max_chars])
    return shown if len(given) <= max_chars else f"{shown}…"


def first_line(text: str) -> str:
    """Return the first line of an error, which names its group."""
    return text.partition("\n")[0].strip()


def block(text: str) -> str:
    """Return a text with its line breaks, of bounded length."""
    shown = "\n".join(plain(each) for each in text[:MAX_BLOCK_CHARS].expandtabs(4).splitlines())
    left = len(text) - MAX_BLOCK_CHARS
    return f"{shown}\n… {left} more characters" if left > 0 else shown


def data(content: bytes, form: str) -> str:
    """Return data as "text", "json" or "hex". Data that are no JSON are shown as text, other bytes than UTF-8 as U+FFFD."""
    if form == "hex":
        return _hex(content)
    if form == "json":
        return block(_indented(content))
    # of a character that is cut in two, nothing is shown
    return block(content.decode(errors="replace"))


def form_of(content: bytes) -> str:
    """Return the form in which data are shown first."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "hex"
    return "json" if text.lstrip()[:1] in {"{", "["} else "text"


def value(given: Any) -> str:
    """Return a value of a job, such as a result, as JSON or as Python writes it."""
    try:
        return block(json.dumps(given, indent=2, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return block(repr(given))


def _indented(content: bytes) -> str:
    text = content.decode(errors="replace")
    if len(text) > MAX_BLOCK_CHARS:  # it would be read whole to show its start
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _hex(content: bytes) -> str:
    shown = content[: MAX_BLOCK_CHARS // 4]
    lines = []
    for at in range(0, len(shown), HEX_WIDTH):
        part = shown[at : at + HEX_WIDTH]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{at:08x}  {part.hex(' '):<{HEX_WIDTH * 3}} {letters}")
    left = len(content) - len(shown)
    return "\n".join([*lines, f"… {left} more bytes"] if left > 0 else lines)
