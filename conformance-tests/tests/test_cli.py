"""The command leaseq-conformance: its commands, exit codes and reports, and what it reports of an adapter that is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from leaseq_conformance.cases import Case
from leaseq_conformance.cli import program
from leaseq_conformance.cli.run import exit_code
from leaseq_conformance.conformance_levels import claim, levels
from leaseq_conformance.manifest import manifest
from leaseq_conformance.reports.html import write_html
from leaseq_conformance.reports.json_report import ResultsError, badge, read_results, write_results
from leaseq_conformance.reports.junit import write_junit
from leaseq_conformance.rules import rules
from leaseq_conformance.runner import Result, Run
from leaseq_conformance.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import redis

pytestmark = pytest.mark.slow

ADAPTER = ("--", sys.executable, "-m", "conformance_adapter.sync_client")
WRONG_CLIENT = ("--", sys.executable, "-m", "selftest.buggy_adapter", "data-decoded-as-text")
FIRST = "scenarios/add-lease-complete"
PASS, FAIL, SKIP, UNKNOWN, ERROR = Outcome.PASS, Outcome.FAIL, Outcome.SKIP, Outcome.UNKNOWN, Outcome.ERROR


def command(*args: object) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, where the cases are read once."""
    given = [str(arg) for arg in args]
    done = CliRunner().invoke(program, given, env={"COLUMNS": "200"}, prog_name="leaseq-conformance")
    return subprocess.CompletedProcess(given, done.exit_code, done.stdout, done.stderr)


def process(*args: object) -> subprocess.CompletedProcess[str]:
    """Run it in a separate process, which another manifest changes as a whole."""
    started = [sys.executable, "-c", "from leaseq_conformance.cli import main; main()", *map(str, args)]
    return subprocess.run(started, capture_output=True, text=True, check=False, timeout=250)


def adapter(body: str) -> Sequence[str]:
    """The command of an adapter that answers hello and then does this for each message."""
    hello = {"protocol": 2, "client": {"name": "x", "version": "0", "language": "x"}, "scripts": {}}
    text = f"""
        import json, sys, time
        def answer(reply):
            print(json.dumps({{"id": message["id"], **reply}}), flush=True)
        for line in sys.stdin:
            message = json.loads(line)
            if message["op"] == "hello":
                answer({{"ok": {json.dumps({**hello, "capabilities": ["core"]})}}})
            elif message["op"] != "call":
                answer({{"ok": {{}}}})
            else:
                {body}
    """
    return ("--", sys.executable, "-c", textwrap.dedent(text))


def test_a_case_that_passes_is_in_every_report(tmp_path: Path) -> None:
    paths = {name: tmp_path / name for name in ("results", "junit", "html", "badge")}
    options = [part for name, path in paths.items() for part in (f"--{name}", path)]
    done = command("run", "--case", FIRST, *options, *ADAPTER)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 of 1 cases passed" in done.stdout
    assert "holds" not in done.stdout, "only some cases were run"
    run = read_results(paths["results"])
    assert [(result.case.name, result.verdict.outcome) for result in run.results] == [(FIRST, PASS)]
    assert "step 1" in run.results[0].verdict.transcript[0]
    assert ET.parse(paths["junit"]).getroot().find("testsuite/testcase") is not None  # noqa: S314 # its own file
    assert rules()["LQ-ADD-2"].split("`")[0] in paths["html"].read_text()
    assert json.loads(paths["badge"].read_text())["message"].endswith("1/1")
    again = json.loads(command("report", paths["results"], "--json").stdout)
    assert next(level for level in again["levels"] if level["name"] == "core")["passed"] == 1


