"""`leaseq acl`: each program works as the user that it prints, through its whole life, and no user can do what its role is not for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis
from support.cli_runner import COMMAND, Calls
from support.servers import ReservedPort, wait_until

import leaseq
import leaseq.jobs
from leaseq import access_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.servers import RedisCluster, SpawnedServer, StartServer

    Users = Callable[..., str]

JOBS = """
import time
import leaseq.jobs

app = leaseq.jobs.App()


@app.every(0.5)
@app.job(name="tick")
def tick() -> None: ...


@app.job(name="double")
def double(ctx: leaseq.jobs.Context, number: int) -> int:
    ctx.progress(1, 2)
    return 2 * number


@app.job(name="fail", retries=0)
def fail() -> None:
    raise ValueError("no such order")


@app.job(name="more")
def more() -> str:
    time.sleep(2.5)
    return double.enqueue(4).id
"""


@pytest.fixture
def server(own_server: StartServer) -> SpawnedServer:
    return own_server()


@pytest.fixture
def users(server: SpawnedServer) -> Users:
    """Makes a user with nothing but what `leaseq acl` prints; its URL."""

    def make(role: str, *options: str) -> str:
        line = Calls("").yes("acl", role, *options).out.split()
        with server.client() as client:
            client.execute_command(*line)
        return server.url.replace("redis://", f"redis://{line[2]}:CHANGE-ME@")

    return make


def program(url: str, *command: str, folder: Path | None = None) -> subprocess.Popen[str]:
    """Start a program as a user."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"REDIS_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def stop(process: subprocess.Popen[str]) -> str:
    """End a program with SIGTERM; return what it wrote, which tells of no missing right."""
    process.send_signal(signal.SIGTERM)
    written, _ = process.communicate(timeout=40)
    assert "lacks" not in written, written
    assert "NOPERM" not in written, written
    assert process.returncode in {0, -signal.SIGTERM}, written
    return written


@pytest.mark.each_server
@pytest.mark.parametrize("options", [(), ("--group", "g"), ("--group", "g", "--queue", "q")], ids=len)
def test_a_producer_and_a_worker(users: Users, options: tuple[str, ...]) -> None:
    with (
        leaseq.WorkQueue("q", users("producer", *options), group="g") as adding,
        leaseq.WorkQueue("q", users("worker", *options), group="g") as working,
    ):
        answers: list[leaseq.Outcome] = []
        adding.add_item(leaseq.Item(b"1", id="1"), delay=0.3, keep=60)
        waiting = threading.Thread(target=lambda: answers.append(adding.outcome("1", timeout=20)))
        waiting.start()
        for end in (working.release, working.complete):
            item = working.lease(30, timeout=10)
            assert item is not None
            working.extend(item, 60)
            assert end(item)
        waiting.join()
        assert answers[0].state == "result"
        adding.add_item(leaseq.Item(b"2", id="2"))
        assert adding.remove("2") != "absent"
        adding.add_item(leaseq.Item(b"3", id="3"))
        item = working.lease(30)
        assert item is not None
        assert working.dead_letter(item, error="so")
        assert working.revive("3")
        working.light_clean()
        with pytest.raises(leaseq.AccessDeniedError, match="leaseq acl"):
            adding.lease(30, block=False)


@pytest.mark.slow
@pytest.mark.each_server
def test_exec_from_its_start_to_its_end(users: Users) -> None:
    """Leases are extended, the worker is announced and ends by a signal; a reader sees it at work."""
    with leaseq.WorkQueue("q", users("producer")) as queue:
        queue.add_item(leaseq.Item(b"x", id="a"), keep=60)
        started = program(users("worker"), *COMMAND, "exec", "q", "--for", "1s", "--", "sleep", "2.5")
        look = Calls(users("reader"))
        wait_until(lambda: '"a"' in look("workers", "--json").out)
        assert queue.outcome("a", timeout=20).state == "result"
        stop(started)
        assert look("workers").code == 1
    for command in ("queues", "stats q", "doctor q --role reader --json"):
        assert "lacks" not in look(*command.split()).err, command


@pytest.mark.each_server
def test_the_cleaner_with_its_metrics(users: Users) -> None:
    port = ReservedPort()
    place = f"127.0.0.1:{port.number}"
    with leaseq.WorkQueue("q", users("worker")) as queue:
        queue.add_items([leaseq.Item(b"x"), leaseq.Item(b"y")])
        queue.lease(0.1)
        cleaner = str(Path(sys.executable).parent / "leaseq-cleaner")
        started = program(users("cleaner"), cleaner, "--listen", place, "--deep-every", "1s")

        def scraped(path: str) -> str:
            try:
                with urllib.request.urlopen(f"http://{place}/{path}", timeout=5) as answer:
                    return str(answer.read().decode())
            except OSError:
                return ""

        wait_until(lambda: scraped("readyz"))
        wait_until(lambda: 'state="ready"} 2' in scraped("metrics"))
        stop(started)
    port.close()


