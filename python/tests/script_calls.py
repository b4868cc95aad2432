"""Sample calls for every script: each is made on every kind of queue. A script without a row here fails the tests.

`{id}` stands for the token of that item's latest lease, or for 1 where it never had one.
"""

import re
from typing import NamedTuple

from script_lab import HOUR_MS, Arg, Lab


class Call(NamedTuple):
    """A call that is right on every queue."""

    script: str
    args: tuple[Arg, ...]

    def arguments(self, lab: Lab) -> list[Arg]:
        """The arguments with the tokens of the queue that is on the server."""

        def filled(arg: Arg) -> Arg:
            if isinstance(arg, str) and (place := re.fullmatch(r"\{(\w+)\}", arg)):
                return lab.tokens.get(place[1], 1)
            return arg

        return [filled(arg) for arg in self.args]


def rows(*many: tuple[Arg, ...]) -> list[tuple[Arg, ...]]:
    """Several calls."""
    return list(many)


DAY_MS = 24 * HOUR_MS
EVERY_STATE: tuple[Arg, ...] = (
    *(10, "c1", "{c1}", 0, "e1", "{e1}", 0, "e2", "{e2}", 0, "s1", "{s1}", 0, "s2", "{s2}", 0),
    *("x1", "{x1}", 0, "p3", "{p3}", 0, "p1", "{p1}", 0, "r1", "1", 0, "none", "1", 0),
)

CALLS: dict[str, list[tuple[Arg, ...]]] = {
    "add": rows(
        (1, "new", "data", 0),
        (1, "r1", "data", 0),
        (1, "new", "data", 1, "delay", 1000),
        (1, "new", "", 3, "not_before", 1, "priority", -7, "max_attempts", 65535),
        (1, "r1", "data", 1, "delay", 0),
        (4, "new", "a", 0, "new", "b", 0, "r1", "c", 0, "later", "d", 2, "delay", HOUR_MS, "priority", 7),
    ),
    "lease": rows((1, 30000), (3, 30000), (256, 1), (2, 30 * DAY_MS)),
    "complete": rows(
        (1, "c1", "{c1}", 0),
        (1, "s1", "{s1}", 0),
        (1, "s2", "{s2}", 0),
        (1, "x1", "{x1}", 0),
        (1, "c1", 1, 0),
        (1, "none", 1, 0),
        (1, "c1", "{c1}", 1, "only_current", 1),
        (1, "s1", "{s1}", 1, "only_current", 1),
        (2, "c1", "{c1}", 0, "c1", "{c1}", 0),
        EVERY_STATE,
    ),
    "complete_and_lease": rows(
        (1, 30000, 1, "c1", "{c1}", 0),
        (1, 30000, 1, "none", 1, 0),
        (1, 30000, 1, "s1", "{s1}", 0),
        (2, 30000, 2, "p1", "{p1}", 0, "e1", "{e1}", 0),
        (3, 1, 1, "e1", "{e1}", 1, "only_current", 1),
        (256, 30000, *EVERY_STATE),
    ),
    "configure": rows((1, "max_data", 1), (1, "max_data", 536870912)),
    "deep_clean": rows(
        *((cursor, 256, dry) for cursor in ("0", "2:0", "3:0", "4:0", "5:0", "6:0") for dry in (0, 1)),
        ("0", 1, 0),
    ),
    "extend": rows(
        (1, "c1", "{c1}", 1),
        (1, "e1", "{e1}", 30 * DAY_MS),
        (1, "c1", 1, 1000),
        (1, "s1", "{s1}", 1000),
        (4, "c1", "{c1}", 50, "c1", "{c1}", 20 * HOUR_MS, "e2", "{e2}", 1000, "none", 1, 1),
    ),
    "inspect": rows((1, "none"), (8, "r1", "r3", "f1", "c2", "x1", "e2", "none", "u2")),
    "light_clean": rows((1,), (3,), (256,)),
    "list": rows(
        ("ready", 0, 256, "forward"),
        ("delayed", 0, 2, "backward"),
        ("leased", 1, 1, "forward"),
        ("dead", 9007199254740991, 256, "forward"),
    ),
    "release": rows(
        (1, "c1", "{c1}", 0),
        (1, "c1", 1, 0),
        (1, "c2", "{c2}", 0),
        (1, "c2", "{c2}", 1, "uncounted", 1),
        (1, "e1", "{e1}", 1, "delay", 1000),
        (1, "s1", "{s1}", 0),
        (
            5,
            "c1",
            "{c1}",
            0,
            "c1",
            "{c1}",
            0,
            "e2",
            "{e2}",
            0,
            "e3",
            "{e3}",
            2,
            "uncounted",
            1,
            "delay",
            5,
            "no",
            1,
            0,
        ),
    ),
    "remove": rows(
        *((1, item) for item in ("r1", "f1", "c1", "x1", "none", "u1")),
        (6, "c1", "c1", "r2", "p2", "x1", "u2"),
    ),
    "settle": rows(()),
    "stats": rows(()),
}

READ_ONLY = {"inspect", "list", "stats"}
"""These write nothing at all."""
NEEDS_MEMORY = {"add", "configure"}
"""These answer LEASEQ_OUT_OF_MEMORY on a full server; every other script works there."""


def calls(script: str) -> list[Call]:
    """The sample calls of a script."""
    assert script in CALLS, f"script_calls.py: give sample calls for the script {script}"
    return [Call(script, args) for args in CALLS[script]]
