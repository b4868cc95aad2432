"""The runner of the Makefile's steps."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[3]


def test_a_step_that_hangs_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runpy.run_path(str(ROOT / "tools" / "run_steps.py"))["run"]
    (tmp_path / "Makefile").write_text("hangs:\n\t@echo starts; sleep 600 & wait\nends:\n\t@echo ends\n")
    monkeypatch.chdir(tmp_path)
    hung = run("hangs", shown=False, limit=1)
    # its output ends when all that the step started has closed it
    assert (hung.code, hung.output, hung.seconds < 60) == (-9, "starts\n", True)
    ended = run("ends", shown=False)
    assert (ended.code, ended.output) == (0, "ends\n")


def test_the_end_of_a_step_that_failed_is_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    main = runpy.run_path(str(ROOT / "tools" / "run_steps.py"))["main"]
    (tmp_path / "Makefile").write_text("fails:\n\t@echo why; exit 3\nends:\n\t@echo ends\n")
    monkeypatch.chdir(tmp_path)
    assert main(["make all", "fails", "ends"]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines.index("why") < lines.index("ends")
    again = lines[lines.index("== fails failed; it ended with:") :]
    assert again[1] == "why"
    assert [line.split()[0] for line in again[-2:]] == ["fails", "ends"]
    assert again.count("ends") == 0


@pytest.mark.parametrize("steps", [("leaves+ends",), ("leaves", "ends")])
def test_what_a_step_left_out_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], steps: Iterable[str]
) -> None:
    """`.ci/run` looks for these lines, whether steps run alone or side by side."""
    main = runpy.run_path(str(ROOT / "tools" / "run_steps.py"))["main"]
    left_out = [
        "SKIPPED [1] test_a.py:3: no server",
        "=== 3 passed, 1 skipped in 0.10s ===",
        "\N{INFORMATION SOURCE} todo 1",
    ]
    echoes = "".join(f"\t@echo '{line}'\n" for line in [*left_out, "=== 3 passed in 0.10s ===", "last"])
    (tmp_path / "Makefile").write_text(f"leaves:\n{echoes}ends:\n\t@echo ends\n")
    monkeypatch.chdir(tmp_path)
    assert main(["make all", *steps]) == 0
    lines = capfd.readouterr().out.splitlines()
    shown = [line for line in lines if line.startswith("did not run in ")]
    assert shown == [f"did not run in leaves: {line}" for line in left_out]
    assert "'^did not run in '" in (ROOT / ".ci" / "run").read_text()
