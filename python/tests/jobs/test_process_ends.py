"""Ends of a worker's processes and what they leave; and a machine that can start no more processes."""

from __future__ import annotations

import os
import pty
import resource
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.job_app import TIMEOUT_SECS, until
from support.job_program import Program, values_of

from leaseq.jobs import App

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

pytestmark = pytest.mark.slow


@pytest.fixture
def app(url: str) -> Iterator[App]:
    with App(url) as made:
        yield made


def stop(program: Program) -> str:
    """End a worker, which must end well; what it wrote."""
    program.signal()
    code, _, err = program.end()
    assert code == 0, err
    return err


# -- no room for a process


def test_a_death_is_settled_once_there_is_room_for_a_process(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    handle = app.enqueue("hold", "go")
    with Program(url) as program:
        until(lambda: values_of(redis_client, "holding"))
        before = resource.prlimit(program.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(program.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        os.kill(program.children()[0], signal.SIGKILL)
        until(lambda: "a process cannot be started" in program.written())
        redis_client.set("go", 1)
        resource.prlimit(program.pid, resource.RLIMIT_NOFILE, before)
        assert handle.result(TIMEOUT_SECS) == "whole"
        stop(program)
    assert [each.split(":")[1] for each in values_of(redis_client, "holding")] == ["1", "2"]


def test_a_worker_that_stops_does_not_wait_for_room(app: App, url: str, redis_client: redis.Redis) -> None:
    app.enqueue("hold", "go")
    with Program(url) as program:
        until(lambda: values_of(redis_client, "holding"))
        resource.prlimit(program.pid, resource.RLIMIT_NOFILE, (3, 4096))
        os.kill(program.children()[0], signal.SIGKILL)
        until(lambda: "a process cannot be started" in program.written())
        assert "1 jobs wait for the end of their leases" in stop(program)


def test_jobs_are_forked_by_a_process_with_many_files(app: App, url: str) -> None:
    handle = app.enqueue("forked", 1)
    with Program(url, opens=1100) as program:
        assert handle.result(TIMEOUT_SECS) == 1
        stop(program)


# -- what a process has from its parent, and leaves


@pytest.mark.parametrize("job", ["reads", "freads"])
def test_a_job_that_reads_from_the_terminal_is_not_stopped_by_it(app: App, url: str, job: str) -> None:
    master, slave = pty.openpty()
    try:
        with Program(url, stdin=slave, terminal=True) as program:
            first, second = app.enqueue(job).result(TIMEOUT_SECS)
            assert first == 1  # the end of what there is to read
            assert second != 0  # no terminal
            stop(program)
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("job", ["shares", "fshares"])
def test_shared_memory_and_folders_end_with_the_process(app: App, url: str, job: str) -> None:
    with Program(url, max_jobs=1) as program:
        left = app.enqueue(job).result(TIMEOUT_SECS)
        until(lambda: not any(Path(each).exists() for each in left))
        stop(program)


def test_a_job_has_ended_however_long_its_process_takes_to(app: App, url: str) -> None:
    handle = app.enqueue("lasts")
    with Program(url, exit_secs=0.1) as program:
        assert handle.result(TIMEOUT_SECS) == "whole"
        assert "not 0.1 s later" in stop(program)


def test_a_program_that_ignores_the_ends_of_children_runs_a_worker(app: App, url: str) -> None:
    handle = app.enqueue("forked", 1)
    with Program(url, ignores_children=True) as program:
        assert handle.result(TIMEOUT_SECS) == 1
        assert "exit code" not in stop(program)
