"""Bad input of everything that leases, ends leases or looks after a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.bad_values import (
    BAD_NUMBERS,
    BAD_TOKENS,
    KEEPS,
    MIB,
    NO_COUNTS,
    NO_IDS,
    NO_ITEMS,
    NO_NUMBERS,
    NO_TOKENS,
    Table,
    with_id,
    with_token,
)
from support.client_flavours import unwrap

from leaseq import BadArgumentError, BadIdError, BadTypeError, Finished, Item, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = Table()
rows = CALLS.rows

DURATIONS = {**BAD_NUMBERS, "zero": 0, "too short": 0.0001, "31 days": 31 * 86400.0}
rows("lease", BadArgumentError, DURATIONS, lambda q, _, v: q.lease(v, block=False))
rows("blocking lease", BadArgumentError, DURATIONS, lambda q, _, v: q.lease(v))
rows("lease type", BadTypeError, {**NO_NUMBERS, "None": None}, lambda q, _, v: q.lease(v))
rows(
    "timeout",
    BadArgumentError,
    {k: v for k, v in BAD_NUMBERS.items() if k != "beyond"},
    lambda q, _, v: q.lease(1, timeout=v),
)
rows("timeout type", BadTypeError, NO_NUMBERS, lambda q, _, v: q.lease(1, timeout=v))
rows("items", BadArgumentError, DURATIONS, lambda q, _, v: next(q.items(v)))
rows(
    "count",
    BadArgumentError,
    {"0": 0, "-1": -1, "257": 257, "huge": 10**30},
    lambda q, _, v: q.lease_items(v, 30),
)
rows("count type", BadTypeError, NO_COUNTS, lambda q, _, v: q.lease_items(v, 30))
rows("extend", BadArgumentError, DURATIONS, lambda q, i, v: q.extend(i, v))
rows("extend type", BadTypeError, {**NO_NUMBERS, "None": None}, lambda q, i, v: q.extend(i, v))
rows("extend what", BadTypeError, {**NO_ITEMS, "Item": Item(b"x")}, lambda q, _, v: q.extend(v, 30))
rows("complete what", BadTypeError, {**NO_ITEMS, "Item": Item(b"x")}, lambda q, _, v: q.complete(v))
rows("complete many", BadTypeError, NO_ITEMS, lambda q, _, v: q.complete_items(v))
rows("release what", BadTypeError, {**NO_ITEMS, "Item": Item(b"x")}, lambda q, _, v: q.release(v))
rows("release many", BadTypeError, NO_ITEMS, lambda q, _, v: q.release_items(v))
rows("extend many", BadTypeError, NO_ITEMS, lambda q, _, v: q.extend_items(v, 30))
rows("complete and lease what", BadTypeError, NO_ITEMS, lambda q, _, v: q.complete_and_lease(v, 30))
rows("complete and lease", BadArgumentError, DURATIONS, lambda q, i, v: q.complete_and_lease(i, v))
rows("release delay", BadArgumentError, BAD_NUMBERS, lambda q, i, v: q.release(i, delay=v))
rows("release delay type", BadTypeError, {**NO_NUMBERS, "None": None}, lambda q, i, v: q.release(i, delay=v))
rows(
    "release error",
    BadTypeError,
    {"int": 5, "bytes": b"x", "error": ValueError("x")},
    lambda q, i, v: q.release(i, error=v),
)
rows("dead letter what", BadTypeError, {**NO_ITEMS, "Item": Item(b"x")}, lambda q, _, v: q.dead_letter(v))
rows("dead letter many", BadTypeError, NO_ITEMS, lambda q, _, v: q.dead_letter_items(v))
rows("dead letter error", BadTypeError, {"int": 5, "bytes": b"x"}, lambda q, i, v: q.dead_letter(i, error=v))
rows(
    "result type",
    BadTypeError,
    {"int": 1, "list": [1], "bool": True},
    lambda q, i, v: q.complete(i, result=v),
)
rows("result", BadArgumentError, {"surrogate": "\ud800"}, lambda q, i, v: q.complete(i, result=v))
rows(
    "result too large",
    TooLargeError,
    {"1 MiB + 1": b"x" * (MIB + 1)},
    lambda q, i, v: q.complete(i, result=v, keep=60),
)
rows("complete keep", BadArgumentError, KEEPS, lambda q, i, v: q.complete(i, keep=v))
rows("complete keep type", BadTypeError, NO_NUMBERS, lambda q, i, v: q.complete(i, keep=v))
rows(
    "then", BadTypeError, {"str": "q", "int": 1, "item": [Item(b"x")]}, lambda q, i, v: q.complete(i, then=v)
)
rows(
    "follow-up data",
    TooLargeError,
    {"1 MiB + 1": b"x" * (MIB + 1)},
    lambda q, i, v: q.complete(i, then=[(q, Item(b"x")), (q, Item(v))]),
)
rows(
    "follow-up id",
    BadIdError,
    {"empty": "", "NUL": "\0"},
    lambda q, i, v: q.complete(i, then=[(q, Item(b"x", id=v))]),
)
rows(
    "follow-up options",
    BadArgumentError,
    {"name": {"delya": 1}, "priority": {"priority": 8}, "delay": {"delay": -1}},
    lambda q, i, v: q.complete(i, then=[(q, Item(b"x"), v)]),
)
rows(
    "too many follow-ups",
    BadArgumentError,
    {"257": 257},
    lambda q, i, v: q.complete(i, then=[(q, Item(b"x"))] * v),
)
rows("finish what", BadTypeError, NO_ITEMS, lambda q, _, v: q.finish_items(v))
rows("finish second", BadTypeError, NO_ITEMS, lambda q, i, v: q.finish_items([Finished(unwrap(i)), v]))


def after_a_good_one(name: str) -> Callable[[Any, Any, Any], object]:
    """A call of this name with a good id and the bad one."""
    return lambda queue, _, value: getattr(queue, name)(["dead", value])


def instead_of_many(name: str) -> Callable[[Any, Any, Any], object]:
    """A call of this name with the bad value in place of several ids."""
    return lambda queue, _, value: getattr(queue, name)(value)


for _name in ("revive_items", "purge_items", "outcomes"):
    rows(f"{_name} id", BadIdError, {"empty": "", "NUL": "\0", "long": "x" * 257}, after_a_good_one(_name))
    rows(f"{_name} id type", BadTypeError, {**NO_IDS, "None": None}, after_a_good_one(_name))
    rows(f"{_name} many", BadTypeError, {"str": "dead", "int": 1, "None": None}, instead_of_many(_name))
WAITS = {name: value for name, value in BAD_NUMBERS.items() if name != "beyond"}
rows("outcome id", BadIdError, {"empty": "", "NUL": "\0"}, lambda q, _, v: q.outcome(v))
rows("outcome id type", BadTypeError, {**NO_IDS, "None": None}, lambda q, _, v: q.outcome(v))
rows("outcome timeout", BadArgumentError, WAITS, lambda q, _, v: q.outcome("leased", timeout=v))
rows("outcome timeout type", BadTypeError, NO_NUMBERS, lambda q, _, v: q.outcome("leased", timeout=v))
rows("room timeout", BadArgumentError, WAITS, lambda q, _, v: q.add_item_when_room(Item(b"x"), timeout=v))
rows("room item", BadTypeError, NO_ITEMS, lambda q, _, v: q.add_item_when_room(v))
rows("room id", BadIdError, {"empty": ""}, lambda q, _, v: q.add_item_when_room(Item(b"x", id=v)))
rows("room keep", BadArgumentError, KEEPS, lambda q, _, v: q.add_item_when_room(Item(b"x"), keep=v))
rows("revive one", BadTypeError, {**NO_IDS, "None": None}, lambda q, _, v: q.revive(v))
rows("purge one", BadTypeError, {**NO_IDS, "None": None}, lambda q, _, v: q.purge(v))
rows(
    "revive matching", BadTypeError, {"int": 1, "bytes": b"x", "list": ["x"]}, lambda q, _, v: q.revive_all(v)
)
rows(
    "purge age",
    BadArgumentError,
    {k: v for k, v in BAD_NUMBERS.items() if k != "beyond"},
    lambda q, _, v: q.purge_all(v),
)
rows("purge age type", BadTypeError, {**NO_NUMBERS, "None": None}, lambda q, _, v: q.purge_all(v))
rows(
    "dead letters limit",
    BadArgumentError,
    {"0": 0, "257": 257, "-1": -1},
    lambda q, _, v: q.dead_letters(limit=v),
)
rows("dead letters limit type", BadTypeError, NO_COUNTS, lambda q, _, v: q.dead_letters(limit=v))
for _name, _call in {
    "complete": lambda q, i: q.complete(i),
    "extend": lambda q, i: q.extend(i, 30),
    "release": lambda q, i: q.release(i),
    "complete and lease": lambda q, i: q.complete_and_lease(i, 30),
    "complete with": lambda q, i: q.complete(i, keep=60, then=[(q, Item(b"x"))]),
    "dead letter": lambda q, i: q.dead_letter(i),
}.items():
    rows(f"{_name} token", BadArgumentError, BAD_TOKENS, lambda q, i, v, c=_call: c(q, with_token(i, v)))  # type: ignore[misc]
    rows(f"{_name} token type", BadTypeError, NO_TOKENS, lambda q, i, v, c=_call: c(q, with_token(i, v)))  # type: ignore[misc]
    rows(f"{_name} id", BadIdError, {"empty": "", "NUL": "\0"}, lambda q, i, v, c=_call: c(q, with_id(i, v)))  # type: ignore[misc]
rows("list state", BadArgumentError, {"unknown": "done", "empty": ""}, lambda q, _, v: q.list_items(v))
rows(
    "list state type",
    BadTypeError,
    {"None": None, "int": 1, "object": object()},
    lambda q, _, v: q.list_items(v),
)
rows(
    "list limit",
    BadArgumentError,
    {"0": 0, "257": 257, "-1": -1},
    lambda q, _, v: q.list_items("ready", limit=v),
)
rows("list limit type", BadTypeError, NO_COUNTS, lambda q, _, v: q.list_items("ready", limit=v))
rows(
    "list offset",
    BadArgumentError,
    {"-1": -1, "huge": 10**20},
    lambda q, _, v: q.list_items("ready", offset=v),
)
rows(
    "max_data", BadArgumentError, {"0": 0, "-1": -1, "1 GiB": 2**30}, lambda q, _, v: q.configure(max_data=v)
)
rows("max_items", BadArgumentError, {"-1": -1, "2**32": 2**32}, lambda q, _, v: q.configure(max_items=v))
rows(
    "max_attempts", BadArgumentError, {"-1": -1, "65535": 65535}, lambda q, _, v: q.configure(max_attempts=v)
)
rows("configure nothing", BadArgumentError, {"nothing": None}, lambda q, _, v: q.configure(max_data=v))
NO_LIMITS = {name: value for name, value in NO_COUNTS.items() if value is not None}
rows("max_data type", BadTypeError, NO_LIMITS, lambda q, _, v: q.configure(max_data=v))
rows("max_items type", BadTypeError, NO_LIMITS, lambda q, _, v: q.configure(max_items=v))
rows("max_attempts type", BadTypeError, NO_LIMITS, lambda q, _, v: q.configure(max_attempts=v))
