"""The runner of the Makefile's steps."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_a_step_that_hangs_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runpy.run_path(str(ROOT / "tools" / "run_steps.py"))["run"]
    (tmp_path / "Makefile").write_text("hangs:\n\t@echo starts; sleep 600 & wait\nends:\n\t@echo ends\n")
    monkeypatch.chdir(tmp_path)
    hung = run("hangs", captured=True, limit=1)
    # communicate() returns when all that the step started has closed its output
    assert (hung.code, hung.output, hung.seconds < 60) == (-9, "starts\n", True)
    ended = run("ends", captured=True)
    assert (ended.code, ended.output) == (0, "ends\n")
