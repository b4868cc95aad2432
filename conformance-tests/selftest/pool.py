"""Runs cases on clients and scripts with bugs, several at a time: most of the time is spent on answers that never come.

Each process has its own server, so that no two disturb each other.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from leaseq_conformance import registry
from leaseq_conformance.adapter_pool import AdapterPool
from leaseq_conformance.adapter_protocol import SCHEMA
from leaseq_conformance.cases import Context
from leaseq_conformance.redis_server import Server, SpawnedServer, open_server
from leaseq_conformance.runner import run_case
from leaseq_conformance.verdict import Outcome, Verdict, VerdictError
from selftest.promise_tests import SUITE, run_test

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from leaseq_conformance.cases import Case

JOBS: Final = min(7 * (os.cpu_count() or 1), 28)
"""Processes: more than there are processors, since those that wait for an answer need none. Each has a server."""
CLAIMED: Final[frozenset[str]] = frozenset(SCHEMA["$defs"]["capability"]["enum"])
"""The capabilities of the adapters here: all of them, so that no case is skipped."""


@dataclass(frozen=True)
class Subject:
    """The adapter and the scripts that cases are run on.

    Attributes:
        adapter: the command of its adapter.
        sources: the sources of scripts that are not those of the manifest, by their names.
    """

    name: str
    adapter: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """Cases for one subject, run one after the other on the same adapter processes.

    Attributes:
        patience: seconds to wait for an answer.
        until: outcomes of a case behind which the others are left out.
    """

    subject: Subject
    cases: tuple[Case, ...]
    patience: float
    until: frozenset[Outcome] = frozenset()


@dataclass(frozen=True)
class Result:
    """The outcome of a case on a subject, both by name."""

    subject: str
    case: str
    outcome: Outcome
    message: str = ""
    seconds: float = 0.0


def run(tasks: Iterable[Task], server: Server, jobs: int = JOBS) -> Iterator[Result]:
    """Run them: with a server of the suite at the same time on servers like it, else one after the other on the server.

    A task starts as soon as it is there, while the next ones are made.
    """
    if not isinstance(server, SpawnedServer):
        for task in tasks:
            yield from run_on(server, task)
        return
    # no fork: this process has threads
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, spawn, _start, (server.program,)) as pool:
        pending = set()
        try:
            for task in tasks:
                pending.add(pool.submit(_run, task))
                ended = {future for future in pending if future.done()}
                pending -= ended
                for future in ended:
                    yield from future.result()
            for future in as_completed(pending):
                yield from future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def run_on(server: Server, task: Task) -> list[Result]:
    """Run a task on one server."""
    results = []
    with AdapterPool(server, task.subject.adapter) as pool:
        for case in task.cases:
            began = time.monotonic()
            verdict = _verdict(case, task, server, pool)
            seconds = round(time.monotonic() - began, 2)
            results.append(
                Result(task.subject.name, case.name, verdict.outcome, verdict.message[:500], seconds)
            )
            if verdict.outcome in task.until:
                break
    return results


def _verdict(case: Case, task: Task, server: Server, pool: AdapterPool) -> Verdict:
    if case.suite == SUITE:
        return run_test(case, task.subject.adapter)
    sources = task.subject.sources
    if not sources or case.capabilities:
        context = Context(server, task.subject.adapter, CLAIMED, 1, task.patience, pool)
        return run_case(case, context)
    server.flush()
    try:
        return registry.of_scripts(case.suite).run_with(case, Context(server), sources)
    except VerdictError as error:
        return error.judged()


_own: list[Server] = []
"""The server of this process."""


def _end_with_starter() -> None:
    """End this process with its starter. A starter that is killed cannot end it, and it would wait for a task that never comes."""
    starter = multiprocessing.parent_process()
    assert starter is not None

    def wait() -> None:
        starter.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _start(program: str) -> None:
    _end_with_starter()
    server = open_server(program=program)
    atexit.register(server.close)
    _own.append(server)


def _run(task: Task) -> list[Result]:
    return run_on(_own[0], task)
