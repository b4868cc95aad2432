"""docs/cli.md: its sessions run as they stand, its tables say what the program does, its pictures are there."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.cli_runner import COMMAND
from support.snippets import ROOT, blocks

from leaseq.cli.exit_codes import MEANINGS

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "cli.md"
TEXT = PAGE.read_text(encoding="utf-8")


def calls(session: str) -> list[tuple[str, str]]:
    """The commands of a session, a continued one with all its lines, and what each prints."""
    found: list[tuple[str, str]] = []
    for line in session.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
        else:
            found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program `leaseq`: that of this working tree."""
    program = tmp_path / "bin" / "leaseq"
    program.parent.mkdir()
    quoted = " ".join(f"'{part}'" for part in COMMAND)
    program.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
    program.chmod(0o755)
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_sessions_print_what_the_page_says(url: str, folder: Path) -> None:
    env = os.environ | {"REDIS_URL": url, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    ran = 0
    for block in blocks(PAGE):
        if block.kind != "console":
            continue
        for command, output in calls(block.text):
            done = subprocess.run(
                ["bash", "-uc", f"{{ {command}\n}} 2>&1"],
                cwd=folder,
                env=env,
                capture_output=True,
                text=True,
                timeout=50,
                check=False,
            )
            assert done.stdout == output, f"{block}: {command}"
            assert done.returncode == 0, f"{block}: {command}"
            ran += 1
    assert ran >= 15


def test_the_table_of_exit_codes_is_that_of_the_program() -> None:
    meanings = dict(re.findall(r"^\| (\d+) \| (.*) \|$", TEXT.split("| code | meaning |")[1], re.MULTILINE))
    assert meanings == {str(code): meaning for code, meaning in MEANINGS.items()}


def test_the_pictures_are_there_and_fetch_nothing() -> None:
    pictures = re.findall(r"!\[.+\]\((pictures/[^)]+)\)", TEXT)
    assert len(pictures) == 2
    for picture in pictures:
        drawn = (PAGE.parent / picture).read_text(encoding="utf-8")
        assert "</svg>" in drawn
        assert "url(http" not in drawn
        assert "leaseq" in drawn
