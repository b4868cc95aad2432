"""The table of conformance-tests/STATES.md, cell by cell on a server: what becomes of an item in each state, and the answer.

A cell reads ``-> state ...; answer`` or ``stays; answer``. The row's operation is called on an item in the column's
state, with the row's token, and everything that the cell says is looked up.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any

import pytest
from support.spec_rules import STATES, TOKENS, Tree

from leaseq import _scripts

if TYPE_CHECKING:
    import redis

TABLE = Tree().table()
SCRIPTS = {script.name: script for script in _scripts.SCRIPTS}
SETS = ("ready", "delayed", "leased", "dead")
HOUR = 3_600_000
LONG_AGO = 1_735_689_600_000_000
"""2025-01-01 in microseconds: before any test runs."""
CALLS: dict[str, tuple[str, str]] = {
    "add": ("add", "1 x again 0"),
    "remove": ("remove", "1 x"),
    "inspect": ("inspect", "1 x"),
    "outcome": ("outcome", "1 x"),
    "promote": ("promote", "1 x"),
    "revive": ("revive", "1 x"),
    "purge": ("purge", "0 1 x"),
    "lease": ("lease", "1 1000"),
    "lease_any": ("lease_any", "1 1 1000"),
    "light_clean": ("light_clean", "64"),
    "complete": ("complete", "1 x TOKEN 0"),
    "complete only_current": ("complete", "1 x TOKEN 1 only_current 1"),
    "complete_with": ("complete_with", "1 0 x TOKEN 0 0"),
    "complete_with only_current": ("complete_with", "1 0 x TOKEN 1 only_current 1 0"),
    "complete_and_lease": ("complete_and_lease", "1 1000 1 x TOKEN 0"),
    "extend": ("extend", f"1 x TOKEN {HOUR}"),
    "release": ("release", "1 x TOKEN 0"),
    "release with delay": ("release", "1 x TOKEN 1 delay 500"),
    "release uncounted": ("release", "1 x TOKEN 1 uncounted 1"),
    "release with error": ("release", "1 x TOKEN 1 error why"),
    "release at limit": ("release", "1 x TOKEN 1 delay 500"),
    "release with dead": ("release", "1 x TOKEN 1 dead 1"),
}
MORE_KEYS = {"lease_any": SCRIPTS["lease"].keys, "outcome": ("result:x",)}
"""The keys that a call of one queue or one entry takes behind those of the manifest."""
KEEPING = "1 0 x TOKEN 2 keep 60000 result done 0"


class ItemFixture:
    """One item `x` in a chosen state, with a current, a superseded and an older token."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client

    def key(self, name: str) -> str:
        return "leaseq:{q}:q:" + name

    def call(self, operation: str, words: str) -> Any:
        script = SCRIPTS[operation]
        call = self.client.register_script(script.source)
        more = ("result:x",) if " keep " in words and operation != "add" else MORE_KEYS.get(operation, ())
        return call([self.key(name) for name in (*script.keys, *more)], words.split())

    def lease(self) -> int:
        token: int = self.call("lease", f"1 {HOUR}")[5]
        return token

    def move(self, target: str, score: int) -> None:
        """Put the item where no call would put it in time."""
        for name in SETS:
            self.client.zrem(self.key(name), "x")
        self.client.zadd(self.key(target), {"x": score})
        state: bytes = self.client.get(self.key("state"))  # type: ignore[assignment]
        self.client.set(self.key("state"), state[:10] + struct.pack("<d", 0) + state[18:])

    def set_up(self, state: str, *, at_limit: bool = False, options: str = "") -> dict[str, int]:
        """Make the item; return its tokens."""
        self.client.flushall()
        self.call("add", "1 x older 0")
        older = self.lease()
        self.call("complete", f"1 x {older} 0")
        limit = f"max_attempts {2 if at_limit else 9}"
        self.call("add", f"1 x data {1 + len(options.split()) // 2} {limit} {options}")
        superseded = self.lease()
        self.call("release", f"1 x {superseded} 0")
        current = self.lease()
        match state:
            case "absent":
                self.call("remove", "1 x")
            case "delayed":
                self.call("release", f"1 x {current} 2 delay {HOUR} uncounted 1")
            case "ready":
                self.call("release", f"1 x {current} 1 uncounted 1")
            case "expired":
                self.move("leased", LONG_AGO)
            case "dead":
                self.move("dead", LONG_AGO)
        assert self.where() == ("leased" if state == "expired" else state)
        return {"current": current, "superseded": superseded, "older item": older, "any": 0}

    def where(self) -> str:
        """The one state that the item is in; LQ-ITEM-3 is checked on the way."""
        found = [name for name in SETS if self.client.zscore(self.key(name), "x") is not None]
        held = self.client.hexists(self.key("items"), "x")
        assert len(found) == int(held)
        assert held or not self.client.hexists(self.key("meta"), "x")
        return found[0] if found else "absent"

    def seen(self) -> list[Any]:
        """All that is kept of items."""
        hashes = [self.client.hgetall(self.key(name)) for name in ("items", "meta")]
        sets = [*SETS, "expiry", "kept"]
        return hashes + [self.client.zrange(self.key(name), 0, -1, withscores=True) for name in sets]


