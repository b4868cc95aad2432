"""Comparison of the calls of a vector with the vector."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.vectors.notation import difference, reply_to_yaml
from leaseq_conformance.vectors.vector import (
    Dump,
    Refused,
    Reply,
    Vector,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN_ERROR: Final = "SERVER"
WITHIN: Final = re.compile(rb"^([1-8]):[1-9]\d*$")
"""A cursor that goes on within a key; vectors have it as 1, since only the server knows it."""


@dataclass(frozen=True)
class Observed:
    """The reply to a call, and the keys after it. `extra` counts keys of the database that the call does not name."""

    reply: Reply | Refused
    dump: Dump
    extra: int


@dataclass(frozen=True)
class Run:
    """A vector and what its call did, the first and the second time."""

    vector: Vector
    first: Observed
    second: Observed

    def wrong(self) -> str:
        """Return what is not as the vector says; empty where all is."""
        vector = self.vector
        for title, seen, reply, then in (
            ("", self.first, vector.reply, vector.then),
            ("the second time, ", self.second, vector.again, vector.then_again),
        ):
            if not agree(vector, seen.reply, reply):
                return (
                    f"{title}it answers {_cut(reply_to_yaml(seen.reply))}, not {_cut(reply_to_yaml(reply))}"
                )
            if seen.dump != then:
                return f"{title}it leaves other keys; what they have more or less: {_cut(difference(then, seen.dump))}"
            if seen.extra:
                return f"{title}it leaves {seen.extra} more keys that no call names"
        return ""


def _cut(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 2000 else text[:2000] + " ..."


def unordered_part(script: str, reply: Sequence[Any], entries: int) -> tuple[int, int, int]:
    """Return start and end of the unordered part of a reply, and the number of elements in each of its groups; it is empty if all is in order."""
    if script in {"lease", "lease_any", "complete_and_lease"}:
        first = int(script == "lease_any")
        return first + 3 + 4 * reply[first + 2], len(reply) - entries, 3
    if script == "light_clean":
        return 6, len(reply), 1
    return 0, 0, 1


def in_order(script: str, reply: Any, entries: int) -> Any:
    """A reply with what it tells in an order: which comes first is not laid down, nor where a page of a key ends."""
    if not isinstance(reply, list) or not reply:
        return reply
    if script == "deep_clean":
        return [WITHIN.sub(rb"\1:1", reply[0]), *reply[1:]]
    start, end, size = unordered_part(script, reply, entries)
    groups = sorted((tuple(reply[at : at + size]) for at in range(start, end, size)), key=repr)
    return [*reply[:start], *(part for each in groups for part in each), *reply[end:]]


def agree(vector: Vector, one: Any, other: Any) -> bool:
    """Return whether two replies to a vector's call say the same; the server's own error is one without a code of the protocol."""
    if other == Refused(OWN_ERROR):
        return isinstance(one, Refused) and not one.code.startswith("LEASEQ_")
    entries = int(vector.argv[2]) if vector.script == "complete_and_lease" and isinstance(other, list) else 0
    try:
        return bool(in_order(vector.script, one, entries) == in_order(vector.script, other, entries))
    except (IndexError, TypeError):
        return False
