"""The command leaseq-conformance: its commands, exit codes and reports, and what it makes of known failures."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from leaseq_conformance.cases import Case, Outcome, Verdict
from leaseq_conformance.levels import claim, levels
from leaseq_conformance.reports.html import write_html
from leaseq_conformance.reports.junit import write_junit
from leaseq_conformance.reports.plain import ResultsError, badge, read_results, write_results
from leaseq_conformance.rules import capabilities, rules
from leaseq_conformance.runner import Result, Run
from leaseq_conformance.running import exit_code

if TYPE_CHECKING:
    from pathlib import Path

    import redis

pytestmark = [pytest.mark.on("last"), pytest.mark.timeout(300)]
ADAPTER = ("--", sys.executable, "-m", "leaseq_conformance.adapters.python_sync")
BROKEN = ("--", sys.executable, "-m", "leaseq_conformance.adapters.mutant", "data-decoded-as-text")
FIRST = "scenarios/add-lease-complete"


def command(*args: object) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from leaseq_conformance.cli import main; main()"]
    return subprocess.run(
        [*program, *map(str, args)], capture_output=True, text=True, check=False, timeout=250
    )


def test_a_case_that_passes_is_reported_in_every_form(tmp_path: Path) -> None:
    paths = {name: tmp_path / name for name in ("results", "junit", "html", "badge")}
    options = [part for name, path in paths.items() for part in (f"--{name}", path)]
    done = command("run", "--case", FIRST, *options, *ADAPTER)
    assert (done.returncode, done.stderr) == (0, "")
    assert "core: 1 of 1 cases right" in done.stdout
    run = read_results(paths["results"])
    assert [(result.case.name, result.verdict.outcome) for result in run.results] == [(FIRST, Outcome.PASS)]
    assert "step 1" in run.results[0].verdict.transcript[0]
    assert ET.parse(paths["junit"]).getroot().find("testsuite/testcase") is not None  # noqa: S314 # what the suite wrote itself
    assert rules()["LQ-ADD-2"].split("`")[0] in paths["html"].read_text()
    assert json.loads(paths["badge"].read_text())["message"] == "core 1/1"


def test_a_client_that_fails_ends_with_1_unless_it_is_known_to_and_known_failures_must_fail(
    tmp_path: Path,
) -> None:
    assert command("run", "--case", FIRST, *BROKEN).returncode == 1
    known = tmp_path / "known"
    known.write_text(f"# for now\n{FIRST}\n")
    listed = command("run", "--case", FIRST, "--known-failures", known, *BROKEN)
    assert (listed.returncode, "0 of 1 cases right" in listed.stdout) == (0, True)
    fixed = command("run", "--case", FIRST, "--known-failures", known, *ADAPTER)
    assert (fixed.returncode, "listed as a known failure, and passes" in fixed.stdout) == (1, True)
    known.write_text("scenarios/nothing-like-it\n")
    assert command("run", "--case", FIRST, "--known-failures", known, *ADAPTER).returncode == 2


def test_smoke(redis_client: redis.Redis, url: str) -> None:
    done = command("smoke", "--redis", url, *ADAPTER)
    assert (done.returncode, "added, leased and completed" in done.stdout) == (0, True)
    assert redis_client.dbsize() == 0
    assert command("smoke", "--redis", url, *BROKEN).returncode == 4
    assert command("smoke", "--redis", url, "--", "/no/such/adapter").returncode == 4
    assert command("smoke", "--redis", url, "--", "true").returncode == 4


def test_a_database_that_holds_keys_is_not_touched(redis_client: redis.Redis, url: str) -> None:
    redis_client.set("mine", "1")
    done = command("smoke", "--redis", url, *ADAPTER)
    assert (done.returncode, "holds 1 keys" in done.stderr) == (2, True)
    assert redis_client.get("mine") == b"1"


def test_what_cannot_be_run_here_is_left_out_and_is_no_success(url: str) -> None:
    done = command("run", "--redis", url, "--case", "scenarios/server-restart", *ADAPTER)
    assert (done.returncode, "not the suite's to restart" in done.stdout) == (3, True)


def test_cases_are_listed_explained_and_exported(tmp_path: Path) -> None:
    listed = json.loads(command("list", "--json", "scenarios/*").stdout)
    assert {"name", "title", "rules", "capabilities", "catches", "body"} == set(listed[0])
    explained = command("explain", FIRST).stdout
    for said in (rules()["LQ-COMPLETE-3"], "w1.lease", f"--case '{FIRST}'"):
        assert said in explained
    assert command("export", tmp_path / "cases").returncode == 0
    exported = json.loads((tmp_path / "cases" / f"{FIRST}.json").read_text())
    assert exported in listed
    assert command("explain", "scenarios/none").returncode == 2
    assert command("list", "none/*").returncode == 2


def test_help_tells_the_exit_codes() -> None:
    for args in (["--help"], ["run", "--help"], ["sweep", "--help"]):
        assert "3  no case failed, but one could not be judged" in command(*args).stdout


def ran(*outcomes: tuple[str, Outcome], claimed: str = "core blocking") -> Run:
    """A run of cases, each of which needs the capabilities in its name."""
    run = Run("a client", "a server", frozenset(claimed.split()))
    for number, (needs, outcome) in enumerate(outcomes):
        case = Case(f"wire/case-{number}", "A case", ("LQ-ADD-1",), tuple(needs.split()), ("a-bug",))
        run.results.append(
            Result(case, Verdict(outcome, "why" * (outcome is not Outcome.PASS), ("line \0",), "difference"))
        )
    return run


PASS, FAIL, SKIP = Outcome.PASS, Outcome.FAIL, Outcome.SKIP


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (ran(("core", PASS), ("core blocking", PASS)), "core + blocking"),
        (ran(("core", PASS), ("core blocking", FAIL)), "core"),
        (ran(("core", FAIL), ("core blocking", PASS)), "not conformant"),
        (ran(("core", SKIP), ("core blocking", PASS)), "not conformant"),
        (ran(("core", Outcome.UNKNOWN)), "not conformant"),
        (ran(("core", PASS), ("core blocking", PASS), ("core blocking outcome", SKIP)), "core + blocking"),
        (ran(("core", PASS), ("core blocking", PASS), claimed="core"), "core"),
        (ran(("core", SKIP), claimed=""), "not conformant"),
        (ran(), "not conformant"),
    ],
)
def test_a_claim_needs_every_case_of_its_level(run: Run, said: str) -> None:
    assert claim(run) == said
    assert [level.name for level in levels(run)] == list(capabilities())


@pytest.mark.parametrize(
    ("run", "whole", "code"),
    [
        (ran(("core", PASS), ("core blocking", PASS)), True, 0),
        (ran(("core", PASS)), True, 1),
        (ran(("core", PASS)), False, 0),
        (ran(("core", FAIL), ("core", Outcome.ERROR)), True, 1),
        (ran(("core", PASS), ("core", Outcome.ERROR)), False, 4),
        (ran(("core", PASS), ("core", Outcome.UNKNOWN)), False, 3),
        (ran(("core", SKIP)), False, 3),
        (ran(("core", PASS), ("core outcome", SKIP)), False, 0),
        (ran(("core", SKIP), claimed=""), True, 1),
    ],
)
def test_exit_codes(run: Run, whole: bool, code: int) -> None:
    assert exit_code(run, whole=whole) == code


def test_reports_say_of_each_verdict_what_it_is(tmp_path: Path) -> None:
    run = ran(
        ("core", PASS),
        ("core", FAIL),
        ("core", SKIP),
        ("core", Outcome.UNKNOWN),
        ("core", Outcome.ERROR),
        ("core", PASS),
    )
    run.results[-1].known = True
    write_junit(run, tmp_path / "junit")
    cases = ET.parse(tmp_path / "junit").getroot().findall("testsuite/testcase")  # noqa: S314 # what the suite wrote itself
    kinds = [[child.tag for child in case if child.tag != "system-out"] for case in cases]
    assert kinds == [[], ["failure"], ["skipped"], ["error"], ["error"], ["failure"]]
    write_html(run, tmp_path / "html")
    page = (tmp_path / "html").read_text()
    assert page.count("<details") == len(run.results)
    assert "http" not in page.replace("https://shields", ""), "nothing is fetched"
    assert badge(run)["color"] == "red"
    write_results(run, tmp_path / "results")
    assert read_results(tmp_path / "results").results == run.results


def test_results_that_were_cut_short_are_none(tmp_path: Path) -> None:
    write_results(ran(("core", PASS)), tmp_path / "whole")
    for text in ((tmp_path / "whole").read_text()[:-20], "{}", "[]"):
        (tmp_path / "cut").write_text(text)
        with pytest.raises(ResultsError):
            read_results(tmp_path / "cut")
    assert command("report", tmp_path / "cut").returncode == 2


def test_the_specification_is_found_where_the_wheel_has_it(tmp_path: Path) -> None:
    """The wheel carries the pages beside the package; here a copy of the package is laid out so."""
    import leaseq_conformance
    from leaseq_conformance.rules import pages

    package = next(iter(leaseq_conformance.__path__))
    shutil.copytree(package, tmp_path / "leaseq_conformance", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(str(pages()), tmp_path / "leaseq_conformance/spec")
    program = "from leaseq_conformance.rules import pages, rules; print(pages(), len(rules()))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(tmp_path / "leaseq_conformance/spec"), str(len(rules()))]
