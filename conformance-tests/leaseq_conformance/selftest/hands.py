"""Runs cases on clients with bugs, several at a time: most of what a bug costs is waiting for what never comes.

Each process has a server of its own, so that no two disturb each other. How long an answer is waited for stays what it is with
one process alone: a client that is late is not taken for one that hangs.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from leaseq_conformance.crew import Crew
from leaseq_conformance.selftest import bugs
from leaseq_conformance.server import OwnServer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from leaseq_conformance.cases import Case, Outcome
    from leaseq_conformance.selftest.bugs import Bug
    from leaseq_conformance.server import Server

AT_ONCE: Final = (os.cpu_count() or 1) + 2
"""Processes: more than there are processors, since those that wait need none."""
TOGETHER: Final = 6
"""Cases of one bug that a process takes at a time, on the same adapter processes."""
RIGHT_PATIENCE: Final = 60.0


@dataclass(frozen=True)
class Task:
    """Cases for one client: with a bug, or the right one."""

    bug: Bug | None
    cases: tuple[Case, ...]


@dataclass(frozen=True)
class Told:
    """How a case went."""

    bug: Bug | None
    case: Case
    outcome: Outcome
    message: str


def tasks(bug: Bug | None, cases: Sequence[Case]) -> list[Task]:
    """All cases for one client, in portions."""
    return [Task(bug, tuple(cases[at : at + TOGETHER])) for at in range(0, len(cases), TOGETHER)]


def run(todo: Iterable[Task], server: Server) -> Iterator[Told]:
    """Run them: at the same time on servers like this one where it is the suite's own, else one after the other on it."""
    if not isinstance(server, OwnServer):
        for task in todo:
            yield from _on(server, task)
        return
    # no fork: this process has threads
    todo = list(todo)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(AT_ONCE, len(todo)) or 1, spawn, initializer=_end_with_starter) as pool:
        pending = [pool.submit(_on_its_own, server.program, task) for task in todo]
        try:
            for future in as_completed(pending):
                yield from future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _end_with_starter() -> None:
    """A starter that is killed cannot end this process, which would wait for its next task for ever."""
    starter = multiprocessing.parent_process()
    assert starter is not None

    def watch() -> None:
        starter.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _on_its_own(program: str, task: Task) -> list[Told]:
    with OwnServer(program) as server:
        return _on(server, task)


def _on(server: Server, task: Task) -> list[Told]:
    bug, told = task.bug, []
    with Crew(server, bug.adapter if bug else bugs.RIGHT) as crew:
        for case in task.cases:
            verdict = bugs.run_with_bug(case, bug, crew) if bug else bugs.run_with(case, crew, RIGHT_PATIENCE)
            told.append(Told(bug, case, verdict.outcome, verdict.message))
    return told
