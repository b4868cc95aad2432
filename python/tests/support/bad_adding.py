"""Bad input of items and of everything that takes an id or adds."""

from __future__ import annotations

import math

from support.bad_values import (
    BAD_IDS,
    BAD_NUMBERS,
    KEEPS,
    MIB,
    NO_IDS,
    NO_ITEMS,
    NO_NUMBERS,
    Table,
    with_headers,
)

from leaseq import BadArgumentError, BadIdError, BadTypeError, Item, TooLargeError

ADDING = Table()
rows = ADDING.rows

rows("add id", BadIdError, BAD_IDS, lambda q, _, v: q.add_item(Item(b"x", id=v)))
rows("add second id", BadIdError, BAD_IDS, lambda q, _, v: q.add_items([Item(b"x"), Item(b"x", id=v)]))
rows("add id type", BadTypeError, NO_IDS, lambda q, _, v: q.add_item(Item(b"x", id=v)))
rows(
    "remove",
    BadIdError,
    {**BAD_IDS},
    lambda q, _, v: q.remove(v if isinstance(v, str) else Item(b"", id=v).id),
)
rows("remove second", BadIdError, {"empty": "", "NUL": "\0"}, lambda q, _, v: q.remove_items(["ready", v]))
rows("remove type", BadTypeError, {**NO_IDS, "bytes": b"ready", "None": None}, lambda q, _, v: q.remove(v))
rows("remove many", BadTypeError, {"str": "ready", "int": 1, "None": None}, lambda q, _, v: q.remove_items(v))
rows("inspect", BadIdError, {"empty": "", "too long": "x" * 257, "NUL": "\0"}, lambda q, _, v: q.inspect(v))
rows("inspect type", BadTypeError, {**NO_IDS, "None": None}, lambda q, _, v: q.inspect(v))
rows("inspect many", BadTypeError, {"str": "ready", "None": None}, lambda q, _, v: q.inspect_items(v))
rows(
    "data type",
    BadTypeError,
    {"int": 1, "None": None, "list": [1], "dict": {}},
    lambda q, _, v: q.add_item(Item(v)),
)
rows("data", BadArgumentError, {"surrogate": "\ud800"}, lambda q, _, v: q.add_item(Item(v)))
rows("no item", BadTypeError, NO_ITEMS, lambda q, _, v: q.add_item(v))
rows("no items", BadTypeError, NO_ITEMS, lambda q, _, v: q.add_items(v))
rows("no second item", BadTypeError, NO_ITEMS, lambda q, _, v: q.add_items([Item(b"x"), v]))
rows("too large", TooLargeError, {"1 MiB + 1": b"x" * (MIB + 1)}, lambda q, _, v: q.add_item(Item(v)))
rows(
    "too large among good ones",
    TooLargeError,
    {"1 MiB + 1": b"x" * (MIB + 1)},
    lambda q, _, v: q.add_items([Item(b"x"), Item(v), Item(b"x")]),
)
rows("delay", BadArgumentError, BAD_NUMBERS, lambda q, _, v: q.add_item(Item(b"x"), delay=v))
rows(
    "delay type", BadTypeError, {**NO_NUMBERS, "None": None}, lambda q, _, v: q.add_item(Item(b"x"), delay=v)
)
rows("not_before", BadArgumentError, BAD_NUMBERS, lambda q, _, v: q.add_item(Item(b"x"), not_before=v))
rows("not_before type", BadTypeError, NO_NUMBERS, lambda q, _, v: q.add_item(Item(b"x"), not_before=v))
rows("both", BadArgumentError, {"both": 1}, lambda q, _, v: q.add_item(Item(b"x"), delay=v, not_before=v))
rows(
    "priority",
    BadArgumentError,
    {"-8": -8, "8": 8, "1e9": 10**9},
    lambda q, _, v: q.add_item(Item(b"x"), priority=v),
)
rows(
    "priority type",
    BadTypeError,
    {"str": "1", "float": 1.0},
    lambda q, _, v: q.add_item(Item(b"x"), priority=v),
)
rows(
    "attempts",
    BadArgumentError,
    {"-1": -1, "65535": 65535, "65536": 65536},
    lambda q, _, v: q.add_item(Item(b"x"), max_attempts=v),
)
rows(
    "attempts type",
    BadTypeError,
    {"str": "1", "float": 1.5},
    lambda q, _, v: q.add_item(Item(b"x"), max_attempts=v),
)
rows(
    "expires_in",
    BadArgumentError,
    {**BAD_NUMBERS, "zero": 0, "too short": 0.0001},
    lambda q, _, v: q.add_item(Item(b"x"), expires_in=v),
)
rows("expires_in type", BadTypeError, NO_NUMBERS, lambda q, _, v: q.add_item(Item(b"x"), expires_in=v))
rows(
    "expires before it is due",
    BadArgumentError,
    {"before": 5, "when": 10},
    lambda q, _, v: q.add_item(Item(b"x"), delay=10, expires_in=v),
)
rows(
    "never expires",
    BadArgumentError,
    {"dead": True},
    lambda q, _, v: q.add_item(Item(b"x"), dead_on_expiry=v),
)
rows("keep", BadArgumentError, KEEPS, lambda q, _, v: q.add_item(Item(b"x"), keep=v))
rows("keep type", BadTypeError, NO_NUMBERS, lambda q, _, v: q.add_item(Item(b"x"), keep=v))
rows(
    "headers",
    BadArgumentError,
    {
        "no name": {"": "x"},
        "space": {"a b": "x"},
        "colon": {"a:b": "x"},
        "umlaut": {"ü": "x"},
        "NUL": {"a\0": "x"},
        "long name": {"a" * 101: "x"},
        "surrogate": {"a": "\ud800"},
        "surrogate name": {"\ud800": "x"},
        "17": {str(n): "x" for n in range(17)},
    },
    lambda q, _, v: q.add_item(Item(b"x", headers=v)),
)
rows(
    "headers type",
    BadTypeError,
    {
        "list": ["a"],
        "str": "a",
        "pairs": [("a", "b")],
        "bytes": {"a": b"b"},
        "name": {1: "a"},
        "None": {"a": None},
    },
    lambda q, _, v: q.add_item(Item(b"x", headers=v)),
)
rows(
    "headers set later",
    BadTypeError,
    {"bytes": {"a": b"b"}, "name": {1: "a"}},
    lambda q, _, v: q.add_item(with_headers(Item(b"x"), v)),
)
rows(
    "headers too long",
    TooLargeError,
    {
        "one": {"a": "x" * 4096},
        "umlauts": {"a": "ü" * 2048},
        "names": {"a" * 50 + str(n): "x" * 300 for n in range(12)},
    },
    lambda q, _, v: q.add_item(Item(b"x", headers=v)),
)
rows(
    "content type",
    BadTypeError,
    {"bytes": b"text/plain", "int": 1},
    lambda q, _, v: q.add_item(Item(b"x", content_type=v)),
)
rows(
    "content type too long",
    TooLargeError,
    {"4097": "x" * 4097},
    lambda q, _, v: q.add_item(Item(b"x", content_type=v)),
)
rows("pipe", BadTypeError, {"object": object(), "str": "x"}, lambda q, _, v: q.add_item(Item(b"x"), pipe=v))
rows(
    "from_dict",
    BadArgumentError,
    {"list": [], "no data": {"id": "a"}, "more": {"data": "x", "a": 1}},
    lambda q, _, v: q.add_item(Item.from_dict(v)),
)
rows(
    "from_json",
    BadArgumentError,
    {"text": "{", "list": "[]", "None": None, "deep": "[" * 100_000},
    lambda q, _, v: q.add_item(Item.from_json(v)),
)
rows(
    "from_json_data",
    BadArgumentError,
    {"NaN": math.nan, "set": {1}, "bytes": b"x"},
    lambda q, _, v: q.add_item(Item.from_json_data(v)),
)
rows("data_json", BadArgumentError, {"text": b"{", "bytes": b"\xff"}, lambda _q, _i, v: Item(v).data_json())
