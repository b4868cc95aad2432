"""The distribution leaseq-conformance: it is built, installed without leaseq, and checks a client from there."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path

import pytest
from support.distributions import build, content, run

ROOT = Path(__file__).parents[2]
PROJECT = Path(__file__).parents[1]
ADAPTER = (sys.executable, "-m", "conformance_adapter.sync_client")
FIRST = "scenarios/add-lease-complete"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", PROJECT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has this wheel and what it requires, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    return folder / "bin"


def test_the_wheel_has_the_suite_the_manifest_and_the_specification(wheel: Path) -> None:
    packed = content(wheel)
    assert packed["leaseq_conformance/manifest.json"] == (ROOT / "lua/manifest.json").read_bytes()
    for page in (ROOT / "spec").glob("*.md"):
        assert packed[f"leaseq_conformance/spec/{page.name}"] == page.read_bytes()
    sources = {str(path.relative_to(PROJECT)) for path in (PROJECT / "leaseq_conformance").rglob("*.py")}
    assert sources <= packed.keys()
    assert {name.partition("/")[0].partition("-")[0] for name in packed} == {"leaseq_conformance"}
    assert not [name for name in packed if "selftest" in name or "seeded" in name or "__pycache__" in name]


def test_the_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build("sdist", PROJECT, tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (root,) = (tmp_path / "unpacked").iterdir()
    assert content(build("wheel", root, tmp_path / "again")) == content(wheel)


def test_it_needs_no_leaseq(programs: Path, tmp_path: Path) -> None:
    listed = json.loads(run(programs / "pip", "list", "--format=json", "--disable-pip-version-check"))
    assert "leaseq" not in {each["name"] for each in listed}
    suite = programs / "leaseq-conformance"
    versions = run(suite, "--version").splitlines()
    assert [line.rpartition(" ")[0] for line in versions] == [
        "leaseq-conformance",
        "protocol",
        "adapter protocol",
        "case schema",
    ]
    assert FIRST in run(suite, "list", "scenarios/*")
    assert "LQ-COMPLETE-3" in run(suite, "explain", FIRST)
    run(suite, "export", tmp_path / "cases")
    assert (tmp_path / "cases" / f"{FIRST}.json").is_file()


def test_it_checks_a_client(programs: Path, tmp_path: Path) -> None:
    """The client is that of this repository, in a separate environment: the suite knows its adapter's command alone."""
    suite = programs / "leaseq-conformance"
    assert "added, leased and completed" in run(suite, "smoke", "--", *ADAPTER, cwd=tmp_path)
    results = tmp_path / "results.json"
    run(suite, "run", "--case", FIRST, "--results", results, "--", *ADAPTER, cwd=tmp_path)
    assert "1 of 1 cases passed" in run(suite, "report", "--html", tmp_path / "page.html", results)
    assert "1 of 1 cases passed" in run(suite, "vectors", "--case", "vectors/settle", cwd=tmp_path)