def answer(operation: str, reply: Any) -> str:
    """The answer in the words of the table."""
    if operation == "complete_and_lease":
        reply = reply[-1]
    if operation in {"inspect", "outcome", "complete_with"}:
        reply = reply[0]
    if isinstance(reply, bytes):
        return f"`{reply.decode()}`"
    if reply in {0, 1}:
        return str(reply)
    return {"add": "`created`", "extend": "`deadline`"}[operation]


def check(fixture: ItemFixture, row: tuple[str, str], state: str) -> None:
    """Make the row's call on an item in the column's state and hold the cell against what happens."""
    cell = TABLE[row][STATES.index(state)]
    used = fixture.set_up(state, at_limit=row[0] == "release at limit")[row[1]]
    before = fixture.seen()
    script, words = CALLS[row[0]]
    reply = fixture.call(script, words.replace("TOKEN", str(used)))
    cell_parts = re.split(r"[;,] (?:or )?| where ", cell)
    assert answer(script, reply) in cell_parts, (row, state)
    if target := re.match(r"→ (\w+)", cell):
        assert fixture.where() == target[1], (row, state)
    elif "then as lease" not in cell_parts and "new deadline" not in cell_parts:
        assert fixture.seen() == before, (row, state)
    if "new deadline" in cell_parts:
        assert fixture.client.zscore(fixture.key("leased"), "x") == reply
    if "attempt - 1" in cell_parts:
        info = fixture.call("inspect", "1 x")
        assert (info[1], info[2]) == (info[4], 1)  # the place of its creation; two attempts less one
    if "its last error set" in cell_parts:
        assert fixture.call("inspect", "1 x")[10] == b"why"
    if "attempt 0" in cell_parts:
        assert fixture.call("inspect", "1 x")[2] == 0


@pytest.mark.parametrize("row", [row for row in TABLE if row[0] in CALLS and row[1] in TOKENS], ids=" ".join)
def test_operations_with_a_token(redis_client: redis.Redis, row: tuple[str, str]) -> None:
    # LQ-COMPLETE-1 LQ-COMPLETE-3 LQ-COMPLETE-4 LQ-EXTEND-1 LQ-EXTEND-2 LQ-RELEASE-1 LQ-RELEASE-2 LQ-RELEASE-3
    # LQ-RELEASE-4 LQ-ITEM-3 LQ-ERROR-5
    for state in STATES:
        check(ItemFixture(redis_client), row, state)


@pytest.mark.parametrize("operation", ["add", "remove", "inspect", "outcome", "promote", "revive", "purge"])
def test_operations_on_an_id(redis_client: redis.Redis, operation: str) -> None:
    # LQ-ADD-1 LQ-REMOVE-1 LQ-READ-4 LQ-OUTCOME-4 LQ-DEAD-3 LQ-DEAD-4
    for state in STATES:
        check(ItemFixture(redis_client), (operation, "any"), state)


def test_what_the_table_says_of_a_result_that_is_kept(redis_client: redis.Redis) -> None:
    # LQ-OUTCOME-1 LQ-OUTCOME-2 LQ-OUTCOME-4: the cells of complete_with and outcome on an absent item
    for used in TOKENS:
        fixture = ItemFixture(redis_client)
        tokens = fixture.set_up("leased")
        winner = tokens["superseded" if used == "superseded" else "current"]
        assert fixture.call("complete_with", KEEPING.replace("TOKEN", str(winner))) == [1]
        before = fixture.seen()
        again = fixture.call("complete_with", KEEPING.replace("TOKEN", str(tokens[used])))
        assert again == [int("or 1 where" in TABLE["complete_with", used][0])], used
        assert fixture.call("outcome", "1 x")[0] == b"result"
        assert fixture.seen() == before


