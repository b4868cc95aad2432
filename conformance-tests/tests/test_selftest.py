"""The conformance suite's test of itself: seeded bugs are read and fit, and caught bugs are distinguished from others."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from support.servers import wait_until

from leaseq_conformance import registry
from leaseq_conformance.cases import Case
from leaseq_conformance.redis_server import ExternalServer, open_server
from leaseq_conformance.rules import core_rules, rules
from leaseq_conformance.verdict import Outcome
from selftest import lint, plan, pool, records, score
from selftest.client_copies import ClientCopies
from selftest.command import selftest_command
from selftest.plan import Options
from selftest.pool import Result, Subject, Task
from selftest.seeded_bug import PARTS, Edit, SeededBug, SeededBugError, load, load_all

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(600)

CASES = {case.name: case for case in registry.all_cases(["scenarios", "wire"])}
ADD = "scenarios/add-lease-complete"
CASE = Case("scenarios/one", "a case", ("LQ-ADD-1", "LQ-CALL-1"), ("core",))
BUG = next(bug for bug in load_all() if bug.name == "data-decoded-as-text")
FILE = """
- name: a-bug
  title: Does something wrong
  breaks: [LQ-ADD-1]
  caught_by: [scenarios/one]
  edits:
    - {file: item.py, old: "as_bytes(data", new: "as_bytes(b'x'"}
