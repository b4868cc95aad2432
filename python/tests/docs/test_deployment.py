"""docs/deployment.md: its users can do what their programs do, and its files are well formed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis
from support.cli_runner import COMMAND
from support.page_server import PageServer
from support.snippets import ROOT, blocks

import leaseq
import leaseq.doctor

if TYPE_CHECKING:
    from collections.abc import Iterator

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


if __name__ == "__main__":
    handle = double.enqueue(4)
    assert app.run_worker(burst=True, processes=1) >= 1
    assert handle.result(timeout=10) == 8
    assert handle.status() == "succeeded"
    assert app.inspect_jobs([handle])[0].status == "succeeded"
    assert app.statuses([handle]) == ["succeeded"]
    app.schedules.pause("tick")
    app.schedules.resume("tick")
    app.schedules.trigger("tick")
    assert [schedule.name for schedule in app.schedules.inspect()] == ["tick"]
    assert double.enqueue(5).cancel()
    assert list(app.jobs("failed")) == []
"""


def text_of(kind: str, start: str = "") -> str:
    (found,) = (block.text for block in blocks(PAGE) if block.kind == kind and block.text.startswith(start))
    return found


@pytest.fixture
def users(startable_name: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The URL of each user of the page, on a server that is set up with its lines."""
    settings, lines = (text_of("text", start).splitlines() for start in ("aclfile ", "user "))
    folder = tmp_path / "server"
    folder.mkdir()
    with PageServer(startable_name, folder, settings, lines) as server:
        assert list(server.users) == ["admin", "replica", "shop", "cleaner", "reader", "operator"]
        yield server.users


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


@pytest.mark.slow
def test_each_user_can_do_what_its_programs_do(users: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "shop_jobs.py").write_text(JOBS)
    run(users["shop"], sys.executable, "-W", "error", "shop_jobs.py", folder=tmp_path)
    with leaseq.WorkQueue("orders", users["shop"]) as queue:
        queue.add_item(leaseq.Item(b"", id="a"), keep=60, max_attempts=1)
        assert queue.lease(30)
        assert queue.dead_letter_items([]) == []
    run(users["cleaner"], str(BIN / "leaseq-cleaner"), "--once", "--listen", "off")
    for command in ("queues", "stats orders", "list orders leased", "inspect orders a"):
        run(users["reader"], *COMMAND, *command.split())
    for command in ("clean orders --deep", "pause orders", "resume orders", "drain orders --yes", "queues"):
        run(users["operator"], *COMMAND, *command.split())
    with leaseq.WorkQueue("orders", users["reader"]) as queue, pytest.raises(leaseq.AccessDeniedError):
        queue.add_item(leaseq.Item(b"", id="b"))


def test_the_operator_may_make_every_check_of_doctor(users: dict[str, str]) -> None:
    with (
        leaseq.WorkQueue("orders", users["operator"]) as queue,
        redis.Redis.from_url(users["operator"]) as client,
    ):
        queue.add_item(leaseq.Item(b""))
        findings = leaseq.doctor.doctor(client, ["orders"], role="operator").findings
        (rights,) = (finding.status for finding in findings if finding.check == "rights")
        assert rights in {"ok", "unknown"}, "a server older than Redis 7 does not tell rights"
        others = [finding.check for finding in findings if finding.status == "unknown"]
        assert [check for check in others if check != "rights"] == []


def test_the_dockerfile_passes_hadolint(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(text_of("dockerfile"))
    subprocess.run([BIN / "hadolint", tmp_path / "Dockerfile"], check=True)


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
