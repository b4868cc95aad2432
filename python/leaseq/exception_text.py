"""The text of exceptions. Every one has a text, also if its `__str__` raises or UTF-8 cannot hold what it says."""

import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

MAX_NAME_CHARS = 200


def text_of(error: BaseException) -> str:
    """Return an exception as the last error of an item: its class and its message."""
    try:
        text = "".join(traceback.format_exception_only(error))
    except BaseException:  # noqa: BLE001 (in fewer words)
        text = f"{name_of(error)}: {written(error)}"
    return _sendable(text).strip()


def name_of(error: BaseException) -> str:
    """Return the name of an exception's class, with its module unless it is built in."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return _sendable(name.replace("<locals>.", ""))[:MAX_NAME_CHARS]


def written(value: object, write: Callable[[Any], str] = str) -> str:
    """Return the text of a value, or that it has none."""
    try:
        return _sendable(write(value))
    except BaseException as error:  # noqa: BLE001 (told)
        return f"<{write.__name__}() of {type(value).__name__} raised {name_of(error)}>"


def formatted(error: BaseException, begin: TracebackType | None) -> str:
    """Return an exception with its traceback from `begin` on, its causes and its notes."""
    try:
        text = "".join(traceback.format_exception(type(error), error, begin))
    except BaseException:  # noqa: BLE001 (in fewer words)
        text = "".join([*traceback.format_tb(begin), f"{name_of(error)}: {written(error)}\n"])
    return _sendable(text)


def is_printable(error: BaseException) -> bool:
    """Return whether a log can print an exception, wherever it goes."""
    try:
        "".join(traceback.format_exception(error)).encode()
    except BaseException:  # noqa: BLE001 (the answer)
        return False
    return True


def _sendable(text: str) -> str:
    """Return text that UTF-8 can hold."""
    return str.encode(text, errors="backslashreplace").decode()