def test_a_wrong_client_ends_with_1_unless_its_failure_is_known(tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text(f"# for now\n{FIRST}\n")
    failed = command("run", "--case", FIRST, "--json", *WRONG_CLIENT)
    assert failed.returncode == 1
    (result,) = json.loads(failed.stdout)["results"]
    assert result["outcome"] == "fail"
    listed = command("run", "--case", FIRST, "--known-failures", known, *WRONG_CLIENT)
    assert (listed.returncode, "0 of 1 cases passed (1 known failures)" in listed.stdout) == (0, True)
    fixed = command("run", "--case", FIRST, "--known-failures", known, *ADAPTER)
    assert (fixed.returncode, "but it passes: take it off the list" in fixed.stdout) == (1, True)
    known.write_text("scenarios/nothing-like-it\n")
    assert command("run", "--case", FIRST, "--known-failures", known, *ADAPTER).returncode == 2


def test_a_crash_shows_the_stderr_of_the_adapter_in_every_report(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("results", "junit", "html")]
    options = [part for path in paths for part in (f"--{path.name}", path)]
    panic = "[print('panic', number, file=sys.stderr) for number in range(60)]; sys.exit(7)"
    done = command("run", "--case", FIRST, *options, *adapter(panic))
    assert done.returncode == 4
    assert "ended too early: exit code 7" in done.stdout
    for text in (done.stdout, *(path.read_text() for path in paths)):
        assert ("panic 19" in text, "panic 20" in text, "panic 59" in text) == (False, True, True)


@pytest.mark.parametrize(
    ("body", "code", "expected"),
    [
        ("print('Loading...', flush=True)", 4, "printed a line that is no message: 'Loading...'"),
        ("answer({'ok': ['added', 1]})", 4, "1 is not one of ['added', 'exists']; it is '{\"id\""),
        ("import os; os.abort()", 4, "ended too early: signal SIGABRT"),
        ("time.sleep(60)", 3, 'no answer within 1 s to request 3 (call {"queue": "q", "method": "add"'),
        ("time.sleep(60)", 3, "since then the client has sent nothing to the server"),
    ],
)
def test_what_is_wrong_with_an_adapter_is_reported(body: str, code: int, expected: str) -> None:
    done = command("run", "--case", FIRST, "--patience", 1, *adapter(body))
    assert (done.returncode, expected in done.stdout) == (code, True), done.stdout


def test_smoke(redis_client: redis.Redis, url: str) -> None:
    done = command("smoke", "--redis", url, *ADAPTER)
    assert (done.returncode, "added, leased and completed" in done.stdout) == (0, True)
    assert redis_client.dbsize() == 0
    wrong = command("smoke", "--redis", url, *WRONG_CLIENT)
    assert (wrong.returncode, "lease was answered ok" in wrong.stdout) == (4, True)
    assert command("smoke", "--redis", url, "--", "/no/such/adapter").returncode == 4
    assert json.loads(command("smoke", "--json", "--redis", url, *ADAPTER).stdout)["ok"] is True


def test_a_database_that_holds_keys_is_not_touched(redis_client: redis.Redis, url: str) -> None:
    redis_client.set("mine", "1")
    done = command("smoke", "--redis", url, *ADAPTER)
    assert (done.returncode, "holds 1 keys" in done.stderr) == (2, True)
    assert redis_client.get("mine") == b"1"


def test_a_claimed_case_that_cannot_be_run_here_is_no_success(url: str) -> None:
    done = command("run", "--redis", url, "--case", "scenarios/server-restart", *ADAPTER)
    assert (done.returncode, "not the suite's to restart" in done.stdout) == (3, True)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"protocol": 99}, "version 99 of the protocol, and the suite checks version 1"),
        ({"scripts": {}}, "its scripts lack add, complete"),
        ({"constants": {**manifest()["constants"], "wait_cap_ms": 5}}, "its constant wait_cap_ms is 5"),
        (None, "is no manifest of leaseq"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(
    change: dict[str, object] | None, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "manifest.json"
    path.write_text("[]" if change is None else json.dumps({**manifest(), **change}))
    done = process("smoke", "--manifest", path, *ADAPTER)
    assert (done.returncode, expected in done.stderr) == (2, True), done.stderr


def test_the_scripts_of_another_manifest_are_used(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    other = json.loads(json.dumps(manifest()))
    other["scripts"]["settle"]["source"] = "return 7"
    path.write_text(json.dumps(other))
    assert process("vectors", "--case", "vectors/settle", "--manifest", path).returncode == 1


def test_cases_are_listed_explained_and_exported(tmp_path: Path) -> None:
    listed = json.loads(command("list", "--json", "scenarios/*").stdout)
    explained = command("explain", FIRST).stdout
    for expected in (rules()["LQ-COMPLETE-3"], "w1.lease", f"run --case '{FIRST}' -- ADAPTER"):
        assert expected in explained
    assert command("export", tmp_path / "cases").returncode == 0
    exported = json.loads((tmp_path / "cases" / f"{FIRST}.json").read_text())
    assert exported in listed
    index = json.loads((tmp_path / "cases" / "index.json").read_text())
    assert (index["protocol"], FIRST in index["cases"]) == (1, True)
    assert command("explain", "scenarios/none").returncode == 2
    assert command("run", "--case", "vectors/add", *ADAPTER).returncode == 2


@pytest.mark.parametrize(
    ("role", "bound", "free", "case"),
    [
        ("client", "LQ-BLOCK-1", "LQ-ADD-1", "wire/wait-short"),
        ("script", "LQ-ADD-1", "LQ-BLOCK-1", "vectors/add"),
        ("worker", "LQ-WORK-1", "LQ-BLOCK-1", "scenarios/live-worker"),
        ("operator", "LQ-SAFE-1", "LQ-BLOCK-1", "rights/worker"),
    ],
)
def test_the_rules_of_a_role_are_listed_with_their_cases(role: str, bound: str, free: str, case: str) -> None:
    text = command("list", "--for", role).stdout
    listed = json.loads(command("list", "--for", role, "--json").stdout)
    names = [rule["id"] for rule in listed]
    assert bound in names
    assert free not in names
    assert case in {one for rule in listed for one in rule["cases"]}
    assert f"\n    {case}\n" in text
    assert f"{bound}  {rules()[bound]}\n" in text
    assert f"{len(names)} rules bind the {role}" in text
    some = json.loads(command("list", "--for", role, "--json", case).stdout)
    assert {one for rule in some for one in rule["cases"]} == {case}


def ran(*outcomes: tuple[str, Outcome], claimed: str = "core blocking", filtered: bool = False) -> Run:
    """A run of cases. Each needs the capabilities in its name."""
    run = Run("a client", "a server", frozenset(claimed.split()), filtered=filtered)
    for number, (needs, outcome) in enumerate(outcomes):
        case = Case(f"wire/case-{number}", "A case", ("LQ-ADD-1",), tuple(needs.split()))
        message = "" if outcome is PASS else "why"
        run.results.append(Result(case, Verdict(outcome, message, ("line \0",), "difference", ("panic",))))
    run.all_cases = {result.case.name: result.case.capabilities for result in run.results}
    return run


@pytest.mark.parametrize(
    ("run", "claimed", "code"),
    [
        (ran(("core", PASS), ("core blocking", PASS)), "core + blocking", 0),
        (ran(("core", PASS), ("core blocking", FAIL)), "core", 1),
        (ran(("core", FAIL), ("core blocking", PASS)), "not conformant", 1),
        (ran(("core", SKIP), ("core blocking", PASS)), "not conformant", 3),
        (ran(("core", PASS), ("core blocking", UNKNOWN)), "core", 3),
        (ran(("core", PASS), ("core blocking", ERROR)), "core", 4),
        (ran(("core", FAIL), ("core blocking", ERROR)), "not conformant", 1),
        (ran(("core", PASS), ("core blocking", PASS), ("core blocking outcome", SKIP)), "core + blocking", 0),
        (ran(("core", PASS), ("core blocking", SKIP), claimed="core"), "core", 0),
        (ran(("core", PASS)), "core", 1),
        (ran(("core", SKIP), claimed=""), "not conformant", 1),
        (ran(("core", PASS), filtered=True), "no claim, because only some cases were run", 0),
        (ran(("core", FAIL), filtered=True), "no claim, because only some cases were run", 1),
    ],
)
def test_what_a_run_shows_and_its_exit_code(run: Run, claimed: str, code: int) -> None:
    assert (claim(run), exit_code(run)) == (claimed, code)


def test_the_cases_of_a_level_are_counted_apart_from_those_that_were_run() -> None:
    run = ran(("core", PASS), ("core", SKIP), ("core blocking", FAIL), ("core blocking", PASS))
    by_name = {level.name: level.status for level in levels(run)}
    assert (by_name["core"], by_name["blocking"], by_name["many"]) == (
        "1 of 2 run",
        "does not hold",
        "not claimed",
    )
    run.filtered = True
    assert {level.status for level in levels(run) if level.claimed} == {"1 of 2 run", "2 of 2 run"}


def test_reports_give_each_outcome_its_kind(tmp_path: Path) -> None:
    run = ran(*(("core", outcome) for outcome in (PASS, FAIL, SKIP, UNKNOWN, ERROR, PASS)))
    run.results[-1].known = True
    write_junit(run, tmp_path / "junit")
    cases = ET.parse(tmp_path / "junit").getroot().findall("testsuite/testcase")  # noqa: S314 # its own file
    kinds = [[child.tag for child in case if not child.tag.startswith("system-")] for case in cases]
    assert kinds == [[], ["failure"], ["skipped"], ["error"], ["error"], ["failure"]]
    write_html(run, tmp_path / "html")
    page = (tmp_path / "html").read_text()
    assert page.count("<details") == len(run.results)
    assert "http" not in page, "nothing is fetched"
    assert badge(run)["color"] == "red"
    write_results(run, tmp_path / "results")
    assert read_results(tmp_path / "results") == run


def test_results_that_were_cut_short_are_refused(tmp_path: Path) -> None:
    write_results(ran(("core", PASS)), tmp_path / "whole")
    for text in ((tmp_path / "whole").read_text()[:-20], '{"format": 1}', "[]"):
        (tmp_path / "cut").write_text(text)
        with pytest.raises(ResultsError):
            read_results(tmp_path / "cut")
    assert command("report", tmp_path / "cut").returncode == 2
