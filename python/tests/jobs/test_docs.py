"""Checks of statements of the pages about jobs."""

from __future__ import annotations

import ast
import functools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli_runner import COMMAND
from support.job_app import TIMEOUT_SECS
from support.snippets import ROOT, blocks

GUIDE = ROOT / "docs" / "jobs.md"
PAGE = Path(__file__).with_name("BEHAVIOURS.md")
ROWS = [
    line.split(" | ")
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| behaviour")
]


@functools.cache
def functions(name: str) -> set[str]:
    """The tests in a file."""
    tree = ast.parse((ROOT / "python" / "tests" / name).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_tests_that_the_table_names_are_there() -> None:
    for behaviour, _, shown in ROWS:
        file = ""
        cited = re.findall(r"`([\w./]*)(?:::(\w+))?`", shown)
        for named, function in cited:
            file = named or file
            assert "test_" in file, behaviour
            assert function in functions(file), f"{behaviour}: {function}"
        assert cited, behaviour


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_and_who_enqueues_are_two_programs(tmp_path: Path) -> None:
    """The example of the guide as it stands, but for the time that a result may take."""
    (at,) = (number for number, block in enumerate(blocks(GUIDE)) if "shop_tasks:app" in block.text)
    module, first, second = blocks(GUIDE)[at - 1 : at + 2]
    (tmp_path / "shop_tasks.py").write_text(module.text)
    leaseq, *worker = first.text.split()
    python, command, program = second.text.strip().split(" ", 2)
    assert (leaseq, python, command) == ("leaseq", "python", "-c")
    env = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
    with (tmp_path / "log").open("w+") as log:
        working = subprocess.Popen([*COMMAND, *worker], cwd=tmp_path, env=env, stderr=log)
        try:
            done = subprocess.run(
                [sys.executable, "-c", program.strip('"').replace("timeout=10", f"timeout={TIMEOUT_SECS}")],
                cwd=tmp_path,
                env=env,
                capture_output=True,
                text=True,
                timeout=2 * TIMEOUT_SECS,
                check=False,
            )
        finally:
            working.send_signal(signal.SIGINT)
            code = working.wait(TIMEOUT_SECS)
        log.seek(0)
        log_text = log.read()
    assert (done.stdout, done.stderr) == (second.output, "")
    assert code == 0, log_text
    assert "default: shop_tasks.parcel(7), job " in log_text
