"""Seeded bugs: scripts and clients that are wrong on purpose, each in one way. YAML files in `seeded_bugs/` have them."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

import yaml

from leaseq_conformance.case_loader import LOADER
from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.schemas import Schema

PARTS: Final = ("scripts", "python", "typescript", "go", "rust", "tests")
"""Parts that have seeded bugs: the scripts, four clients, and the Python client again, with bugs that its own tests have to catch."""


class SeededBugError(ValueError):
    """A seeded bug that is not right; the message names it and says why."""


@dataclass(frozen=True)
class Edit:
    """A change of one file: `new` takes the place of `old`.

    Attributes:
        file: a script's name, or a path below `python/leaseq`, `typescript/src`, `go` or `rust/src`.
        old: text that the file has once. Whole lines, if it starts with no white space and ends with a line end: then
            the file may indent them, all by the same amount, and `new` is indented likewise.
        nth: which `old` it is, counted from 1, if the file has several.
    """

    file: str
    old: str
    new: str
    nth: int | None = None

    def apply(self, text: str) -> str:
        """Return the text of the file with the change.

        Raises:
            SeededBugError: the file does not have `old`, or several of it and `nth` is not given.
        """
        whole = self.old.endswith("\n") and not self.old[0].isspace()
        found = self._lines(text) if whole else self._pieces(text)
        if self.nth is None and len(found) != 1:
            raise SeededBugError(f"{self.file} has {self.old!r} {len(found)} times; nth says which")
        number = self.nth or 1
        if not 1 <= number <= len(found):
            raise SeededBugError(f"{self.file} has {self.old!r} {len(found)} times, and no number {number}")
        start, end, new = found[number - 1]
        return text[:start] + new + text[end:]

    def _pieces(self, text: str) -> list[tuple[int, int, str]]:
        places = []
        start = text.find(self.old)
        while start >= 0:
            places.append((start, start + len(self.old), self.new))
            start = text.find(self.old, start + len(self.old))
        return places

    def _lines(self, text: str) -> list[tuple[int, int, str]]:
        lines, old = text.splitlines(keepends=True), self.old.splitlines(keepends=True)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line))
        found, number = [], 0
        while number + len(old) <= len(lines):
            indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
            if lines[number : number + len(old)] == _indented(old, indent):
                new = "".join(_indented(self.new.splitlines(keepends=True), indent))
                found.append((starts[number], starts[number + len(old)], new))
                number += len(old)
            else:
                number += 1
        return found


@dataclass(frozen=True)
class SeededBug:
    """A seeded bug.

    Attributes:
        part: one of PARTS.
        title: one sentence that says what it does.
        breaks: the rules that it breaks.
        caught_by: the cases that have to fail with it; of the part `tests`, tests.
        adapter: the adapter of the client that it is run with; no adapter for a bug of scripts.
    """

    name: str
    part: str
    title: str
    breaks: tuple[str, ...]
    caught_by: tuple[str, ...]
    edits: tuple[Edit, ...]
    adapter: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it changes."""
        return tuple(dict.fromkeys(edit.file for edit in self.edits))

    @property
    def digest(self) -> str:
        """Changes with the bug's edits."""
        text = json.dumps([[edit.file, edit.old, edit.new, edit.nth] for edit in self.edits])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def edited(self, file: str, text: str) -> str:
        """Return the text of one of its files with the bug.

        Raises:
            SeededBugError: an edit does not fit.
        """
        for edit in self.edits:
            if edit.file == file:
                try:
                    text = edit.apply(text)
                except SeededBugError as error:
                    raise SeededBugError(f"{self.name}: {error}") from error
        return text

    def sources(self) -> dict[str, str]:
        """Return the sources with the bug of the scripts that it changes, by their names; of a client's bug, none."""
        if self.part != "scripts":
            return {}
        return {name: self.edited(name, SCRIPTS[name].source) for name in self.files}


def _indented(lines: list[str], indent: str) -> list[str]:
    return [indent + line if line.strip() else line for line in lines]


@functools.cache
def load_all() -> tuple[SeededBug, ...]:
    """Return every seeded bug: those of scripts, then those of the clients."""
    folder = resources.files("selftest") / "seeded_bugs"
    files = [(part, file) for part in PARTS for file in (folder / part).iterdir()]
    files.sort(key=lambda pair: (PARTS.index(pair[0]), pair[1].name))
    return tuple(
        bug
        for part, file in files
        if file.name.endswith(".yaml")
        for bug in load(file.read_text("utf-8"), part, file.name)
    )


def load(text: str, part: str, source: str) -> list[SeededBug]:
    """Return the seeded bugs of one file.

    Args:
        text: what the file says.
        part: what they are of.
        source: the name of the file, for messages.

    Raises:
        SeededBugError: one of them does not have the form of `seeded_bugs/schema.json`.
    """
    try:
        found = yaml.load(text, LOADER)  # noqa: S506 # one of the safe ones
    except yaml.YAMLError as error:
        raise SeededBugError(f"{source}: {error}") from error
    problem = _schema().error(found)
    if problem is not None:
        place = "/".join(map(str, problem.absolute_path)) or "the top"
        raise SeededBugError(f"{source}: at {place}: {problem.message[:300]}")
    return [_read(each, part) for each in found]


def _read(given: dict[str, Any], part: str) -> SeededBug:
    default = {"scripts": "", "typescript": "typescript", "go": "go", "rust": "rust"}.get(part, "python")
    return SeededBug(
        name=given["name"],
        part=part,
        title=given["title"],
        breaks=tuple(given["breaks"]),
        caught_by=tuple(given["caught_by"]),
        edits=tuple(Edit(**edit) for edit in given["edits"]),
        adapter=given.get("adapter", default),
    )


@functools.cache
def _schema() -> Schema:
    schema = resources.files("selftest") / "seeded_bugs" / "schema.json"
    return Schema(json.loads(schema.read_text("utf-8")))
