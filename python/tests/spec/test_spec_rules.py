"""The specification agrees with the scripts, and every rule is tested. Each check is shown to catch what it is for."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import spec_rules
from support.spec_rules import Tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize("check", spec_rules.CHECKS, ids=lambda check: check.__name__)
def test_nothing_contradicts_the_specification(check: Callable[[Tree], list[str]]) -> None:
    assert not check(Tree())


@pytest.fixture
def copy(tmp_path: Path) -> Tree:
    """The specification and the scripts, and one test that cites every rule."""
    for folder in ("spec", "lua"):
        shutil.copytree(spec_rules.ROOT / folder, tmp_path / folder)
    (tmp_path / "python" / "tests").mkdir(parents=True)
    tree = Tree(tmp_path)
    (tmp_path / "python" / "tests" / "test_all.py").write_text(" ".join(rule.id for rule in tree.rules()))
    return tree


def edit(tree: Tree, path: str, old: str, new: str) -> None:
    file = tree.root / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_the_copy_is_sound(copy: Tree) -> None:
    assert [line for check in spec_rules.CHECKS for line in check(copy)] == []


@pytest.mark.parametrize(
    ("check", "path", "old", "new", "complaint"),
    [
        (spec_rules.uncited, "python/tests/test_all.py", "LQ-ADD-1 ", "", "no test or case cites LQ-ADD-1$"),
        (spec_rules.uncited, "python/tests/test_all.py", "LQ-LEASE-1 ", "LQ-LEASE-10 ", "cites LQ-LEASE-1$"),
        (
            spec_rules.unknown,
            "python/tests/test_all.py",
            "LQ-ADD-1 ",
            "LQ-ADD-99 ",
            "test_all.py: there is no LQ-ADD-99",
        ),
        (
            spec_rules.unknown,
            "spec/08-failures.md",
            "(LQ-ERROR-4)",
            "(LQ-ERR-4)",
            "08-failures.md: there is no LQ-ERR-4",
        ),
        (
            spec_rules.duplicates,
            "spec/04-operations.md",
            "**LQ-ADD-2**",
            "**LQ-ADD-1**",
            "LQ-ADD-1 is there 2 times",
        ),
        (
            spec_rules.malformed,
            "spec/README.md",
            "# The",
            "It MUST be so.\n# The",
            "MUST outside a rule: It MUST be so.",
        ),
        (
            spec_rules.malformed,
            "spec/09-cluster.md",
            "A client MUST NOT name",
            "No client names",
            "LQ-CLUSTER-2 is not",
        ),
        (
            spec_rules.malformed,
            "spec/09-cluster.md",
            "in one hash slot.",
            "in one slot. So be it.",
            "LQ-CLUSTER-1 is not",
        ),
        (
            spec_rules.error_codes,
            "spec/03-calls.md",
            "| `LEASEQ_CLOCK` |",
            "| `LEASEQ_TIME` |",
            "lists LEASEQ_TIME, which no",
        ),
        (
            spec_rules.error_codes,
            "lua/parts/clock.lua",
            "LEASEQ_CLOCK",
            "LEASEQ_LATE",
            "does not list LEASEQ_LATE, which",
        ),
        (
            spec_rules.error_codes,
            "spec/08-failures.md",
            "LEASEQ_FORMAT",
            "LEASEQ_FORM",
            "spec names LEASEQ_FORM, which",
        ),
        (spec_rules.sections, "spec/04-operations.md", "## settle\n", "## settles\n", "no section on settle"),
        (
            spec_rules.sections,
            "spec/04-operations.md",
            "## settle\n",
            "## settles\n",
            "no script is named settles",
        ),
        (
            spec_rules.sections,
            "spec/04-operations.md",
            "`ready` `state` `wake` `items`",
            "`ready` `wake`",
            "settle: keys",
        ),
        (
            spec_rules.sections,
            "spec/04-operations.md",
            "`dead` `expiry` `kept` `state` `wake`; then `result:<id>`",
            "`dead` `kept` `expiry` `state` `wake`; then `result:<id>`",
            "complete_with: keys",
        ),
        (
            spec_rules.sections,
            "spec/04-operations.md",
            "; then `result:<id>` for each entry.",
            ".",
            "outcome: keys",
        ),
        (
            spec_rules.sections,
            "spec/04-operations.md",
            "**Errors** `LEASEQ_CLOCK`, ",
            "**Errors** ",
            "lease: errors",
        ),
        (
            spec_rules.cells,
            "spec/01-overview.md",
            "| lease | any | not found |",
            "| lease | any | |",
            "empty or missing",
        ),
        (
            spec_rules.cells,
            "spec/01-overview.md",
            "| extend | older item |",
            "| extend | old item |",
            "no row for",
        ),
        (
            spec_rules.cells,
            "spec/01-overview.md",
            "| extend | older item |",
            "| extend | old item |",
            "which is nothing",
        ),
    ],
)
def test_a_contradiction_is_found(
    copy: Tree, check: Callable[[Tree], list[str]], path: str, old: str, new: str, complaint: str
) -> None:
    edit(copy, path, old, new)
    assert any(re.search(complaint, line) for line in check(copy)), check(copy)


def test_must_in_a_code_block_is_no_rule(copy: Tree) -> None:
    edit(copy, "spec/README.md", "# The", "```\nMUST\n```\n# The")
    assert spec_rules.malformed(copy) == []


def test_a_conformance_case_counts_as_a_citation(copy: Tree) -> None:
    edit(copy, "python/tests/test_all.py", "LQ-ADD-1 ", "")
    (copy.root / "conformance-tests" / "cases").mkdir(parents=True)
    (copy.root / "conformance-tests" / "cases" / "add.yaml").write_text("rules: [LQ-ADD-1]\n")
    assert spec_rules.uncited(copy) == []


def test_the_checker_does_not_count_itself(copy: Tree) -> None:
    edit(copy, "python/tests/test_all.py", "LQ-ADD-1 ", "")
    (copy.root / "python" / "tests" / "test_spec_rules.py").write_text("LQ-ADD-1")
    assert len(spec_rules.uncited(copy)) == 1


def test_the_table_of_coverage(copy: Tree) -> None:
    table = spec_rules.coverage(copy)
    assert re.search(r"^LQ-ADD-1 +1  python/tests/test_all.py$", table, re.MULTILINE)
    assert table.endswith(f"{len(copy.rules())} of {len(copy.rules())} rules are cited")


def test_the_checker_runs_as_a_program() -> None:
    run = subprocess.run([sys.executable, spec_rules.__file__], capture_output=True, text=True, check=False)
    assert "rules are cited" in run.stdout
    assert not run.stderr
