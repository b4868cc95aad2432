"""Each change of state of a worker's processes (docs/worker-processes.md), made to happen."""

from __future__ import annotations

import itertools
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.job_app import TIMEOUT_SECS, until
from support.job_program import Program, values_of

from leaseq.jobs import App, JobFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis
    from support import servers

pytestmark = pytest.mark.slow

HOUR = 3600.0
STILL_SECS = 5.0
"""Seconds without a sign of life after which a process of these tests is replaced."""


@pytest.fixture
def app(url: str) -> Iterator[App]:
    with App(url) as made:
        yield made


def lives(pid: int) -> bool:
    """Return whether there is such a process, ended ones that wait for their parents left out."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def parent_of(pid: int) -> int:
    """The process that started this one, or adopted it."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def stop(program: Program) -> str:
    """End a worker, which must end well; what it wrote."""
    program.signal()
    code, _, err = program.end()
    assert code == 0, err
    return err


# -- a death is charged to what is why


@pytest.mark.promise("G16")
def test_a_job_that_kills_its_process_dies_and_its_neighbours_succeed(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    """LQ-WORK-12."""
    with Program(url, processes=1) as program:
        nap_of_a_shop = app.function("nap").with_options(headers={"shop": "a"})
        naps = [nap_of_a_shop.enqueue(1) for _ in range(7)]
        until(lambda: len(values_of(redis_client, "napping")) == 7)
        poison = app.function("poison").with_options(retries=1).enqueue()
        with pytest.raises(JobFailed, match="ProcessDied: its process was ended by SIGKILL") as raised:
            poison.result(TIMEOUT_SECS)
        assert [nap.result(TIMEOUT_SECS) for nap in naps] == [1] * 7
        err = stop(program)
    assert raised.value.attempt == 2
    assert set(values_of(redis_client, "headers")) == {"a"}
    assert "8 jobs were running in a process that was ended by SIGKILL; each runs alone now" in err


def test_jobs_of_one_queue_each_kill_their_process_and_all_die(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    with Program(url, processes=2) as program:
        poisons = [app.function("poison").with_options(retries=0).enqueue() for _ in range(5)]
        good = app.enqueue("nap", 0.01)
        for poison in poisons:
            with pytest.raises(JobFailed, match="ProcessDied"):
                poison.result(TIMEOUT_SECS)
        assert good.result(TIMEOUT_SECS) == 1
        stop(program)


def test_an_exit_code_of_0_is_a_death_too(app: App, url: str, redis_client: redis.Redis) -> None:
    neighbour = app.function("nap").with_options(retries=0).enqueue(0.5)
    with Program(url, processes=1, burst=True) as program:
        until(lambda: values_of(redis_client, "napping"))
        leaver = app.function("exit").with_options(retries=0).enqueue(0)
        with pytest.raises(JobFailed, match="ProcessDied: its process ended with exit code 0"):
            leaver.result(TIMEOUT_SECS)
        assert neighbour.result(TIMEOUT_SECS) == 1
        code, _, err = program.end()
    assert code == 0, err


def test_processes_that_exit_with_0_before_they_work_are_given_up(
    url: str, redis_client: redis.Redis
) -> None:
    redis_client.set("exit-at-start", 1)
    with Program(url, processes=1) as program:
        code, _, err = program.end()
    assert code == 1
    assert "ended before they could work, the last with exit code 0" in err


def test_a_job_in_a_separate_process_is_no_suspect(app: App, url: str, redis_client: redis.Redis) -> None:
    forked = app.enqueue("fhold", "go")
    with Program(url, processes=1) as program:
        until(lambda: values_of(redis_client, "holding"))
        os.kill(program.children()[0], signal.SIGKILL)
        until(lambda: len(values_of(redis_client, "holding")) == 2)
        redis_client.set("go", 1)
        assert forked.result(TIMEOUT_SECS) == "whole"
        err = stop(program)
    assert [each.split(":")[1] for each in values_of(redis_client, "holding")] == ["1", "1"]
    assert "each runs alone" not in err


def test_a_stop_during_a_trial_gives_back_what_was_not_tried(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    naps = [app.enqueue("nap", HOUR) for _ in range(3)]
    with Program(url, processes=1, grace_secs=0.2) as program:
        until(lambda: len(values_of(redis_client, "napping")) == 3)
        os.kill(program.children()[0], signal.SIGKILL)
        until(lambda: len(values_of(redis_client, "napping")) == 4)
        stop(program)
    assert [nap.status() for nap in naps] == ["ready"] * 3
    assert [nap.info().attempt for nap in naps] == [0] * 3


# -- what stands still is replaced


def test_a_process_that_stands_still_is_replaced_and_only_its_cause_charged(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    with Program(url, processes=1, lease_secs=2 * STILL_SECS) as program:
        naps = [app.enqueue("nap", 1) for _ in range(2)]
        until(lambda: len(values_of(redis_client, "napping")) == 2)
        still = app.function("stand-still").with_options(retries=0).enqueue()
        with pytest.raises(
            JobFailed, match=r"ProcessDied: its process stood still for 5 s .* needs fork=True"
        ):
            still.result(TIMEOUT_SECS)
        assert [nap.result(TIMEOUT_SECS) for nap in naps] == [1, 1]
        stop(program)


def test_a_process_that_is_stopped_is_replaced(app: App, url: str, redis_client: redis.Redis) -> None:
    nap = app.enqueue("thread-nap", 0.01)
    with Program(url, processes=1, lease_secs=2 * STILL_SECS) as program:
        nap.result(TIMEOUT_SECS)
        (child,) = program.children()
        os.kill(child, signal.SIGSTOP)
        until(lambda: not lives(child))
        assert app.enqueue("nap", 0.01).result(TIMEOUT_SECS) == 1
        stop(program)


def test_a_supervisor_that_stood_still_itself_kills_nothing(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    with Program(url, processes=1, lease_secs=2 * STILL_SECS) as program:
        assert app.enqueue("nap", 0.01).result(TIMEOUT_SECS) == 1
        pids = program.children()
        for pid in (program.pid, *pids):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(STILL_SECS + 1)  # the time is what is tested
        for pid in (program.pid, *pids):
            os.kill(pid, signal.SIGCONT)
        assert app.enqueue("nap", 0.01).result(TIMEOUT_SECS) == 1
        assert program.children() == pids
        stop(program)


# -- what outlives its grace is killed


@pytest.mark.parametrize("job", ["thread-nap", "block"])
def test_grace_is_enforced_on_what_cannot_be_cut_short(
    app: App, url: str, redis_client: redis.Redis, job: str
) -> None:
    nap = app.enqueue(job, 60)
    with Program(url, processes=1, grace_secs=0.5) as program:
        until(lambda: values_of(redis_client, "napping"))
        began = time.monotonic()
        stop(program)
    assert time.monotonic() - began < 20
    assert nap.status() == "ready"
    assert nap.info().attempt == 0


def test_the_third_signal_kills(app: App, url: str, redis_client: redis.Redis) -> None:
    nap = app.enqueue("block", 60)
    with Program(url, processes=1, grace_secs=HOUR) as program:
        until(lambda: values_of(redis_client, "napping"))
        for line in ("a second signal gives them back", "stopping at once, 1 processes"):
            program.signal()
            until(lambda line=line: line in program.written())  # type: ignore[misc]
        stop(program)
    assert nap.status() == "ready"


# -- recycling


def test_a_process_that_is_recycled_lets_its_jobs_end(app: App, url: str, redis_client: redis.Redis) -> None:
    with Program(url, processes=1, max_jobs=3, grace_secs=0.1) as program:
        long = app.enqueue("hold", "go")
        until(lambda: values_of(redis_client, "holding"))
        (first,) = program.children()
        pids = {app.enqueue("pid").result(TIMEOUT_SECS) for _ in range(8)}
        assert lives(first)
        assert len(pids) > 1
        redis_client.set("go", 1)
        assert long.result(TIMEOUT_SECS) == "whole"
        until(lambda: not lives(first))
        stop(program)
    assert [each.split(":")[1] for each in values_of(redis_client, "holding")] == ["1"]


def test_no_more_than_twice_as_many_processes_while_recycled_ones_drain(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    with Program(url, processes=1, max_jobs=1, concurrency=2) as program:
        holds = [app.enqueue("hold", "go") for _ in range(3)]
        until(lambda: len(values_of(redis_client, "holding")) == 2)
        app.enqueue("pid")
        until(lambda: len(program.children()) <= 2)
        redis_client.set("go", 1)
        assert [hold.result(TIMEOUT_SECS) for hold in holds] == ["whole"] * 3
        stop(program)


# -- nothing is left


@pytest.mark.parametrize("end", ["stop", "cancel", "return"])
def test_what_a_forked_job_started_ends_with_it(
    app: App, url: str, redis_client: redis.Redis, end: str
) -> None:
    with Program(url, processes=1, grace_secs=0.1, lease_secs=1.5) as program:
        if end == "return":
            left = app.enqueue("leaves").result(TIMEOUT_SECS)
        else:
            job = app.enqueue("fshell")
            until(lambda: values_of(redis_client, "shells"))
            left = int(values_of(redis_client, "shells")[0])
            if end == "cancel":
                assert job.cancel()
            else:
                stop(program)
        until(lambda: not lives(left))
        if end != "stop":
            stop(program)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_a_job_started_ends_with_its_process(
    app: App, url: str, redis_client: redis.Redis, number: int
) -> None:
    app.enqueue("shell")
    app.enqueue("fshell")
    with Program(url, processes=1, grace_secs=0.1) as program:
        until(lambda: len(values_of(redis_client, "shells")) == 2)
        left = [int(each) for each in values_of(redis_client, "shells")]
        os.kill(program.children()[0], number)
        until(lambda: not any(map(lives, left)))
        program.signal()
        program.signal()
        program.end()


def test_what_a_forked_job_started_ends_with_the_process_that_forks(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    app.enqueue("fshell")
    with Program(url, processes=1, grace_secs=0.1) as program:
        until(lambda: values_of(redis_client, "shells"))
        left = int(values_of(redis_client, "shells")[0])
        os.kill(parent_of(parent_of(parent_of(left))), signal.SIGKILL)
        until(lambda: not lives(left))
        program.signal()
        program.signal()
        program.end()


@pytest.mark.parametrize("job", ["pool", "fpool"])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_job_may_have_processes_of_its_own(app: App, url: str, job: str, method: str) -> None:
    with Program(url, processes=1) as program:
        assert app.enqueue(job, method).result(TIMEOUT_SECS) == [1, 2]
        assert app.enqueue(job, method).result(TIMEOUT_SECS) == [1, 2]
        assert "stop" not in program.written()
        stop(program)


@pytest.mark.parametrize("below", [False, True])
def test_a_process_that_a_job_forks_has_no_handlers_of_the_worker(app: App, url: str, below: bool) -> None:
    with Program(url, processes=1) as program:
        assert app.enqueue("deaf", below).result(TIMEOUT_SECS) == -signal.SIGTERM
        assert "stop" not in program.written()
        stop(program)


def test_a_worker_that_adopts_orphans_reaps_them(app: App, url: str) -> None:
    with Program(url, processes=1, subreaper=True) as program:
        orphan = app.enqueue("orphan").result(TIMEOUT_SECS)
        until(lambda: not Path(f"/proc/{orphan}").exists())
        stop(program)


def test_a_queue_that_was_made_at_import_works_in_each_process(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    with Program(url, processes=1) as program:
        assert app.enqueue("mail", 1).result(TIMEOUT_SECS) is True
        (child,) = program.children()
        os.kill(child, signal.SIGKILL)
        until(lambda: len(values_of(redis_client, "begun")) == 2)
        assert app.enqueue("mail", 2).result(TIMEOUT_SECS) is True
        stop(program)
    assert app.queue("mails").queue_len() == 2


def test_the_process_of_a_job_calls_its_exit_functions_and_hooks(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    with Program(url, processes=1) as program:
        app.enqueue("exits").result(TIMEOUT_SECS)
        stop(program)
    assert values_of(redis_client, "exited") == ["hook", "atexit", "logged"]


# -- deaths in a row


def test_deaths_in_a_row_are_further_and_further_apart(app: App, url: str, redis_client: redis.Redis) -> None:
    """LQ-WORK-13."""
    with Program(url, processes=1) as program:
        for count in range(1, 6):
            until(lambda count=count: len(values_of(redis_client, "begun")) == count)  # type: ignore[misc]
            until(program.children)
            os.kill(program.children()[0], signal.SIGKILL)
        moments = [float(each) for each in values_of(redis_client, "moments")]
        stop(program)
    pauses = [after - before for before, after in itertools.pairwise(moments)]
    assert pauses[3] > 4 * 0.05  # the pause after the fourth death, less what chance takes


def test_a_death_is_settled_when_the_server_is_back(own_server: servers.StartServer) -> None:
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    with App(server.url) as app, Program(server.url, processes=1) as program, server.client() as client:
        job = app.enqueue("hold", "go")
        until(lambda: values_of(client, "holding"))
        server.kill()
        os.kill(program.children()[0], signal.SIGKILL)
        until(lambda: "was ended by SIGKILL" in program.written())
        time.sleep(4)  # the time is what is tested: longer than a few tries take
        server.start()
        until(lambda: len(values_of(client, "holding")) == 2)
        client.set("go", 1)
        assert job.result(TIMEOUT_SECS) == "whole"
        stop(program)


def test_a_process_without_a_supervisor_ends_after_its_grace(
    app: App, url: str, redis_client: redis.Redis
) -> None:
    redis_client.set("hang-at-end", 1)
    with Program(url, processes=1, grace_secs=0.1) as program:
        app.enqueue("nap", 0.01).result(TIMEOUT_SECS)
        (child,) = program.children()
        program.signal(signal.SIGKILL)
        until(lambda: not lives(child))
        program.process.communicate(timeout=TIMEOUT_SECS)
