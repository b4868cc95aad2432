"""The rules of the specification and its capabilities, read from the pages themselves: the wheel carries them."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final

from leaseq_conformance.manifest import resource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

RULE: Final = re.compile(
    r"^\*\*(?P<id>LQ-[A-Z]+-\d+)\*\* \((?P<binds>[a-z, ]+)\) (?P<text>.+)$", re.MULTILINE
)
"""A rule stands alone on its line: **LQ-AREA-n** (whom it binds) One sentence."""
ROLES: Final = ("script", "client", "worker", "operator")
PAGE: Final = re.compile(r"(\d\d-.*|jobs)\.md")
CAPABILITY: Final = re.compile(r"^\| `(\w+)` \| ", re.MULTILINE)
CORE: Final = "core"


def pages() -> Traversable:
    """The folder of the specification: beside this file in a wheel, at the top of a source tree."""
    return resource("spec", "spec")


@functools.cache
def rules() -> dict[str, str]:
    """The text of every rule by its id, in the order of the pages: those with numbers, then that of jobs."""
    return {match["id"]: match["text"] for match in _matches()}


@functools.cache
def bound() -> dict[str, frozenset[str]]:
    """The roles that each rule binds, by the id of the rule, in the order of the pages."""
    return {match["id"]: frozenset(match["binds"].split(", ")) for match in _matches()}


@functools.cache
def capabilities() -> tuple[str, ...]:
    """Core and every capability that a client can claim, in the order of spec/12."""
    page = (pages() / "12-conformance.md").read_text("utf-8")
    return (CORE, *(match[1] for match in CAPABILITY.finditer(page)))


@functools.cache
def core_rules() -> tuple[str, ...]:
    """The rules of the level Core, in the order of the pages, as spec/12 names them.

    It names the operations of Core, whose areas are meant, and areas and rules in brackets and in full. Of an area that is
    named as a whole those rules are left out that the table gives to a capability.
    """
    page = (pages() / "12-conformance.md").read_text("utf-8")
    core_text, _, rest = page.partition("**Core** is")[2].partition("\n| capability |")
    table, _, _ = rest.partition("\n\n")
    of_others = {
        name for row in table.splitlines() for name in _named(row.rpartition("|")[0].rpartition("|")[2])
    }
    first, _, others = core_text.partition("\n- what others")
    operations = {word.upper() for word in re.findall(r"`([a-z]+)`", first)}
    areas = {name.split("-")[1] for name in rules()} & operations
    areas |= {name for name in _named(others) if "-" not in name}
    single = {f"LQ-{name}" for name in _named(others) if "-" in name}
    left_out = {f"LQ-{name}" for name in of_others if "-" in name}
    return tuple(
        name for name in rules() if name in single or (name.split("-")[1] in areas and name not in left_out)
    )


def _matches() -> Iterator[re.Match[str]]:
    """Every rule of the pages."""
    found = sorted((page for page in pages().iterdir() if PAGE.match(page.name)), key=lambda page: page.name)
    for page in found:
        yield from RULE.finditer(page.read_text("utf-8"))


def _named(text: str) -> set[str]:
    """Areas (CALL), and rules (KEY-1, SCRIPT-1 to 3), as spec/12 writes them."""
    found: set[str] = set()
    for area, first, last in re.findall(r"\b([A-Z]{3,})(?:-(\d+)(?: to (\d+))?)?\b", text):
        found |= (
            {area}
            if not first
            else {f"{area}-{number}" for number in range(int(first), int(last or first) + 1)}
        )
    return found
