"""Runs the cases against what is wrong on purpose, and counts what they find."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from leaseq_conformance.adapters.degenerate import DEGENERATE
from leaseq_conformance.cases import Outcome
from leaseq_conformance.crew import Crew
from leaseq_conformance.mutants import mechanical
from leaseq_conformance.mutants.lua_edits import edits
from leaseq_conformance.mutants.scripts import SOURCES
from leaseq_conformance.rules import CORE, rules
from leaseq_conformance.selftest import bugs, hands, plan

if TYPE_CHECKING:
    from collections.abc import Collection

    from leaseq_conformance.cases import Case
    from leaseq_conformance.server import Server

HANGING: Final = 5.0
"""Seconds that an adapter which answers nothing is waited for: nothing is judged by them but that it is no pass."""

PARTS: Final = ("degenerate", "right", "bugs", "mechanical")
"""What there is to look at, once bugs, cases and rules fit together."""


@dataclass
class Part:
    """One of the things that are counted: how many were looked at, and which are not as they have to be."""

    title: str
    looked_at: int = 0
    wrong: list[str] = field(default_factory=list)

    def look(self, complaint: str, progress: Progress) -> None:
        """Count one more, with what is wrong with it, if anything is."""
        self.looked_at += 1
        if complaint:
            self.wrong.append(complaint)
            progress.wrong(complaint)

    @property
    def right(self) -> int:
        """How many are as they have to be."""
        return self.looked_at - len(self.wrong)


@dataclass
class Score:
    """All that was counted, and the rules that a bug broke and a case that names them found broken."""

    parts: list[Part] = field(default_factory=list)
    covered: set[str] = field(default_factory=set)

    @property
    def percent(self) -> float:
        """100 only where all is right, and something was looked at."""
        looked_at = sum(part.looked_at for part in self.parts)
        return 100 * sum(part.right for part in self.parts) / looked_at if looked_at else 0.0

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return bool(self.parts) and all(part.looked_at and not part.wrong for part in self.parts)


class Progress(Protocol):
    """Who is told how it goes on."""

    def begin(self, title: str, steps: int) -> None:
        """Say what is looked at now, and how much of it there is."""

    def step(self, name: str) -> None:
        """Say that this one was looked at."""

    def wrong(self, line: str) -> None:
        """Say at once what is wrong."""


def selftest(
    server: Server, progress: Progress, *, quick: bool = False, parts: Collection[str] = PARTS
) -> Score:
    """Judge the suite, or parts of it.

    Quick is each named bug against its own case, the right client on those cases, and no mechanical mutant.
    """
    named, cases = bugs.named(), bugs.all_cases()
    pairs = plan.pairs(named, cases, quick=quick)
    score = Score([_fit(named, cases, progress)])
    if "degenerate" in parts:
        score.parts.append(_degenerate(cases, server, progress))
    if "right" in parts:
        score.parts.append(_right_client(pairs, server, progress))
    if "bugs" in parts:
        score.parts.append(_caught(pairs, server, progress, score))
    if "mechanical" in parts and not quick:
        score.parts.append(_mechanical(progress))
    return score


def _fit(named: list[bugs.Bug], cases: dict[str, Case], progress: Progress) -> Part:
    known = rules()
    part = Part("bugs, cases and rules that fit together", len(named) + len(cases) + len(known))
    part.wrong = plan.complaints(named, cases, known)
    part.looked_at = max(part.looked_at, len(part.wrong))
    for line in part.wrong:
        progress.wrong(line)
    return part


def _right_client(pairs: list[tuple[Case, bugs.Bug]], server: Server, progress: Progress) -> Part:
    """A case that fails anybody catches nothing."""
    part = Part("cases that the right client passes")
    cases = {case.name: case for case, _ in pairs}
    progress.begin(part.title, len(cases))
    for told in hands.run(hands.tasks(None, list(cases.values())), server):
        progress.step(told.case.name)
        passed = told.outcome is Outcome.PASS
        part.look("" if passed else f"{told.case.name}: {told.outcome.value}: {told.message}", progress)
    return part


def _caught(pairs: list[tuple[Case, bugs.Bug]], server: Server, progress: Progress, score: Score) -> Part:
    part = Part("bugs that fail the cases that are to catch them")
    progress.begin(part.title, len(pairs))
    todo = [task for bug, cases in plan.by_bug(pairs) for task in hands.tasks(bug, cases)]
    for told in hands.run(todo, server):
        bug, case = told.bug, told.case
        assert bug is not None
        progress.step(f"{bug.name} by {case.name}")
        caught = told.outcome is Outcome.FAIL
        if caught and bug.breaks in case.rules:
            score.covered.add(bug.breaks)
        said = f"{told.outcome.value} {told.message}".strip()
        missed = f"{bug.name} ({bug.line}) is not caught by {case.name}: {said}"
        part.look("" if caught else missed, progress)
    return part


def _degenerate(cases: dict[str, Case], server: Server, progress: Progress) -> Part:
    """One case of Core that does not pass is enough: a claim needs them all."""
    part = Part("adapters of no client that do not conform")
    core = [case for case in cases.values() if CORE in case.capabilities]
    progress.begin(part.title, len(DEGENERATE))
    for name in DEGENERATE:
        with Crew(server, bugs.degenerate(name)) as crew:
            verdicts = (bugs.run_with(case, crew, HANGING) for case in core)
            conforms = all(verdict.outcome is Outcome.PASS for verdict in verdicts)
        progress.step(name)
        part.look(f"{name} conforms to Core" if conforms else "", progress)
    return part


def _mechanical(progress: Progress) -> Part:
    """One edit of a script after the other, none of them chosen."""
    part = Part("mechanical mutants of scripts that vectors kill, or that are explained")
    scripts = sorted(SOURCES)
    chunks = sum(-(-len(edits(text)) // mechanical.CHUNK) for text in SOURCES.values())
    progress.begin(part.title, chunks)
    found = mechanical.run(scripts, progress.step)
    part.looked_at = found.killed + found.explained
    for script, edit in found.unexplained:
        part.look(f"{script}: {edit.line} ==> {edit.becomes}: survives and is not explained", progress)
    for each in found.idle:
        part.look(f"{each.line} ==> {each.becomes}: explained, and killed or no edit", progress)
    return part
