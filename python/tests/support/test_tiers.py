"""Tiers: which tests run, and that whatever does not is counted in the last line, with one process and with several."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import programs
from support.tiers import Tiers

if TYPE_CHECKING:
    from pathlib import Path

CONFTEST = """
import pytest
from support import adapters, tiers

adapters.typescript_runs = lambda: False

def pytest_addoption(parser):
    parser.addoption("--tier")

def pytest_configure(config):
    for name in ("slow", "nightly", "typescript"):
        config.addinivalue_line("markers", name)
    chosen = config.getoption("--tier")
    config.pluginmanager.register(tiers.Tiers(config, chosen.split(",") if chosen else None), tiers.NAME)
"""
TESTS = """
import pytest

def test_quick(): pass

@pytest.mark.slow
class TestSlow:
    @pytest.mark.parametrize("turn", [1, 2])
    def test_slow(self, turn): pass

    @pytest.mark.nightly
    def test_nightly(self): pass

@pytest.mark.typescript
def test_typescript(): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "tiers", "ran", "line"),
    [
        (0, "", 4, "left out: 1 TypeScript tests (`make typescript`)"),
        (2, "quick", 1, "left out: 3 slow tests (`make test-all`), 1 nightly tests (`make test-nightly`)"),
        (
            0,
            "quick,slow",
            3,
            "left out: 1 nightly tests (`make test-nightly`), 1 TypeScript tests (`make typescript`)",
        ),
    ],
)
def test_the_last_line_names_what_was_left_out(
    tmp_path: Path, processes: int, tiers: str, ran: int, line: str
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_all.py").write_text(TESTS)
    options = [f"--tier={tiers}"] if tiers else []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", f"-n{processes}", *options]
    environment = {
        name: value for name, value in programs.environment().items() if not name.startswith("PYTEST")
    } | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *_, closing, last = done.stdout.splitlines()
    assert re.match(rf"{ran} passed", closing)
    assert last == line


def test_an_unknown_tier_is_refused(request: pytest.FixtureRequest) -> None:
    with pytest.raises(pytest.UsageError, match="--tier: fast is none of quick, slow, nightly"):
        Tiers(request.config, ["quick", "fast"])
