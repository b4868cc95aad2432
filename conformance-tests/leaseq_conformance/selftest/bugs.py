"""Every seeded bug, whatever it is made of, and how a case is run with it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from leaseq_conformance import suites
from leaseq_conformance.adapters.degenerate import DEGENERATE
from leaseq_conformance.cases import Context, VerdictError
from leaseq_conformance.messages import SCHEMA
from leaseq_conformance.mutants import scripts
from leaseq_conformance.mutants.registry import adapter_mutants
from leaseq_conformance.runner import run_case

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leaseq_conformance.cases import Case, Verdict
    from leaseq_conformance.crew import Crew

PATIENCE: Final = 30.0
"""Seconds that an adapter with a bug may take to answer; one that hangs is `unknown`, and so is no pass."""
MODULE: Final = (sys.executable, "-m")
RIGHT: Final = (*MODULE, "leaseq_conformance.adapters.python_sync")
CLAIMED: Final[frozenset[str]] = frozenset(SCHEMA["$defs"]["capability"]["enum"])
"""What the adapters here claim: everything, so that no case is skipped."""


@dataclass(frozen=True)
class Bug:
    """A seeded bug.

    Attributes:
        breaks: the rule that it violates.
        caught_by: the case that has to find it.
        line: what it does.
        sources: of a script with a bug, its text by the script's name; of a client with one, nothing.
    """

    name: str
    kind: str
    breaks: str
    caught_by: str
    line: str
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def adapter(self) -> tuple[str, ...]:
        """The command of the adapter with this bug."""
        return (*MODULE, "leaseq_conformance.adapters.mutant", self.name)


def named() -> list[Bug]:
    """All bugs that have names: those of clients, then those of scripts."""
    clients = [
        Bug(bug.name, bug.kind, bug.breaks, bug.caught_by, bug.line) for bug, _ in adapter_mutants().values()
    ]
    edited = [
        Bug(each.name, each.kind, each.breaks, each.caught_by, each.line, {each.script: each.source()})
        for each in scripts.load()
    ]
    return clients + edited


def degenerate(name: str) -> tuple[str, ...]:
    """The command of an adapter without a client."""
    assert name in DEGENERATE, name
    return (*MODULE, "leaseq_conformance.adapters.degenerate", name)


def run_with_bug(case: Case, bug: Bug, crew: Crew) -> Verdict:
    """Run a case on what has the bug: the script itself where the case needs no client, else the crew of the bug's client."""
    if bug.sources and not case.capabilities:
        crew.server.flush()
        try:
            return suites.of_scripts(case.suite).run_with(case, Context(crew.server), bug.sources)
        except VerdictError as error:
            return error.judged()
    return run_with(case, crew)


def run_with(case: Case, crew: Crew, patience: float = PATIENCE) -> Verdict:
    """Run a case on a crew, whose processes are kept from case to case: their start is what costs time."""
    return run_case(case, Context(crew.server, crew.adapter, CLAIMED, 1, patience, crew))


def all_cases() -> dict[str, Case]:
    """Every case of every suite by its name."""
    return {case.name: case for case in suites.all_cases()}