"""


@pytest.fixture
def given(url: str) -> Iterator[ExternalServer]:
    with ExternalServer(url) as server:
        yield server


@pytest.fixture(scope="module")
def copies() -> Iterator[ClientCopies]:
    with ClientCopies() as made:
        yield made


class Silent:
    """Progress that is not shown."""

    def wrong(self, line: str) -> None:
        """Nothing."""

    def begin(self, title: str, steps: int) -> None:
        """Nothing."""

    def step(self, name: str) -> None:
        """Nothing."""


def outcomes(server: ExternalServer, subject: Subject, *names: str) -> list[Outcome]:
    task = Task(subject, tuple(CASES[name] for name in names), plan.TIMEOUT_SECS)
    return [result.outcome for result in pool.run_on(server, task)]


def test_the_seeded_bugs_fit_the_scripts_and_clients_of_today() -> None:
    assert lint.problems(load_all(), score.all_cases(), rules(), records.read_caught()) == []
    counted = {part: sum(bug.part == part for bug in load_all()) for part in PARTS}
    assert min(count for part, count in counted.items() if part not in {"tests", "go", "rust"}) >= 80
    assert min(counted["go"], counted["rust"]) >= 24


def test_a_file_of_seeded_bugs_is_read() -> None:
    (bug,) = load(FILE, "python", "test.yaml")
    edits = (Edit("item.py", "as_bytes(data", "as_bytes(b'x'"),)
    assert bug == SeededBug(
        "a-bug", "python", "Does something wrong", ("LQ-ADD-1",), ("scenarios/one",), edits, "python"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: a-bug", "nam: a-bug", "'name' is a required property"),
        ("[LQ-ADD-1]", "[]", "breaks"),
        ("[scenarios/one]", "[one]", "caught_by"),
        ("[scenarios/one]", "[]", "caught_by"),
        ("title: Does something wrong", "title: Does something wrong.", "title"),
        ("edits:", "edits: []\n  more:", "at 0"),
        ("file: item.py, ", "", "'file' is a required property"),
        ("breaks: [LQ-ADD-1]", "breaks: [LQ-ADD-1", "test.yaml"),
    ],
)
def test_a_file_that_does_not_have_the_form_is_refused(old: str, new: str, message: str) -> None:
    assert old in FILE
    with pytest.raises(SeededBugError, match=message):
        load(FILE.replace(old, new), "python", "test.yaml")


@pytest.mark.parametrize(
    ("text", "edit", "becomes"),
    [
        ("a = b + c", Edit("f", "b", "d"), "a = d + c"),
        ("bab", Edit("f", "b", "d", nth=2), "bad"),
        ("x\n    if a:\n        b\ny\n", Edit("f", "if a:\n    b\n", "c\nd\n"), "x\n    c\n    d\ny\n"),
        ("  a\n\n  b\n", Edit("f", "a\n\nb\n", "c\n"), "  c\n"),
        ("a\n    a\n", Edit("f", "a\n", "b\n", nth=2), "a\n    b\n"),
    ],
)
def test_an_edit_changes_the_text(text: str, edit: Edit, becomes: str) -> None:
    assert edit.apply(text) == becomes


@pytest.mark.parametrize(
    "edit",
    [Edit("f", "x", ""), Edit("f", "a", ""), Edit("f", "a", "", nth=3), Edit("f", "a\nb\n", "")],
    ids=["it is not there", "it is there twice", "there are only two", "the lines are not"],
)
def test_an_edit_that_does_not_fit_is_an_error(edit: Edit) -> None:
    with pytest.raises(SeededBugError):
        edit.apply("a a\nb\n")


@pytest.mark.parametrize(
    ("bug", "problem"),
    [
        (dataclasses.replace(BUG, caught_by=("wire/none",)), "is caught by wire/none, which is no case"),
        (dataclasses.replace(BUG, breaks=("LQ-NONE",)), "breaks LQ-NONE, which is no rule"),
        (dataclasses.replace(BUG, edits=(Edit("item.py", "no such text", ""),)), "does not fit"),
        (dataclasses.replace(BUG, edits=(Edit("item.py", "import uuid", "import uuid"),)), "does not change"),
        (dataclasses.replace(BUG, edits=(Edit("no_file.py", "a", "b"),)), "does not fit"),
        (dataclasses.replace(BUG, part="scripts"), "does not fit"),
        (dataclasses.replace(BUG, name="other"), "no word of bugs, 1: other"),
    ],
)
def test_what_is_wrong_with_a_bug_is_told(bug: SeededBug, problem: str) -> None:
    found = lint.problems([bug], CASES, rules(), {BUG.name: [ADD]})
    assert [line for line in found if problem in line]


def test_a_record_of_other_bugs_or_cases_is_told() -> None:
    caught = {BUG.name: ["scenarios/none"], "none": []}
    found = lint.problems([BUG, BUG], CASES, rules(), caught)
    for problem in (
        "2 bugs are named",
        "bugs that are none, 1: none",
        "cases that are none, 1: scenarios/none",
        f"no word of the cases that are to catch bugs, 1: {BUG.name} by {ADD}",
    ):
        assert [line for line in found if problem in line]


def test_a_record_has_what_was_seen_last(tmp_path: Path) -> None:
    known = {"a": ["one", "gone"], "b": ["two"], "gone": ["one"]}
    results = [Result("a", "two", Outcome.FAIL), Result("b", "two", Outcome.PASS)]
    records.write_caught(known, results, ["a", "b", "c"], ["one", "two"], tmp_path / "caught.json")
    assert records.read_caught(tmp_path / "caught.json") == {"a": ["one", "two"], "b": [], "c": []}


def test_results_of_an_older_text_of_a_bug_do_not_count(tmp_path: Path) -> None:
    kept = records.ResultsFile(tmp_path / "results", {"a": "1", "b": "2"})
    results = [Result("a", "one", Outcome.FAIL, "why", 0.5), Result("b", "one", Outcome.PASS)]
    for result in results:
        kept.add(result)
    assert kept.read() == results
    assert records.ResultsFile(tmp_path / "results", {"a": "3", "b": "2"}).read() == results[1:]


def test_a_bug_is_run_with_its_cases_or_with_all_of_its_kind() -> None:
    of_script, of_tests = (
        next(bug for bug in load_all() if bug.part == part) for part in ("scripts", "tests")
    )
    cases = score.all_cases()
    assert [case.name for case in plan.cases_of(BUG, cases, Options())] == list(BUG.caught_by)
    assert [case.name for case in plan.cases_of(BUG, cases, Options(quick=True))] == [BUG.caught_by[0]]
    every = plan.cases_of(BUG, cases, Options(every_case=True))
    assert {case.name for case in every} == {case.name for case in cases.values() if case.capabilities}
    every = plan.cases_of(of_script, cases, Options(every_case=True))
    assert not any(case.capabilities or case.suite == "tests" for case in every)
    every = plan.cases_of(of_tests, cases, Options(every_case=True))
    assert {case.suite for case in every} == {"tests"}
    assert plan.cases_of(BUG, cases, Options(case_patterns=("wire/none*",))) == []


def test_a_score_is_good_only_if_all_is_right_and_something_was_run() -> None:
    assert not score.Score().is_good
    good, bad, empty = score.Part("good", 1), score.Part("bad", 2, ["not caught"]), score.Part("empty")
    assert score.Score(parts=[good]).is_good
    for parts in ([good, bad], [good, empty]):
        assert not score.Score(parts=parts).is_good
    assert not score.Score(problems=["a bug does not fit"], parts=[good]).is_good
    assert not score.Score(parts=[good], rules=bad).is_good
    assert (bad.right, bad.of) == (1, 2)


def test_core_is_what_the_page_names() -> None:
    core = core_rules()
    assert set(core) <= set(rules())
    named = {"KEY-1", "KEY-2", "ITEM-2", "SCRIPT-3", "ERROR-4", "CLIENT-1", "CLIENT-8", "TIME-1", "BLOCK-4"}
    operations = {"ADD-1", "LEASE-9", "COMPLETE-2", "EXTEND-1", "RELEASE-4"}
    assert {f"LQ-{name}" for name in named | operations} <= set(core)
    # of the table's capabilities, and of pages that Core does not name
    others = {"CALL-8", "ADD-3", "ADD-7", "LEASE-10", "LEASE-11", "SCRIPT-4", "BLOCK-1", "CLIENT-2", "KEY-3"}
    assert not {f"LQ-{name}" for name in others} & set(core)


def test_an_adapter_that_there_is_not_says_which_there_are() -> None:
    for module in ("buggy_adapter", "broken_adapters"):
        command = [sys.executable, "-m", f"selftest.{module}", "no-such"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "one of" in done.stderr


def test_a_bug_that_is_no_python_any_more_is_an_error(copies: ClientCopies) -> None:
    bug = dataclasses.replace(BUG, name="no-python", edits=(Edit("item.py", "import uuid", "import"),))
    with pytest.raises(SeededBugError, match="no-python"):
        dict(copies.buggy([bug]))


@pytest.mark.slow
def test_a_bug_that_is_not_caught_is_counted(given: ExternalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    missed = next(bug for bug in load_all() if bug.name == "names-unchecked")
    bugs = (BUG, dataclasses.replace(missed, caught_by=(ADD,)))
    monkeypatch.setattr(score, "load_all", lambda: bugs)
    found = score.selftest(given, Silent(), Options(("python",)))
    (part,) = found.parts
    assert (part.right, part.of) == (1, 2)
    assert part.wrong == [f"{missed.name} ({missed.title}) is not caught by {ADD}"]
    assert not found.is_good


@pytest.mark.slow
def test_several_subjects_are_run_at_a_time_on_their_own_servers(copies: ClientCopies) -> None:
    cases = (CASES[ADD],)
    ((_, adapter),) = copies.buggy([dataclasses.replace(BUG, name="again")])
    buggy = Subject(BUG.name, adapter)
    tasks = [
        Task(Subject("right", copies.right("python")), cases, plan.TIMEOUT_SECS),
        Task(buggy, cases, plan.TIMEOUT_SECS),
    ]
    with open_server() as server:
        by_subject = {result.subject: result.outcome for result in pool.run(tasks, server, jobs=2)}
    assert by_subject == {"right": Outcome.PASS, BUG.name: Outcome.FAIL}


@pytest.mark.slow
def test_processes_end_with_a_starter_that_is_killed() -> None:
    program = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from selftest import pool
if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, pool._end_with_starter) as executor:
        print(executor.submit(os.getpid).result(), flush=True)
        time.sleep(3600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        process = Path("/proc", starter.stdout.readline().strip())
        assert process.exists()
        starter.kill()
    wait_until(lambda: not process.exists(), 60)


@pytest.mark.slow
def test_the_command_prints_the_score(url: str) -> None:
    arguments = ["--redis", url, "--part", "python", "--bug", BUG.name, "--case", ADD]
    done = CliRunner().invoke(selftest_command, arguments)
    assert done.exit_code == 0, done.output
    assert "bugs of python that are caught" in done.output
    done = CliRunner().invoke(selftest_command, [*arguments, "--json"])
    assert json.loads(done.stdout)["parts"] == [
        {"title": "bugs of python that are caught", "right": 1, "of": 1, "wrong": []}
    ]
    assert CliRunner().invoke(selftest_command, [*arguments, "--bug", "no-such*"]).exit_code == 0
    nothing = [*arguments[:4], "--bug", "no-such"]
    assert CliRunner().invoke(selftest_command, nothing).exit_code == 1


def test_the_porting_guide_names_seeded_bugs_and_the_cases_that_catch_them() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "porting.md").read_text()
    rows = [
        re.search(r"\(`([a-z0-9-]+)`\) \| (LQ-[A-Z]+-\d+) \| `([^`]+)` \|$", line)
        for line in page.splitlines()
    ]
    named = {row[1]: (row[2], row[3]) for row in rows if row}
    assert len(named) > 50
    bugs = {bug.name: bug for bug in load_all()}
    for name, (rule, case) in named.items():
        assert rule in bugs[name].breaks, name
        assert case in bugs[name].caught_by, name
