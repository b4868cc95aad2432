"""`make example-NAME`, as a user starts it."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING, Final

from support.snippets import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SECONDS: Final = 120
"""An example that takes longer hangs."""

AS_IT_IS: Final = [
    f"--assume-old={folder}/.installed"
    for folder in (".venv", ".venvs/from_arq", ".venvs/from_rq", ".venvs/from_celery")
]
"""A test installs nothing: `make pytest-slow` has done that. If an environment is missing, the command fails."""


def start(example: str, arguments: str = "", folder: Path | None = None) -> subprocess.Popen[str]:
    """Start an example in a session, so that a signal can go where a terminal sends it. `folder` is for its temporary files."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.Popen(
        ["make", "--silent", *AS_IT_IS, f"example-{example}", f"ARGS={arguments}"],
        cwd=ROOT,
        env=env | ({"TMPDIR": str(folder)} if folder else {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def output(example: str, arguments: str = "") -> list[str]:
    """Return the lines that an example prints. It has to end, and with 0."""
    with start(example, arguments) as process:
        try:
            out, errors = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            raise
    assert process.returncode == 0, f"{out}\n{errors}"
    return out.splitlines()


def processes(process: subprocess.Popen[str], folder: Path) -> list[str]:
    """Return the command lines of an example's live processes: those of its session, and its server in the folder."""
    listing = subprocess.run(
        ["ps", "-A", "-ww", "-o", "sid=,stat=,args="], capture_output=True, text=True, check=True
    ).stdout
    lines = [line.split(maxsplit=2) for line in listing.splitlines()]
    return [
        args
        for session, state, args in lines
        if (session == str(process.pid) or str(folder) in args) and not state.startswith("Z")
    ]
