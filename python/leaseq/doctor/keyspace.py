"""The keys whose names start with `leaseq:`: those are reserved (spec/02-data.md)."""

import re
from collections.abc import Iterator
from typing import Final

import redis

from leaseq import _scripts
from leaseq.doctor.finding import Verdict, advice, ok, problem
from leaseq.doctor.node import Node
from leaseq.keys import REGISTRY

MAX_SCANS: Final = 20
SCANNED_TOGETHER: Final = 1000
"""Keys that one SCAN looks at: a server with many more is looked at in part."""

MAX_NAMED: Final = 3

TYPES: Final = {REGISTRY: "set", "leaseq:workers": "zset"}
"""The keys outside all queues, and what they are."""

_OF_A_QUEUE: Final = {key for script in _scripts.SCRIPTS for key in script.keys} | {"paused"}
_OF_AN_ID: Final = ("result", "job", "cancelled", "woken", "slot")
_RESERVED: Final = re.compile(
    r"leaseq:worker:.+|leaseq:\{[A-Za-z0-9_.-]{1,100}\}:[A-Za-z0-9_.-]{1,100}:"
    rf"(?:(?:{'|'.join(sorted(_OF_A_QUEUE))})|(?:{'|'.join(_OF_AN_ID)}):.*)",
    re.DOTALL,
)


def keys(node: Node) -> Verdict:
    """Return whether only leaseq uses the names that are reserved, and the registry and the list of workers can be read."""
    for name, wanted in TYPES.items():
        kind = _type(node, name)
        if kind not in {wanted, "none"}:
            return problem(
                f"{name} is a {kind}, and not a {wanted}: something else wrote it",
                f"find what wrote it, and delete it there: DEL {name}",
            )
    foreign = [name for name in _names(node) if name not in TYPES and not _RESERVED.fullmatch(name)]
    if not foreign:
        return ok("no key of another program starts with leaseq:")
    named = ", ".join(sorted(foreign)[:MAX_NAMED])
    return advice(
        f"{len(foreign)} keys that start with leaseq: are not of leaseq, such as {named}",
        "rename them where they are written: these names are reserved, and access rules grant them together",
    )


def _type(node: Node, name: str) -> str:
    """The type of a key, "none" if it is not on this node of a cluster."""
    try:
        return str(node.execute("TYPE", name))
    except redis.exceptions.MovedError:
        return "none"


def _names(node: Node) -> Iterator[str]:
    """Yield names that start with `leaseq:`, of the first keys of the server."""
    cursor = "0"
    seen: set[str] = set()
    for _ in range(MAX_SCANS):
        cursor, names = node.execute("SCAN", cursor, "MATCH", "leaseq:*", "COUNT", SCANNED_TOGETHER)
        yield from set(names) - seen
        seen |= set(names)
        if str(cursor) == "0":
            return
