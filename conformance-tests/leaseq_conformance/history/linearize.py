"""Asks Porcupine, a checker of linearizability written in Go, whether the answers of a history fit any order of its calls.

The program lies in `leaseq_conformance/linearize`. It is built once with the machine's `go`, into the user's cache folder;
the build fetches one module, whose version and digest `go.sum` pins.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from leaseq_conformance.history.items import operations

if TYPE_CHECKING:
    from leaseq_conformance.history.record import History

SOURCE: Final = Path(__file__).resolve().parents[1] / "linearize"
FILES: Final = ("go.mod", "go.sum", "item.go", "main.go")
LONGEST_SECS: Final = 120.0
"""How long Porcupine may search in one history before its answer is that it does not know."""
NO_GO: Final = (
    "the check for linearizability needs Go 1.21 or later, and there is none on PATH: install it from https://go.dev/dl "
    "or with the system's package manager (Debian: apt install golang-go), then run this again"
)


class NoLinearizerError(Exception):
    """The program cannot be built or run here; the message says what to do."""


@dataclass(frozen=True)
class Linearity:
    """What Porcupine found: the items of which no order explains the answers, and those it could not judge."""

    illegal: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    checked: int = field(default=0, compare=False)


def check(history: History, page: Path | None = None, secs: float = LONGEST_SECS) -> Linearity:
    """Search an order for each item; a picture of the first without one is written to `page` (HTML).

    Raises:
        NoLinearizerError: there is no Go, or the program does not work.
    """
    question = {"timeout_ms": int(secs * 1000), "items": operations(history)}
    command = [str(program()), *([str(page)] if page else [])]
    done = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoLinearizerError(f"the check for linearizability failed: {done.stderr.strip()}")
    answer = json.loads(done.stdout)
    found = {
        kind: tuple(name for name, said in answer["items"].items() if said == kind)
        for kind in ("illegal", "unknown")
    }
    return Linearity(found["illegal"], found["unknown"], answer["checked"])


def program() -> Path:
    """The built program; builds it where it is not there for these sources.

    Raises:
        NoLinearizerError: there is no Go, or it does not build.
    """
    sources = b"".join((SOURCE / name).read_bytes() for name in FILES)
    digest = hashlib.sha256(sources).hexdigest()[:16]
    built = _cache() / f"linearize-{digest}"
    if built.exists():
        return built
    go = shutil.which("go")
    if go is None:
        raise NoLinearizerError(NO_GO)
    built.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=built.parent) as folder:
        # two that build at once each have a file of their own, and the one that is renamed last stays
        fresh = Path(folder) / "linearize"
        # -mod=readonly: the digests of go.sum or nothing; a source folder of an installed wheel may be read-only
        command = [go, "build", "-mod=readonly", "-trimpath", "-o", str(fresh), "."]
        done = subprocess.run(
            command,
            cwd=SOURCE,
            env={**os.environ, "GOFLAGS": "", "GOWORK": "off"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NoLinearizerError(
                f"the check for linearizability does not build: {done.stderr.strip()[-1500:]}"
            )
        fresh.replace(built)
    return built


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "leaseq-conformance"
