"""Which cases are run on which seeded bugs, right clients and broken adapters."""

from __future__ import annotations

import fnmatch
import sys
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from leaseq_conformance.rules import CORE
from leaseq_conformance.verdict import Outcome
from selftest.broken_adapters import DEGENERATE
from selftest.pool import JOBS, Subject, Task
from selftest.promise_tests import SUITE
from selftest.seeded_bug import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from leaseq_conformance.cases import Case
    from selftest.client_copies import Adapter, ClientCopies
    from selftest.pool import Result
    from selftest.seeded_bug import SeededBug

ALL_PARTS: Final = ("degenerate", "right", *PARTS, "mechanical")
QUICK_PARTS: Final = ALL_PARTS[:-1]
"""Without the mechanical mutants, which take hours."""
ADAPTERS: Final = ("python", "asyncio", "typescript")
TOGETHER: Final = 8
"""Cases that are run on the same adapter processes, one after the other."""
TIMEOUT_SECS: Final = 30.0
"""Seconds to wait for an answer of a client with a bug. A client that hangs is not judged: a case with that outcome does not catch the bug."""
RIGHT_TIMEOUT_SECS: Final = 60.0
HANGING: Final = 5.0
"""Seconds to wait for an answer of a broken adapter: all that they decide is that it does not pass."""


@dataclass(frozen=True)
class Options:
    """Options of a run.

    Attributes:
        bug_patterns, case_patterns: names; without any, all.
        every_case: whether bugs are run with all cases of their kind and not only with those that have to catch them.
        quick: whether each bug is run with the first of its cases alone.
        first: whether the other cases of a bug are left out once one has caught it.
        results: where the results are kept, for a run that goes on with them.
        record: whether `caught.json` is written.
    """

    parts: tuple[str, ...] = QUICK_PARTS
    bug_patterns: tuple[str, ...] = ()
    case_patterns: tuple[str, ...] = ()
    every_case: bool = False
    quick: bool = False
    first: bool = False
    jobs: int = JOBS
    patience: float = TIMEOUT_SECS
    results: Path | None = None
    record: bool = False

    def takes_case(self, name: str) -> bool:
        """Return whether a case of that name is to be run."""
        return _fits(name, self.case_patterns)

    def takes_bug(self, name: str) -> bool:
        """Return whether a bug of that name is to be run."""
        return _fits(name, self.bug_patterns)

    def wanted(self, bug: SeededBug) -> list[str]:
        """Return the names of the cases that have to catch a bug in this run."""
        named = [name for name in bug.caught_by if self.takes_case(name)]
        return named[:1] if self.quick else named

    @property
    def is_whole(self) -> bool:
        """True if every seeded bug is run with at least the cases that have to catch it."""
        return set(PARTS) <= set(self.parts) and not (self.quick or self.bug_patterns or self.case_patterns)


def cases_of(bug: SeededBug, cases: Mapping[str, Case], options: Options) -> list[Case]:
    """Return the cases that a bug is run with."""
    own = [cases[name] for name in options.wanted(bug) if name in cases]
    if options.every_case:
        kind = [case for case in cases.values() if _is_of_kind(case, bug) and case not in own]
        # what is likely to catch it comes first
        kind.sort(key=lambda case: not set(case.rules) & set(bug.breaks))
        own += [case for case in kind if options.takes_case(case.name)]
    return own


def pairs_to_run(
    bugs: Sequence[SeededBug], cases: Mapping[str, Case], options: Options, results: Iterable[Result]
) -> dict[SeededBug, list[Case]]:
    """Return bugs and the cases that each is to be run with, without the pairs that have results."""
    done = {(result.subject, result.case): result.outcome for result in results}
    caught = {name for (name, _), outcome in done.items() if outcome is Outcome.FAIL}
    pairs = {
        bug: [case for case in cases_of(bug, cases, options) if (bug.name, case.name) not in done]
        for bug in bugs
        if not (options.first and bug.name in caught)
    }
    return {bug: found for bug, found in pairs.items() if found}


def bug_tasks(
    pairs: Mapping[SeededBug, Sequence[Case]], copies: ClientCopies, options: Options
) -> Iterator[Task]:
    """Yield the tasks of bugs, each as soon as there is a client with it."""
    with_client = [bug for bug, found in pairs.items() if any(_needs_client(case) for case in found)]
    without = ((bug, ()) for bug in pairs if bug not in with_client)
    adapters: Iterator[tuple[SeededBug, Adapter]] = chain(copies.buggy(with_client), without)
    for bug, adapter in adapters:
        subject = Subject(bug.name, adapter, bug.sources())
        if options.first:
            yield Task(subject, tuple(pairs[bug]), options.patience, frozenset({Outcome.FAIL}))
        else:
            yield from _portions(subject, pairs[bug], options.patience)


def right_tasks(
    bugs: Sequence[SeededBug], cases: Mapping[str, Case], copies: ClientCopies, options: Options
) -> list[Task]:
    """Return the tasks of what has no bug: each adapter, and the scripts, with the cases that catch bugs of theirs."""
    used = list(cases.values())
    if not options.every_case:
        names = {name for bug in bugs for name in options.wanted(bug)}
        used = [case for case in used if case.name in names]
    used = [case for case in used if options.takes_case(case.name)]
    of_clients = [case for case in used if case.capabilities]
    others = [case for case in used if not case.capabilities]
    tasks = _portions(Subject("scripts and tests"), others, RIGHT_TIMEOUT_SECS)
    for name in ADAPTERS:
        tasks += _portions(Subject(name, copies.right(name)), of_clients, RIGHT_TIMEOUT_SECS)
    return tasks


def degenerate_tasks(cases: Mapping[str, Case]) -> list[Task]:
    """Return the tasks of adapters without a client: one case of Core that does not pass is enough."""
    core = tuple(case for case in cases.values() if CORE in case.capabilities)
    module = (sys.executable, "-m", "selftest.broken_adapters")
    until = frozenset(Outcome) - {Outcome.PASS}
    return [Task(Subject(name, (*module, name)), core, HANGING, until) for name in DEGENERATE]


def _portions(subject: Subject, cases: Sequence[Case], patience: float) -> list[Task]:
    return [
        Task(subject, tuple(cases[at : at + TOGETHER]), patience) for at in range(0, len(cases), TOGETHER)
    ]


def _needs_client(case: Case) -> bool:
    """Return whether a case runs a client, and not the scripts alone."""
    return bool(case.capabilities) or case.suite == SUITE


def _is_of_kind(case: Case, bug: SeededBug) -> bool:
    """Return whether a case can show a bug of this kind. A bug's own list of cases goes before this."""
    if bug.part == "tests" or case.suite == SUITE:
        return bug.part == "tests" and case.suite == SUITE
    if bug.part != "scripts":
        return bool(case.capabilities)
    if case.suite == "vectors":
        return case.body["script"] in bug.files
    return not case.capabilities


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
