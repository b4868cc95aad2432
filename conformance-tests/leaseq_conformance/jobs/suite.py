"""The suite of jobs, as the runner takes it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance import case_loader
from leaseq_conformance.jobs.job_case import ONE_WORKER, JobCaseRunner
from leaseq_conformance.verdict import VerdictError, passed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from leaseq_conformance.cases import Case, Context
    from leaseq_conformance.verdict import Verdict

SUITE: Final = "jobs"
WORKER: Final = "job_worker"
"""The capability of cases that need a worker program."""
PARTS: Final = frozenset({"name", "title", "rules", "capabilities"})
ASSERTS: Final = frozenset(
    {"outcome", "item", "stored", "note", "changed", "slots", "sent", "marks_end", "ok", "error"}
)


def cases() -> Sequence[Case]:
    """All cases of jobs."""
    return [case for text, name in case_loader.texts(SUITE) for case in load(text, name)]


def load(text: str, source: str) -> list[Case]:
    """The cases of one file. Raises CaseFileError."""
    return case_loader.read(SUITE, text, source, _problems, _body)


def run(case: Case, context: Context) -> Verdict:
    """Run a case, with a worker program if it needs one."""
    with (
        context.session(keeps_workers=True) as session,
        context.server.client() as client,
        tempfile.TemporaryDirectory(prefix="leaseq-marks-", ignore_cleanup_errors=True) as folder,
    ):
        programs = session.pool.workers
        try:
            if WORKER in case.capabilities and not any("workers" in step for step in case.body["steps"]):
                programs.need(**{**ONE_WORKER, **case.body.get("worker", {})})
            elif WORKER not in case.capabilities:
                programs.end()  # the suite is the worker
            JobCaseRunner(session, client, context.patience, programs, Path(folder)).play(case.body)
        except VerdictError as error:
            error.stderr = error.stderr or tuple(programs.printed())
            error.transcript = error.transcript or session.transcript()
            programs.end()  # whatever they do, they do not disturb the next case
            raise
        return passed(session.transcript())


def _problems(case: dict[str, Any]) -> Iterator[str]:
    if not any(ASSERTS & step.keys() for step in case["steps"]):
        yield "it asserts nothing"


def _body(case: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in case.items() if key not in PARTS}