@pytest.mark.slow
@pytest.mark.each_server
def test_jobs_from_enqueueing_to_their_end(users: Users, tmp_path: Path) -> None:
    """A worker runs jobs that enqueue others, extends leases, runs a schedule; a client waits, cancels, revives, lists."""
    (tmp_path / "shop_jobs.py").write_text(JOBS)
    client = users("job-client")
    with leaseq.jobs.App(client) as app:
        double, fail, more = (app.job(name=name, retries=0)(print) for name in ("double", "fail", "more"))
        assert double.with_options(delay=3600).enqueue(1).cancel()
        waiting = [double.enqueue(4), more.enqueue()]
        failing = fail.enqueue()
        started = program(
            users("job-worker"),
            *COMMAND,
            "worker",
            "--processes=1",
            "--for=1s",
            "shop_jobs:app",
            folder=tmp_path,
        )
        assert waiting[0].result(timeout=30) == 8
        assert app.handle(str(waiting[1].result(timeout=30))).result(timeout=30) == 8
        wait_until(lambda: failing.status() == "failed")
        wait_until(app.schedules.inspect)
        look = Calls(client)
        for command in (
            *("jobs list", f"jobs status {failing.id}", f"jobs revive {failing.id}", "jobs list failed"),
            *("jobs cron list", "jobs cron pause tick", "jobs cron resume tick", "jobs cron trigger tick"),
        ):
            done = look(*command.split())
            assert "lacks" not in done.err, f"{command}: {done}"
            assert done.code == 0 or command.startswith("jobs list"), f"{command}: {done}"
        stop(started)


BEYOND = {
    "producer": ("lease q", "clean q --deep", "stats q"),
    "worker": ("clean q --deep", "stats q", "queues"),
    "cleaner": ("add q data",),
    "reader": ("add q data", "lease q", "pause q", "drain q --yes"),
    "job-client": ("clean q --deep",),
    "job-worker": ("clean q --deep",),
}
"""Commands that write or look, and are not the role's."""


@pytest.mark.each_server
@pytest.mark.parametrize("role", access_rules.ROLES)
def test_what_is_beyond_a_role_is_refused(server: SpawnedServer, users: Users, role: str) -> None:
    Calls(server.url).yes("add", "q", "data", "data")
    calls = Calls(users(role))
    for command in BEYOND.get(role, ()):
        done = calls(*command.split())
        assert done.code in {3, 4}, f"{command}: {done}"
        assert "the server user lacks a right" in done.err, f"{command}: {done}"
        assert "`leaseq acl ROLE`" in done.err
    with redis.Redis.from_url(calls.url) as client:
        for refused in (
            "FLUSHALL",
            "KEYS *",
            "CONFIG SET maxmemory 0",
            "ACL LIST",
            "GET other",
            "SET other x",
        ):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*refused.split())


@pytest.mark.each_server
def test_a_user_of_a_group_cannot_touch_another(server: SpawnedServer, users: Users) -> None:
    for role, command in (
        ("worker", "lease letters"),
        ("reader", "stats letters"),
        ("producer", "add letters x"),
    ):
        Calls(server.url).yes("add", "letters", "data")
        Calls(users(role, "--group", "orders")).refused(3, "lacks a right", *command.split())


@pytest.mark.each_server
def test_the_operator_has_every_right_of_doctor(users: Users) -> None:
    report = Calls(users("operator"))("doctor", "--role", "operator", "--json").document
    assert [one for one in report if one["status"] == "unknown"] == []
    assert [one["status"] for one in report if one["check"] == "rights"] == ["ok"]


def test_an_error_names_the_missing_right(server: SpawnedServer, users: Users) -> None:
    url = users("worker")
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "worker", "-zadd", "-evalsha")
    Calls(url).refused(3, "the server user lacks a right, +evalsha:", "stats", "q")
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "worker", "+evalsha")
    Calls(url).refused(4, "the server user lacks a right, +zadd:", "add", "q", "data")


@pytest.mark.each_server
def test_each_role_reaches_a_cluster(cluster: RedisCluster) -> None:
    place = cluster.url.removeprefix("redis://").split("/")[0]
    commands = {
        "producer": "add q x",
        "worker": "lease q",
        "reader": "stats q",
        "job-client": "jobs list",
    }
    for role, command in commands.items():
        line = Calls("").yes("acl", role).out.split()
        for node in cluster.nodes:
            with node.client() as client:
                client.execute_command(*line)
        done = Calls(f"redis+cluster://{role}:CHANGE-ME@{place}")(*command.split())
        assert "lacks" not in done.err, f"{role}: {done}"
        assert done.code == 0 or role == "job-client", f"{role}: {done}"
        for node in cluster.nodes:
            with node.client() as client:
                client.execute_command("ACL", "DELUSER", role)


def test_rules_for_a_file_of_users() -> None:
    printed = Calls("").yes("acl", "reader", "--user", "ada", "--group", "g", "--format", "aclfile").out
    assert printed.startswith("user ada reset on >CHANGE-ME ~leaseq:{g}:* ~leaseq:queues ")
    Calls("").refused(2, "spaces", "acl", "reader", "--user", "a da")
    Calls("").refused(2, "1 to 100 of the characters", "acl", "reader", "--group", "a b")
