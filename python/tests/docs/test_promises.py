"""The register of promises is complete, and says what is missing."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

import pytest
from support.lint_tools import tool

from leaseq_conformance.cases import Case
from selftest import promise_tests
from selftest.promise_tests import PromiseTest
from selftest.seeded_bug import load

if TYPE_CHECKING:
    from pathlib import Path

promises: Any = tool("promises")

TEST: Final = PromiseTest("net/test_forks.py::test_a_queue", ("G1",))
CASE: Final = Case("wire/one", "", ("LQ-ADD-1",), ("core",))
(BUG,) = load(
    """
- name: a-bug
  title: Does something wrong
  breaks: [LQ-ADD-1]
  caught_by: [wire/one]
  edits:
    - {file: item.py, old: "a", new: "b"}
""",
    "python",
    "test.yaml",
)
PROMISE: Final = promises.Promise("G1", "It holds.", ("LQ-ADD-1",))
REGISTER: Final = promises.Register([PROMISE], [TEST], [CASE], [BUG], {"a-bug": ["wire/one"]})
UNSEEN: Final = "G1 was never seen to fail: plant a bug that one of its tests or cases catches"


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({}, None),
        ({"caught": {"a-bug": [f"tests/{TEST.name}"]}}, None),
        ({"tests": []}, "G1 has no test: mark one with pytest.mark.promise('G1')"),
        (
            {"tests": [TEST, PromiseTest("a.py::test_b", ("G2",))]},
            "a.py::test_b is marked for G2, which guarantees.md does not have",
        ),
        ({"bugs": []}, UNSEEN),
        ({"caught": {"a-bug": []}}, UNSEEN),
        ({"caught": {"a-bug": ["wire/other"]}}, UNSEEN),
        ({"cases": [dataclasses.replace(CASE, rules=("LQ-ADD-2",))]}, UNSEEN),
        ({"bugs": [dataclasses.replace(BUG, breaks=("LQ-ADD-2",))]}, UNSEEN),
    ],
)
def test_what_is_missing_is_named(change: dict[str, Any], missing: str | None) -> None:
    register = dataclasses.replace(REGISTER, **change)
    assert list(register.problems()) == ([missing] if missing else [])


def test_a_number_out_of_order_is_named() -> None:
    register = dataclasses.replace(REGISTER, promises=[PROMISE, dataclasses.replace(PROMISE, id="G3")])
    assert "G3 stands where G2 should: number the promises in their order" in register.problems()


@pytest.mark.parametrize(
    ("named", "page"),
    [
        ({"points/a-kill", "points/b-kill"}, "`points/*-kill`"),
        ({"points/a-kill", "points/a-drop-after"}, "`points/a-drop-after`, `points/a-kill`"),
        ({"points/a-kill", "points/b-kill", "points/a-drop-after"}, "`points/*`"),
    ],
)
def test_a_pattern_stands_for_a_whole_group_of_cases(named: set[str], page: str) -> None:
    names = ("points/a-kill", "points/b-kill", "points/a-drop-after")
    cases = [Case(name, "", ("LQ-ADD-1" if name in named else "LQ-ADD-2",), ("core",)) for name in names]
    register = dataclasses.replace(REGISTER, cases=[CASE, *cases])
    assert register.page().endswith(
        f"| `wire/one` | `a-bug` |\n\nMore tests: `{TEST.name}`.\n\nMore cases: {page}.\n"
    )


def test_each_row_with_a_promise_is_read() -> None:
    text = promises.SOURCE.read_text("utf-8")
    assert text.count("\n| G") == len(promises.promises()) >= 28


def test_markers_of_files_classes_and_tests_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_some.py").write_text(
        """
pytestmark = [pytest.mark.slow, pytest.mark.promise("G1")]

@pytest.mark.promise("G2", "G3")
async def test_one(): ...

@pytest.mark.promise("G4")
class TestSome:
    @pytest.mark.parametrize("value", [1])
    @pytest.mark.promise("G5")
    def test_two(self, value): ...
"""
    )
    (tmp_path / "test_other.py").write_text("def test_none(): ...\n")
    monkeypatch.setattr(promise_tests, "TESTS", tmp_path)
    assert promise_tests.promise_tests.__wrapped__() == (
        PromiseTest("test_some.py::test_one", ("G1", "G2", "G3")),
        PromiseTest("test_some.py::TestSome::test_two", ("G1", "G4", "G5")),
    )
