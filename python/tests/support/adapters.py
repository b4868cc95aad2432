"""The adapters that tests drive: those of Python, and that of the TypeScript client, which `make typescript` builds."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[3]
NODE: Final = str(ROOT / "tools" / "node.sh")
TYPESCRIPT: Final = ROOT / "typescript" / "dist" / "adapter" / "main.js"

COMMANDS: Final = {
    "python_sync": [sys.executable, "-m", "conformance_adapter.sync_client"],
    "python_aio": [sys.executable, "-m", "conformance_adapter.asyncio_client"],
    "typescript": [NODE, "node", str(TYPESCRIPT)],
}


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
