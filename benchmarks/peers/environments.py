"""The environments that the libraries run in: one under .peers/ for each, with the packages that are pinned here.

requirements/NAME.txt lists every package of a Python library with its version, node/package-lock.json those on Node.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from peers.libraries import Library

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = Path(os.environ.get("LEASEQ_PEERS_DIR") or ROOT / ".peers")
REQUIREMENTS: Final = Path(__file__).parent / "requirements"
NODE: Final = Path(__file__).parent / "node"
WITH_NODE: Final = str(ROOT / "tools" / "node.sh")


class SetupError(Exception):
    """An environment could not be made; the message says why."""


def _pinned(name: str) -> Path:
    return NODE / "package-lock.json" if name == "node" else REQUIREMENTS / f"{name}.txt"


def _mark(name: str) -> str:
    """Return the mark of an environment that is up to date."""
    requirements = f"{sys.version_info[:2]} {_pinned(name).read_text()}"
    return hashlib.sha256(requirements.encode()).hexdigest()


def is_ready(name: str) -> bool:
    """Return whether the environment is there, with the packages that are pinned now."""
    stamp = FOLDER / name / "stamp"
    return stamp.exists() and stamp.read_text() == _mark(name)


def make(name: str) -> None:
    """Make the environment anew. Raises SetupError."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if name == "node":
        for file in ("package.json", "package-lock.json"):
            shutil.copy(NODE / file, folder)
        # not `ci`: it wants every platform's optional packages in the lock file
        install = [
            WITH_NODE,
            "npm",
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--prefix",
            str(folder),
        ]
    else:
        venv.create(folder, with_pip=True)
        pip = [
            str(folder / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        install = [*pip, "--no-deps", "-r", str(_pinned(name))]
    ended = subprocess.run(install, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SetupError(f"the packages of {name} cannot be installed:\n{ended.stderr.strip()[-2000:]}")
    (folder / "stamp").write_text(_mark(name))


def make_missing(libraries: Iterable[Library], log: Callable[[str], None]) -> None:
    """Make the environments that these libraries need. Raises SetupError."""
    for name in sorted({each.environment for each in libraries if each.environment}):
        if not is_ready(name):
            log(f"setting up {name}")
            make(name)


def command(library: Library) -> list[str]:
    """The command that starts the library's adapter, to be run in the folder benchmarks/."""
    if library.on_node:
        return [WITH_NODE, "node", str(Path(__file__).parent / "adapters" / library.adapter)]
    python = str(FOLDER / library.environment / "bin" / "python") if library.environment else sys.executable
    return [python, "-m", f"peers.adapters.{library.adapter}"]


def modules(library: Library) -> str:
    """Where an adapter on Node finds its packages."""
    if not library.on_node:
        return ""
    return str(FOLDER / library.environment if library.environment else ROOT / "typescript")


def version(library: Library) -> str:
    """The version that is pinned; of leaseq, that of this checkout."""
    return packages(library.environment)[library.package]


def packages(name: str) -> dict[str, str]:
    """Every package of an environment with its version; of the checkout's own, "", what the core has at run time."""
    if not name:
        own = {"leaseq", "redis", "hiredis"} & {each.name for each in importlib.metadata.distributions()}
        return {each: importlib.metadata.version(each) for each in sorted(own)}
    text = _pinned(name).read_text()
    if name == "node":
        locked = json.loads(text)["packages"]
        inside = {path.removeprefix("node_modules/"): of for path, of in locked.items() if path}
        return {path: str(of["version"]) for path, of in inside.items()}
    return dict(line.split("==") for line in text.splitlines() if "==" in line)


def node() -> str | None:
    """The version of Node that adapters run on; None where there is none."""
    ended = subprocess.run([WITH_NODE, "node", "--version"], capture_output=True, text=True, check=False)
    return ended.stdout.strip().removeprefix("v") if ended.returncode == 0 else None
