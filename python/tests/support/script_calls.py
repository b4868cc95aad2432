"""Sample calls for every script: each is made on every kind of queue. A script without a row here fails the tests.

`{id}` stands for the token of that item's latest lease, or for 1 where it never had one.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from support.script_lab import HOUR_MS, SCRIPTS, Arg, Lab, Outcome, Snapshot, key
from support.script_queues import DAY_MS, QUEUES


class Call(NamedTuple):
    """A call that is right on every queue. `more` are the keys behind the script's fixed ones."""

    script: str
    args: tuple[Arg, ...]
    more: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that it declares, by their short names."""
        return (*SCRIPTS[self.script].keys, *self.more)

    def run(self, lab: Lab, **how: Any) -> Outcome:
        """Make the call."""
        return lab.run(self.script, self.arguments(lab), more=self.more, **how)

    def ok(self, lab: Lab) -> Any:
        """Its reply, where it must succeed."""
        return lab.ok(self.script, *self.arguments(lab), more=self.more)

    def watch(self, lab: Lab) -> Outcome:
        """Make the call and see its commands."""
        return lab.watch(self.script, self.arguments(lab), more=self.more)

    def well(self, lab: Lab, kind: str) -> tuple[Outcome, Snapshot]:
        """What it does on such a queue, and what it leaves."""
        lab.know(kind)
        return lab.well(kind, self.script, self.arguments(lab), self.more)

    def arguments(self, lab: Lab) -> list[Arg]:
        """The arguments with the tokens of the queue that is on the server."""

        def filled(arg: Arg) -> Arg:
            if isinstance(arg, str) and (place := re.fullmatch(r"\{(\w+)\}", arg)):
                return lab.tokens.get(place[1], 1)
            return arg

        return [filled(arg) for arg in self.args]


class With(NamedTuple):
    """A call with keys behind the fixed ones."""

    keys: tuple[str, ...]
    args: tuple[Arg, ...]


Row = tuple[Arg, ...] | With


def rows(*many: Row) -> list[Row]:
    """Several calls."""
    return list(many)


def results(*items: str) -> tuple[str, ...]:
    """The keys of their outcomes."""
    return tuple(f"result:{item}" for item in items)


def of(script: str, queue: str = "") -> tuple[str, ...]:
    """The keys that a script takes of a queue, "" or "other:"."""
    return tuple(queue + each for each in SCRIPTS[script].keys)


HERE, THERE = of("add"), of("add", "other:")
"""The keys of a target queue."""
EVERY_STATE: tuple[Arg, ...] = (
    *(10, "c1", "{c1}", 0, "e1", "{e1}", 0, "e2", "{e2}", 0, "s1", "{s1}", 0, "s2", "{s2}", 0),
    *("x1", "{x1}", 0, "p3", "{p3}", 0, "p1", "{p1}", 0, "r1", "1", 0, "none", "1", 0),
)

CALLS: dict[str, list[Row]] = {
    "add": rows(
        (1, "new", "data", 0),
        (1, "r1", "data", 0),
        (1, "new", "data", 1, "delay", 1000),
        (1, "new", "", 3, "not_before", 1, "priority", -7, "max_attempts", 65534),
        (1, "r1", "data", 1, "delay", 0),
        (1, "new", "data", 1, "expires_in", 1),
        (1, "k1", "data", 0),
        (1, "t1", "data", 1, "keep", 1),
        (
            *(3, "new", "", 4, "header:A.b-c_9", "1", "content_type", "", "keep", DAY_MS, "max_attempts", 0),
            *("more", "", 3, "expires_in", 3000, "expires_to", "dead", "delay", 2999, "k2", "", 0),
        ),
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
    "complete_with": rows(
        (1, 0, "c1", "{c1}", 0, 0),
        (1, 0, "none", 1, 0, 0),
        (1, 0, "c1", "{c1}", 1, "only_current", 1, 0),
        (1, 0, "s1", "{s1}", 1, "only_current", 1, 0),
        With(results("c1"), (1, 0, "c1", "{c1}", 2, "keep", 0, "result", "of c1", 0)),
        With(results("c1"), (1, 0, "c1", "{c1}", 3, "result", "", "only_current", 1, "keep", DAY_MS, 0)),
        With(results("k1"), (1, 0, "k1", "{k1}", 1, "keep", 0, 0)),
        With(results("k2"), (1, 0, "k2", "{k2}", 1, "keep", 1000, 0)),
        With(results("t1"), (1, 0, "t1", "{t1}", 1, "keep", 0, 0)),
        With(results("x2"), (1, 0, "x2", "{x2}", 1, "keep", 1000, 0)),
        With(THERE, (1, 1, "c1", "{c1}", 0, 1, 1, "c1/next", "data", 0)),
        With(HERE, (1, 1, "c1", "{c1}", 0, 1, 1, "c1", "the same id once more", 0)),
        With(THERE, (1, 1, "none", 1, 0, 1, 1, "c1/next", "data", 0)),
        With((*THERE, *HERE, *THERE), (1, 3, "e1", "{e1}", 0, 0)),
        With(
            (*THERE, *HERE, *THERE, *results("c2", "k1", "c1")),
            (
                *(4, 3, "c2", "{c2}", 1, "keep", DAY_MS, 3, 1, "o5", "", 0, 2, "c2", "", 1, "delay", 1000),
                *(3, "o5", "is there then", 0),
                *("k1", "{k1}", 1, "keep", 0, 1, 2, "k1", "", 0),
                *("e3", "{e3}", 0, 2, 3, "o6", "", 2, "keep", 1, "header:a", ""),
                *(2, "r1", "", 4, "expires_in", 9, "expires_to", "dead", "max_attempts", 0, "priority", 7),
                *("c1", "{c1}", 1, "keep", 0, 0),
            ),
        ),
    ),
    "configure": rows(
        (1, "max_data", 1),
        (1, "max_data", 536870912),
        (1, "max_items", 8),
        (2, "max_items", 0, "max_attempts", 65534),
        (1, "paused", 1),
        (1, "paused", 0),
        (4, "paused", 0, "max_data", 9, "max_items", 4294967295, "max_attempts", 0),
    ),
    "deep_clean": rows(
        *((cursor, 256, dry) for cursor in ("0", *(f"{n}:0" for n in range(2, 9))) for dry in (0, 1)),
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
    "lease_any": rows(
        With(of("lease"), (1, 1, 30000)),
        With((*of("lease"), *of("lease", "other:")), (2, 1, 30000)),
        With((*of("lease", "other:"), *of("lease")), (2, 3, 1)),
        With((*of("lease"), *of("lease", "other:")), (2, 256, 30 * DAY_MS)),
    ),
    "light_clean": rows((1,), (3,), (256,)),
    "list": rows(
        ("ready", 0, 256, "forward"),
        ("delayed", 0, 2, "backward"),
        ("leased", 1, 1, "forward"),
        ("dead", 9007199254740991, 256, "forward"),
        ("kept", 0, 256, "backward"),
    ),
    "outcome": rows(
        *(
            With(results(item), (1, item))
            for item in ("c1", "x1", "x2", "k1", "k2", "t1", "r1", "u1", "none")
        ),
        With(results("x1", "x1", "t1", "f1", "r4", "e2"), (6, "x1", "x1", "t1", "f1", "r4", "e2")),
    ),
    "purge": rows(
        (0, 1, "x1"),
        (0, 1, "r1"),
        (HOUR_MS, 1, "x1"),
        (HOUR_MS + 1, 1, "x1"),
        (0, 5, "x1", "x1", "x2", "none", "c1"),
    ),
    "release": rows(
        (1, "c1", "{c1}", 0),
        (1, "c1", 1, 0),
        (1, "c2", "{c2}", 0),
        (1, "c2", "{c2}", 1, "uncounted", 1),
        (1, "e1", "{e1}", 1, "delay", 1000),
        (1, "s1", "{s1}", 0),
        (1, "c1", "{c1}", 1, "error", "why"),
        (1, "e1", "{e1}", 2, "error", "", "uncounted", 1),
        (1, "c1", "{c1}", 2, "error", "x" * 8193, "dead", 1),
        With(results("c1"), (1, "c1", "{c1}", 3, "keep", 0, "dead", 1, "error", "why")),
        With(results("c2"), (1, "c2", "{c2}", 1, "keep", 1000)),
        With(results("none"), (1, "none", 1, 1, "keep", 1000)),
        With(
            results("c1", "c2"),
            (
                *(4, "c1", "{c1}", 3, "keep", DAY_MS, "error", "why", "delay", 1),
                *("e1", "{e1}", 1, "dead", 1, "c2", "{c2}", 1, "keep", DAY_MS, "c2", "{c2}", 0),
            ),
        ),
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
    "revive": rows((1, "x1"), (1, "c1"), (1, "x2"), (5, "x1", "x1", "x3", "none", "r1")),
    "settle": rows(()),
    "stats": rows(()),
}

READ_ONLY = {"inspect", "list", "stats"}
"""These write nothing at all."""
NEEDS_MEMORY = {"add"}
"""These answer LEASEQ_OUT_OF_MEMORY on a full server; every other script works there."""


def calls(script: str) -> list[Call]:
    """The sample calls of a script."""
    assert script in CALLS, f"script_calls.py: give sample calls for the script {script}"
    return [
        Call(script, row.args, row.keys) if isinstance(row, With) else Call(script, row)
        for row in CALLS[script]
    ]


def declared(script: str) -> list[str]:
    """The keys that a script takes, those of its sample calls behind the fixed ones with them."""
    return list(dict.fromkeys(each for call in calls(script) for each in call.keys))


def whole(names: Sequence[str]) -> list[str]:
    """Whole keys by their short names."""
    return [key(name) for name in names]


def cases(lab: Lab, name: str, kinds: tuple[str, ...] = tuple(QUEUES)) -> Iterator[tuple[Call, str]]:
    """Every sample call of a script on every kind of queue, which is on the server at that moment."""
    for call in calls(name):
        for kind in kinds:
            lab.queue(kind)
            yield call, kind


def known_cases(lab: Lab, name: str) -> Iterator[tuple[Call, str]]:
    """The same without putting the queue on the server."""
    for call in calls(name):
        for kind in QUEUES:
            lab.know(kind)
            yield call, kind


def unchanged(lab: Lab, outcome: Outcome, code: str, before: Snapshot, case: object) -> None:
    """The call was refused by this name and left every byte as it was."""
    assert outcome.code == code, (case, outcome)
    assert lab.snapshot() == before, (case, outcome.error)


def paths(lab: Lab, name: str) -> Iterator[tuple[Call, str, Outcome]]:
    """One call on one kind of queue for each way through the script, and for each number of ids."""
    seen = set()
    for call, kind in known_cases(lab, name):
        well, _ = call.well(lab, kind)
        if (way := (well.path, call.args[:1])) not in seen:
            seen.add(way)
            yield call, kind, well
