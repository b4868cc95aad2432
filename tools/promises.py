"""Write `docs/promises.md`: each promise of `docs/guarantees.md`, and what fails if it is broken. Run by `make generate`, checked by `make lint`.

    python tools/promises.py             write the page
    python tools/promises.py --check     exit 1 if the page is stale

Both exit 1 if a promise has no test, no conformance case and no such test as a planted bug has made fail, or if a test's marker names a promise
that the page does not have.
"""

import re
import sys
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from leaseq_conformance import registry
from leaseq_conformance.cases import Case
from selftest.promise_tests import SUITE, PromiseTest, promise_tests
from selftest.records import Caught, read_caught
from selftest.seeded_bug import SeededBug, load_all

DOCS: Final = Path(__file__).parents[1] / "docs"
SOURCE: Final = DOCS / "guarantees.md"
PAGE: Final = DOCS / "promises.md"
ROW: Final = re.compile(r"^\| (?P<id>G\d+) \| (?P<text>.+) \| (?P<rules>LQ-[A-Z0-9, -]+) \|$", re.MULTILINE)
"""A promise is a row of a table: its number, its text, and the rules of the specification that it rests on."""
POINTS: Final = ("-kill", "-drop-before", "-drop-after")
"""The endings of crash points."""
HEAD: Final = """\
# Register of promises

Each promise of [guarantees](guarantees.md), its tests (in `python/tests`, with `pytest.mark.promise`) and the conformance cases that name its rules.
Each promise has been seen to fail: beside a test or case are the planted bugs that made it fail (`python -m selftest` plants them). `vectors/*` means
every case of that folder. `tools/promises.py` writes this page."""


@dataclass(frozen=True)
class Promise:
    """A promise of `guarantees.md`."""

    id: str
    text: str
    rules: tuple[str, ...]


@dataclass(frozen=True)
class Register:
    """Promises, and everything that can show that one is broken."""

    promises: Sequence[Promise]
    tests: Sequence[PromiseTest]
    cases: Sequence[Case]
    bugs: Sequence[SeededBug]
    caught: Caught

    def tests_of(self, promise: Promise) -> list[str]:
        """The names of the tests whose markers name a promise."""
        return [test.name for test in self.tests if promise.id in test.promises]

    def cases_of(self, promise: Promise) -> list[str]:
        """The names of the cases that name a rule of a promise."""
        return sorted(case.name for case in self.cases if set(promise.rules) & set(case.rules))

    def seen(self, promise: Promise) -> Iterator[tuple[SeededBug, list[str]]]:
        """Each planted bug that breaks a promise, and the tests and cases of the promise that failed with it."""
        tests = {f"{SUITE}/{name}" for name in self.tests_of(promise)}
        cases = set(self.cases_of(promise))
        for bug in self.bugs:
            shown = tests | cases if set(bug.breaks) & set(promise.rules) else tests
            failed = sorted(shown & set(self.caught.get(bug.name, ())))
            if failed:
                yield bug, failed

    def problems(self) -> Iterator[str]:
        """Return what is missing, a line each."""
        known = {promise.id for promise in self.promises}
        for test in self.tests:
            for name in sorted(set(test.promises) - known):
                yield f"{test.name} is marked for {name}, which guarantees.md does not have"
        for number, promise in enumerate(self.promises, 1):
            if promise.id != f"G{number}":
                yield f"{promise.id} stands where G{number} should: number the promises in their order"
            if not self.tests_of(promise):
                yield f"{promise.id} has no test: mark one with pytest.mark.promise({promise.id!r})"
            if not any(self.seen(promise)):
                yield f"{promise.id} was never seen to fail: plant a bug that one of its tests or cases catches"

    def page(self) -> str:
        """Return the page as it should be."""
        return (
            "\n\n".join([HEAD, *(part for promise in self.promises for part in self._section(promise))])
            + "\n"
        )

    def _section(self, promise: Promise) -> Iterator[str]:
        """The paragraphs on a promise."""
        caught: dict[str, list[str]] = {}
        for bug, failed in self.seen(promise):
            for name in failed:
                caught.setdefault(name.removeprefix(f"{SUITE}/"), []).append(bug.name)
        tests, cases = self.tests_of(promise), self.cases_of(promise)
        yield f"## {promise.id}"
        yield f"{promise.text} ({', '.join(promise.rules)})"
        rows = [f"| `{name}` | {_code(caught[name])} |" for name in [*tests, *cases] if name in caught]
        yield "\n".join(["| test or case | bugs that it caught |", "|---|---|", *rows])
        if more := [name for name in tests if name not in caught]:
            yield f"More tests: {_code(more)}."
        if more := self._in_short(cases, caught):
            yield f"More cases: {_code(more)}."

    def _in_short(self, cases: Sequence[str], caught: Container[str]) -> list[str]:
        """Cases that caught nothing, with a pattern in place of each whole group that is among `cases`."""
        groups: dict[str, set[str]] = {}
        for case in self.cases:
            for pattern in _patterns(case.name):
                groups.setdefault(pattern, set()).add(case.name)
        whole = [pattern for pattern, names in groups.items() if len(names) > 1 and names <= set(cases)]
        return list(
            dict.fromkeys(
                next((pattern for pattern in _patterns(name) if pattern in whole), name)
                for name in cases
                if name not in caught
            )
        )


def promises() -> list[Promise]:
    """The promises of `guarantees.md`, in its order."""
    rows = ROW.finditer(SOURCE.read_text("utf-8"))
    return [Promise(row["id"], row["text"], tuple(row["rules"].split(", "))) for row in rows]


def _patterns(case: str) -> list[str]:
    """Patterns that a case matches: its folder, for a crash point also its ending."""
    folder, _, name = case.partition("/")
    ending = next((end for end in POINTS if name.endswith(end)), None)
    return [f"{folder}/*", *([f"{folder}/*{ending}"] if ending else [])]


def _code(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main() -> int:
    """Run the command line."""
    register = Register(promises(), promise_tests(), registry.all_cases(), load_all(), read_caught())
    problems = list(register.problems())
    page = register.page()
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(page, "utf-8")
    elif not PAGE.exists() or PAGE.read_text("utf-8") != page:
        problems.append("stale: docs/promises.md; run make generate")
    sys.stderr.writelines(f"{line}\n" for line in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
