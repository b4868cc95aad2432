"""The checks of `make lint` that are our own find what they are for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.lint_tools import tool

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        ("Run every call through one executor", ""),
        ("A" * 72, ""),
        ("A" * 73, "73 characters"),
        ("run every call through one executor", "capital letter"),
        ("Run every call.", "full stop"),
    ],
)
def test_subjects_of_commits(subject: str, why: str) -> None:
    fault: str = tool("commit_subjects").fault(subject)
    assert why in fault
    assert bool(fault) is bool(why)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Return the time.", False),
        ("What the time is.", True),
        ("Whether it is late.", True),
        ("Its time.", False),
    ],
)
def test_starts_of_docstrings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, *, wrong: bool
) -> None:
    docstrings: Any = tool("docstrings")
    monkeypatch.setattr(docstrings, "ROOT", tmp_path)
    module = tmp_path / "module.py"
    module.write_text(f'LATE = 1\n"""{text}"""\n')
    assert bool(list(docstrings.wrong_docstrings(module))) is wrong
