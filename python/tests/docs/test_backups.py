"""docs/backups.md: a snapshot that is taken and restored with its lines has all queues, on every server."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from support import page_server
from support.page_server import PageServer
from support.pasted import shell
from support.servers import WITH_TLS, find_program, wait_until
from support.snippets import ROOT, blocks

import leaseq

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.each_server

PAGE = ROOT / "docs" / "backups.md"
SNAPSHOT, LOG, LOOK = (block.text for block in blocks(PAGE) if block.kind == "sh")
FILES = ("appendonlydir", "appendonly.aof", "dump.rdb")
"""Files of a server that the page names."""


def as_admin(line: str, server: PageServer, folder: Path) -> str:
    """Run a line of redis-cli against a server, with its administrator's password typed in."""
    program = shutil.which("redis-cli") or find_program(f"{WITH_TLS}-cli")
    here = line.replace("-h redis.internal", f"-h {server.host} -p {server.port}")
    done = subprocess.run(
        [program, *here.split()[1:]],
        cwd=folder,
        input=f"{page_server.passwords(page_server.lines('user '))['admin']}\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def restored(server: PageServer, snapshot: Path, aside: Path) -> None:
    """Start a stopped server with a snapshot, by the steps of the page."""
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in FILES)
    aside.mkdir()
    for name in FILES:
        if (server.folder / name).exists():
            shutil.move(server.folder / name, aside)
    shutil.copy(snapshot, server.folder / "dump.rdb")
    assert "`--appendonly no` as the last option" in page
    server.more = ["--appendonly", "no"]
    server.start()


@pytest.mark.slow
def test_a_restored_snapshot_has_all_queues(startable_name: str, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with PageServer(startable_name, tmp_path / "server") as server, server.client() as client:
        page_server.fill(server.users["shop"])
        before = server.contents()
        as_admin(SNAPSHOT, server, tmp_path)
        with leaseq.WorkQueue("orders", server.users["shop"]) as queue:
            done = queue.lease(30, block=False)
            assert done is not None
            assert queue.complete(done)
            queue.add_item(leaseq.Item(b"", id="since then"))
        server.kill()

        restored(server, tmp_path / "leaseq.rdb", tmp_path / "aside")
        assert server.contents() == before
        as_admin(LOG, server, tmp_path)
        under_way = ("aof_rewrite_in_progress", "aof_rewrite_scheduled")
        wait_until(lambda: not any(client.info("persistence")[name] for name in under_way))
        server.more = []
        page_server.survives(server)

        for line in LOOK.splitlines():
            shell(line, tmp_path, {"REDIS_URL": server.users["operator"]})
        with leaseq.WorkQueue("orders", server.users["shop"]) as queue:
            again = queue.lease(30, block=False)
            assert again is not None
            assert again.id == done.id
            assert again.token > done.token
            assert queue.inspect("since then").state == "absent"


@pytest.mark.slow
def test_a_server_with_a_log_to_write_would_start_empty(startable_name: str, tmp_path: Path) -> None:
    """The reason for the option that the page names."""
    (tmp_path / "server").mkdir()
    with PageServer(startable_name, tmp_path / "server") as server:
        page_server.fill(server.users["shop"])
        as_admin(SNAPSHOT, server, tmp_path)
        server.kill()
        shutil.copy(tmp_path / "leaseq.rdb", server.folder / "dump.rdb")
        for name in FILES[:2]:
            shutil.rmtree(server.folder / name, ignore_errors=True)
            (server.folder / name).unlink(missing_ok=True)
        server.start()
        assert server.contents() == {}
