"""As much as one call takes: 256 items with 16 headers each. Written out as vectors they would be megabytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from leaseq import _scripts

if TYPE_CHECKING:
    import redis

SCRIPTS = {script.name: script for script in _scripts.SCRIPTS}
HOUR = 3_600_000
MAX_ENTRIES = 256
OPTIONS: list[str | int] = [
    *(part for n in range(16) for part in (f"header:h{n}", "v")),
    *("content_type", "t", "keep", HOUR),
]
TARGET = ("items", "meta", "ready", "delayed", "dead", "expiry", "kept", "state", "wake")


def call(client: redis.Redis, script: str, *args: str | int, more: tuple[str, ...] = ()) -> Any:
    keys = [f"leaseq:{{q}}:{name}" for name in (*("q:" + key for key in SCRIPTS[script].keys), *more)]
    return client.eval(SCRIPTS[script].source, len(keys), *keys, *args)


def items(*before: int) -> list[str | int]:
    """The words of as many items as a call takes, each behind the same words."""
    return [part for n in range(MAX_ENTRIES) for part in (*before, f"i{n}", "", len(OPTIONS) // 2, *OPTIONS)]


@pytest.mark.each_server
@pytest.mark.parametrize(
    ("script", "args", "more", "head"),
    [
        ("lease", [MAX_ENTRIES, HOUR], (), 0),
        ("lease_any", [1, MAX_ENTRIES, HOUR], tuple("q:" + key for key in SCRIPTS["lease"].keys), 1),
        ("complete_and_lease", [MAX_ENTRIES, HOUR, 1, "none", 1, 0], (), 0),
    ],
)
def test_all_are_leased_with_all_their_headers(
    redis_client: redis.Redis, script: str, args: list[str | int], more: tuple[str, ...], head: int
) -> None:
    """LQ-LEASE-6, LQ-LEASE-11."""
    added = call(redis_client, "add", MAX_ENTRIES, *items())
    assert len(added) == MAX_ENTRIES
    assert min(added) > 0
    reply = call(redis_client, script, *args, more=more)
    assert reply[head + 2] == MAX_ENTRIES
    answers = int(script == "complete_and_lease")
    assert len(reply) == head + 3 + 4 * MAX_ENTRIES + 3 * (len(OPTIONS) // 2) * MAX_ENTRIES + answers


@pytest.mark.each_server
def test_all_are_handed_on_with_all_their_headers(redis_client: redis.Redis) -> None:
    """LQ-HANDOFF-3: as follow-ups of one item, the last of 16 targets named."""
    call(redis_client, "add", 1, "a", "", 0)
    token = call(redis_client, "lease", 1, HOUR)[5]
    targets = tuple(f"t{n}:{key}" for n in range(16) for key in TARGET)
    reply = call(redis_client, "complete_with", 1, 16, "a", token, 0, MAX_ENTRIES, *items(16), more=targets)
    assert len(reply) == 1 + MAX_ENTRIES
    assert min(reply) > 0
    assert redis_client.hlen("leaseq:{q}:t15:meta") == 2 * MAX_ENTRIES
