"""What callers may pass by mistake, and tables of calls that get it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leaseq import Item, LeaseqError

Call = Callable[[Any, Any], object]
Row = tuple["type[LeaseqError]", Call]
MIB = 1024 * 1024


def with_token(item: Any, token: Any) -> Any:
    """The item with another token."""
    real = getattr(item, "real", item)
    real.token = token
    return item


def with_id(item: Any, item_id: Any) -> Any:
    """The item with another id."""
    real = getattr(item, "real", item)
    real.id = item_id
    return item


def with_headers(item: Item, headers: Any) -> Item:
    """The item with other headers, not looked at."""
    item.headers = headers
    return item


BAD_IDS: dict[str, Any] = {
    "empty": "",
    "too long": "x" * 257,
    "too many bytes": "ü" * 129,
    "NUL": "a\0b",
    "empty bytes": b"",
    "surrogate": "a\ud800",
    "not UTF-8": b"\xff",
    "overlong": b"\xc0\x80",
    "surrogate bytes": b"\xed\xa0\x80",
}
NO_IDS: dict[str, Any] = {"int": 5, "list": ["a"], "float": 1.5, "bytearray": bytearray(b"a")}
BAD_NUMBERS: dict[str, float] = {
    "negative": -1,
    "NaN": math.nan,
    "infinite": math.inf,
    "minus infinite": -math.inf,
    "huge": 1e300,
    "huge int": 10**400,
    "beyond": 315_360_000_001.0,
}
KEEPS = {**BAD_NUMBERS, "too short": 0.0001}
NO_NUMBERS: dict[str, Any] = {"str": "5", "bool": True, "list": [1], "complex": 1j}
NO_COUNTS: dict[str, Any] = {"float": 1.0, "str": "1", "bool": True, "None": None}
NO_ITEMS: dict[str, Any] = {"str": "a", "bytes": b"a", "None": None, "int": 1, "dict": {"id": "a"}}
BAD_TOKENS: dict[str, Any] = {"negative": -1, "huge": 10**16, "enormous": 10**5000}
NO_TOKENS: dict[str, Any] = {"str": "1", "float": 1.5, "None": None, "bool": True}


class Table(dict[str, Row]):
    """Calls by title, each with the error that it gets."""

    def rows(
        self,
        title: str,
        error: type[LeaseqError],
        values: dict[str, Any],
        call: Callable[[Any, Any, Any], object],
    ) -> None:
        """One row for each bad value."""
        for name, value in values.items():
            self[f"{title}: {name}"] = (error, partial(_swapped, call, value))


def _swapped(call: Callable[[Any, Any, Any], object], value: Any, queue: Any, item: Any) -> object:
    return call(queue, item, value)
