"""The programs in other languages that tests drive, and the adapters: `make typescript-build go-build rust-build` builds them."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from support import programs

ROOT: Final = Path(__file__).parents[3]
NODE: Final = str(ROOT / "tools" / "node.sh")
TYPESCRIPT: Final = ROOT / "typescript" / "dist" / "adapter" / "main.js"

COMMANDS: Final = {
    "python_sync": [sys.executable, "-m", "conformance_adapter.sync_client"],
    "python_aio": [sys.executable, "-m", "conformance_adapter.asyncio_client"],
    "typescript": [NODE, "node", str(TYPESCRIPT)],
}
FLEET: Final = {
    **COMMANDS,
    "go": [str(ROOT / "go" / "bin" / "adapter")],
    "rust": [str(ROOT / "rust" / "target" / "debug" / "leaseq-adapter")],
}
"""Adapters in every language. Each must have been built: a missing one fails the test."""
MEMBERS: Final = {
    "python": programs.command("fleet_member"),
    "typescript": [NODE, "node", str(ROOT / "typescript" / "dist" / "test" / "fleet-member.js")],
    "go": [str(ROOT / "go" / "bin" / "fleetmember")],
    "rust": [str(ROOT / "rust" / "target" / "debug" / "fleet-member")],
}
"""The same worker and producer in each language: see `programs/fleet_member.py`."""


@cache
def typescript_runs() -> bool:
    """Return whether there are Node and what was built with it."""
    return (
        TYPESCRIPT.exists()
        and subprocess.run([NODE, "true"], capture_output=True, check=False).returncode == 0
    )


def params() -> list[Any]:
    """Return the names of the adapters, for parametrize."""
    return [
        pytest.param(name, marks=pytest.mark.typescript if name == "typescript" else ()) for name in COMMANDS
    ]
