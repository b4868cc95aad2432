"""Reads the files of a suite whose cases are written in YAML. What its schema does not know is refused."""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import TYPE_CHECKING, Any

import yaml

from leaseq_conformance.cases import Case
from leaseq_conformance.schemas import Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RawCase = dict[str, Any]
LISTS = ("rules", "capabilities")
KNOWN = {"name", "title", *LISTS}
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C, where PyYAML was built with it, is ten times as fast."""


class CaseFileError(Exception):
    """A case that is not right; the message says which, where and why."""


def texts(suite: str) -> Iterator[tuple[str, str]]:
    """The files that the package carries of a suite, in the order of their names: text and name of each."""
    folder = resources.files("leaseq_conformance") / "cases" / suite
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            yield file.read_text("utf-8"), file.name


def read(
    suite: str,
    text: str,
    source: str,
    problems: Callable[[RawCase], Iterator[str]],
    body: Callable[[RawCase], Any],
    why: Callable[[Any], str] = lambda error: str(error.message),
) -> list[Case]:
    """The cases of one file.

    Args:
        suite: the module `leaseq_conformance.SUITE` has its schema.
        text: what the file says.
        source: the name of the file, for messages.
        problems: what a schema cannot say of what is wrong with one.
        body: what is left of a case without its name, title and lists.
        why: what an error of the schema says.

    Raises:
        CaseFileError: one of them is not right.
    """
    try:
        found = yaml.load(text, LOADER)  # noqa: S506 # one of the safe ones
    except yaml.YAMLError as error:
        raise CaseFileError(f"{source}: {error}") from error
    wrong = _schema(suite).error(found)
    if wrong is not None:
        place = "/".join(map(str, wrong.absolute_path))
        raise CaseFileError(f"{source}: at {place or 'the top'}: {why(wrong)[:300]}")
    cases = []
    for written in found:
        for problem in problems(written):
            raise CaseFileError(f"{source}: {written['name']}: {problem}")
        lists = {name: tuple(written[name]) for name in LISTS}
        name, steps = f"{suite}/{written['name']}", {key: written[key] for key in written if key not in KNOWN}
        cases.append(Case(name, written["title"], **lists, body=body(written), written=steps))
    return cases


@functools.cache
def _schema(suite: str) -> Schema:
    schema = resources.files(f"leaseq_conformance.{suite}") / "schema.json"
    return Schema(json.loads(schema.read_text("utf-8")))
