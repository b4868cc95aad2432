"""Runs cases, each on an emptied server, and judges each. Nothing is ever run again."""

from __future__ import annotations

import dataclasses
import fnmatch
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from leaseq_conformance import registry
from leaseq_conformance.adapter_protocol import version_needed
from leaseq_conformance.verdict import Outcome, Verdict, VerdictError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from leaseq_conformance.cases import Case, Context


@dataclass
class Result:
    """A case and its verdict; `known` is whether it was listed as a known failure."""

    case: Case
    verdict: Verdict
    known: bool = False

    @property
    def passed(self) -> bool:
        """True if this counts for the client: it passed, and was not listed as a known failure."""
        return self.verdict.outcome is Outcome.PASS and not self.known

    @property
    def wrong(self) -> bool:
        """True if the run fails because of it: a failure that is not known, or a known failure that passed."""
        if self.known:
            return self.verdict.outcome is Outcome.PASS
        return self.verdict.outcome is Outcome.FAIL


@dataclass
class Run:
    """All results of a run, and what was run.

    Attributes:
        capabilities: what the client claims; empty for a run of the scripts alone.
        all_cases: every case of a client that the suite has, with the capabilities it needs, whether it was run or not.
        filtered: whether only some of them were asked for, so that no level can hold.
    """

    client: str
    server: str
    capabilities: frozenset[str] = frozenset()
    results: list[Result] = field(default_factory=list)
    all_cases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    filtered: bool = False

    @property
    def claimed(self) -> list[Result]:
        """The results of the cases that need nothing which the client does not claim."""
        return [result for result in self.results if set(result.case.capabilities) <= self.capabilities]


class Observer(Protocol):
    """Receives the progress of a run."""

    def started(self, case: Case) -> None:
        """A case is run now."""

    def finished(self, result: Result) -> None:
        """A case has been run."""


def run_case(case: Case, context: Context) -> Verdict:
    """Run one case and turn whatever happens into a verdict."""
    begun = time.monotonic()
    missing = sorted(set(case.capabilities) - context.capabilities)
    if missing:
        return Verdict(Outcome.SKIP, f"the client does not claim {', '.join(missing)}")
    needed = version_needed(case.body)
    if needed > context.adapter_protocol:
        return Verdict(
            Outcome.SKIP,
            f"it needs version {needed} of the adapter protocol, the adapter speaks {context.adapter_protocol}",
        )
    try:
        context.server.flush()
        verdict = registry.suite(case.suite).run(case, context)
    except VerdictError as error:
        verdict = error.judged()
    except Exception as error:  # noqa: BLE001 # whatever broke, the run goes on and reports it
        trace = tuple(traceback.format_exc().splitlines())
        verdict = Verdict(Outcome.ERROR, f"the harness itself failed: {error!r}", trace)
    if (
        verdict.outcome not in {Outcome.PASS, Outcome.SKIP}
        and not verdict.stderr
        and context.pool is not None
    ):
        verdict = dataclasses.replace(verdict, stderr=tuple(context.pool.stderr))
    return dataclasses.replace(verdict, seconds=time.monotonic() - begun)


def run_all(
    cases: Sequence[Case],
    contexts: Sequence[Context],
    run: Run,
    known_failures: Iterable[str],
    observer: Observer,
) -> None:
    """Run cases, as many at a time as there are contexts, and add the results to `run` in the order of the cases."""
    known = list(known_failures)
    todo = iter(enumerate(cases))
    results: dict[int, Result] = {}
    lock, stopped = threading.Lock(), threading.Event()

    def work(context: Context) -> None:
        while True:
            with lock:
                number, case = next(todo, (-1, None))
                if case is None or stopped.is_set():
                    return
                observer.started(case)
            verdict = run_case(case, context)
            listed = any(fnmatch.fnmatchcase(case.name, pattern) for pattern in known)
            with lock:
                results[number] = Result(case, verdict, listed)
                observer.finished(results[number])

    with ThreadPoolExecutor(len(contexts)) as threads:
        try:
            list(threads.map(work, contexts))
        finally:
            stopped.set()  # interrupted: each thread ends with the case that it is running
    run.results += [results[number] for number in sorted(results)]
