"""What a run says about the levels: Core, and each capability by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leaseq_conformance.rules import CORE, capabilities

if TYPE_CHECKING:
    from leaseq_conformance.runner import Result, Run


@dataclass(frozen=True)
class Level:
    """A level and how it stands after a run.

    Attributes:
        name: `core` or a capability.
        declared: whether the client claims it.
        right: how many of its cases passed.
        cases: how many it has.
    """

    name: str
    declared: bool
    right: int
    cases: int

    @property
    def holds(self) -> bool:
        """Whether the claim holds: every case of it passed, none skipped."""
        return self.declared and self.cases > 0 and self.right == self.cases

    @property
    def word(self) -> str:
        """What to print."""
        if not self.declared:
            return "not claimed"
        return "holds" if self.holds else "no case" if not self.cases else "does not hold"


def levels(run: Run) -> list[Level]:
    """Every level, in the order of the specification.

    Core has the cases that need nothing else. One that needs several capabilities counts for each of them, for a client that
    claims them all; for one that does not it is no case of the others.
    """
    return [_level(name, run) for name in capabilities()]


def _level(name: str, run: Run) -> Level:
    claimed = run.capabilities | {name}
    mine = [result for result in run.results if _counts(result, name, claimed)]
    return Level(name, name in run.capabilities, sum(result.right for result in mine), len(mine))


def _counts(result: Result, name: str, claimed: frozenset[str]) -> bool:
    needed = set(result.case.capabilities) - {CORE}
    if name == CORE:
        return not needed and CORE in result.case.capabilities
    return name in needed and needed <= claimed


def claim(run: Run) -> str:
    """What the client may call itself, in a few words."""
    held = [level.name for level in levels(run) if level.holds]
    if CORE not in held:
        return "not conformant"
    more = len(held) - 1
    return (
        "core"
        if not more
        else f"core and all {more} capabilities"
        if more == len(capabilities()) - 1
        else " + ".join(held)
    )
