"""The conformance suite's test of itself: what does not fit is told, what is not caught is told, and nothing else is 100 %."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from servers import wait_until

from leaseq_conformance.adapters.degenerate import DEGENERATE
from leaseq_conformance.cases import Case, Outcome
from leaseq_conformance.crew import Crew
from leaseq_conformance.mutants.registry import adapter_mutants
from leaseq_conformance.rules import core_rules, rules
from leaseq_conformance.selftest import bugs, hands, plan, score
from leaseq_conformance.selftest.bugs import Bug
from leaseq_conformance.selftest.command import selftest_command
from leaseq_conformance.server import GivenServer, OwnServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.cases import Verdict

pytestmark = pytest.mark.timeout(600)

CASE = Case("scenarios/one", "a case", ("LQ-ADD-1", "LQ-CALL-1"), ("core",), ("a-bug",))
BUG = Bug("a-bug", "adapter", "LQ-ADD-1", "scenarios/one", "does it wrong")
ADD = "scenarios/add-lease-complete"


@pytest.fixture
def given(url: str) -> Iterator[GivenServer]:
    with GivenServer(url) as server:
        yield server


class Silent:
    """Progress that nobody sees."""

    def wrong(self, line: str) -> None:
        """Nothing."""

    def begin(self, title: str, steps: int) -> None:
        """Nothing."""

    def step(self, name: str) -> None:
        """Nothing."""


def with_bug(case: Case, bug: Bug, given: GivenServer) -> Verdict:
    with Crew(given, bug.adapter) as crew:
        return bugs.run_with_bug(case, bug, crew)


def with_right(case: Case, given: GivenServer) -> Verdict:
    with Crew(given, bugs.RIGHT) as crew:
        return bugs.run_with(case, crew)


def complaints(found: list[Bug], *cases: Case) -> list[str]:
    return plan.complaints(found, {case.name: case for case in cases}, ["LQ-ADD-1"])


def test_bugs_and_cases_that_fit_are_not_complained_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "LEAST", 1)
    assert complaints([BUG], CASE) == []


@pytest.mark.parametrize(
    ("found", "case", "complaint"),
    [
        ([dataclasses.replace(BUG, caught_by="wire/none")], CASE, "caught by wire/none, which there is not"),
        ([BUG], dataclasses.replace(CASE, catches=()), "one catches nothing"),
        ([BUG], dataclasses.replace(CASE, catches=("x", "a-bug")), "one catches x, which there is not"),
        ([BUG], dataclasses.replace(CASE, catches=("x",)), "one does not say that it catches a-bug"),
        ([BUG], dataclasses.replace(CASE, rules=("LQ-CALL-1",)), "one does not name LQ-ADD-1"),
        ([dataclasses.replace(BUG, breaks="LQ-ADD-" + "99")], CASE, "99, which there is not"),
        ([BUG, dataclasses.replace(BUG, name="other")], CASE, "a-bug, other all break LQ-ADD-1"),
        ([BUG, BUG], CASE, "several bugs are named a-bug"),
        ([], CASE, "there are 0 named bugs"),
        (
            [dataclasses.replace(BUG, breaks="LQ-CALL-1")],
            CASE,
            "no named bug breaks LQ-ADD-1",
        ),
    ],
)
def test_what_does_not_fit_is_told(
    found: list[Bug], case: Case, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "LEAST", 1)
    assert [line for line in complaints(found, case) if complaint in line]


def test_quick_is_each_bug_with_its_own_case() -> None:
    second = dataclasses.replace(CASE, name="scenarios/two", catches=("a-bug", "unknown"))
    cases = {CASE.name: CASE, second.name: second}
    assert plan.pairs([BUG], cases, quick=True) == [(CASE, BUG)]
    assert plan.pairs([BUG], cases, quick=False) == [(CASE, BUG), (second, BUG)]


def test_the_cases_of_a_bug_are_run_together() -> None:
    other = dataclasses.replace(BUG, name="other")
    pairs = [(CASE, BUG), (CASE, other), (dataclasses.replace(CASE, name="scenarios/two"), BUG)]
    together = [(bug.name, [case.name for case in cases]) for bug, cases in plan.by_bug(pairs)]
    assert together == [("a-bug", ["scenarios/one", "scenarios/two"]), ("other", ["scenarios/one"])]


def test_a_score_is_whole_only_where_all_was_looked_at_and_is_right() -> None:
    assert not score.Score().whole
    empty, good, bad = score.Part("empty"), score.Part("good"), score.Part("bad")
    good.look("", Silent())
    bad.look("", Silent())
    bad.look("not caught", Silent())
    assert not score.Score([good, empty]).whole
    assert score.Score([good]).whole
    assert score.Score([good]).percent == 100
    assert not score.Score([good, bad]).whole
    assert 66 < score.Score([good, bad]).percent < 67


def test_core_is_what_the_page_names() -> None:
    core = core_rules()
    assert set(core) <= set(rules())
    named = {"KEY-1", "KEY-2", "ITEM-2", "SCRIPT-3", "ERROR-4", "CLIENT-1", "CLIENT-8", "TIME-1", "BLOCK-4"}
    operations = {"ADD-1", "LEASE-9", "COMPLETE-2", "EXTEND-1", "RELEASE-4"}
    assert {f"LQ-{name}" for name in named | operations} <= set(core)
    # of the table's capabilities, and of pages that Core does not name
    others = {"CALL-8", "ADD-3", "ADD-7", "LEASE-10", "LEASE-11", "SCRIPT-4", "BLOCK-1", "CLIENT-2", "KEY-3"}
    assert not {f"LQ-{name}" for name in others} & set(core)


def test_every_seeded_bug_of_clients_can_be_put_in() -> None:
    program = """
