"""What a seeded bug is, and where those of adapters sign in."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

MODULES: Final = ("encoding", "errors", "registering", "splitting", "waiting")
"""Of this package, those with seeded bugs of adapters."""


@dataclass(frozen=True)
class Mutant:
    """A seeded bug.

    Attributes:
        breaks: the rule that it violates; no other mutant of this list violates it.
        caught_by: the case that has to find it, and that names the rule.
        line: what it does, in a line.
    """

    name: str
    kind: Literal["adapter", "script", "mechanical"]
    breaks: str
    caught_by: str
    line: str


_SEEDED: dict[str, tuple[Mutant, Callable[[], None]]] = {}


def mutant(breaks: str, caught_by: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Sign a function in that makes the Python client of this process wrong; its docstring says how."""

    def sign(patch: Callable[[], None]) -> Callable[[], None]:
        name = patch.__name__.replace("_", "-")
        assert patch.__doc__, name
        line = patch.__doc__.strip().rstrip(".")
        assert name not in _SEEDED, name
        _SEEDED[name] = Mutant(name, "adapter", breaks, caught_by, line), patch
        return patch

    return sign


def adapter_mutants() -> dict[str, tuple[Mutant, Callable[[], None]]]:
    """The seeded bugs of adapters by name, each with what makes the client so."""
    for name in MODULES:
        importlib.import_module(f"leaseq_conformance.mutants.{name}")
    return dict(_SEEDED)


def everywhere(old: Any, new: Any) -> None:
    """Put another function or class in the place of one in all modules of the client that have it by name."""
    found = False
    for name, module in list(sys.modules.items()):
        if name == "leaseq" or name.startswith("leaseq."):
            for attribute, value in list(vars(module).items()):
                if value is old:
                    setattr(module, attribute, new)
                    found = True
    assert found, old


def patch(owner: Any, name: str, new: Any) -> None:
    """Put something else in the place of an attribute that is there."""
    assert hasattr(owner, name), name
    setattr(owner, name, new)
