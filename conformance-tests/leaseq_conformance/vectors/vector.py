"""A vector in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

START: Final = 1_767_225_600_000_000
"""Start of the queues: 2026-01-01."""
NOW: Final = START + 3_600_000_000
"""When the calls are made: an hour later."""
HASHES: Final = {"items", "meta", "counters"}

Scores = dict[bytes, float]
Fields = dict[bytes, bytes]


@dataclass(frozen=True)
class Kept:
    """A list with a time to live, in milliseconds."""

    values: tuple[bytes, ...]
    ttl: int


Value = bytes | list[bytes] | Fields | Scores | Kept
Dump = dict[str, Value]
"""Keys by their names without the prefix of the queue; those of the second queue start with `other:`."""
Reply = int | bytes | list[int | bytes]


@dataclass(frozen=True)
class Refused:
    """An error, by its code."""

    code: str


@dataclass
class Vector:
    """One call of a script and what must come of it.

    `more` are the keys behind the fixed ones, by their names; `keys` takes the place of all. `again` is what the same call must answer and leave the second time. A cursor of
    `deep_clean` that goes on within a key is 1: which one it is only the server knows.
    """

    name: str
    script: str
    rules: tuple[str, ...]
    now: int
    given: Dump
    argv: list[bytes]
    reply: Reply | Refused
    then: Dump
    again: Reply | Refused
    then_again: Dump
    more: list[str] = field(default_factory=list)
    keys: list[str] | None = None
    base: str = ""
    server: str = ""
    """A fault of the server: `full`, `replica`, or `without COMMAND` if the caller may not use that command."""


def bare(key: str) -> str:
    """The name of a key without the queue it is of."""
    return key.removeprefix("other:")
