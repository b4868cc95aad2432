"""The suites `rights` and `bounds`: they hold on every server, and what they are for is found."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from leaseq_conformance import acl_suite, complexity_suite
from leaseq_conformance.adapter_pool import AdapterPool
from leaseq_conformance.cases import Context
from leaseq_conformance.redis_server import ExternalServer
from leaseq_conformance.rules import capabilities
from leaseq_conformance.runner import run_case
from leaseq_conformance.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = {case.name: case for suite in (acl_suite, complexity_suite) for case in suite.cases()}
ADAPTER = (sys.executable, "-m", "conformance_adapter.sync_client")

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def given(url: str) -> Iterator[ExternalServer]:
    with ExternalServer(url) as server:
        yield server


def run(name: str, given: ExternalServer) -> Verdict:
    if not CASES[name].capabilities:
        return run_case(CASES[name], Context(given))
    with AdapterPool(given, ADAPTER) as adapters:
        return run_case(CASES[name], Context(given, ADAPTER, frozenset(capabilities()), pool=adapters))


def test_a_case_leaves_no_user_and_takes_none(given: ExternalServer) -> None:
    with given.client() as client:
        users = client.acl_users()
        verdict = run("rights/worker", given)
        assert (verdict.outcome, verdict.message) == (Outcome.PASS, "")
        assert client.acl_users() == users


@pytest.mark.parametrize("role", ["worker", "reader"])
def test_a_right_too_few_is_found(role: str, given: ExternalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = acl_suite.roles()
    operations, rules = roles[role]
    less = {**roles, role: (operations, [rule for rule in rules if rule != "+hget"])}
    monkeypatch.setattr(acl_suite, "roles", lambda: less)
    assert run(f"rights/{role}", given).outcome is Outcome.FAIL


def test_a_right_too_many_is_found(given: ExternalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = acl_suite.roles()
    operations, _ = roles["reader"]
    monkeypatch.setattr(acl_suite, "roles", lambda: {**roles, "reader": (operations, roles["worker"][1])})
    verdict = run("rights/reader", given)
    assert verdict.outcome is Outcome.FAIL


def test_a_client_that_lacks_a_right_is_told(given: ExternalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = acl_suite.roles()
    operations, rules = roles["worker"]
    less = [rule for rule in rules if rule != "+evalsha"]
    monkeypatch.setattr(acl_suite, "roles", lambda: {**roles, "worker": (operations, less)})
    verdict = run("rights/client", given)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.message.startswith("add is answered error")
