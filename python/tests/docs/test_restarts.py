"""Items outlive a restart and SIGKILL of a server that is set up with the lines of docs/deployment.md, on every server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import page_server
from support.page_server import PageServer, lines
from support.servers import wait_until

from leaseq.doctor.replay import RULES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.each_server


@pytest.mark.parametrize("way", page_server.WAYS)
def test_a_restart_keeps_every_item(way: page_server.Way, startable_name: str, tmp_path: Path) -> None:
    with PageServer(startable_name, tmp_path, way=way) as server:
        page_server.fill(server.users["shop"])
        page_server.survives(server)


@pytest.mark.slow
@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_a_restart_keeps_every_item_of_a_log_that_was_rewritten(
    preamble: str, startable_name: str, tmp_path: Path
) -> None:
    settings = [*lines("aclfile "), f"aof-use-rdb-preamble {preamble}"]
    with PageServer(startable_name, tmp_path, settings) as server, server.client() as client:
        page_server.fill(server.users["shop"])
        client.bgrewriteaof()
        under_way = ("aof_rewrite_in_progress", "aof_rewrite_scheduled")
        wait_until(lambda: not any(client.info("persistence")[name] for name in under_way))
        page_server.fill(server.users["shop"])
        page_server.survives(server)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules", ["off", "off ~app:* &* +@all", "off ~* &* +@all -zadd", "on >word ~app:* +@all"]
)
def test_doctor_finds_a_log_that_the_next_restart_cannot_read(
    rules: str, startable_name: str, tmp_path: Path
) -> None:
    """On a server whose restart drops data, doctor reports a problem, its advice is the page's line, and that brings all back."""
    users = [line for line in lines("user ") if not line.startswith("user default ")]
    with PageServer(startable_name, tmp_path, users=[*users, f"user default {rules}"]) as server:
        page_server.fill(server.users["shop"])
        before, found = server.contents(), page_server.replay(server)
        server.restart()
        if server.contents() == before:
            assert found.status == "ok", found
            return
        assert found.status == "problem", found
        assert "+zadd" in found.found
        assert f"ACL SETUSER {RULES}" in found.do
        assert f"user {RULES}" in lines("user ")
        server.stop()
        (tmp_path / "users.acl").write_text("\n".join(lines("user ")) + "\n")
        server.start()
        assert server.contents() == before
        assert page_server.replay(server).status == "ok"
