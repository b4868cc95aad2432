"""The environments that the libraries run in: one under .peers/ for each, with the packages that are pinned here.

requirements/NAME.txt lists every package of a Python library with its version, node/package-lock.json those on Node. Those in
Go and in Rust are one program each, with leaseq of this checkout inside; go/go.mod and rust/Cargo.lock list their packages.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tomllib
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
WITH_GO: Final = str(ROOT / "tools" / "go.sh")
SOURCES: Final = {name: Path(__file__).parent / name for name in ("go", "rust")}
PROGRAMS: Final = {"go": FOLDER / "go" / "adapter", "rust": FOLDER / "rust" / "release" / "adapter"}
"""The source and the program of adapters that are compiled."""


class SetupError(Exception):
    """An environment could not be made; the message says why."""


def _pinned(name: str) -> Path:
    return NODE / "package-lock.json" if name == "node" else REQUIREMENTS / f"{name}.txt"


def _mark(name: str) -> str:
    """Return the mark of an environment that is up to date."""
    requirements = f"{sys.version_info[:2]} {_pinned(name).read_text()}"
    return hashlib.sha256(requirements.encode()).hexdigest()


def is_ready(name: str) -> bool:
    """Return whether the environment is there, with the packages that are pinned now. Compiled programs are made each time."""
    if name in SOURCES:
        return False
    stamp = FOLDER / name / "stamp"
    return stamp.exists() and stamp.read_text() == _mark(name)


def make(name: str) -> None:
    """Make the environment anew, or compile what has changed. Raises SetupError."""
    if name in SOURCES:
        _compile(name)
        return
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
    _run(install, f"the packages of {name} cannot be installed")
    (folder / "stamp").write_text(_mark(name))


def _compile(name: str) -> None:
    if name == "go":
        command = [WITH_GO, "go", "build", "-o", str(PROGRAMS[name]), "."]
    else:
        command = [_rust("cargo"), "build", "--locked", "--release", "--target-dir", str(FOLDER / name)]
    _run(command, f"the adapters in {name} cannot be built", SOURCES[name])


def _run(command: list[str], problem: str, folder: Path | None = None) -> None:
    try:
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise SetupError(f"{problem}: {error}") from error
    if ended.returncode:
        raise SetupError(f"{problem}:\n{ended.stderr.strip()[-2000:]}")


def make_missing(libraries: Iterable[Library], log: Callable[[str], None]) -> None:
    """Make the environments that these libraries need. Raises SetupError."""
    for name in sorted({each.environment for each in libraries if each.environment}):
        if not is_ready(name):
            log(f"setting up {name}")
            make(name)


def command(library: Library) -> list[str]:
    """The command that starts the library's adapter, to be run in the folder benchmarks/."""
    if library.language in PROGRAMS:
        return [str(PROGRAMS[library.language]), library.adapter]
    if library.language == "node":
        return [WITH_NODE, "node", str(Path(__file__).parent / "adapters" / library.adapter)]
    python = str(FOLDER / library.environment / "bin" / "python") if library.environment else sys.executable
    return [python, "-m", f"peers.adapters.{library.adapter}"]


def modules(library: Library) -> str:
    """Where an adapter on Node finds its packages."""
    if library.language != "node":
        return ""
    return str(FOLDER / library.environment if library.environment else ROOT / "typescript")


def version(library: Library) -> str:
    """The version that is pinned; of leaseq, that of this checkout."""
    return packages(library.environment if library.is_peer else "")[library.package]


def packages(name: str) -> dict[str, str]:
    """Every package of an environment with its version; of the checkout's own, "", what the core has at run time."""
    if not name:
        own = {"leaseq", "redis", "hiredis"} & {each.name for each in importlib.metadata.distributions()}
        return {each: importlib.metadata.version(each) for each in sorted(own)}
    if name == "go":
        lines = (SOURCES[name] / "go.mod").read_text().splitlines()
        required = [line.split() for line in lines if line.startswith("\t")]
        return {module: release.removeprefix("v") for module, release, *_ in required}
    if name == "rust":
        crates = tomllib.loads((SOURCES[name] / "Cargo.lock").read_text())["package"]
        return {each["name"]: each["version"] for each in crates}
    text = _pinned(name).read_text()
    if name == "node":
        locked = json.loads(text)["packages"]
        inside = {path.removeprefix("node_modules/"): of for path, of in locked.items() if path}
        return {path: str(of["version"]) for path, of in inside.items()}
    return dict(line.split("==") for line in text.splitlines() if "==" in line)


def toolchains() -> dict[str, str | None]:
    """Return the versions of what runs or compiles adapters in other languages; None where there is none."""
    return {
        "node": _version_of([WITH_NODE, "node", "--version"], "v"),
        "go": _version_of([WITH_GO, "go", "env", "GOVERSION"], "go"),
        "rust": _version_of([_rust("rustc"), "--version"], "rustc "),
    }


def _rust(program: str) -> str:
    return shutil.which(program) or str(Path.home() / ".cargo" / "bin" / program)


def _version_of(command: list[str], before: str) -> str | None:
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return ended.stdout.strip().removeprefix(before) if ended.returncode == 0 else None
