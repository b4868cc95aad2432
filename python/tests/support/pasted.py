"""Blocks that pages ask an operator to paste, as programs. Only the addresses are changed, to those of this machine."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from support.servers import TIMEOUT_SECS
from support.snippets import ROOT, blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from support.snippets import Block

BIN = Path(sys.executable).parent
INSTALLED = re.compile(r"/opt/\w+/(venv/)?bin/")
"""Where the pages have the programs that are in `BIN` here."""


def block(page: str, kind: str, start: str = "") -> Block:
    """The only block of a kind that starts so on a page."""
    (found,) = (one for one in blocks(ROOT / page) if one.kind == kind and one.text.startswith(start))
    return found


def settings_of_operations() -> list[str]:
    """The settings in the table of docs/operations.md, in the order of the page."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`[a-z-]+ .*?) \|", page.partition("## Server settings")[2], re.MULTILINE)
    return re.findall(r"`([^`]+)`", " ".join(cells))


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program: these variables, and the programs of this environment on PATH."""
    path = f"{BIN}:{os.environ['PATH']}"
    return {"PATH": path, "PYTHONPATH": str(ROOT / "python"), "LEASEQ_CLEANER_LISTEN": "off", **variables}


@contextlib.contextmanager
def service(
    command: str | Sequence[str], folder: Path, variables: Mapping[str, str], code: int = 0
) -> Iterator[None]:
    """Run a program that runs until it is stopped; SIGTERM has to end it with this code."""
    words = shlex.split(command) if isinstance(command, str) else command
    words = [INSTALLED.sub("", word) for word in words]
    with (folder / "service.log").open("ab") as log:
        started = subprocess.Popen(words, cwd=folder, env=environment(variables), stdout=log, stderr=log)
    try:
        yield
    finally:
        started.send_signal(signal.SIGTERM)
        try:
            ended = started.wait(TIMEOUT_SECS)
        except subprocess.TimeoutExpired:
            started.kill()
            raise
    assert ended == code, (folder / "service.log").read_text()


def shell(line: str, folder: Path, variables: Mapping[str, str]) -> str:
    """Run a line of a shell block to its end; it has to succeed. Returns what it prints."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        cwd=folder,
        env=environment(variables),
        capture_output=True,
        text=True,
        timeout=2 * TIMEOUT_SECS,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout
