"""The programs in `programs/` that tests start and kill: how to run one, and in which environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1]


def command(name: str, *arguments: str) -> list[str]:
    """The command line of a program; it needs `environment`."""
    return [sys.executable, "-m", f"programs.{name}", *arguments]


def environment(**more: str) -> dict[str, str]:
    """This process's environment, in which programs find `support` and each other, and leaseq where this process does."""
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, **more}
