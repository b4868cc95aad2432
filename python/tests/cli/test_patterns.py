"""A pattern as the QUEUE of a command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import leaseq

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.cli_runner import Calls

QUEUES = {("mail-a", "shop"): 2, ("mail-b", "shop"): 0, ("mail-c", "mail-c"): 1, ("orders", "shop"): 3}
"""Queues by name and group, and how many dead items each has."""


@pytest.fixture
def queues(url: str) -> Iterator[dict[str, leaseq.WorkQueue]]:
    opened = {name: leaseq.WorkQueue(name, url, group=group) for name, group in QUEUES}
    for queue, dead in zip(opened.values(), QUEUES.values(), strict=True):
        queue.add_items(leaseq.Item(b"", id=f"d{number}") for number in range(dead + 1))
        if dead:
            queue.dead_letter_items(queue.lease_items(dead, 60), error="timeout")
    yield opened
    for queue in opened.values():
        queue.close()


def paused(queues: dict[str, leaseq.WorkQueue]) -> list[str]:
    return [name for name, queue in queues.items() if queue.stats().paused]


def test_each_queue_that_matches_is_changed(call: Calls, queues: dict[str, leaseq.WorkQueue]) -> None:
    assert call.yes("pause", "mail-*").lines == [
        *("shop:mail-a:", "mail-a is paused", "shop:mail-b:", "mail-b is paused"),
        *("mail-c:", "mail-c is paused"),
    ]
    assert paused(queues) == ["mail-a", "mail-b", "mail-c"]
    call.yes("resume", "mail-?", "--group", "shop")
    assert paused(queues) == ["mail-c"]


def test_all_queues_of_a_group_are_paused(call: Calls, queues: dict[str, leaseq.WorkQueue]) -> None:
    call.yes("pause", "*", "--group", "shop")
    assert paused(queues) == ["mail-a", "mail-b", "orders"]
    records = call.yes("resume", "*", "--group", "shop", "--json").records
    assert [(each["queue"], each["group"], each["paused"]) for each in records] == [
        ("mail-a", "shop", False),
        ("mail-b", "shop", False),
        ("orders", "shop", False),
    ]


@pytest.mark.parametrize(
    "command",
    [
        ["pause"],
        ["resume"],
        ["configure", "--max-items", "9"],
        ["expire", "--all"],
        ["drain", "--yes"],
        ["dead", "revive", "--all"],
        ["dead", "purge", "--all", "--yes"],
    ],
    ids=" ".join,
)
def test_a_dry_run_changes_nothing(
    call: Calls, queues: dict[str, leaseq.WorkQueue], command: list[str]
) -> None:
    words = command[:2] if command[0] == "dead" else command[:1]
    options = command[len(words) :]
    before = [(queue.stats().dead, queue.stats().items, queue.stats().max_items) for queue in queues.values()]
    done = call.yes(*words, "mail-*", "--dry-run", *options)
    assert done.lines == ["would change shop:mail-a", "would change shop:mail-b", "would change mail-c"]
    records = call.yes(*words, "mail-c*", "--dry-run", "--json", *options).records
    assert records == [{"queue": "mail-c", "group": "mail-c"}]
    after = [(queue.stats().dead, queue.stats().items, queue.stats().max_items) for queue in queues.values()]
    assert after == before
    assert paused(queues) == []


def test_a_queue_without_what_is_asked_for_is_a_no_and_the_others_go_on(
    call: Calls, queues: dict[str, leaseq.WorkQueue]
) -> None:
    done = call.yes("dead", "revive", "mail-*", "--matching", "timeout")
    assert done.lines == [
        *("shop:mail-a:", "2 revived", "shop:mail-b:", "nothing was revived", "mail-c:", "1 revived"),
    ]
    assert [queue.stats().dead for queue in queues.values()] == [0, 0, 0, 3]
    again = call("dead", "revive", "mail-*", "--all", "--json")
    assert again.code == 1
    assert [json.loads(line)["revived"] for line in again.lines] == [0, 0, 0]


def test_what_matches_nothing_and_a_dry_run_without_a_pattern(
    call: Calls, queues: dict[str, leaseq.WorkQueue]
) -> None:
    call.refused(1, "no queue matches x*; `leaseq queues`", "pause", "x*")
    call.refused(1, "no queue matches mail-c* in group shop", "pause", "mail-c*", "--group", "shop")
    call.refused(2, "--dry-run is for a pattern as QUEUE", "pause", "orders", "--dry-run")
    assert paused(queues) == []


def test_each_queue_is_asked_about(call: Calls, queues: dict[str, leaseq.WorkQueue]) -> None:
    done = call("drain", "mail-*", stdin="n\n" * 3)
    assert done.code == 1
    assert sum(queue.stats().items for queue in queues.values()) == 10
    call.yes("drain", "mail-*", "--yes")
    assert [queue.stats().items for queue in queues.values()] == [0, 0, 0, 4]
