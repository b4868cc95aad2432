"""The rules of the specification and its capabilities, read from the pages themselves: the wheel carries them."""

from __future__ import annotations

import functools
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

RULE: Final = re.compile(r"^\*\*(LQ-[A-Z]+-\d+)\*\* (.+)$", re.MULTILINE)
CAPABILITY: Final = re.compile(r"^\| `(\w+)` \| ", re.MULTILINE)
CORE: Final = "core"


def pages() -> Traversable:
    """The folder of the specification: beside this file in a wheel, at the top of a source tree."""
    packed = resources.files("leaseq_conformance") / "spec"
    return packed if packed.is_dir() else Path(__file__).resolve().parents[2] / "spec"


@functools.cache
def rules() -> dict[str, str]:
    """The text of every rule by its id, in the order of the pages."""
    found = sorted(
        (page for page in pages().iterdir() if page.name.endswith(".md")), key=lambda page: page.name
    )
    return {match[1]: match[2] for page in found for match in RULE.finditer(page.read_text("utf-8"))}


@functools.cache
def capabilities() -> tuple[str, ...]:
    """Core and every capability that a client can claim, in the order of spec/12."""
    page = (pages() / "12-conformance.md").read_text("utf-8")
    return (CORE, *(match[1] for match in CAPABILITY.finditer(page)))
