"""Files of results: of one run, so that it can go on, and `caught.json`, which is committed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from leaseq_conformance.verdict import Outcome
from selftest.pool import Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CAUGHT: Final = Path(__file__).parent / "caught.json"
"""For each seeded bug the cases that were seen to fail with it."""

Caught = dict[str, list[str]]


class ResultsFile:
    """The results of a run, a line each: a run that was cut short goes on behind them.

    Args:
        path: the file; None keeps nothing.
        digests: the digests of the bugs, by their names. A result of an older text of a bug does not count.
    """

    def __init__(self, path: Path | None, digests: Mapping[str, str]) -> None:
        self._path = path
        self._digests = digests

    def read(self) -> list[Result]:
        """Return the results that the file has."""
        if self._path is None or not self._path.exists():
            return []
        found = []
        for line in self._path.read_text().splitlines():
            fields = json.loads(line)
            digest = fields.pop("digest")
            if digest == self._digest(fields["subject"]):
                found.append(Result(**{**fields, "outcome": Outcome(fields["outcome"])}))
        return found

    def add(self, result: Result) -> None:
        """Write one more result."""
        if self._path is not None:
            fields = {**vars(result), "digest": self._digest(result.subject)}
            with self._path.open("a") as file:
                file.write(json.dumps(fields) + "\n")

    def _digest(self, subject: str) -> str:
        return self._digests.get(subject, "")


def read_caught(path: Path = CAUGHT) -> Caught:
    """Return what `caught.json` has."""
    found: Caught = json.loads(path.read_text()) if path.exists() else {}
    return found


def write_caught(
    known: Caught, results: Iterable[Result], bugs: Iterable[str], cases: Iterable[str], path: Path = CAUGHT
) -> None:
    """Write `caught.json` with what this run saw, and without former bugs and cases.

    Args:
        known: what it had; of pairs that were not run, that stays.
        results: what was run.
        bugs: the names of the bugs that there are.
        cases: the names of the cases that there are.
        path: the file.
    """
    names, there = set(bugs), set(cases)
    caught = {name: {case for case in known.get(name, []) if case in there} for name in names}
    for result in results:
        if result.subject in caught:
            if result.outcome is Outcome.FAIL:
                caught[result.subject].add(result.case)
            else:
                caught[result.subject].discard(result.case)
    lines = [f"  {json.dumps(name)}: {json.dumps(sorted(caught[name]))}" for name in sorted(caught)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
