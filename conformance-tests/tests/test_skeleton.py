"""The skeleton of a port, as its README has it run: it conforms at the level Core."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from leaseq_conformance import registry
from leaseq_conformance.cli import program

README: Final = Path(__file__).parents[1] / "leaseq_conformance" / "skeleton" / "README.md"
FIRST, ALL = re.findall(r"```sh\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written = CliRunner().invoke(program, ["skeleton", str(tmp_path / "port")])
    assert written.exit_code == 0, written.output
    return tmp_path / "port"


def run(folder: Path, lines: str) -> str:
    """Run lines of a shell in the folder, with this Python's programs first; return what they print."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_first_cases_pass(folder: Path) -> None:
    printed = run(folder, FIRST)
    assert "added, leased and completed an item" in printed
    counts = re.search(r"(\d+) of (\d+) cases passed", printed)
    assert counts, printed
    patterns = re.findall(r"--case '?([^' ]+)", FIRST)
    of_core = [case for case in registry.all_cases((), patterns) if case.capabilities == ("core",)]
    assert counts[1] == counts[2] == str(len(of_core))


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_core_holds(folder: Path) -> None:
    run(folder, FIRST.splitlines()[0])
    assert re.search(r"^core: (\d+) of \1 cases passed", run(folder, ALL), re.MULTILINE)


def test_named_cases_are_there_and_need_core_only() -> None:
    of_core = {case.name for case in registry.all_cases() if case.capabilities == ("core",)}
    named = set(re.findall(r"`((?:wire|scenarios)/[a-z0-9-]+)`", README.read_text()))
    assert named
    assert named - of_core == set()


def test_a_folder_with_files_is_left_alone(folder: Path) -> None:
    (folder / "client.py").write_text("mine")
    refused = CliRunner().invoke(program, ["skeleton", str(folder)])
    assert refused.exit_code == 2
    assert "is not empty: name a new folder" in refused.output
    assert (folder / "client.py").read_text() == "mine"