import os, sys
from leaseq_conformance.adapters import python_sync
from leaseq_conformance.crew import Crew
from leaseq_conformance.mutants.registry import adapter_mutants
for name, (_, patch) in adapter_mutants().items():
    child = os.fork()
    if child == 0:
        try:
            patch()
        except BaseException as error:
            print(name, repr(error))
            sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert len(adapter_mutants()) >= 40


def test_an_adapter_with_a_bug_that_there_is_not_says_which_there_are() -> None:
    for module in ("mutant", "degenerate"):
        command = [sys.executable, "-m", f"leaseq_conformance.adapters.{module}", "no-such"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "one of" in done.stderr


@pytest.mark.on("last")
def test_a_case_tells_a_client_with_a_bug_from_the_right_one(given: GivenServer) -> None:
    case = bugs.all_cases()[ADD]
    bug = next(bug for bug in bugs.named() if bug.name == "data-decoded-as-text")
    assert with_right(case, given).outcome is Outcome.PASS
    assert with_bug(case, bug, given).outcome is Outcome.FAIL


@pytest.mark.on("last")
def test_a_bug_of_a_script_is_found_by_vectors_and_through_a_client(given: GivenServer) -> None:
    bug = next(bug for bug in bugs.named() if bug.kind == "script")
    cases = bugs.all_cases()
    assert with_bug(cases[bug.caught_by], bug, given).outcome is Outcome.FAIL
    (script,) = bug.sources
    assert with_right(cases[bug.caught_by], given).outcome is Outcome.PASS
    broken = dataclasses.replace(bug, sources={script: "return {}"})
    assert with_bug(cases[bug.caught_by], broken, given).outcome is not Outcome.PASS


@pytest.mark.on("last")
@pytest.mark.parametrize("name", sorted(DEGENERATE))
def test_an_adapter_of_no_client_does_not_pass(name: str, given: GivenServer) -> None:
    # one that hangs is not judged by the seconds: without an answer nothing passes
    with Crew(given, bugs.degenerate(name)) as crew:
        verdict = bugs.run_with(bugs.all_cases()[ADD], crew, patience=1)
    assert verdict.outcome is not Outcome.PASS


@pytest.mark.on("last")
def test_a_bug_that_is_not_caught_costs_the_score(
    given: GivenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    caught = next(bug for bug in bugs.named() if bug.name == "data-decoded-as-text")
    case = dataclasses.replace(bugs.all_cases()[ADD], catches=("data-decoded-as-text", "names-unchecked"))
    missed = next(bug for bug in bugs.named() if bug.name == "names-unchecked")
    monkeypatch.setattr(bugs, "named", lambda: [caught, dataclasses.replace(missed, caught_by=ADD)])
    monkeypatch.setattr(bugs, "all_cases", lambda: {ADD: case})
    monkeypatch.setattr(score, "DEGENERATE", {"echo": DEGENERATE["echo"]})
    monkeypatch.setattr(score, "rules", lambda: dict.fromkeys((caught.breaks, missed.breaks), ""))
    monkeypatch.setattr(plan, "LEAST", 2)
    found = score.selftest(given, Silent(), quick=True)
    assert not found.whole
    assert found.covered == {caught.breaks}
    wrong = [line for part in found.parts for line in part.wrong]
    assert any(line.startswith("names-unchecked (") and "is not caught by" in line for line in wrong)
    assert not any("data-decoded-as-text" in line for line in wrong)


@pytest.mark.on("last")
def test_several_bugs_are_looked_at_at_a_time_on_servers_of_their_own() -> None:
    bug = next(bug for bug in bugs.named() if bug.name == "data-decoded-as-text")
    case = bugs.all_cases()[ADD]
    with OwnServer() as own:
        told = list(hands.run([*hands.tasks(None, [case]), *hands.tasks(bug, [case])], own))
    found = sorted((each.bug.name if each.bug else "", each.outcome) for each in told)
    assert found == [("", Outcome.PASS), ("data-decoded-as-text", Outcome.FAIL)]


@pytest.mark.on("last")
def test_processes_end_with_a_starter_that_is_killed() -> None:
    program = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from leaseq_conformance.selftest import hands
if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, initializer=hands._end_with_starter) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        time.sleep(3600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        process = Path("/proc", starter.stdout.readline().strip())
        assert process.exists()
        starter.kill()
    wait_until(lambda: not process.exists(), 60)


@pytest.mark.on("last")
def test_the_command_prints_the_score_and_exits_with_1_below_100(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = score.Part("all", 3)
    wrong = score.Part("some", 3, ["a-bug is not caught"])
    for parts, code, said in [([right], 0, "score: 100 %"), ([right, wrong], 1, "score: 83.3 %")]:

        def told(
            _server: object, progress: score.Progress, found: list[score.Part] = parts, **_options: object
        ) -> score.Score:
            progress.begin("a part", 3)
            for _ in range(3):
                progress.step("a-bug")
            for part in found:
                for line in part.wrong:
                    progress.wrong(line)
            return score.Score(found)

        monkeypatch.setattr("leaseq_conformance.selftest.command.selftest", told)
        done = CliRunner().invoke(selftest_command, ["--redis", url])
        assert done.exit_code == code
        assert said in done.output
        assert "3 of 3" in done.output
    assert "a-bug is not caught" in done.output


@pytest.mark.on("last")
def test_a_client_that_asks_a_replica_is_told_from_one_that_does_not(given: GivenServer) -> None:
    case = bugs.all_cases()["cluster/calls-go-to-the-primary"]
    bug = next(bug for bug in bugs.named() if bug.name == "asks-a-replica")
    right = with_right(case, given)
    assert (right.outcome, right.message) == (Outcome.PASS, "")
    wrong = with_bug(case, bug, given)
    assert wrong.outcome is Outcome.FAIL
    assert "to the replica" in wrong.message


def test_what_the_suite_has_fits_together() -> None:
    found = plan.complaints(bugs.named(), bugs.all_cases(), rules())
    assert found == []


def test_the_porting_guide_names_every_mistake_with_the_case_that_finds_it() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "porting.md").read_text()
    rows = {line.partition(" (`")[2] for line in page.splitlines() if line.startswith("| ") and " (`" in line}
    assert rows == {
        f"{bug.name}`) | {bug.breaks} | `{bug.caught_by}` |" for bug, _ in adapter_mutants().values()
    }
