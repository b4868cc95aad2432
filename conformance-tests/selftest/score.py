"""Runs the cases against what is wrong on purpose, and counts what they find."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from leaseq_conformance import registry
from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.rules import rules
from leaseq_conformance.verdict import Outcome
from selftest import lint, plan, pool, records
from selftest.client_copies import ClientCopies
from selftest.mutation import run
from selftest.mutation.operators import edits
from selftest.promise_tests import SUITE, promise_tests
from selftest.seeded_bug import PARTS, load_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from leaseq_conformance.cases import Case
    from leaseq_conformance.redis_server import Server
    from selftest.plan import Options
    from selftest.pool import Result, Task
    from selftest.seeded_bug import SeededBug


class Progress(Protocol):
    """Receives the progress of a run."""

    def begin(self, title: str, steps: int) -> None:
        """Say what is run now, and how much of it there is."""

    def step(self, name: str) -> None:
        """Say that this one was run."""

    def wrong(self, line: str) -> None:
        """Say at once what is wrong."""


@dataclass
class Part:
    """One of the things that are counted: how many there are, and which of them are not as they have to be."""

    title: str
    of: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def right(self) -> int:
        """The number of those that are as they must be."""
        return self.of - len(self.wrong)


@dataclass
class Score:
    """All that was counted.

    Attributes:
        problems: what is wrong with the seeded bugs themselves.
        parts: what was run.
        rules: the rules that a bug breaks which a case that names the rule caught; None if not all bugs were run.
        idle: the cases that were never seen to catch a bug.
    """

    problems: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    rules: Part | None = None
    idle: list[str] = field(default_factory=list)
    cases: int = 0

    @property
    def is_good(self) -> bool:
        """True if something was run, and nothing is wrong."""
        counted = [*self.parts, *([self.rules] if self.rules else [])]
        return not self.problems and bool(counted) and all(part.of and not part.wrong for part in counted)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON data."""
        counted = [*self.parts, *([self.rules] if self.rules else [])]
        return {
            "good": self.is_good,
            "problems": self.problems,
            "parts": [
                {"title": part.title, "right": part.right, "of": part.of, "wrong": part.wrong}
                for part in counted
            ],
            "cases": self.cases,
            "idle_cases": self.idle,
        }


def all_cases() -> dict[str, Case]:
    """Return everything that a bug can be caught by, by name: the cases of the suite, and the tests of promises."""
    found = [*registry.all_cases(), *(test.case() for test in promise_tests())]
    return {case.name: case for case in found}


def selftest(server: Server, progress: Progress, options: Options) -> Score:
    """Judge the suite, or parts of it."""
    bugs, cases = load_all(), all_cases()
    of_suite = [name for name, case in cases.items() if case.suite != SUITE]
    score = Score(cases=len(of_suite))
    caught = records.read_caught()
    chosen = [bug for bug in bugs if bug.part in options.parts and options.takes_bug(bug.name)]
    with ExitStack() as stack:
        copies = stack.enter_context(ClientCopies())
        if "degenerate" in options.parts:
            score.parts.append(_degenerate(cases, server, progress, options))
        if "right" in options.parts:
            tasks = plan.right_tasks(bugs, cases, copies, options)
            score.parts.append(_right(tasks, server, progress, options))
        kept = records.ResultsFile(options.results, {bug.name: bug.digest for bug in bugs})
        results = kept.read()
        for result in _run_bugs(
            plan.pairs_to_run(chosen, cases, options, results), copies, server, progress, options
        ):
            kept.add(result)
            results.append(result)
    score.parts += _caught(chosen, results, options)
    if "mechanical" in options.parts:
        score.parts.append(_mechanical(progress))
    if options.record:
        records.write_caught(caught, results, [bug.name for bug in bugs], cases)
        caught = records.read_caught()
    if not (options.bug_patterns or options.case_patterns):
        score.problems = lint.problems(bugs, cases, rules(), caught)
    if options.is_whole:
        score.rules = _rules(bugs, cases, results)
    seen = {name for names in caught.values() for name in names}
    score.idle = [name for name in of_suite if name not in seen]
    return score


