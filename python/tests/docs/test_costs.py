"""docs/concepts.md: the table of what options cost is counted on a server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import redis
from support.snippets import ROOT

import leaseq

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
OPTIONS: dict[str, dict[str, Any]] = {
    "without options": {},
    "`priority` or `max_attempts`": {"priority": 3, "max_attempts": 5},
    "`expires_in`": {"expires_in": 60},
    "headers": {},
    "`keep`": {"keep": 60},
    "in a queue with `max_items`": {},
}


def commands_of(url: str, call: Callable[[], object]) -> int:
    """Return how many commands the scripts of a call run."""
    with redis.Redis.from_url(url) as client, client.monitor() as monitor:
        call()
        client.echo("the end")
        count = 0
        for seen in monitor.listen():
            if "the end" in seen["command"]:
                return count
            count += seen["client_type"] == "lua"
    raise AssertionError("the connection ended")


@pytest.mark.parametrize(("item", "add", "lease", "complete"), ROWS, ids=[row[0] for row in ROWS])
def test_the_table_says_what_is_run(url: str, item: str, add: str, lease: str, complete: str) -> None:
    headers = {"a": "b"} if item == "headers" else None
    leased: list[leaseq.LeasedItem | None] = []
    with leaseq.WorkQueue("orders", url) as queue:
        if "max_items" in item:
            queue.configure(max_items=100)
        queue.add_item(leaseq.Item(b"first"))  # loads the scripts and enters the queue in the registry
        queue.complete(queue.lease(30) or pytest.fail("nothing to lease"))
        made = leaseq.Item(b"x" * 100, id="item", headers=headers)
        assert commands_of(url, lambda: queue.add_item(made, **OPTIONS[item])) == int(add)
        assert commands_of(url, lambda: leased.append(queue.lease(30))) == int(lease)
        assert leased[0]
        assert commands_of(url, lambda: queue.complete(leased[0] or pytest.fail("no item"))) == int(complete)


def test_the_table_is_there() -> None:
    assert {row[0] for row in ROWS} == set(OPTIONS)
