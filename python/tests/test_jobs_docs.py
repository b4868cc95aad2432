"""What the pages about jobs say is so."""

from __future__ import annotations

import ast
import re

import pytest
from snippets import ROOT

PAGE = ROOT / "docs" / "jobs-behaviours.md"
ROWS = [
    line.split(" | ")
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| behaviour")
]


def functions(name: str) -> set[str]:
    """The tests in a file."""
    tree = ast.parse((ROOT / "python" / "tests" / name).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_tests_that_the_table_names_are_there(row: list[str]) -> None:
    behaviour, _, shown = row
    file = ""
    cited = re.findall(r"`([\w.]*)(?:::(\w+))?`", shown)
    for named, function in cited:
        file = named or file
        assert file.startswith("test_"), behaviour
        assert function in functions(file), f"{behaviour}: {function}"
    assert cited, behaviour
