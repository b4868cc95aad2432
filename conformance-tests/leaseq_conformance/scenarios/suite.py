"""The suite of scenarios, as the runner takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leaseq_conformance.adapter_process import AdapterFaultError, NoAnswerError
from leaseq_conformance.scenarios.load import load_all
from leaseq_conformance.scenarios.scenario_runner import ScenarioRunner
from leaseq_conformance.verdict import BrokenError, UnjudgedError, passed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaseq_conformance.cases import Case, Context
    from leaseq_conformance.verdict import Verdict


def cases() -> Sequence[Case]:
    """All scenarios."""
    return load_all()


def run(case: Case, context: Context) -> Verdict:
    """Run a scenario; one with a race twice, once in each order."""
    races = any("race" in step for step in case.body["steps"])
    transcript: tuple[str, ...] = ()
    for order in (0, 1) if races else (0,):
        if order:
            context.server.flush()
        transcript += _run_once(case, context, order)
    return passed(transcript)


def _run_once(case: Case, context: Context, order: int) -> tuple[str, ...]:
    with context.session() as session, context.server.client() as client:
        try:
            ScenarioRunner(session, client, context.patience, order).play(case.body)
        except NoAnswerError as error:
            raise UnjudgedError(str(error), session.transcript()) from error
        except AdapterFaultError as error:
            raise BrokenError(str(error), session.transcript()) from error
        return session.transcript()
