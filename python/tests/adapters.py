"""The adapters that tests drive: those of Python, and where Node is there that of the TypeScript client, which
`make typescript` builds."""

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
NODE: Final = str(ROOT / "tools" / "node.sh")
TYPESCRIPT: Final = ROOT / "typescript" / "dist" / "adapter" / "main.js"

COMMANDS: Final = {
    "python_sync": [sys.executable, "-m", "leaseq_conformance.adapters.python_sync"],
    "python_aio": [sys.executable, "-m", "leaseq_conformance.adapters.python_aio"],
    "typescript": [NODE, "node", str(TYPESCRIPT)],
}


def typescript_runs() -> bool:
    """Whether there are Node and what was built with it."""
    return (
        TYPESCRIPT.exists()
        and subprocess.run([NODE, "true"], capture_output=True, check=False).returncode == 0
    )


def needs_typescript() -> list[pytest.MarkDecorator]:
    """Marks for tests that are nothing without the TypeScript client."""
    return [] if typescript_runs() else [pytest.mark.left_out]


def params() -> list[Any]:
    """The names of the adapters, for parametrize; what cannot run here is left out, which CI does not take."""
    marks = needs_typescript()
    return [pytest.param(name, marks=marks if name == "typescript" else ()) for name in COMMANDS]
