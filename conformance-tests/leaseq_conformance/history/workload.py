"""Programs for the actors of a history, drawn from a seed: the same seed gives the same programs.

A step names no token, since those are the server's to give: it says which of the leases that its actor was given it means,
counted from the newest. Items that were leased since by others, completed or added again are among them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Fault = Literal["", "drop before", "drop after", "kill before", "kill after"]
"""A fault of a call: its connection is dropped or its process is killed, before or after the server ran the script."""

HOUR_MS: Final = 3_600_000
"""Leases and delays are long: what has to be over is forged, and no step depends on how fast the machine is."""
IDS: Final = 8
"""Few, so that actors meet on them."""

WEIGHTS: Final = {
    "add": 6,
    "lease": 10,
    "complete": 6,
    "extend": 3,
    "release": 5,
    "remove": 1,
    "light_clean": 2,
    "wait": 3,
    "complete_and_lease": 3,
    "complete_keep": 3,
    "outcome": 3,
    "wait_outcome": 1,
    "hand_off": 3,
}
NEEDS: Final = {
    "remove": "cancel",
    "light_clean": "clean",
    "wait": "blocking",
    "complete_and_lease": "fused",
    "complete_keep": "outcome",
    "outcome": "outcome",
    "wait_outcome": "outcome",
    "hand_off": "handoff",
}
METHODS: Final = {"wait": "lease", "complete_keep": "complete"}
"""Methods of the adapter protocol, by the kind of a step, if the two names differ."""
FAULTS: Final[tuple[Fault, ...]] = ("drop before", "drop after", "kill before", "kill after")


@dataclass(frozen=True)
class Step:
    """One call.

    Attributes:
        ids: of the items to add, remove, forge or ask about, or of the follow-ups of a hand-off.
        leases: which of its leases the actor means, counted from the newest.
        flag: `only_current` of complete, `uncounted` of release.
        wait_ms: how long a lease or a question for an outcome waits; 0: not at all.
        keep: whether a complete keeps its result.
    """

    method: str
    ids: tuple[str, ...] = ()
    count: int = 1
    leases: tuple[int, ...] = ()
    delay_ms: int = 0
    flag: bool = False
    wait_ms: int = 0
    keep: bool = False
    fault: Fault = ""

    @property
    def script(self) -> str:
        """The script that a right client runs first, which a fault strikes."""
        if self.keep or self.method == "hand_off":
            return "complete_with"
        return "outcome" if self.method == "wait_outcome" else self.method


@dataclass(frozen=True)
class Program:
    """The steps of all actors of a history."""

    seed: int
    actors: dict[str, list[Step]] = field(default_factory=dict)
    forger: list[Step] = field(default_factory=list)


def draw(
    seed: int, capabilities: frozenset[str], *, actors: int = 4, steps: int = 40, faulty: float = 0.06
) -> Program:
    """Draw programs for a client with these capabilities.

    `faulty` is how many of the calls are lost: each may have done anything, so more of them leave less to judge.
    """
    chance = random.Random(seed)  # noqa: S311 (no secret)
    methods = [name for name in WEIGHTS if NEEDS.get(name, "core") in capabilities]
    program = Program(seed)
    for number in range(1, actors + 1):
        program.actors[f"w{number}"] = [_step(chance, methods, faulty) for _ in range(steps)]
    program.forger.extend(Step("forge", ids=(_id(chance),)) for _ in range(steps))
    return program


def _id(chance: random.Random) -> str:
    return f"item-{chance.randrange(IDS)}"


def _step(chance: random.Random, methods: Sequence[str], faulty: float) -> Step:
    kind = chance.choices(methods, [WEIGHTS[name] for name in methods])[0]
    method = METHODS.get(kind, kind)
    fault: Fault = chance.choice(FAULTS) if chance.random() < faulty else ""
    several = 1 if chance.random() < 0.6 else chance.randint(2, 4)
    ids = tuple(_id(chance) for _ in range(several))
    wait = chance.randint(50, 300) if kind in {"wait", "wait_outcome"} else 0
    if method in {"add", "remove", "outcome", "wait_outcome"}:
        delay = HOUR_MS if method == "add" and chance.random() < 0.15 else 0
        if method == "wait_outcome":
            ids = ids[:1]
        return Step(method, ids=ids, delay_ms=delay, wait_ms=wait, fault=fault)
    if method == "lease":
        return Step(method, count=several, wait_ms=wait, fault=fault)
    if method == "light_clean":
        return Step(method, fault=fault)
    leases = tuple(chance.randrange(4) for _ in range(several))
    delay = HOUR_MS if method == "release" and chance.random() < 0.3 else 0
    flag = chance.random() < 0.3 and not delay
    follow_ups = ids if method == "hand_off" else ()
    keep = kind == "complete_keep"
    return Step(method, follow_ups, leases=leases, delay_ms=delay, flag=flag, keep=keep, fault=fault)
