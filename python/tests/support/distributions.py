"""Distributions, built and installed as a packager and a user would."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Return what a program prints, which must succeed; its errors become part of the failure."""
    # a server that tests were given is no server of the installed program; the cache of servers is everybody's
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LEASEQ_TEST"))
    }
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=clean)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def build(what: str, source: Path, folder: Path) -> Path:
    """Build with the hatchling that is installed, so that nothing is fetched."""
    run(sys.executable, "-m", "build", "--no-isolation", f"--{what}", "--outdir", folder, source)
    (built,) = folder.iterdir()
    return built


def content(wheel: Path) -> dict[str, bytes]:
    """Its files; of the RECORD the sorted lines, since it lists the others in the order in which they were packed."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    record = next(name for name in files if name.endswith("/RECORD"))
    return {**files, record: b"".join(sorted(files[record].splitlines(keepends=True)))}
