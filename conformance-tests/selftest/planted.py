"""`python -m selftest.planted`: a round of bugs planted by an author who has seen neither cases nor tests. How many die?

A round is a file of `rounds/`, in the form of seeded bugs; `breaks` orders the cases, and `seen` says in which situation a user sees
the bug. Each bug is run with every case of its kind until one fails, and then, if it lives, with the client's tests. What killed it is
in a file of the same name with `.json`. A bug that has a result there is not run again.

The author has source, specification and pages, and no list of the bugs of earlier rounds: such a list says what is tested, and who
avoids it plants what nothing tests. The authors of the sixth to the eighth round of Python had one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import yaml

from leaseq_conformance.case_loader import LOADER
from leaseq_conformance.redis_server import open_server
from leaseq_conformance.verdict import Outcome
from selftest import plan, pool
from selftest.client_copies import PYTHON, ROOT, TYPESCRIPT, ClientCopies
from selftest.score import all_cases
from selftest.seeded_bug import Edit, SeededBug

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ROUNDS: Final = Path(__file__).parent / "rounds"
TESTS_TIMEOUT_SECS: Final = 1800.0
TIERS: Final = ("quick", "slow")
"""Of the Python client's tests, one after the other: those of every night take longer than a bug may."""
JOBS: Final = 3 * (os.cpu_count() or 1)
LIVES: Final = ""
"""In the place of what killed a bug."""


def read_round(name: str) -> list[SeededBug]:
    """Return the bugs of a round. Its name starts with that of the client: `typescript`, `typescript-third`."""
    part = name.partition("-")[0]
    given: list[dict[str, Any]] = yaml.load((ROUNDS / f"{name}.yaml").read_text(), LOADER)  # noqa: S506 # a safe one
    return [
        SeededBug(
            name=each["name"],
            part=part,
            title=each["title"],
            breaks=tuple(each["breaks"]),
            caught_by=(),
            edits=tuple(Edit(**edit) for edit in each["edits"]),
            adapter=each.get("adapter", part),
        )
        for each in given
    ]


def killed_by_cases(bugs: Sequence[SeededBug], patience: float) -> dict[str, str]:
    """Return a case that failed, by the name of the bug.

    A kill counts if the case fails with the bug again while little else runs: some cases fail by chance under load.
    """
    found: dict[str, str] = {}
    doubted: dict[str, list[str]] = {}
    todo = list(bugs)
    while todo:
        killed = _first_kills(todo, patience, doubted)
        again = _fail_again(todo, killed, patience)
        found |= again
        for name in killed.keys() - again.keys():
            doubted.setdefault(name, []).append(killed[name])
        todo = [bug for bug in todo if bug.name in doubted and bug.name in killed and bug.name not in found]
    return found


