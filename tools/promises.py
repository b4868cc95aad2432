"""Write `docs/promises.md`: each promise of `docs/guarantees.md`, and what fails if it is broken. Run by `make generate`, checked by `make lint`.

    python tools/promises.py             write the page
    python tools/promises.py --check     exit 1 if the page is stale

Both exit 1 if a promise has no test, no conformance case and no such test as a planted bug has made fail, or if a test's marker names a promise
that the page does not have.
"""

import re
import sys
from collections.abc import Iterator, Sequence
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
HEAD: Final = """\
# Register of promises

Each promise of [guarantees](guarantees.md), and what fails if it is broken. `tools/promises.py` writes this page from the rows of that page, from
the tests with `pytest.mark.promise` and from the cases that name its rules. Each promise has been seen to fail: the bugs below were planted, and
`python -m selftest` runs them.
"""


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
        return "\n".join([HEAD, *(line for promise in self.promises for line in self._section(promise))])

    def _section(self, promise: Promise) -> Iterator[str]:
        yield f"## {promise.id}\n"
        yield f"{promise.text} Rules: {', '.join(promise.rules)}.\n"
        yield "| planted bug | fails |\n|---|---|"
        for bug, failed in self.seen(promise):
            yield f"| `{bug.name}` | {_code(failed)} |"
        yield f"\nTests in `python/tests`: {_code(self.tests_of(promise))}.\n"
        cases = self.cases_of(promise)
        if cases:
            yield f"Conformance cases: {_code(cases)}.\n"


def promises() -> list[Promise]:
    """The promises of `guarantees.md`, in its order."""
    rows = ROW.finditer(SOURCE.read_text("utf-8"))
    return [Promise(row["id"], row["text"], tuple(row["rules"].split(", "))) for row in rows]


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
