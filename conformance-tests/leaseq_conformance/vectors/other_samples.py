"""The calls of producers and operators that are made on every kind of queue, and what the reference model makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leaseq_conformance.model.calls import Add
from leaseq_conformance.vectors.builder import DAY, HOUR, NOW, World
from leaseq_conformance.vectors.samples import (
    HEADERS,
    MANY,
    UTF8,
    Sample,
    add,
    configure,
    ids,
    page,
    purge,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def adds(_: World) -> list[Sample]:
    """Calls of add."""
    edge = (NOW // 1000, NOW // 1000 + 1)
    every = Add(b"n7", b"all", 1000, None, 7, 1, HOUR, True, DAY, b"text/plain", HEADERS)
    return [
        add("plain", Add(b"n1", b"new")),
        add("is there", Add(b"r1", b"again")),
        add("is leased", Add(b"c1", b"again")),
        add("is dead, with options", Add(b"x1", b"again", priority=1)),
        add("had a result", Add(b"k1", b"new")),
        *(add(f"{size} bytes", Add(b"n1", b"d" * size)) for size in (9, 10)),
        *(add(f"{size} bytes, with an option", Add(b"n1", b"d" * size, priority=1)) for size in (9, 10)),
        add("two", Add(b"n1", b"new"), Add(b"n2", b"")),
        add("twice in a call", Add(b"n1", b"first"), Add(b"n1", b"second"), Add(b"k1", b""), Add(b"k1", b"")),
        add("mixed", Add(b"n1", b"x"), Add(b"r1", b"x"), Add(b"f1", b"x"), Add(b"n2", b"y" * 70), Add(b"e1")),
        add("256", *(Add(item_id) for item_id in MANY)),
        add("delay", Add(b"n1", b"", delay=1000)),
        add("longest delay", Add(b"n1", b"", delay=315_360_000_000)),
        add("not_before at the end of 2059", Add(b"n1", b"", not_before=2_840_140_799_999)),
        add("delay 0", Add(b"n1", b"", delay=0)),
        add("delay 1 ms", Add(b"n1", b"", delay=1)),
        add("far delay", Add(b"n1", b"", delay=20 * HOUR)),
        add("not_before past", Add(b"n1", b"", not_before=edge[0] - 1)),
        add("not_before now", Add(b"n1", b"", not_before=edge[0])),
        add("not_before ahead", Add(b"n1", b"", not_before=edge[1])),
        add("not_before 0", Add(b"n1", b"", not_before=0)),
        *(add(f"priority {level}", Add(b"n1", b"p", priority=level)) for level in (-7, -1, 0, 1, 7)),
        *(add(f"max_attempts {n}", Add(b"n1", b"m", max_attempts=n)) for n in (0, 1, 65534)),
        add("expires", Add(b"n1", b"", expires_in=1)),
        add("expires and dies", Add(b"n1", b"", expires_in=315_360_000_000, dies=True)),
        add("expires after delay", Add(b"n1", b"", delay=999, expires_in=1000)),
        add("keep", Add(b"n1", b"", keep=1)),
        add("keep long, of one that had a result", Add(b"k2", b"", keep=315_360_000_000)),
        add("content type", Add(b"n1", b"", content_type=b"text/plain")),
        add("empty content type", Add(b"n1", b"", content_type=b"")),
        add("headers", Add(b"n1", b"", headers=HEADERS)),
        add("extra of 4096 bytes", Add(b"n1", b"", headers=((b"h", b"v" * 4088),))),
        add("16 headers", Add(b"n1", b"", headers=tuple((b"h%d" % n, b"%d" % n) for n in range(16)))),
        add("header's name of 100", Add(b"n1", b"", headers=((b"h" * 100, b"x"),))),
        add("everything", every),
        add("everything, then plain", every, Add(b"n8", b"plain"), Add(b"n9", b"", keep=5, priority=2)),
        add("keep, then of one that had a result", Add(b"n1", b"", keep=5), Add(b"k1"), Add(b"x2")),
        add("two delays", Add(b"n1", delay=5000), Add(b"n2", delay=2000), Add(b"n3", delay=9000)),
        add("exists and a delay", Add(b"r1", delay=1), Add(b"n2", delay=500)),
        add("id of two bytes", Add(b"\xc3\xa9", b"\0\xff")),
        add("id of braces and lines", Add(b'{e}\r\n"', b"", priority=1)),
        add("id of 256 bytes", Add(b"i" * 256, b"")),
        add("id of 256 bytes of UTF-8", Add("é".encode() * 128)),
        add("id of every length of UTF-8", Add(UTF8)),
        add("id of every length of UTF-8, with an option", Add(UTF8, priority=1)),
        add("16 attempts", *(Add(b"m%d" % n, b"d" * n, max_attempts=n) for n in range(16))),
    ]


def removes(_: World) -> list[Sample]:
    """Calls of remove."""
    names = (b"r1", b"f1", b"c1", b"x1", b"e1", b"s1", b"p1", b"k1", b"none")
    return [
        *(ids(name.decode(), "remove", name) for name in names),
        ids("its id is the count of entries", "remove", b"1"),
        ids("two", "remove", b"r1", b"r2"),
        ids("twice", "remove", b"c1", b"c1"),
        ids("256 absent", "remove", *MANY),
        ids("absent, of UTF-8", "remove", UTF8, "é".encode() * 128),
        ids("mixed", "remove", *names, b"r1"),
    ]


def revives(_: World) -> list[Sample]:
    """Calls of revive."""
    names = (b"x1", b"x2", b"x3", b"c1", b"none", b"r1")
    return [
        *(ids(name.decode(), "revive", name, timed=True) for name in names),
        *(ids(name.decode(), "revive", name, timed=True) for name in (b"r3", b"r5", b"u3")),
        ids("two", "revive", b"x1", b"none", timed=True),
        ids("twice", "revive", b"x1", b"x1", timed=True),
        ids("256 absent", "revive", *MANY, timed=True),
        ids("absent, of UTF-8", "revive", UTF8, "é".encode() * 128, timed=True),
        ids("mixed", "revive", *names, b"x1", timed=True),
    ]


def purges(world: World) -> list[Sample]:
    """Calls of purge."""
    item = world.queue.items.get(b"x1")
    old = max(0, NOW - (item.score if item and item.where == "dead" else NOW)) // 1000
    names = (b"x1", b"x2", b"x3", b"c1", b"none", b"r1")
    return [
        *(purge(name.decode(), 0, name) for name in names),
        purge("just old enough", old, b"x1"),
        purge("not old enough", old + 1, b"x1"),
        purge("of ten years", 315_360_000_000, b"x1"),
        purge("twice", 0, b"x1", b"x1"),
        purge("256 absent", 0, *MANY),
        purge("absent, of UTF-8", 0, UTF8, "é".encode() * 128),
        purge("mixed", 1, *names, b"x1"),
    ]


def outcomes(_: World) -> list[Sample]:
    """Calls of outcome."""
    names = (b"k1", b"k2", b"t1", b"x1", b"x2", b"x3", b"c1", b"f1", b"r1", b"r4", b"e1", b"none")
    return [
        *(ids(name.decode(), "outcome", name, timed=True) for name in names),
        ids("mixed", "outcome", *names, timed=True),
        ids("twice", "outcome", b"x1", b"x1", timed=True),
        ids("256 absent", "outcome", *MANY, timed=True),
        ids("absent, of UTF-8", "outcome", UTF8, "é".encode() * 128, timed=True),
    ]


def inspects(_: World) -> list[Sample]:
    """Calls of inspect."""
    names = (
        b"r1",
        b"r3",
        b"r4",
        b"f1",
        b"c1",
        b"c2",
        b"e1",
        b"e2",
        b"x1",
        b"x2",
        b"s1",
        b"p2",
        b"k1",
        b"none",
    )
    return [
        *(ids(name.decode(), "inspect", name) for name in names),
        ids("all", "inspect", *names),
        ids("256 absent", "inspect", *MANY),
        ids("absent, of UTF-8", "inspect", UTF8, "é".encode() * 128),
    ]


def pages(_: World) -> list[Sample]:
    """Calls of list."""
    states = ("ready", "delayed", "leased", "dead", "kept")
    return [
        *(page(where, 0, 256, order) for where in states for order in ("forward", "backward")),
        *(
            page("ready", *spot)
            for spot in ((1, 2, "forward"), (1, 2, "backward"), (2**53 - 1, 1, "forward"))
        ),
        *(page("leased", *spot) for spot in ((0, 1, "forward"), (1, 1, "backward"), (4, 3, "forward"))),
    ]


def cleans(_: World) -> list[Sample]:
    """Calls of light_clean."""
    return [
        Sample(f"limit {limit}", [limit], lambda world, now, limit=limit: world.queue.light_clean(now, limit))  # type: ignore[misc]  # bound now
        for limit in (1, 2, 3, 256)
    ]


def settles(_: World) -> list[Sample]:
    """Calls of settle."""
    return [Sample("settle", [], lambda world, now: world.queue.settle(now))]


def counts(_: World) -> list[Sample]:
    """Calls of stats."""
    return [Sample("stats", [], lambda world, now: world.queue.stats(now))]


def configures(_: World) -> list[Sample]:
    """Calls of configure."""
    return [
        configure(max_data=1),
        configure(max_data=536_870_912),
        configure(max_items=0),
        configure(max_items=1),
        configure(max_items=3),
        configure(max_items=8),
        configure(max_items=12),
        configure(max_items=4_294_967_295),
        configure(max_attempts=0),
        configure(max_attempts=65_534),
        configure(paused=1),
        configure(paused=0),
        configure(paused=0, max_items=9),
        configure(paused=0, max_data=9, max_items=100, max_attempts=3),
        configure(max_attempts=2, max_data=5),
    ]


BY_OTHERS: Final[dict[str, Callable[[World], list[Sample]]]] = {
    "add": adds,
    "configure": configures,
    "inspect": inspects,
    "light_clean": cleans,
    "list": pages,
    "outcome": outcomes,
    "purge": purges,
    "remove": removes,
    "revive": revives,
    "settle": settles,
    "stats": counts,
}
"""What producers and operators call on each kind of queue; deep_clean is in `repairs`."""