def _first_kills(
    bugs: Sequence[SeededBug], patience: float, without: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    cases = all_cases()
    options = plan.Options(every_case=True, first=True, patience=patience)
    found: dict[str, str] = {}
    with open_server() as server, ClientCopies() as copies:
        pairs = {
            bug: [case for case in own if case.name not in without.get(bug.name, ())]
            for bug, own in plan.pairs_to_run(bugs, cases, options, ()).items()
        }
        for result in pool.run(plan.bug_tasks(pairs, copies, options), server, JOBS):
            if result.outcome is Outcome.FAIL:
                found[result.subject] = result.case
                click.echo(f"{result.subject}: {result.case}: {result.message}")
    return found


def _fail_again(bugs: Sequence[SeededBug], killed: Mapping[str, str], patience: float) -> dict[str, str]:
    cases = all_cases()
    options = plan.Options(patience=patience)
    found: dict[str, str] = {}
    with open_server() as server, ClientCopies() as copies:
        pairs = {bug: [cases[killed[bug.name]]] for bug in bugs if bug.name in killed}
        for result in pool.run(plan.bug_tasks(pairs, copies, options), server, 1):
            if result.outcome is Outcome.FAIL:
                found[result.subject] = result.case
            else:
                click.echo(f"{result.subject}: {result.case} failed by chance")
    return found


def killed_by_tests(bug: SeededBug) -> str:
    """Return the first of the client's own tests that fails with the bug, or `LIVES`."""
    with ClientCopies() as copies:
        return (_typescript_tests if bug.part == "typescript" else _python_tests)(bug, copies)


def _python_tests(bug: SeededBug, copies: ClientCopies) -> str:
    path = os.pathsep.join((str(copies.python_copy(bug)), os.environ.get("PYTHONPATH", "")))
    return next(filter(None, (_tests_of_tier(tier, bug, path) for tier in TIERS)), LIVES)


def _tests_of_tier(tier: str, bug: SeededBug, path: str) -> str:
    """Return a test that fails with the bug, alone too: some fail by chance under load."""
    by_chance: list[str] = []
    while True:
        left_out = [f"--deselect={name}" for name in by_chance]
        killer = _first_failure(
            path, "-x", "-n", "2", "--dist", "loadfile", f"--tier={tier}", *left_out, *_likely_first(bug)
        )
        test = killer.partition("[")[0]
        if "::" not in test or _first_failure(path, test):
            return killer
        click.echo(f"{bug.name}: {killer} failed by chance")
        by_chance.append(test)


def _first_failure(path: str, *options: str) -> str:
    """Return the first test that fails; `path` is where Python looks for modules first."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=TESTS_TIMEOUT_SECS,
    )
    return _first(r"^(?:FAILED|ERROR) (\S+)", done)


def _likely_first(bug: SeededBug) -> list[str]:
    """Return the files of tests, those first that have most of the words of the bug."""
    text = " ".join([bug.title, *(f"{edit.file} {edit.old}" for edit in bug.edits)])
    words = {word.lower() for word in re.findall(r"[A-Za-z]{5,}", text)}
    files = sorted((PYTHON / "tests").rglob("test_*.py"))
    has = {file: sum(word in file.read_text().lower() for word in words) for file in files}
    return [str(file) for file in sorted(files, key=lambda file: -has[file])]


def _typescript_tests(bug: SeededBug, copies: ClientCopies) -> str:
    ((_, (node, program)),) = copies.buggy([bug])
    # the package as it is built, with the compiled sources that have the bug
    with_bug = Path(program).parents[1] / "src"
    package = Path(program).parents[2].with_suffix(".package")
    shutil.copytree(TYPESCRIPT, package, ignore=shutil.ignore_patterns("node_modules", "compat"))
    (package / "node_modules").symlink_to(TYPESCRIPT / "node_modules")
    shutil.copytree(with_bug, package / "dist" / "src", dirs_exist_ok=True)
    tests = sorted(str(path) for path in (package / "dist" / "test").glob("*.test.js"))
    done = subprocess.run(
        [node, "--test", "--test-concurrency=4", "--test-reporter=tap", "--test-timeout=120000", *tests],
        cwd=package,
        env={
            **os.environ,
            "LEASEQ_SERVERS_DIR": os.environ.get("LEASEQ_SERVERS_DIR", str(ROOT / ".servers")),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=TESTS_TIMEOUT_SECS,
    )
    return _first(r"^ +not ok \d+ - (.*)$", done)


def _first(pattern: str, done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode == 0:
        return LIVES
    found = re.search(pattern, done.stdout, re.MULTILINE)
    return found[1] if found else f"exit code {done.returncode}"


def run_round(name: str, names: Iterable[str], patience: float) -> dict[str, str]:
    """Run the bugs without a result, and return and write what killed each."""
    path = ROUNDS / f"{name}.json"
    killers: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    bugs = [bug for bug in read_round(name) if not names or bug.name in names]
    killers |= killed_by_cases([bug for bug in bugs if bug.name not in killers], patience)
    path.write_text(json.dumps(killers, indent=1) + "\n")
    for bug in bugs:
        if bug.name not in killers:
            killers[bug.name] = killed_by_tests(bug)
            click.echo(f"{bug.name}: {killers[bug.name] or 'lives'}")
            path.write_text(json.dumps(killers, indent=1) + "\n")
    return {bug.name: killers[bug.name] for bug in bugs}


@click.command()
@click.argument("name", type=click.Choice(sorted(path.stem for path in ROUNDS.glob("*.yaml"))))
@click.option("--bug", "names", multiple=True, help="this bug only; repeatable")
@click.option("--patience", default=30.0, show_default=True, help="seconds to wait for an answer")
def command(name: str, names: tuple[str, ...], patience: float) -> None:
    """Run a round and say how many of its bugs die. Exits with 1 if fewer than 90 % do.

    The tests of TypeScript have to be built: `make typescript-build`.
    """
    killers = run_round(name, names, patience)
    living = [bug for bug, killer in killers.items() if killer == LIVES]
    for bug in living:
        click.echo(f"lives: {bug}")
    click.echo(f"{len(killers) - len(living)} of {len(killers)} die")
    sys.exit(0 if len(living) <= len(killers) / 10 else 1)


if __name__ == "__main__":
    command()
