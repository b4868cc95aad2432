"""The programs of `tools`, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import ModuleType

TOOLS: Final = Path(__file__).parents[3] / "tools"


def tool(name: str) -> ModuleType:
    """Load a program of `tools`."""
    found = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
