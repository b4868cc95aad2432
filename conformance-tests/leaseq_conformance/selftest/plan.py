"""What of the seeded bugs, the cases and the rules does not fit together; found without running anything."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from leaseq_conformance.cases import Case
    from leaseq_conformance.selftest.bugs import Bug

LEAST: Final = 40
"""Named bugs that there are at least."""


def pairs(bugs: Sequence[Bug], cases: Mapping[str, Case], *, quick: bool) -> list[tuple[Case, Bug]]:
    """Which case has to catch which bug: the bug's own, and unless it is to be quick, all that name it."""
    by_name = {bug.name: bug for bug in bugs}
    found = [(cases[bug.caught_by], bug) for bug in bugs if bug.caught_by in cases]
    if not quick:
        found += [
            (case, by_name[name])
            for case in cases.values()
            for name in case.catches
            if name in by_name and by_name[name].caught_by != case.name
        ]
    return found


def by_bug(pairs: Iterable[tuple[Case, Bug]]) -> list[tuple[Bug, list[Case]]]:
    """The same pairs, the cases of each bug together."""
    found: dict[str, tuple[Bug, list[Case]]] = {}
    for case, bug in pairs:
        found.setdefault(bug.name, (bug, []))[1].append(case)
    return list(found.values())


def complaints(bugs: Sequence[Bug], cases: Mapping[str, Case], known: Iterable[str]) -> list[str]:
    """All that does not fit, a line each; `known` are the rules that there are, each of which needs a bug."""
    rules = list(known)
    return [
        *_of_bugs(bugs, cases, set(rules)),
        *_of_cases(bugs, cases),
        *(f"no named bug breaks {rule}" for rule in rules if rule not in _broken(bugs)),
    ]


def _broken(bugs: Sequence[Bug]) -> dict[str, list[str]]:
    broken = defaultdict(list)
    for bug in bugs:
        broken[bug.breaks].append(bug.name)
    return broken


def _of_bugs(bugs: Sequence[Bug], cases: Mapping[str, Case], known: set[str]) -> Iterator[str]:
    if len(bugs) < LEAST:
        yield f"there are {len(bugs)} named bugs, and should be {LEAST} at least"
    names = [bug.name for bug in bugs]
    yield from (f"several bugs are named {name}" for name in sorted(set(names)) if names.count(name) > 1)
    for rule, breaking in _broken(bugs).items():
        if rule not in known:
            yield f"{breaking[0]} breaks {rule}, which there is not"
        if len(breaking) > 1:
            yield f"{', '.join(breaking)} all break {rule}"
    for bug in bugs:
        case = cases.get(bug.caught_by)
        if case is None:
            yield f"{bug.name} is to be caught by {bug.caught_by}, which there is not"
            continue
        if bug.name not in case.catches:
            yield f"{case.name} does not say that it catches {bug.name}"
        if bug.breaks not in case.rules:
            yield f"{case.name} does not name {bug.breaks}, which {bug.name} breaks"


def _of_cases(bugs: Sequence[Bug], cases: Mapping[str, Case]) -> Iterator[str]:
    names = {bug.name for bug in bugs}
    for case in cases.values():
        if not case.catches:
            yield f"{case.name} catches nothing"
        yield from (
            f"{case.name} catches {name}, which there is not" for name in case.catches if name not in names
        )
