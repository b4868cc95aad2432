"""Items outlive a restart and SIGKILL of a server that is set up with the lines of docs/deployment.md, on every server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import page_server
from support.page_server import PageServer
from support.snippets import ROOT, blocks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PAGE = ROOT / "docs" / "deployment.md"
pytestmark = pytest.mark.each_server


def lines(start: str) -> Sequence[str]:
    """The lines of the page's only block of text that starts so."""
    (found,) = (block.text for block in blocks(PAGE) if block.kind == "text" and block.text.startswith(start))
    return found.splitlines()


@pytest.mark.parametrize("way", page_server.WAYS)
def test_a_restart_keeps_every_item(way: page_server.Way, startable_name: str, tmp_path: Path) -> None:
    with PageServer(startable_name, tmp_path, lines("aclfile "), lines("user "), way) as server:
        page_server.fill(server.users["shop"])
        before = server.contents()
        assert len(before) > 15
        server.restart()
        assert server.contents() == before
        server.kill()
        server.start()
        assert server.contents() == before
