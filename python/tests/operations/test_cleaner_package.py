"""Files around the cleaner: its page, the alert rules, the Dockerfile, the unit, the benchmark."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from support.alert_rules import alert_rules, selectors
from support.cleaner_metrics import exported_metrics

from leaseq.cli.worker import worker
from leaseq.results import COUNTERS, MOVES, REPAIRS, STATES
from leaseq_cleaner.command import LISTEN, MEANINGS, program

ROOT = Path(__file__).parents[3]
CLEANER = ROOT / "cleaner"
PAGE = "\n".join(
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("cleaner", "metrics")
)
FLAGS = {option for parameter in (*program.params, *worker.params) for option in parameter.opts}
"""Of the cleaner, and of the workers whose metrics the page lists beside."""


@pytest.fixture
def exported() -> dict[str, set[str]]:
    return exported_metrics()


def rows(heading: str) -> list[list[str]]:
    """The cells of the table in a section of the page."""
    section = re.split(r"^#+ ", PAGE.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_the_page_lists_the_metrics_and_their_labels(exported: dict[str, set[str]]) -> None:
    listed: dict[str, set[str]] = {}
    for cells in rows("Metrics"):
        name, besides = cells[0].strip("`"), cells[1] if len(cells) > 2 else ""
        of_queue = set() if "none" in besides or "no queue" in besides else {"group", "queue"}
        listed[name] = of_queue | set(re.findall(r"`(\w+)`", besides))
    assert listed == exported


def test_the_page_lists_the_values_of_labels() -> None:
    besides = {cells[0].strip("`"): cells[1] for cells in rows("Metrics")}
    assert besides["leaseq_items"] == f"`state`: {', '.join(STATES)}"
    assert besides["leaseq_events_total"] == f"`event`: {', '.join(COUNTERS)}"
    assert besides["leaseq_cleaner_moved_total"] == f"`what`: {', '.join(MOVES)}"


def test_kinds_of_repair_are_those_of_the_specification() -> None:
    page = (ROOT / "spec" / "07-repair.md").read_text().partition("## What is lost")[0]
    lines = re.findall(r"^- ((?:`\w+`(?:, )?)+): ", page, re.MULTILINE)
    assert re.findall(r"\w+", " ".join(lines)) == list(REPAIRS)


def test_the_page_lists_the_exit_codes() -> None:
    assert {int(code): meaning.replace("`", "") for code, meaning in rows("Exit codes")} == MEANINGS


def test_what_the_page_says_of_flags_and_addresses_is_there() -> None:
    assert f"http://{LISTEN}/metrics" in PAGE
    known = FLAGS | {"--help", "--version"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE)) <= known
    for name in re.findall(r"`(cleaner/[^`]*|benchmarks/[^`]*)`", PAGE):
        assert (ROOT / name).is_file(), name


@pytest.mark.parametrize("rule", alert_rules(), ids=lambda rule: rule["alert"])
def test_an_alert_is_valid_and_about_what_is_exported(
    rule: dict[str, Any], exported: dict[str, set[str]]
) -> None:
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    promql_parser.parse_duration(rule.get("for", "1m"))
    assert rule["labels"]["severity"] in {"page", "ticket"}
    read = selectors(rule["expr"])
    assert read
    for selector in read:
        name, labels = selector.name or "", {matcher.name for matcher in selector.matchers.matchers}
        base = re.sub(r"_(bucket|count|sum)$", "", name)
        assert name in exported or base in exported, name
        assert labels <= exported.get(name, exported.get(base, set())), (name, labels)
    grouped = set(re.findall(r"by \(([^)]*)\)", rule["expr"]))
    labels_of_all = set().union(*exported.values()) | {"le"}
    assert {label.strip() for by in grouped for label in by.split(",")} <= labels_of_all
    for label in re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]):
        assert any(label in by for by in grouped), f"{label} is gone"


@pytest.mark.parametrize("wrong", ["max(", "sum by (a rate(x[5m])", "x > > 1"])
def test_the_parser_refuses_what_prometheus_would(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        promql_parser.parse(wrong)


def test_the_page_says_what_to_do_about_each_alert() -> None:
    named = [
        name for cells in rows("Alerts, and what to do") for name in re.findall(r"`(Leaseq\w+)`", cells[0])
    ]
    assert named == [rule["alert"] for rule in alert_rules()]


def test_the_dockerfile() -> None:
    """Linted by hadolint; what it copies is there, its user is not root. Building it takes Docker, so it is not built here."""
    file = CLEANER / "Dockerfile"
    lint = subprocess.run(
        [str(Path(sys.executable).with_name("hadolint")), "--failure-threshold", "style", str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (lint.returncode, lint.stdout) == (0, "")
    text = file.read_text(encoding="utf-8")
    copied = {
        source
        for line in re.findall(r"^COPY (?!--)(.*)$", text, re.MULTILINE)
        for source in line.split()[:-1]
    }
    with (ROOT / "pyproject.toml").open("rb") as project_file:
        project = tomllib.load(project_file)
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    assert copied == needed | {*wheel["packages"], *wheel.get("force-include", {})}, (
        "what the wheel is made of"
    )
    users = re.findall(r"^USER (.*)$", text, re.MULTILINE)
    assert users
    assert users[-1] not in {"root", "0"}
    assert "-slim" in text
    port = LISTEN.rpartition(":")[2]
    assert f"LEASEQ_CLEANER_LISTEN=0.0.0.0:{port}" in text
    assert f"EXPOSE {port}" in text


def test_the_unit() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(CLEANER / "systemd" / "leaseq-cleaner.service", encoding="utf-8")
    assert unit.sections() == ["Unit", "Service", "Install"]
    service = unit["Service"]
    words = service["ExecStart"].split()
    assert words[0].endswith("/leaseq-cleaner")
    assert {word for word in words if word.startswith("-")} <= FLAGS
    assert {int(code) for code in service["RestartPreventExitStatus"].split()} <= set(MEANINGS)
    assert service["DynamicUser"] == "yes"


@pytest.mark.slow
def test_the_benchmark_runs() -> None:
    """Its figures are for the page; here it only has to count something."""
    command = [sys.executable, str(ROOT / "benchmarks/cleaner.py"), "--seconds", "4", "--queues", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["idle"] == 2
    assert found["errors"] == [0]
    assert found["requests_before"] >= 2
    assert all(memory["peak"] > 1 for memory in found["memory_mib"])
