"""Cases of jobs: what the loader refuses, what they show, and what is no verdict on a client."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from leaseq_conformance import jobs, registry
from leaseq_conformance.adapter_pool import AdapterPool
from leaseq_conformance.case_loader import CaseFileError
from leaseq_conformance.cases import Case, Context
from leaseq_conformance.jobs import payload, suite
from leaseq_conformance.redis_server import open_server
from leaseq_conformance.rules import bound, capabilities
from leaseq_conformance.runner import run_case
from leaseq_conformance.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.verdict import Verdict

CLAIMED = frozenset(capabilities())
CASES = {case.name: case for case in jobs.cases()}
ADAPTER = (sys.executable, "-m", "conformance_adapter.sync_client")
ADD: dict[str, Any] = {
    "add": {"id": "a", "envelope": {"v": 1, "function": "add", "args": [1, 2]}, "options": {"keep": 60000}}
}
RESULT: dict[str, Any] = {"outcome": {"id": "a", "kind": "result", "content": {"v": 1, "result": 3}}}
RIGHT: dict[str, Any] = {
    "name": "right",
    "title": "A case that is right",
    "rules": ["LQ-JOB-8"],
    "capabilities": ["job_worker"],
    "steps": [ADD, RESULT],
}


def written(*steps: dict[str, Any], **changed: Any) -> Case:
    """The one case of a file with these steps."""
    (case,) = suite.load(yaml.safe_dump([{**RIGHT, "steps": list(steps), **changed}]), "test.yaml")
    return case


def test_every_rule_about_jobs_has_a_case_that_a_port_can_run() -> None:
    of_jobs = {rule for rule in bound() if rule.startswith("LQ-JOB-")}
    shown = {rule for case in CASES.values() for rule in case.rules}
    assert len(of_jobs) > 35
    assert shown == of_jobs


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"rules": ["LQ-ADD-1"]}, "rules/0"),
        ({"capabilities": ["core"]}, "capabilities/0"),
        ({"steps": [ADD]}, "asserts nothing"),
        ({"steps": [{"sleep": 1}]}, "steps/0"),
        ({"steps": [{"outcome": {"id": "a", "kind": "done"}}]}, "steps/0"),
        ({"worker": {"count": 9}}, "worker/count"),
    ],
)
def test_a_case_that_is_not_right_is_refused_with_its_place(changed: dict[str, Any], expected: str) -> None:
    with pytest.raises(CaseFileError, match=expected):
        written(**{"steps": [ADD, RESULT], **changed}) if "steps" not in changed else written(
            *changed["steps"]
        )


@pytest.fixture(scope="module")
def context(server: Any) -> Iterator[Context]:
    """A server, and an adapter whose worker program is kept from test to test."""
    with open_server(program=server.program) as own, AdapterPool(own, ADAPTER) as pool:
        yield Context(own, ADAPTER, CLAIMED, pool=pool, patience=20)


def run(case: Case, context: Context) -> Verdict:
    """The verdict of one case."""
    return run_case(case, context)


@pytest.mark.slow
def test_a_worker_program_is_kept_for_the_next_case_and_ends_before_one_of_another_suite(
    context: Context,
) -> None:
    assert context.pool is not None
    assert run(CASES["jobs/call-by-position"], context).outcome is Outcome.PASS
    (kept,) = context.pool.workers._running
    assert run(CASES["jobs/call-by-name"], context).outcome is Outcome.PASS
    assert context.pool.workers._running == [kept]
    assert run(next(case for case in registry.all_cases(["scenarios"])), context).outcome is Outcome.PASS
    assert context.pool.workers._running == []


@pytest.mark.slow
def test_a_case_that_fails_says_at_which_step_what_was_expected(context: Context) -> None:
    verdict = run(written(ADD, {"outcome": {**RESULT["outcome"], "content": {"result": 4}}}), context)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.message == "step 2: the result.result is 3, expected 4"
    verdict = run(written(ADD, {"outcome": {"id": "a", "kind": "failure"}}), context)
    assert verdict.outcome is Outcome.FAIL
    assert "a has ended: result" in verdict.message


@pytest.mark.parametrize(
    ("job_worker", "expected"),
    [
        ([], "hello names no job_worker"),
        (["/bin/sh", "-c", "echo too old >&2; exit 1"], "ended too early"),
        (["/nowhere/worker"], "ended too early"),
    ],
)
def test_a_worker_program_that_does_not_run_breaks_the_protocol(
    job_worker: list[str], expected: str, server: Any
) -> None:
    found = f"lambda _: {job_worker!r}"
    body = f"from conformance_adapter import dispatch, sync_client; dispatch.job_worker = {found}; sync_client.main()"
    if not job_worker:
        body = (
            "from conformance_adapter import dispatch, sync_client; hello = dispatch.hello;"
            "dispatch.hello = lambda *of: {k: v for k, v in hello(*of).items() if k != 'job_worker'};"
            "sync_client.main()"
        )
    adapter = (sys.executable, "-c", body)
    with open_server(program=server.program) as own, AdapterPool(own, adapter) as pool:
        verdict = run(written(ADD, RESULT), Context(own, adapter, CLAIMED, pool=pool, patience=20))
    assert (verdict.outcome, expected in verdict.message) == (Outcome.ERROR, True), verdict.message


def test_a_client_that_claims_no_jobs_skips_their_cases(context: Context) -> None:
    claims_none = Context(context.server, ADAPTER, frozenset({"core"}), pool=context.pool)
    assert {run(case, claims_none).outcome for case in CASES.values()} == {Outcome.SKIP}


@pytest.mark.parametrize(
    "text",
    [
        "no such order",
        "ValueError: no such order",
        "ValueError: no such order\n",
        "ValueError: one\ntwo\n\n",
        "ValueError: " + "x" * 8192 + "\n\n",
    ],
)
def test_a_failure_of_another_form_is_none(text: str) -> None:
    with pytest.raises(payload.PayloadError, match="LQ-JOB-"):
        payload.failure(text)


@pytest.mark.parametrize(
    "content",
    [{"result": 1}, {"v": 2}, {"v": 1, "started": 1.5}, {"v": 1, "worker": 3}, {"v": 1, "job": "f"}],
)
def test_a_result_that_breaks_the_table_is_none(content: dict[str, Any]) -> None:
    with pytest.raises(payload.PayloadError, match="the table of the result"):
        payload.read(json.dumps(content).encode(), "result")
