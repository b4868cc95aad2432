"""docs/deployment.md: its users can do what their programs do, and its files are well formed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pathspec
import pytest
import redis
from support import page_server
from support.cli_runner import COMMAND, Calls
from support.page_server import PageServer
from support.pasted import settings_of_operations
from support.servers import wait_until
from support.snippets import ROOT, blocks

import leaseq
import leaseq.doctor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGE = ROOT / "docs" / "deployment.md"
BIN = Path(sys.executable).parent
JOBS = """
import leaseq.jobs

app = leaseq.jobs.App()


@app.every(0.2, missed="all")
@app.job(name="tick")
def tick() -> None: ...


@app.job(name="double")
def double(number: int) -> int:
    return 2 * number


@app.job(name="fail", retries=0)
def fail() -> None:
    raise ValueError("no such order")


if __name__ == "__main__":
    handle = double.enqueue(4)
    fail.with_options(id="failed").enqueue()
    assert app.run_worker(burst=True, processes=1) >= 2
    assert handle.result(timeout=10) == 8
    assert handle.status() == "succeeded"
    assert app.inspect_jobs([handle])[0].status == "succeeded"
    assert app.statuses([handle]) == ["succeeded"]
    app.schedules.pause("tick")
    app.schedules.resume("tick")
    app.schedules.trigger("tick")
    assert [schedule.name for schedule in app.schedules.inspect()] == ["tick"]
    assert double.enqueue(5).cancel()
    assert [info.id for info in app.jobs("failed")] == ["failed"]
    double.with_options(id="ready").enqueue(6)
    double.with_options(id="delayed", delay=3600).enqueue(7)
