"""The cost of the hot paths: the number of commands that their scripts execute.

That no script does more on a longer queue is the conformance suite's to show (`bounds`), and what everything costs in
instructions the benchmarks' (`make bench-count`). Here is only what a change of a script must not add without being seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from leaseq import _scripts

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

SCRIPTS = {script.name: script for script in _scripts.SCRIPTS}
HOUR = 3_600_000
BATCH_FROM = 16
"""From this number of leases on, one more command keeps their records quick to find."""


class ScriptCosts:
    """Calls scripts, and sees the commands that they execute."""

    def __init__(self, client: redis.Redis, monitor: Any) -> None:
        self.client, self.monitor = client, monitor
        self.reply: Any = None

    def call(self, script: str, *args: str | int) -> Any:
        """Run a script."""
        keys = ["leaseq:{q}:q:" + name for name in SCRIPTS[script].keys]
        return self.client.eval(SCRIPTS[script].source, len(keys), *keys, *args)

    def executed(self, script: str, *args: str | int) -> str:
        """The commands that a call executes, in order. Its reply is kept."""
        self.client.echo("starts")
        self.reply = self.call(script, *args)
        self.client.echo("over")
        lines = iter(self.monitor.next_command, None)
        for line in lines:
            if line["command"] == "ECHO starts":
                break
        names: list[str] = []
        for line in lines:
            if line["command"] == "ECHO over":
                return " ".join(names)
            if line["client_type"] == "lua":
                names.append(line["command"].split(" ", 1)[0])
        raise AssertionError

    def nobody_sleeps(self) -> None:
        """Put a wake-up there, so that no client need be woken."""
        self.client.rpush("leaseq:{q}:q:wake", "1")


@pytest.fixture
def costs(redis_client: redis.Redis) -> Iterator[ScriptCosts]:
    watching: Any = redis_client.monitor()  # type: ignore[no-untyped-call]
    with watching as monitor:
        made = ScriptCosts(redis_client, monitor)
        made.call("add", 1, "before", "data", 0)
        made.call("lease", 1, HOUR * 2)
        yield made


def test_one_item_costs_these_commands_and_no_more(costs: ScriptCosts) -> None:
    """An item that uses no option costs exactly this. A feature that adds a command here slows everybody: move it."""
    costs.nobody_sleeps()
    assert costs.executed("add", 1, "a", "data", 0) == "TIME GET LLEN HSETNX ZADD SET"
    assert costs.executed("add", 1, "a", "data", 0) == "TIME GET LLEN HSETNX"
    assert costs.executed("lease", 1, HOUR) == "TIME GET LLEN ZRANGE HGET HGET ZREM ZADD HSET SET"
    token = costs.reply[5]
    assert costs.executed("extend", 1, "a", token, HOUR) == "TIME GET LLEN HMGET ZSCORE ZREM ZADD"
    assert costs.executed("complete", 1, "a", token, 0) == "HGET HLEN ZREM HDEL HDEL"
    assert costs.executed("complete", 1, "a", token, 0) == "HGET"


def test_a_sleeping_worker_costs_at_most_two_commands_more(costs: ScriptCosts) -> None:
    costs.client.delete("leaseq:{q}:q:wake")
    assert costs.executed("add", 1, "a", "data", 0) == "TIME GET LLEN HSETNX ZADD SET LPUSH"
    costs.call("add", 1, "b", "data", 0)
    costs.client.delete("leaseq:{q}:q:wake")
    assert costs.executed("lease", 1, HOUR) == "TIME GET LLEN ZRANGE HGET HGET ZREM ZADD HSET SET ZCARD LPUSH"


def test_completing_one_and_leasing_the_next_costs_less_than_two_calls(costs: ScriptCosts) -> None:
    costs.call("add", 3, "a", "data", 0, "b", "data", 0, "c", "data", 0)
    token = costs.call("lease", 1, HOUR)[5]
    costs.nobody_sleeps()
    both = "TIME GET LLEN HGET ZRANGE HGET HGET ZREM HDEL HDEL ZREM ZADD HSET SET"
    assert costs.executed("complete_and_lease", 1, HOUR, 1, "a", token, 0) == both
    assert (costs.reply[3], costs.reply[-1]) == (b"b", 1)


@pytest.mark.promise("G10")
@pytest.mark.parametrize("count", [2, BATCH_FROM - 1, BATCH_FROM, 256])
def test_a_batch_costs_as_many_commands_as_its_smallest(costs: ScriptCosts, count: int) -> None:
    costs.nobody_sleeps()
    entries = [part for n in range(count) for part in (f"i{n}", "", 0)]
    assert costs.executed("add", count, *entries) == "TIME GET LLEN ZCARD HMGET HSET ZADD SET"
    assert costs.executed("add", count, *entries) == "TIME GET LLEN ZCARD HMGET"
    many = count >= BATCH_FROM
    lease = (
        f"TIME GET LLEN {'ZRANGE HEXISTS ' * many}ZRANGE HMGET HMGET ZCARD ZREM ZADD HSET {'HDEL ' * many}"
    )
    assert costs.executed("lease", count, HOUR) == f"{lease}ZCARD SET"
    entries = [part for n in range(count) for part in (f"i{n}", costs.reply[5 + 4 * n], 0)]
    complete = "HMGET HLEN ZCARD ZCARD ZCARD ZCARD ZREM HDEL HDEL"
    assert costs.executed("complete", count, *entries) == complete


@pytest.mark.parametrize(
    ("options", "add", "lease"),
    [
        (["priority", 0, "delay", 0], "HSETNX ZADD", "ZRANGE HGET HGET ZREM ZADD HSET SET"),
        (["priority", 3], "HSETNX ZADD HSET", "ZRANGE HGET HGET ZREM ZADD HSET SET"),
        (["max_attempts", 3], "HSETNX ZADD HSET", "ZRANGE HGET HGET ZREM ZADD HSET SET"),
        (
            ["expires_in", HOUR],
            "HSETNX ZADD HSET ZADD",
            "ZRANGE HGET HGET ZRANGE HMGET HMGET ZCARD ZCARD ZREM ZADD HSET ZREM ZCARD SET",
        ),
        (
            ["header:a", "1", "content_type", "t"],
            "HSETNX ZADD HSET",
            "ZRANGE HGET HGET ZRANGE HMGET HMGET ZCARD HMGET ZREM ZADD HSET ZCARD SET",
        ),
        (
            ["keep", HOUR],
            "HSETNX ZADD HSET",
            "ZRANGE HGET HGET ZRANGE HMGET HMGET ZCARD ZREM ZADD HSET ZCARD SET",
        ),
    ],
    ids=lambda case: str(case[0]) if isinstance(case, list) else "",
)
def test_an_option_costs_those_who_use_it(
    costs: ScriptCosts, options: list[str | int], add: str, lease: str
) -> None:
    """One more write to each key; extending and completing cost what they always do."""
    costs.nobody_sleeps()
    assert costs.executed("add", 1, "a", "data", len(options) // 2, *options) == f"TIME GET LLEN {add} SET"
    assert costs.executed("lease", 1, HOUR) == f"TIME GET LLEN {lease}"
    token = costs.call("inspect", 1, "a")[3]
    assert costs.executed("extend", 1, "a", token, HOUR) == "TIME GET LLEN HMGET ZSCORE ZREM ZADD"
    assert costs.executed("complete", 1, "a", token, 0) == "HGET HLEN ZREM HDEL HDEL"
