"""Runs cases one after the other, each on an emptied server, and judges what comes back. Nothing is ever run again."""

from __future__ import annotations

import dataclasses
import fnmatch
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from leaseq_conformance import suites
from leaseq_conformance.cases import Outcome, Verdict, VerdictError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from leaseq_conformance.cases import Case, Context


@dataclass
class Result:
    """A case and how it went; `known` is whether it was listed as a known failure."""

    case: Case
    verdict: Verdict
    known: bool = False

    @property
    def right(self) -> bool:
        """Whether this speaks for the client: it passed, and was not said to fail."""
        return self.verdict.outcome is Outcome.PASS and not self.known

    @property
    def wrong(self) -> bool:
        """Whether the run fails for it: a failure that is not known, or a known one that passed."""
        if self.known:
            return self.verdict.outcome is Outcome.PASS
        return self.verdict.outcome is Outcome.FAIL


@dataclass
class Run:
    """All results of a run, and what was run."""

    client: str
    server: str
    capabilities: frozenset[str] = frozenset()
    results: list[Result] = field(default_factory=list)


def run_case(case: Case, context: Context) -> Verdict:
    """Run one case and turn whatever happens into a verdict."""
    begun = time.monotonic()
    missing = sorted(set(case.capabilities) - context.capabilities)
    if missing:
        return Verdict(Outcome.SKIP, f"the client does not declare {', '.join(missing)}")
    try:
        context.server.flush()
        verdict = suites.suite(case.suite).run(case, context)
    except VerdictError as error:
        verdict = error.judged()
    except Exception as error:  # noqa: BLE001 # whatever broke, the run goes on and says so
        verdict = Verdict(Outcome.ERROR, repr(error), tuple(traceback.format_exc().splitlines()))
    return dataclasses.replace(verdict, seconds=time.monotonic() - begun)


class Watcher(Protocol):
    """Who is told how a run goes."""

    def begin(self, case: Case) -> None:
        """Say that a case is run now."""

    def told(self, result: Result) -> None:
        """Say how it went."""


def run_all(
    cases: Iterable[Case], context: Context, run: Run, known_failures: Iterable[str], watcher: Watcher
) -> None:
    """Run cases in their order and add the results to `run`."""
    known = list(known_failures)
    for case in cases:
        watcher.begin(case)
        listed = any(fnmatch.fnmatchcase(case.name, pattern) for pattern in known)
        result = Result(case, run_case(case, context), listed)
        run.results.append(result)
        watcher.told(result)
