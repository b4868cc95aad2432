"""Seeded bugs of the scripts: an edit of a bundled script each, in `scripts.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import yaml

from leaseq import _scripts
from leaseq_conformance.mutants.registry import Mutant

SOURCES: Final = {script.name: script.source for script in _scripts.SCRIPTS}


class EditError(ValueError):
    """An edit that does not fit the script: the old text is not there, or more often than said."""


@dataclass(frozen=True)
class Edit:
    """Old text and what takes its place; `nth` says which, from 1 on, where the text is there several times."""

    old: str
    new: str
    nth: int | None = None

    def apply(self, source: str) -> str:
        """The source with the edit.

        Raises:
            EditError: it does not fit.
        """
        pieces = source.split(self.old)
        times = len(pieces) - 1
        if self.nth is None and times != 1:
            raise EditError(f"{self.old!r} is there {times} times: say which with nth")
        at = 1 if self.nth is None else self.nth
        if not 1 <= at <= times:
            raise EditError(f"{self.old!r} is there {times} times, not {at}")
        return self.old.join(pieces[:at]) + self.new + self.old.join(pieces[at:])


@dataclass(frozen=True)
class ScriptMutant(Mutant):
    """A seeded bug of a script: the script that is edited, and what makes it wrong."""

    script: str
    edits: tuple[Edit, ...]

    def source(self) -> str:
        """The script with the bug."""
        source = SOURCES[self.script]
        for edit in self.edits:
            source = edit.apply(source)
        return source


@cache
def load() -> tuple[ScriptMutant, ...]:
    """All of them."""
    said = yaml.safe_load((files("leaseq_conformance") / "mutants" / "scripts.yaml").read_text())
    return tuple(
        ScriptMutant(**{**each, "kind": "script", "edits": tuple(Edit(**edit) for edit in each["edits"])})
        for each in said
    )
