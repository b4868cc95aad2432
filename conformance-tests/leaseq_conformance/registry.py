"""The suites. A suite is a module with `cases()` and `run(case, context)`."""

from __future__ import annotations

import fnmatch
import importlib
from collections import Counter
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from leaseq_conformance.cases import Case, ScriptSuite, Suite

MODULES: Final[dict[str, str]] = {
    "wire": "leaseq_conformance.wire",
    "scenarios": "leaseq_conformance.scenarios",
    "vectors": "leaseq_conformance.vectors.suite",
    "rights": "leaseq_conformance.acl_suite",
    "bounds": "leaseq_conformance.complexity_suite",
    "crash-points": "leaseq_conformance.crash_points",
    "history": "leaseq_conformance.history.suite",
    "cluster": "leaseq_conformance.cluster",
    "jobs": "leaseq_conformance.jobs",
}
"""Suites, by the name with which the names of their cases start, and their modules."""
OF_CLIENTS: Final = ("wire", "scenarios", "crash-points", "history", "cluster", "rights", "jobs")
OF_SCRIPTS: Final = ("vectors", "rights", "bounds")
"""`rights` has cases of both kinds."""


def suite(name: str) -> Suite:
    """The module of a suite."""
    return cast("Suite", importlib.import_module(MODULES[name]))


def of_scripts(name: str) -> ScriptSuite:
    """The module of a suite that has cases of scripts."""
    return cast("ScriptSuite", importlib.import_module(MODULES[name]))


def all_cases(names: Iterable[str] = (), patterns: Iterable[str] = ()) -> list[Case]:
    """The cases of the suites of these names (default: all) whose names fit one of the patterns (likewise).

    Raises:
        ValueError: two cases have one name, a case has the name of another suite, or a pattern fits none.
    """
    found = [case for name in (list(names) or MODULES) for case in suite(name).cases()]
    known = [case.name for case in found]
    twice = [name for name, times in Counter(known).items() if times > 1]
    if twice:
        raise ValueError(f"several cases are named {', '.join(sorted(twice))}")
    patterns = list(patterns)
    _check(patterns, known)
    return [
        case for case in found if not patterns or any(fnmatch.fnmatchcase(case.name, p) for p in patterns)
    ]


def again(case: Case) -> str:
    """The command that runs one case alone."""
    command, adapter = ("run", " -- ADAPTER") if case.capabilities else ("vectors", "")
    return f"leaseq-conformance {command} --case '{case.name}'{adapter}"


def check_patterns(patterns: Iterable[str]) -> None:
    """Raise ValueError for a pattern that fits the name of no case of any suite."""
    _check(patterns, [case.name for case in all_cases()])


def _check(patterns: Iterable[str], known: list[str]) -> None:
    for pattern in patterns:
        if not fnmatch.filter(known, pattern):
            raise ValueError(f"no case is named {pattern}")
