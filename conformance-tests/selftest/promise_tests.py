"""The tests of the Python client that show a promise: each has `pytest.mark.promise`, and is a case for the bugs of the part `tests`."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from leaseq_conformance.cases import Case
from leaseq_conformance.verdict import Outcome, Verdict, failed, passed
from selftest.client_copies import PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

TESTS: Final = PYTHON / "tests"
SUITE: Final = "tests"
"""The start of the names of these cases; the rest is the test's file and name."""
MARKER: Final = "pytest.mark.promise"
HAS_FAILED: Final = 1
"""The exit code of pytest if a test failed; other codes say that it could not judge."""


@dataclass(frozen=True)
class PromiseTest:
    """A test, or all runs of a test with parameters.

    Attributes:
        name: file::name or file::class::name, the file below `python/tests`.
        promises: the promises that its markers name.
    """

    name: str
    promises: tuple[str, ...]

    def case(self) -> Case:
        """Return it as a case."""
        return Case(f"{SUITE}/{self.name}", "", (), ())


@functools.cache
def promise_tests() -> tuple[PromiseTest, ...]:
    """Return every test that a marker on it, on its class or in its file's `pytestmark` gives a promise."""
    found = []
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text("utf-8")
        if MARKER in text:
            file = path.relative_to(TESTS).as_posix()
            tree = ast.parse(text)
            found += [
                PromiseTest(f"{file}::{name}", tuple(sorted({*_of_file(tree), *promises})))
                for name, promises in _marked(tree.body)
            ]
    return tuple(test for test in found if test.promises)


def run_test(case: Case, adapter: Sequence[str]) -> Verdict:
    """Run a test on the Python client that an adapter's command runs; without a command, on the client of this source tree."""
    python = adapter[:-1] if adapter else (sys.executable, "-m")
    node = TESTS / case.name.removeprefix(f"{SUITE}/")
    command = [
        *python,
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        str(node),
    ]
    done = subprocess.run(command, cwd=PYTHON.parent, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return passed()
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode != HAS_FAILED:
        return Verdict(Outcome.ERROR, f"pytest ended with {done.returncode}: {last} {done.stderr[-300:]}")
    return failed(last)


def _marked(body: Sequence[ast.stmt]) -> Iterator[tuple[str, set[str]]]:
    """Each test of a file or class, and what markers on it and on its class name."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            of_class = _named(node.decorator_list)
            for name, promises in _marked(node.body):
                yield f"{node.name}::{name}", of_class | promises
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name, _named(node.decorator_list)


def _of_file(tree: ast.Module) -> set[str]:
    """The promises of `pytestmark`."""
    return _named(
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["pytestmark"]
    )


def _named(markers: Iterable[ast.expr]) -> set[str]:
    """The arguments of the markers of promises."""
    return {
        ast.literal_eval(argument)
        for marker in markers
        for call in ast.walk(marker)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == MARKER
        for argument in call.args
    }
