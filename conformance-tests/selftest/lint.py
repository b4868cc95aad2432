"""Checks of the seeded bugs themselves. They run nothing, and their findings count in no score."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from leaseq_conformance.manifest import SCRIPTS
from selftest.client_copies import SOURCES
from selftest.seeded_bug import SeededBugError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from leaseq_conformance.cases import Case
    from selftest.records import Caught
    from selftest.seeded_bug import SeededBug

SHOWN: Final = 10
"""Names of a line that may be long."""


def problems(
    bugs: Sequence[SeededBug], cases: Mapping[str, Case], rules: Collection[str], caught: Caught
) -> list[str]:
    """Return what is wrong, a line each."""
    counted = Counter(bug.name for bug in bugs)
    lines = [f"{count} bugs are named {name}" for name, count in counted.items() if count > 1]
    for bug in bugs:
        lines += [f"{bug.name} {line}" for line in _of_bug(bug, cases, rules)]
    return [*lines, *_of_record(bugs, cases, caught)]


def _of_bug(bug: SeededBug, cases: Mapping[str, Case], rules: Collection[str]) -> Iterator[str]:
    for rule in bug.breaks:
        if rule not in rules:
            yield f"breaks {rule}, which is no rule"
    for name in bug.caught_by:
        if name not in cases:
            yield f"is caught by {name}, which is no case"
    try:
        for file, text in _texts(bug):
            if bug.edited(file, text) == text:
                yield f"does not change {file}"
    except (SeededBugError, OSError) as error:
        yield f"does not fit: {error}"


def _texts(bug: SeededBug) -> Iterable[tuple[str, str]]:
    for file in bug.files:
        if bug.part == "scripts":
            if file not in SCRIPTS:
                raise SeededBugError(f"there is no script {file}")
            yield file, SCRIPTS[file].source
        else:
            yield file, (SOURCES[bug.part] / file).read_text()


def _of_record(bugs: Sequence[SeededBug], cases: Mapping[str, Case], caught: Caught) -> Iterator[str]:
    """`caught.json` is of today's bugs and cases."""
    names = {bug.name for bug in bugs}
    found = {
        "bugs that are none": caught.keys() - names,
        "cases that are none": {case for of_bug in caught.values() for case in of_bug} - cases.keys(),
        "no word of bugs": names - caught.keys(),
        "no word of the cases that are to catch bugs": {
            f"{bug.name} by {name}"
            for bug in bugs
            for name in bug.caught_by
            if bug.name in caught and name not in caught[bug.name]
        },
    }
    for what, which in found.items():
        if which:
            shown = ", ".join(sorted(which)[:SHOWN])
            yield f"caught.json has {what}, {len(which)}: {shown}; run python -m selftest --record"
