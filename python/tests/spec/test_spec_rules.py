"""The specification agrees with the scripts, and every rule is tested. Each check is shown to catch what it is for."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest
from support import spec_rules
from support.spec_rules import Tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CITING = "python/tests/test_all.py"
CALLS, OPERATIONS, CLUSTER = (f"spec/{page}.md" for page in ("03-calls", "04-operations", "09-cluster"))


@pytest.mark.parametrize("check", spec_rules.CHECKS, ids=lambda check: check.__name__)
def test_nothing_contradicts_the_specification(check: Callable[[Tree], list[str]]) -> None:
    assert not check(Tree())


@pytest.fixture
def copy(tmp_path: Path) -> Tree:
    """The specification and the scripts, and one test that cites every rule."""
    for folder in ("spec", "lua"):
        shutil.copytree(spec_rules.ROOT / folder, tmp_path / folder)
    (tmp_path / spec_rules.STATES_PAGE).parent.mkdir()
    shutil.copy(spec_rules.ROOT / spec_rules.STATES_PAGE, tmp_path / spec_rules.STATES_PAGE)
    (tmp_path / CITING).parent.mkdir(parents=True)
    tree = Tree(tmp_path)
    (tmp_path / CITING).write_text(" ".join(rule.id for rule in tree.rules()))
    return tree


@pytest.mark.parametrize(
    ("check", "path", "old", "new", "complaint"),
    [
        (spec_rules.uncited, CITING, "LQ-LEASE-1 ", "LQ-LEASE-10 ", "no test or case cites LQ-LEASE-1$"),
        (spec_rules.unknown, CITING, "LQ-ADD-1 ", "LQ-ADD-99 ", "test_all.py: there is no LQ-ADD-99"),
        (spec_rules.unknown, "spec/08-failures.md", "(LQ-ERROR-4)", "(LQ-ERR-4)", "there is no LQ-ERR-4"),
        (spec_rules.duplicates, OPERATIONS, "**LQ-ADD-2**", "**LQ-ADD-1**", "LQ-ADD-1 is there 2 times"),
        (spec_rules.malformed, CLUSTER, "# ", "It MUST be so.\n# ", "MUST outside a rule: It MUST be so."),
        (spec_rules.malformed, CLUSTER, "A client MUST NOT name", "No client names", "LQ-CLUSTER-2 is not"),
        (spec_rules.malformed, CLUSTER, "in one hash slot.", "in one. So be it.", "LQ-CLUSTER-1 is not"),
        (spec_rules.error_codes, CALLS, "| `LEASEQ_CLOCK` |", "| `LEASEQ_T` |", "lists LEASEQ_T, which no"),
        (spec_rules.error_codes, "lua/lib/time.lua", "LEASEQ_CLOCK", "LEASEQ_T", "not list LEASEQ_T"),
        (spec_rules.sections, OPERATIONS, "## settle\n", "## settles\n", "no section on settle"),
        (
            spec_rules.malformed,
            CLUSTER,
            "(client) All keys",
            "All keys",
            "MUST outside a rule: ..LQ-CLUSTER-1",
        ),
        (
            spec_rules.cells,
            spec_rules.STATES_PAGE,
            "| inspect | any | `absent`, zeros |",
            "| inspect | any | |",
            "empty or missing",
        ),
        (spec_rules.cells, spec_rules.STATES_PAGE, "| extend | current |", "| extend | old |", "no row for"),
    ],
)
def test_a_contradiction_is_found(
    copy: Tree, check: Callable[[Tree], list[str]], path: str, old: str, new: str, complaint: str
) -> None:
    assert not check(copy)
    text = (copy.root / path).read_text()
    assert old in text
    (copy.root / path).write_text(text.replace(old, new, 1))
    assert any(re.search(complaint, line) for line in check(copy)), check(copy)
