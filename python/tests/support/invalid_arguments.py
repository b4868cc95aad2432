"""The one table of wrong arguments: every argument of every call, what may be passed there by mistake, and the error it gets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from support.client_flavours import unwrap

from leaseq import BadArgumentError, BadIdError, BadTypeError, Completion, Item, LeaseqError, TooLargeError

Call = Callable[[Any, Any, Any], object]
"""Takes the queue, an item leased from it, and the wrong value."""
Values = dict[type[LeaseqError], dict[str, Any]]
"""Wrong values by their names, under the errors they get."""
MIB: Final = 1024 * 1024


def also(base: Values, error: type[LeaseqError], **values: Any) -> Values:
    """The values of `base` and more."""
    return {**base, error: {**base.get(error, {}), **values}}


def of_type(**values: Any) -> Values:
    """Values of a wrong type."""
    return {BadTypeError: values}


def wrong(**values: Any) -> Values:
    """Values of the right type that are not taken."""
    return {BadArgumentError: values}


ID: Final = also(
    {
        BadIdError: {
            "empty": "",
            "too long": "x" * 257,
            "too many bytes": "ü" * 129,
            "NUL": "a\0b",
            "surrogate": "a\ud800",
        }
    },
    BadTypeError,
    int=5,
    list=["a"],
    float=1.5,
    bytearray=bytearray(b"a"),
)
ID_OR_BYTES: Final = also(
    ID,
    BadIdError,
    **{"empty bytes": b"", "not UTF-8": b"\xff", "overlong": b"\xc0\x80", "surrogate bytes": b"\xed\xa0\x80"},
)
LEASED_ID: Final[Values] = {BadIdError: {"empty": "", "NUL": "\0"}}
ID_OF_ITEM: Final = also(ID, BadTypeError, none=None)
IDS: Final = of_type(str="dead", int=1, none=None)
_SIZES: Final = {
    "negative": -1,
    "NaN": math.nan,
    "infinite": math.inf,
    "minus infinite": -math.inf,
    "huge": 1e300,
    "huge int": 10**400,
}
NO_SECS: Final = of_type(str="5", bool=True, list=[1], complex=1j)
WAIT: Final[Values] = {**NO_SECS, **wrong(**_SIZES)}
OPTIONAL_SECS: Final = also(WAIT, BadArgumentError, beyond=315_360_000_001.0)
SECS: Final = also(OPTIONAL_SECS, BadTypeError, none=None)
LEASE_SECS: Final = also(SECS, BadArgumentError, zero=0, short=0.0001, long=31 * 86400.0)
KEEP: Final = also(OPTIONAL_SECS, BadArgumentError, short=0.0001)
COUNT: Final = also(
    wrong(zero=0, negative=-1, many=257, huge=10**30), BadTypeError, float=1.0, str="1", bool=True, none=None
)
NO_NUMBER: Final = of_type(float=1.0, str="1", bool=True)
NO_ITEM: Final = of_type(str="a", bytes=b"a", none=None, int=1, dict={"id": "a"})
NO_LEASED_ITEM: Final = also(NO_ITEM, BadTypeError, item=Item(b"x"))
TOKEN: Final = also(
    wrong(negative=-1, huge=10**16, enormous=10**5000), BadTypeError, str="1", float=1.5, none=None, bool=True
)
DATA: Final[Values] = {
    BadTypeError: {"int": 1, "none": None, "list": [1], "dict": {}},
    BadArgumentError: {"surrogate": "\ud800"},
    TooLargeError: {"1 MiB + 1": b"x" * (MIB + 1)},
}
HEADERS: Final[Values] = {
    BadArgumentError: {
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
    BadTypeError: {
        "list": ["a"],
        "str": "a",
        "pairs": [("a", "b")],
        "bytes": {"a": b"b"},
        "name": {1: "a"},
        "none": {"a": None},
    },
    TooLargeError: {
        "one": {"a": "x" * 4096},
        "umlauts": {"a": "ü" * 2048},
        "names": {"a" * 50 + str(n): "x" * 300 for n in range(12)},
    },
}


def changed(thing: Any, **attributes: Any) -> Any:
    """An item with other attributes, which were not checked."""
    for name, value in attributes.items():
        setattr(getattr(thing, "real", thing), name, value)
    return thing


ITEMS: tuple[tuple[str, Call, Values], ...] = (
    ("id", lambda q, _, v: q.add_item(Item(b"x", id=v)), ID_OR_BYTES),
    ("second id", lambda q, _, v: q.add_items([Item(b"x"), Item(b"x", id=v)]), ID_OR_BYTES),
    ("data", lambda q, _, v: q.add_item(Item(v)), DATA),
    ("data among good", lambda q, _, v: q.add_items([Item(b"x"), Item(v)]), DATA),
    ("headers", lambda q, _, v: q.add_item(Item(b"x", headers=v)), HEADERS),
    (
        "headers set later",
        lambda q, _, v: q.add_item(changed(Item(b"x"), headers=v)),
        of_type(bytes={"a": b"b"}, name={1: "a"}),
    ),
    (
        "content type",
        lambda q, _, v: q.add_item(Item(b"x", content_type=v)),
        also(of_type(bytes=b"text/plain", int=1), TooLargeError, long="x" * 4097),
    ),
    (
        "from_dict",
        lambda q, _, v: q.add_item(Item.from_dict(v)),
        wrong(list=[], no_data={"id": "a"}, more={"data": "x", "a": 1}),
    ),
    (
        "from_json",
        lambda q, _, v: q.add_item(Item.from_json(v)),
        wrong(text="{", list="[]", none=None, deep="[" * 100_000),
    ),
    (
        "from_json_data",
        lambda q, _, v: q.add_item(Item.from_json_data(v)),
        wrong(NaN=math.nan, set={1}, bytes=b"x"),
    ),
    ("data_json", lambda _q, _i, v: Item(v).data_json(), wrong(text=b"{", bytes=b"\xff")),
)
ADDING: tuple[tuple[str, Call, Values], ...] = (
    ("add item", lambda q, _, v: q.add_item(v), NO_ITEM),
    ("add items", lambda q, _, v: q.add_items(v), NO_ITEM),
    ("add second item", lambda q, _, v: q.add_items([Item(b"x"), v]), NO_ITEM),
    ("delay", lambda q, _, v: q.add_item(Item(b"x"), delay=v), SECS),
    ("not_before", lambda q, _, v: q.add_item(Item(b"x"), not_before=v), OPTIONAL_SECS),
    ("delay and not_before", lambda q, _, v: q.add_item(Item(b"x"), delay=v, not_before=v), wrong(both=1)),
    (
        "priority",
        lambda q, _, v: q.add_item(Item(b"x"), priority=v),
        also(wrong(low=-8, high=8, huge=10**9), BadTypeError, str="1", float=1.0),
    ),
    (
        "max_attempts",
        lambda q, _, v: q.add_item(Item(b"x"), max_attempts=v),
        also(wrong(negative=-1, many=65535, more=65536), BadTypeError, str="1", float=1.5),
    ),
    (
        "expires_in",
        lambda q, _, v: q.add_item(Item(b"x"), expires_in=v),
        also(OPTIONAL_SECS, BadArgumentError, zero=0, short=0.0001),
    ),
    (
        "expires before it is due",
        lambda q, _, v: q.add_item(Item(b"x"), delay=10, expires_in=v),
        wrong(before=5, when=10),
    ),
    (
        "dead_on_expiry alone",
        lambda q, _, v: q.add_item(Item(b"x"), dead_on_expiry=v),
        wrong(never_expires=True),
    ),
    ("keep", lambda q, _, v: q.add_item(Item(b"x"), keep=v), KEEP),
    ("pipe", lambda q, _, v: q.add_item(Item(b"x"), pipe=v), of_type(object=object(), str="x")),
    ("room item", lambda q, _, v: q.add_item_when_room(v), NO_ITEM),
    ("room id", lambda q, _, v: q.add_item_when_room(Item(b"x", id=v)), ID),
    ("room timeout", lambda q, _, v: q.add_item_when_room(Item(b"x"), timeout=v), WAIT),
    ("room keep", lambda q, _, v: q.add_item_when_room(Item(b"x"), keep=v), KEEP),
    ("room items", lambda q, _, v: q.add_items_when_room([v]), NO_ITEM),
    ("room for many, timeout", lambda q, _, v: q.add_items_when_room([Item(b"x")], timeout=v), WAIT),
)
LEASING: tuple[tuple[str, Call, Values], ...] = (
    ("lease", lambda q, _, v: q.lease(v, block=False), LEASE_SECS),
    ("blocking lease", lambda q, _, v: q.lease(v), LEASE_SECS),
    ("items", lambda q, _, v: next(q.items(v)), LEASE_SECS),
    ("timeout", lambda q, _, v: q.lease(1, timeout=v), WAIT),
    ("count", lambda q, _, v: q.lease_items(v, 30), COUNT),
    ("extend secs", lambda q, i, v: q.extend(i, v), LEASE_SECS),
    ("extend", lambda q, _, v: q.extend(v, 30), NO_LEASED_ITEM),
    ("extend many", lambda q, _, v: q.extend_items(v, 30), NO_ITEM),
)
_OF_LEASED: dict[str, Callable[[Any, Any], object]] = {
    "complete": lambda q, i: q.complete(i),
    "extend": lambda q, i: q.extend(i, 30),
    "release": lambda q, i: q.release(i),
    "complete and lease": lambda q, i: q.complete_and_lease(i, 30),
    "complete with": lambda q, i: q.complete(i, keep=60, then=[(q, Item(b"x"))]),
    "dead letter": lambda q, i: q.dead_letter(i),
}


def _with_attribute(name: str, call: Callable[[Any, Any], object]) -> Call:
    """The call, of the leased item with this attribute changed."""
    return lambda q, i, v: call(q, changed(i, **{name: v}))


ENDING: tuple[tuple[str, Call, Values], ...] = (
    *((f"{name} token", _with_attribute("token", call), TOKEN) for name, call in _OF_LEASED.items()),
    *((f"{name} id", _with_attribute("id", call), LEASED_ID) for name, call in _OF_LEASED.items()),
    ("complete", lambda q, _, v: q.complete(v), NO_LEASED_ITEM),
    ("complete many", lambda q, _, v: q.complete_items(v), NO_ITEM),
    ("release", lambda q, _, v: q.release(v), NO_LEASED_ITEM),
    ("release many", lambda q, _, v: q.release_items(v), NO_ITEM),
    ("release delay", lambda q, i, v: q.release(i, delay=v), SECS),
    (
        "release error",
        lambda q, i, v: q.release(i, error=v),
        of_type(int=5, bytes=b"x", error=ValueError("x")),
    ),
    ("dead letter", lambda q, _, v: q.dead_letter(v), NO_LEASED_ITEM),
    ("dead letter many", lambda q, _, v: q.dead_letter_items(v), NO_ITEM),
    ("dead letter error", lambda q, i, v: q.dead_letter(i, error=v), of_type(int=5, bytes=b"x")),
    ("complete and lease", lambda q, _, v: q.complete_and_lease(v, 30), NO_ITEM),
    ("complete and lease secs", lambda q, i, v: q.complete_and_lease(i, v), LEASE_SECS),
    ("finish", lambda q, _, v: q.complete_items(v), NO_ITEM),
    ("finish second", lambda q, i, v: q.complete_items([Completion(unwrap(i)), v]), NO_ITEM),
    (
        "result",
        lambda q, i, v: q.complete(i, result=v),
        also(of_type(int=1, list=[1], bool=True), BadArgumentError, surrogate="\ud800"),
    ),
    (
        "result that is kept",
        lambda q, i, v: q.complete(i, result=v, keep=60),
        {TooLargeError: {"1 MiB + 1": b"x" * (MIB + 1)}},
    ),
    ("complete keep", lambda q, i, v: q.complete(i, keep=v), KEEP),
    (
        "then",
        lambda q, i, v: q.complete(i, then=v(q) if callable(v) else v),
        of_type(
            str="q",
            bytes=b"x",
            int=1,
            mapping={"queue": "item"},
            **{"no mapping": {}, "no str": "", "zero": 0, "false": False},
            bare_item=[Item(b"x")],
            no_queue=[("second", Item(b"x"))],
            no_item=lambda queue: [(queue, b"x")],
            one=lambda queue: [(queue,)],
            four=lambda queue: [(queue, Item(b"x"), {}, 1)],
            options=lambda queue: [(queue, Item(b"x"), ["delay", 5])],
            option_type=lambda queue: [(queue, Item(b"x"), {"delay": "5"})],
        ),
    ),
    ("finished", lambda _q, _i, v: Completion(v), NO_ITEM),
    (
        "finished keep",
        lambda _, i, v: Completion(unwrap(i), keep=v),
        also(NO_SECS, BadArgumentError, short=0.0001),
    ),
    ("follow-up data", lambda q, i, v: q.complete(i, then=[(q, Item(b"x")), (q, Item(v))]), DATA),
    ("follow-up id", lambda q, i, v: q.complete(i, then=[(q, Item(b"x", id=v))]), ID),
    (
        "follow-up options",
        lambda q, i, v: q.complete(i, then=[(q, Item(b"x"), v)]),
        wrong(name={"delya": 1}, priority={"priority": 8}, delay={"delay": -1}),
    ),
    ("follow-ups", lambda q, i, v: q.complete(i, then=[(q, Item(b"x"))] * v), wrong(many=257)),
)
MAINTENANCE: tuple[tuple[str, Call, Values], ...] = (
    ("remove", lambda q, _, v: q.remove(v), also(ID_OF_ITEM, BadTypeError, bytes=b"ready")),
    ("remove second", lambda q, _, v: q.remove_items(["ready", v]), ID),
    ("remove many", lambda q, _, v: q.remove_items(v), IDS),
    ("inspect", lambda q, _, v: q.inspect(v), ID_OF_ITEM),
    ("inspect many", lambda q, _, v: q.inspect_items(v), IDS),
    ("promote", lambda q, _, v: q.promote(v), ID_OF_ITEM),
    ("promote many", lambda q, _, v: q.promote_items(v), IDS),
    ("revive", lambda q, _, v: q.revive(v), ID_OF_ITEM),
    ("revive second", lambda q, _, v: q.revive_items(["dead", v]), ID_OF_ITEM),
    ("revive many", lambda q, _, v: q.revive_items(v), IDS),
    ("revive matching", lambda q, _, v: q.revive_all(v), of_type(int=1, bytes=b"x", list=["x"])),
    ("purge", lambda q, _, v: q.purge(v), ID_OF_ITEM),
    ("purge second", lambda q, _, v: q.purge_items(["dead", v]), ID_OF_ITEM),
    ("purge many", lambda q, _, v: q.purge_items(v), IDS),
    ("purge age", lambda q, _, v: q.purge_all(v), also(WAIT, BadTypeError, none=None)),
    ("outcome", lambda q, _, v: q.outcome(v), ID),
    ("outcome timeout", lambda q, _, v: q.outcome("leased", timeout=v), WAIT),
    ("outcomes second", lambda q, _, v: q.outcomes(["dead", v]), ID_OF_ITEM),
    ("outcomes", lambda q, _, v: q.outcomes(v), IDS),
    ("dead letters limit", lambda q, _, v: q.dead_letters(limit=v), COUNT),
    (
        "list state",
        lambda q, _, v: q.list_items(v),
        also(wrong(unknown="done", empty=""), BadTypeError, none=None, int=1, object=object()),
    ),
    ("list limit", lambda q, _, v: q.list_items("ready", limit=v), COUNT),
    ("list offset", lambda q, _, v: q.list_items("ready", offset=v), wrong(negative=-1, huge=10**20)),
    (
        "max_data",
        lambda q, _, v: q.configure(max_data=v),
        also(NO_NUMBER, BadArgumentError, zero=0, negative=-1, large=2**30, nothing=None),
    ),
    (
        "max_items",
        lambda q, _, v: q.configure(max_items=v),
        also(NO_NUMBER, BadArgumentError, n=-1, many=2**32),
    ),
    (
        "default attempts",
        lambda q, _, v: q.configure(max_attempts=v),
        also(NO_NUMBER, BadArgumentError, negative=-1, many=65535),
    ),
)


def rows() -> Iterator[tuple[str, type[LeaseqError], Callable[[Any, Any], object]]]:
    """Every call with one wrong value: its title, the error, and the call, which takes the queue and the leased item."""
    for title, call, values in (*ITEMS, *ADDING, *LEASING, *ENDING, *MAINTENANCE):
        for error, named in values.items():
            for name, value in named.items():
                yield f"{title}: {name}", error, partial(_with, call, value)


def _with(call: Call, value: Any, queue: Any, item: Any) -> object:
    return call(queue, item, value)
