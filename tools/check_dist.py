"""Check what `make dist` built: every package is there, has the version, and works in a separate environment.

    python tools/check_dist.py DIST [VERSION]

Exits with 1 and says what is wrong. VERSION is that of the tag; without it the packages only have to agree.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path
from typing import Final

PATTERNS: Final = {
    "wheel of leaseq": "leaseq-*-py3-none-any.whl",
    "sdist of leaseq": "leaseq-[0-9]*.tar.gz",
    "wheel of leaseq-conformance": "leaseq_conformance-*-py3-none-any.whl",
    "sdist of leaseq-conformance": "leaseq_conformance-*.tar.gz",
    "npm package": "leaseq-*.tgz",
}
SMOKE: Final = """
import asyncio, leaseq, leaseq.aio
queue = leaseq.WorkQueue("smoke", "embedded:data")
assert queue.add_item(leaseq.Item(b"data", id="a"))
assert queue.complete(queue.lease(30)) and not queue.queue_len()
"""


class DistError(Exception):
    """A built package is not what may be published."""


def find(folder: Path) -> dict[str, Path]:
    """The one file of each package."""
    found = {}
    for what, pattern in PATTERNS.items():
        files = sorted(folder.glob(pattern))
        if len(files) != 1:
            raise DistError(f"{what}: {len(files)} files {pattern} in {folder}, expected one")
        found[what] = files[0]
    return found


def version(what: str, file: Path) -> str:
    """The version in a file's name; of the npm package the one inside."""
    if what == "npm package":
        with tarfile.open(file) as archive:
            member = archive.extractfile("package/package.json")
            if member is None:
                raise DistError(f"{file.name} has no package.json")
            return str(json.load(member)["version"])
    return file.name.removesuffix(".tar.gz").split("-")[1]


def smoke(wheels: list[Path]) -> None:
    """Install each wheel into a separate environment and use it."""
    with tempfile.TemporaryDirectory() as folder:
        for wheel in wheels:
            place = Path(folder) / wheel.name
            venv.create(place, with_pip=True)
            python = str(place / "bin/python")
            extra = "[embedded]" if wheel.name.startswith("leaseq-") else ""
            subprocess.run([python, "-m", "pip", "install", "--quiet", f"{wheel}{extra}"], check=True)
            if extra:
                subprocess.run([python, "-c", SMOKE], cwd=folder, check=True)
            else:
                program = [str(place / "bin/leaseq-conformance"), "vectors", "--case", "vectors/settle*"]
                subprocess.run(program, cwd=folder, check=True)


def check(folder: Path, expected: str | None = None) -> str:
    """Check the files of a folder; the line to print if all is right."""
    found = find(folder)
    versions = {what: version(what, file) for what, file in found.items()}
    expected = expected or next(iter(versions.values()))
    wrong = [
        f"{what} is {result}, expected {expected}" for what, result in versions.items() if result != expected
    ]
    if wrong:
        raise DistError("; ".join(wrong))
    smoke([file for what, file in found.items() if what.startswith("wheel")])
    return f"{len(found)} packages of version {expected}: right"


def main(arguments: list[str]) -> int:
    """Check, and say what is wrong."""
    if len(arguments) not in {1, 2}:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(check(Path(arguments[0]).resolve(), *arguments[1:]))
    except (DistError, subprocess.CalledProcessError) as error:
        print(f"check_dist: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
