"""Packs the manifest of the scripts and the specification, which lie outside this folder, into the wheel and the sdist."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE: Final = "leaseq_conformance"
OUTSIDE: Final = {"lua/manifest.json": f"{PACKAGE}/manifest.json", "spec": f"{PACKAGE}/spec"}
"""Where they lie in the repository, and in the package."""


class PackProtocol(BuildHookInterface[Any]):
    """Adds what lies outside. In an sdist it lies in the package already; an editable installation reads the repository."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds a target.

        Raises:
            FileNotFoundError: neither the repository nor the sdist has a file.
        """
        if version == "editable":
            return
        root = Path(self.root)
        for outside, packed in OUTSIDE.items():
            if (root.parent / outside).exists():
                build_data["force_include"][str(root.parent / outside)] = packed
            elif not (root / packed).exists():
                raise FileNotFoundError(f"{outside} is neither in {root.parent} nor, as {packed}, in {root}")