"""
READER = (
    *("queues", "workers", "stats orders", "inspect orders dead", "peek orders", "dead list orders"),
    *(f"list orders {state}" for state in ("ready", "delayed", "leased", "dead")),
    *(f"jobs list {state}" for state in ("ready", "delayed", "failed", "succeeded")),
    *("jobs status ready delayed failed", "jobs cron list"),
)
"""Commands of a reader. Their exit codes report if the thing exists."""
OPERATOR = (
    *("clean orders --deep", "pause orders", "resume orders", "configure orders --max-items 100"),
    *("dead revive orders dead", "expire orders leased", "jobs revive failed", "jobs cancel delayed"),
    *("jobs cron pause tick", "jobs cron resume tick", "jobs cron trigger tick", *READER),
    *("doctor orders --role operator", "doctor --all --role operator", "drain orders --yes"),
)


def text_of(kind: str, start: str = "") -> str:
    (found,) = (block.text for block in blocks(PAGE) if block.kind == kind and block.text.startswith(start))
    return found


@pytest.fixture
def deployed(startable_name: str, tmp_path: Path) -> Iterator[PageServer]:
    """A server that is set up with the lines of the page."""
    folder = tmp_path / "server"
    folder.mkdir()
    with PageServer(startable_name, folder) as server:
        assert list(server.users) == ["admin", "replica", "shop", "cleaner", "reader", "operator"]
        yield server


def run(user: str, *command: str, folder: Path | None = None) -> str:
    """Run a program as a user of the server; it has to succeed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={"REDIS_URL": user, "PATH": str(BIN), "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def looks(user: str, commands: Sequence[str]) -> None:
    """Run commands as a user; each finds what it is about, or reports that it is not there."""
    for command in commands:
        done = Calls(user)(*command.split())
        empty = command.startswith(("list", "dead list", "jobs list", "workers", "peek")) and done.code == 1
        assert done.code == 0 or empty, f"{command}: {done}"
        assert "right" not in done.err, f"{command}: {done}"


@pytest.mark.slow
@pytest.mark.each_server
def test_each_user_can_do_what_its_programs_do_after_a_restart_too(
    deployed: PageServer, tmp_path: Path
) -> None:
    (tmp_path / "shop_jobs.py").write_text(JOBS)
    run(deployed.users["shop"], sys.executable, "-W", "error", "shop_jobs.py", folder=tmp_path)
    page_server.fill(deployed.users["shop"])
    page_server.survives(deployed)
    looks(deployed.users["reader"], READER)
    run(deployed.users["cleaner"], str(BIN / "leaseq-cleaner"), "--once", "--listen", "off")
    looks(deployed.users["operator"], OPERATOR)
    run(
        deployed.users["shop"],
        *COMMAND,
        "worker",
        "--burst",
        "--processes=1",
        "shop_jobs:app",
        folder=tmp_path,
    )
    with (
        leaseq.WorkQueue("orders", deployed.users["reader"]) as queue,
        pytest.raises(leaseq.AccessDeniedError),
    ):
        queue.add_item(leaseq.Item(b"", id="b"))


@pytest.mark.each_server
def test_no_client_gets_in_without_a_password(deployed: PageServer) -> None:
    for login in ({}, {"password": "any"}, {"username": "default", "password": ""}):
        with (
            redis.Redis(port=deployed.port, protocol=2, retry=None, **login) as client,  # type: ignore[arg-type]
            pytest.raises(
                redis.RedisError, match=r"NOAUTH|WRONGPASS|Authentication required|invalid username"
            ),
        ):
            client.ping()


@pytest.mark.each_server
def test_the_operator_may_make_every_check_of_doctor(deployed: PageServer) -> None:
    page_server.fill(deployed.users["shop"])
    with redis.Redis.from_url(deployed.users["operator"]) as client:
        findings = leaseq.doctor.doctor(client, ["orders"], role="operator").findings
    assert [finding for finding in findings if finding.status in {"unknown", "problem"}] == []


@pytest.mark.each_server
def test_a_replica_follows_with_the_lines_of_the_page(startable_name: str, tmp_path: Path) -> None:
    """The primary has the settings of docs/operations.md for a server with replicas."""
    place, *login = page_server.lines("replicaof ")
    assert place == "replicaof redis.internal 6379"
    of_replicas = [setting for setting in settings_of_operations() if setting.startswith("min-replicas-")]
    folders = [tmp_path / name for name in ("primary", "replica")]
    for folder in folders:
        folder.mkdir()
    settings = [
        *page_server.lines("aclfile "),
        *of_replicas,
        "repl-diskless-sync-delay 0",
    ]  # not 5 s: for the test
    with PageServer(startable_name, folders[0], settings) as primary:
        with (
            leaseq.WorkQueue("orders", primary.users["shop"]) as queue,
            pytest.raises(leaseq.LeaseqError, match="replicas"),
        ):
            queue.add_item(leaseq.Item(b""))
        lines = [*page_server.lines("aclfile "), f"replicaof {primary.host} {primary.port}", *login]
        with PageServer(startable_name, folders[1], lines) as replica, primary.client() as client:
            wait_until(lambda: client.info("replication").get("min_slaves_good_slaves") == 1)
            page_server.fill(primary.users["shop"])
            wait_until(lambda: replica.contents() == primary.contents())
            looks(primary.users["operator"], ["doctor orders --role operator"])
            with replica.client() as other:
                other.execute_command("ACL", "SETUSER", "default", "reset")
            of_replica, of_both = page_server.replay(replica), page_server.replay(primary)
            assert of_both.status == of_replica.status
            assert f"replica {replica.host}:{replica.port}" in of_both.found or of_both.status == "ok"
            primary.restart()
            wait_until(lambda: client.info("replication").get("min_slaves_good_slaves") == 1)
            assert replica.contents() == primary.contents()


def test_the_dockerfile_passes_hadolint(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(text_of("dockerfile"))
    subprocess.run([BIN / "hadolint", tmp_path / "Dockerfile"], check=True)


def test_the_dockerignore_keeps_what_the_images_need() -> None:
    assert text_of("text", "**/.git") == (ROOT / ".dockerignore").read_text()
    ignored = pathspec.GitIgnoreSpec.from_lines(text_of("text", "**/.git").splitlines())
    for dockerfile in (text_of("dockerfile"), (ROOT / "cleaner" / "Dockerfile").read_text()):
        copies = re.findall(r"^COPY (?!--)(.+) \S+$", dockerfile, re.MULTILINE)
        assert copies
        assert not [name for line in copies for name in line.split() if ignored.match_file(name)]
    left_by_builds = (
        ".git",
        ".venv",
        ".venvs",
        ".servers",
        ".pythons",
        ".mypy_cache",
        "typescript/node_modules",
    )
    for name in (*left_by_builds, "python/leaseq/__pycache__", "worker.env"):
        assert ignored.match_file(name), name
        assert ignored.match_file(f"leaseq/{name}"), name


def test_the_compose_file_fits_its_schema(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text(text_of("yaml"))
    schema = ["--builtin-schema", "vendor.compose-spec"]
    subprocess.run(
        [BIN / "check-jsonschema", *schema, tmp_path / "compose.yaml"], check=True, capture_output=True
    )


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_unit_is_one_that_systemd_reads(tmp_path: Path) -> None:
    unit = tmp_path / "shop-worker.service"
    unit.write_text(
        text_of("ini").replace("/opt/shop/venv/bin/leaseq", "/bin/true").replace("User=shop\n", "")
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not [line for line in done.stderr.splitlines() if unit.name in line], done.stderr