def test_what_the_table_says_of_a_dead_item_that_keeps_its_outcome(redis_client: redis.Redis) -> None:
    # LQ-OUTCOME-4 LQ-OUTCOME-6
    fixture = ItemFixture(redis_client)
    current = fixture.set_up("leased", options="keep 60000")["current"]
    assert fixture.call("release", f"1 x {current} 1 dead 1") == b"dead"
    before = fixture.seen()[:-1]
    assert fixture.call("outcome", "1 x")[0] == b"failure"
    assert fixture.seen()[:-1] == before


def test_an_add_on_a_full_queue(redis_client: redis.Redis) -> None:
    # LQ-ADD-7
    for state in STATES:
        fixture = ItemFixture(redis_client)
        fixture.set_up(state)
        if state in {"absent", "dead"}:
            fixture.call("add", "1 other data 0")
        fixture.call("configure", "2 max_items 1 paused 0")
        before = fixture.seen()
        assert fixture.call("add", "1 x again 0") == (-1 if state == "absent" else 0), state
        assert fixture.seen() == before


@pytest.mark.parametrize("dies", [False, True], ids=["vanishes", "dies"])
@pytest.mark.parametrize("operation", ["lease", "lease_any", "light_clean"])
def test_an_item_that_is_over(redis_client: redis.Redis, operation: str, *, dies: bool) -> None:
    # LQ-LEASE-10 LQ-LIGHT-4 LQ-PAUSE-1
    column = ["delayed", "ready"] if operation == "light_clean" else ["ready"]
    for state in column:
        fixture = ItemFixture(redis_client)
        delay = f" delay {HOUR}" if state == "delayed" else ""
        options = "expires_in 7200000" + (" expires_to dead" if dies else "") + delay
        fixture.call("add", f"1 x data {len(options.split()) // 2} {options}")
        over = LONG_AGO + 1
        record: bytes = fixture.client.hget(fixture.key("meta"), "x")  # type: ignore[assignment]
        fixture.client.hset(fixture.key("meta"), "x", record[:31] + struct.pack("<d", over))
        fixture.client.zadd(fixture.key("expiry"), {"x": over})
        assert "if over → absent" in TABLE[operation, "any"][STATES.index(state)]
        if operation != "light_clean":
            fixture.call("configure", "1 paused 1")
            before = fixture.seen()
            fixture.call(*CALLS[operation])
            assert fixture.seen() == before
            fixture.call("configure", "1 paused 0")
        reply = fixture.call(*CALLS[operation])
        if operation == "light_clean":
            assert reply[:4] == ([0, 0, 1, 0] if dies else [0, 0, 0, 1])
        else:
            assert reply[3 if operation == "lease_any" else 2] == 0
        assert fixture.where() == ("dead" if dies else "absent")
        fixture.client.flushall()


@pytest.mark.parametrize("used_up", [False, True], ids=["attempts left", "attempts used up"])
@pytest.mark.parametrize("operation", ["lease", "lease_any", "light_clean"])
def test_operations_on_whatever_is_due(redis_client: redis.Redis, operation: str, *, used_up: bool) -> None:
    # LQ-LEASE-5 LQ-LIGHT-1 LQ-LIGHT-2 LQ-LIGHT-3 LQ-ANY-1
    after = {"due": "ready", "ready": "ready", "expired": "dead" if used_up else "ready"}
    counts = {"due": [1, 0, 0], "expired": [0, 0, 1] if used_up else [0, 1, 0]}
    for state in (*STATES, "due"):
        fixture = ItemFixture(redis_client)
        fixture.set_up("delayed" if state == "due" else state, at_limit=used_up)
        if state == "due":
            fixture.move("delayed", LONG_AGO)
        before = fixture.seen()
        reply = fixture.call(*CALLS[operation])
        expected = after.get(state)
        if operation == "light_clean":
            assert reply[:3] == counts.get(state, [0, 0, 0]), state
        elif expected == "ready":
            cell_parts = reply[1:] if operation == "lease_any" else reply
            assert (cell_parts[2], cell_parts[3]) == (1, b"x"), state
            expected = "leased"
        assert fixture.where() == expected if expected else fixture.seen() == before, state
