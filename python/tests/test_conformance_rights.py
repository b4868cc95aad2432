"""The suites `rights` and `bounds`: they hold on every server, and what they are for is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from leaseq_conformance import bounds, rights
from leaseq_conformance.cases import Context, Outcome, Verdict
from leaseq_conformance.crew import Crew
from leaseq_conformance.mutants import scripts
from leaseq_conformance.runner import run_case
from leaseq_conformance.selftest import bugs
from leaseq_conformance.server import GivenServer

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = {case.name: case for suite in (rights, bounds) for case in suite.cases()}
OF_SCRIPTS = [name for name, case in CASES.items() if not case.capabilities]
MUTANTS = [(name, bug) for name in OF_SCRIPTS for bug in CASES[name].catches]

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def given(url: str) -> Iterator[GivenServer]:
    with GivenServer(url) as server:
        yield server


def run(name: str, given: GivenServer) -> Verdict:
    if not CASES[name].capabilities:
        return run_case(CASES[name], Context(given))
    with Crew(given, bugs.RIGHT) as crew:
        return bugs.run_with(CASES[name], crew)


@pytest.mark.parametrize("name", CASES)
def test_the_scripts_and_the_client_are_right(name: str, given: GivenServer) -> None:
    with given.client() as client:
        users = client.acl_users()
        verdict = run(name, given)
        assert (verdict.outcome, verdict.message) == (Outcome.PASS, "")
        assert client.acl_users() == users, "the case leaves none of its own, and takes nobody else's"


@pytest.mark.on("last")
@pytest.mark.parametrize(("name", "bug"), MUTANTS)
def test_a_seeded_bug_of_a_script_is_found(name: str, bug: str, given: GivenServer) -> None:
    mutant = next(each for each in scripts.load() if each.name == bug)
    suite = bounds if name.startswith("bounds") else rights
    verdict = suite.run_with(CASES[name], Context(given), {mutant.script: mutant.source()})
    assert verdict.outcome is Outcome.FAIL
    assert mutant.script in verdict.message


@pytest.mark.on("last")
@pytest.mark.parametrize("role", ["worker", "reader"])
def test_a_right_too_few_is_found(role: str, given: GivenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = rights.roles()
    operations, rules = roles[role]
    less = {**roles, role: (operations, [rule for rule in rules if rule != "+hget"])}
    monkeypatch.setattr(rights, "roles", lambda: less)
    assert run(f"rights/{role}", given).outcome is Outcome.FAIL


@pytest.mark.on("last")
def test_a_right_too_many_is_found(given: GivenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = rights.roles()
    operations, _ = roles["reader"]
    monkeypatch.setattr(rights, "roles", lambda: {**roles, "reader": (operations, roles["worker"][1])})
    verdict = run("rights/reader", given)
    assert verdict.outcome is Outcome.FAIL


@pytest.mark.on("last")
def test_a_client_that_lacks_a_right_is_told(given: GivenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = rights.roles()
    operations, rules = roles["worker"]
    less = [rule for rule in rules if rule != "+evalsha"]
    monkeypatch.setattr(rights, "roles", lambda: {**roles, "worker": (operations, less)})
    verdict = run("rights/client", given)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.message.startswith("add is answered error")