def _run_bugs(
    pairs: Mapping[SeededBug, Sequence[Case]],
    copies: ClientCopies,
    server: Server,
    progress: Progress,
    options: Options,
) -> Iterator[Result]:
    """Run bugs with their cases, several at a time, and those that escape once more, alone.

    Some bugs are a matter of milliseconds, which a processor that others use hides.
    """
    if not pairs:
        return
    caught: set[tuple[str, str]] = set()
    progress.begin("seeded bugs and cases", sum(map(len, pairs.values())))
    for result in pool.run(plan.bug_tasks(pairs, copies, options), server, options.jobs):
        progress.step(f"{result.subject} by {result.case}")
        if result.outcome is Outcome.FAIL:
            caught.add((result.subject, result.case))
        yield result
    names = {name for name, _ in caught} if options.first else set()
    escaped = {
        bug: [case for case in cases if case.name in bug.caught_by and (bug.name, case.name) not in caught]
        for bug, cases in pairs.items()
        if bug.name not in names
    }
    escaped = {bug: cases for bug, cases in escaped.items() if cases}
    if escaped:
        progress.begin("escaped while others ran, and run alone", sum(map(len, escaped.values())))
    with ClientCopies() as again:
        for result in pool.run(plan.bug_tasks(escaped, again, options), server, 1):
            progress.step(f"{result.subject} by {result.case}")
            _complain(result, escaped, progress)
            yield result


def _complain(result: Result, bugs: Iterable[SeededBug], progress: Progress) -> None:
    bug = next(bug for bug in bugs if bug.name == result.subject)
    if result.case in bug.caught_by and result.outcome is not Outcome.FAIL:
        outcome_text = f"{result.outcome.value} {result.message}".strip()
        progress.wrong(f"{bug.name} ({bug.title}) is not caught by {result.case}: {outcome_text}")


def _caught(bugs: Sequence[SeededBug], results: Iterable[Result], options: Options) -> list[Part]:
    """Count the bugs that each of their cases caught, a part for each kind."""
    found = {(result.subject, result.case): result.outcome for result in results}
    parts = []
    for name in PARTS:
        part = Part(f"bugs of {name} that are caught")
        for bug in bugs:
            if bug.part != name:
                continue
            wanted = options.wanted(bug)
            missed = [case for case in wanted if found.get((bug.name, case)) is not Outcome.FAIL]
            if (options.case_patterns or options.quick) and not wanted:
                continue
            part.of += 1
            if missed:
                part.wrong.append(f"{bug.name} ({bug.title}) is not caught by {', '.join(missed)}")
            elif not wanted:
                part.wrong.append(f"{bug.name} ({bug.title}) has no case that catches it")
        if part.of:
            parts.append(part)
    return parts


def _rules(bugs: Iterable[SeededBug], cases: Mapping[str, Case], results: Iterable[Result]) -> Part:
    """Count the rules for which a bug that breaks one was caught by a case that names it."""
    breaks = {bug.name: bug.breaks for bug in bugs}
    covered: set[str] = set()
    for result in results:
        if result.outcome is Outcome.FAIL and result.case in cases:
            covered |= set(breaks.get(result.subject, ())) & set(cases[result.case].rules)
    known = rules()
    wrong = [
        f"no case that names {rule} caught a bug that breaks it" for rule in known if rule not in covered
    ]
    return Part("rules that a caught bug broke", len(known), wrong)


def _right(tasks: list[Task], server: Server, progress: Progress, options: Options) -> Part:
    """A case that what is right does not pass catches nothing."""
    part = Part("cases that the right clients and scripts pass", sum(len(task.cases) for task in tasks))
    progress.begin(part.title, part.of)
    for result in pool.run(tasks, server, options.jobs):
        progress.step(f"{result.subject}: {result.case}")
        if result.outcome is not Outcome.PASS:
            part.wrong.append(f"{result.subject}: {result.case}: {result.outcome.value}: {result.message}")
            progress.wrong(part.wrong[-1])
    return part


def _degenerate(cases: Mapping[str, Case], server: Server, progress: Progress, options: Options) -> Part:
    tasks = plan.degenerate_tasks(cases)
    part = Part("adapters without a client that do not conform", len(tasks))
    progress.begin(part.title, part.of)
    refused: set[str] = set()
    for result in pool.run(tasks, server, options.jobs):
        if result.outcome is not Outcome.PASS:
            refused.add(result.subject)
            progress.step(result.subject)
    part.wrong = [f"{task.subject.name} conforms" for task in tasks if task.subject.name not in refused]
    for line in part.wrong:
        progress.wrong(line)
    return part


def _mechanical(progress: Progress) -> Part:
    """Count the single edits of scripts, none of them chosen, that vectors kill."""
    part = Part(f"scripts of whose mechanical mutants {run.THRESHOLD} % are killed")
    chunks = sum(-(-len(edits(script.source)) // run.CHUNK) for script in SCRIPTS.values())
    progress.begin(part.title, chunks)
    found = run.run(sorted(SCRIPTS), progress.step)
    part.of = len(SCRIPTS)
    part.wrong = [
        f"{script}: {found.share(script):.1f} % of its mutants are killed" for script in found.below
    ]
    return part
