"""The levels of the specification that a run shows to hold: Core, and each capability by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leaseq_conformance.rules import CORE, capabilities
from leaseq_conformance.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection

    from leaseq_conformance.runner import Run


@dataclass(frozen=True)
class Level:
    """A level and its state after a run.

    Attributes:
        name: `core` or a capability.
        claimed: whether the client claims it.
        passed: how many of its cases passed.
        ran: how many of its cases were run.
        cases: how many cases it has.
        filtered: whether only some cases were asked for, so that no level is judged.
    """

    name: str
    claimed: bool
    passed: int
    ran: int
    cases: int
    filtered: bool = False

    @property
    def holds(self) -> bool:
        """True if the claim holds: every case of it passed, none was left out."""
        return self.claimed and not self.filtered and 0 < self.cases == self.passed

    @property
    def status(self) -> str:
        """A few words about the level, for a person: "holds", "does not hold", "no case", ..."""
        if not self.claimed:
            return "not claimed"
        if self.holds:
            return "holds"
        if not self.cases:
            return "no case"
        if self.filtered or self.passed == self.ran:
            return f"{self.ran} of {self.cases} run"
        return "does not hold"

    def plain(self) -> dict[str, str | int | bool]:
        """The level as JSON data."""
        numbers = {"passed": self.passed, "ran": self.ran, "cases": self.cases}
        return {"name": self.name, "claimed": self.claimed, **numbers, "status": self.status}


def levels(run: Run) -> list[Level]:
    """Every level, in the order of the specification.

    Core has the cases that need nothing else. A case that needs several capabilities counts for each of them if the client
    claims all of them, and otherwise for none.
    """
    return [_level(name, run) for name in capabilities()]


def _level(name: str, run: Run) -> Level:
    claimed = run.capabilities | {name}
    cases = {case for case, needed in run.all_cases.items() if _counts(needed, name, claimed)}
    ran = [
        result
        for result in run.results
        if result.case.name in cases and result.verdict.outcome is not Outcome.SKIP
    ]
    passed = sum(result.passed for result in ran)
    return Level(name, name in run.capabilities, passed, len(ran), len(cases), run.filtered)


def _counts(needed: Collection[str], name: str, claimed: Collection[str]) -> bool:
    others = set(needed) - {CORE}
    if name == CORE:
        return not others and CORE in needed
    return name in others and others <= set(claimed)


def claim(run: Run) -> str:
    """Return what the client may call itself, in a few words; a filtered run shows nothing of the kind."""
    if run.filtered:
        return "no claim, because only some cases were run"
    held = [level.name for level in levels(run) if level.holds]
    if CORE not in held:
        return "not conformant"
    if len(held) == 1:
        return CORE
    if len(held) == len(capabilities()):
        return f"core and all {len(held) - 1} capabilities"
    return " + ".join(held)
