"""README.md: short, every block runs as it stands, every link leads somewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support.snippets import ROOT, Block, blocks, check_shell, run_python, run_typescript

if TYPE_CHECKING:
    from pathlib import Path

README = ROOT / "README.md"
BLOCKS = blocks(README)


def of(kind: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind == kind]


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    assert {block.kind for block in BLOCKS} == {"python", "output", "sh", "ts"}
    assert len(of("output")) == sum(block.output is not None for block in of("python"))


@pytest.mark.slow
@pytest.mark.parametrize("block", of("python"), ids=str)
def test_python_runs_as_written(block: Block, tmp_path: Path) -> None:
    run_python(block, tmp_path)


@pytest.mark.typescript
@pytest.mark.parametrize("block", of("ts"), ids=str)
def test_typescript_runs_as_written(block: Block, url: str) -> None:
    run_typescript(block, url)


@pytest.mark.parametrize("block", of("sh"), ids=str)
def test_shell_lines_name_what_there_is(block: Block) -> None:
    check_shell(block)


def test_links_lead_to_files() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), target


def test_it_stays_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 125
