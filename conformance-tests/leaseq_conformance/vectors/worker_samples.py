"""The calls of workers that are made on every kind of queue, and what the reference model makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.calls import Add, Complete, Extend, Finish, Release
from leaseq_conformance.vectors.builder import DAY, HOUR, World
from leaseq_conformance.vectors.samples import (
    HEADERS,
    MANY,
    MONTH,
    UTF8,
    Sample,
    complete,
    complete_and_lease,
    extend,
    finish,
    lease,
    lease_any,
    release,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def leases(_: World) -> list[Sample]:
    """Calls of lease."""
    return [
        lease(f"{count} for {duration} ms", count, duration)
        for count, duration in (
            (1, 30_000),
            (1, 1),
            (1, MONTH),
            (2, 30_000),
            (3, 4000),
            (256, 30_000),
            (1, 4001),
        )
    ]


def completes(world: World) -> list[Sample]:
    """Calls of complete, with tokens of every kind."""
    at = world.token
    some = [b"c1", b"e1", b"s1", b"x1", b"p3", b"s2"]
    older = world.tokens[b"s1"][0] if world.tokens[b"s1"] else 1
    item = world.queue.items.get(b"c1")
    created = item.created if item else 5
    return [
        *(complete(f"current {name.decode()}", Complete(name, at(name))) for name in some),
        *(
            complete(f"only_current {name.decode()}", Complete(name, at(name), only_current=True))
            for name in some[:4]
        ),
        complete("superseded", Complete(b"s1", older)),
        complete("superseded, only_current", Complete(b"s1", older, only_current=True)),
        complete("of the future", Complete(b"c1", at(b"c1") + 1)),
        complete("token is its creation", Complete(b"c1", created)),
        complete("token right after creation", Complete(b"c1", created + 1)),
        complete("before its creation", Complete(b"c1", max(0, created - 1))),
        complete("token 0", Complete(b"c1", 0)),
        complete("of an earlier item", Complete(b"t1", at(b"t1"))),
        complete("never leased", Complete(b"r1", 1)),
        complete("with options, never leased", Complete(b"r3", 0)),
        complete("absent", Complete(b"none", 1)),
        complete("256 absent", *(Complete(item_id, 1) for item_id in MANY)),
        complete("absent, of UTF-8", Complete(UTF8, 1)),
        complete("absent, of UTF-8, two", Complete(UTF8, 1), Complete("é".encode() * 128, 1)),
        complete("two", Complete(b"c1", at(b"c1")), Complete(b"c2", at(b"c2"))),
        complete("twice", Complete(b"c1", at(b"c1")), Complete(b"c1", at(b"c1"))),
        complete(
            "twice, older first", Complete(b"s1", older), Complete(b"s1", at(b"s1")), Complete(b"s1", 1)
        ),
        complete("wrong, then right", Complete(b"c1", 1), Complete(b"c1", at(b"c1")), Complete(b"c1", 1)),
        complete(
            "one of every state", *(Complete(name, at(name)) for name in (*some, b"none", b"r1", b"t1"))
        ),
        complete(
            "only_current, mixed",
            *(Complete(name, at(name), only_current=name in some[:3]) for name in (*some, b"c2", b"e3")),
        ),
        complete("leased and requeued", Complete(b"c1", at(b"c1")), Complete(b"s1", at(b"s1"))),
    ]


def fused(world: World) -> list[Sample]:
    """Calls of complete_and_lease."""
    at = world.token
    older = world.tokens[b"s1"][0] if world.tokens[b"s1"] else 1
    every = [Complete(name, at(name)) for name in (b"c1", b"e1", b"s1", b"x1", b"p3", b"s2", b"r1", b"none")]
    fuse = complete_and_lease
    return [
        fuse("one", 1, 30_000, Complete(b"c1", at(b"c1"))),
        fuse("its lease expired", 1, 30_000, Complete(b"e1", at(b"e1"))),
        fuse("is ready again", 2, 30_000, Complete(b"s1", at(b"s1"))),
        fuse("is due", 256, MONTH, Complete(b"p3", at(b"p3"))),
        fuse("is dead", 1, 1, Complete(b"x1", at(b"x1"))),
        fuse("token of the future", 1, 30_000, Complete(b"c1", at(b"c1") + 1)),
        fuse("only_current", 1, 30_000, Complete(b"c1", at(b"c1"), only_current=True)),
        fuse("only_current, not leased", 3, 30_000, Complete(b"s1", at(b"s1"), only_current=True)),
        fuse("superseded, only_current", 1, 30_000, Complete(b"s1", older, only_current=True)),
        fuse("twice", 1, 30_000, Complete(b"c1", at(b"c1")), Complete(b"c1", at(b"c1"))),
        fuse("one of every state", 256, 30_000, *every),
        fuse("one of every state, three leased", 3, 4000, *every),
        fuse("absent", 1, 4001, Complete(b"none", 1)),
        fuse("256 absent", 1, 4001, *(Complete(item_id, 1) for item_id in MANY)),
        fuse("absent, of UTF-8", 1, 4001, Complete(UTF8, 1), Complete("é".encode() * 128, 1)),
    ]


def finishes(world: World) -> list[Sample]:
    """Calls of complete_with."""
    at = world.token
    older = world.tokens[b"s1"][0] if world.tokens[b"s1"] else 1
    some = (b"c1", b"e1", b"s1", b"x1", b"p3", b"s2", b"t1", b"r1", b"none")
    rich_add = Add(b"n2", b"b", 1000, None, -3, 2, HOUR, True, DAY, b"t", HEADERS)
    return [
        *(finish(f"bare {name.decode()}", Finish(name, at(name))) for name in some),
        *(finish(f"keep 0 {n.decode()}", Finish(n, at(n), keep=0, result=b"done")) for n in some),
        finish("token of the future", Finish(b"c1", at(b"c1") + 1, keep=5)),
        finish("256 absent", *(Finish(item_id, 1) for item_id in MANY)),
        finish("absent, of UTF-8", Finish(UTF8, 1), Finish("é".encode() * 128, 1)),
        finish(
            "follow-up of UTF-8",
            Finish(b"c1", at(b"c1"), then=((1, Add(UTF8)), (1, Add("é".encode() * 128)))),
            targets="o",
        ),
        finish("superseded", Finish(b"s1", older, keep=5, result=b"r")),
        finish("only_current", Finish(b"c1", at(b"c1"), only_current=True)),
        finish("only_current, not leased", Finish(b"s1", at(b"s1"), only_current=True)),
        finish("only_current, superseded", Finish(b"s1", older, only_current=True, keep=9)),
        finish("keep", Finish(b"c1", at(b"c1"), keep=1000, result=b"\0\xff")),
        finish("keep long, no result", Finish(b"c1", at(b"c1"), keep=315_360_000_000)),
        finish("repeats a result", Finish(b"k1", at(b"k1"), keep=0, result=b"other")),
        finish("repeats with another token", Finish(b"k1", at(b"k1") + 1, keep=0)),
        finish("repeats without keep", Finish(b"k1", at(b"k1"))),
        finish("twice with keep", *[Finish(b"c1", at(b"c1"), keep=1000)] * 2),
        finish("twice without", *[Finish(b"c1", at(b"c1"))] * 2),
        finish("a target not used", Finish(b"c1", at(b"c1")), targets="o"),
        finish("follow-up", Finish(b"c1", at(b"c1"), then=((1, Add(b"n1", b"more")),)), targets="o"),
        finish("follow-up that is there", Finish(b"c1", at(b"c1"), then=((1, Add(b"o1")),)), targets="o"),
        finish("follow-up of a lost lease", Finish(b"c1", 1, then=((1, Add(b"n1")),)), targets="o"),
        finish(
            "follow-up of a repetition",
            Finish(b"k1", at(b"k1"), keep=0, then=((1, Add(b"n1")), (1, Add(b"o1")))),
            targets="o",
        ),
        finish(
            "follow-ups to the queue itself, one its own id",
            Finish(b"c1", at(b"c1"), then=((1, Add(b"c1", b"next")), (1, Add(b"n1")), (1, rich_add))),
            targets="s",
        ),
        finish(
            "keep, and a follow-up of its own id",
            Finish(b"c1", at(b"c1"), keep=1000, result=b"r", then=((1, Add(b"c1", b"next")),)),
            targets="s",
        ),
        finish(
            "both queues, and one twice",
            Finish(b"c1", at(b"c1"), keep=9, then=((1, Add(b"n1")), (2, rich_add), (3, Add(b"n1")))),
            Finish(b"c2", at(b"c2"), then=((2, Add(b"n3", delay=50)),)),
            Finish(b"k1", at(b"k1"), keep=7),
            targets="sos",
        ),
        finish(
            "delayed follow-up", Finish(b"c1", at(b"c1"), then=((1, Add(b"n1", delay=7000)),)), targets="o"
        ),
        finish("follow-up with keep", Finish(b"c1", at(b"c1"), then=((1, Add(b"n1", keep=7)),)), targets="o"),
        finish("one of every state", *(Finish(name, at(name), keep=0, result=name) for name in some)),
        finish("without keep, of every state", *(Finish(name, at(name)) for name in some)),
    ]


def extends(world: World) -> list[Sample]:
    """Calls of extend."""
    at = world.token
    older = world.tokens[b"s1"][0] if world.tokens[b"s1"] else 1
    return [
        extend("shorter", Extend(b"c1", at(b"c1"), 1)),
        extend("a minute", Extend(b"c1", at(b"c1"), 60_000)),
        extend("longest", Extend(b"c1", at(b"c1"), MONTH)),
        extend("expired", Extend(b"e1", at(b"e1"), 60_000)),
        extend("wrong token", Extend(b"c1", at(b"c1") - 1, 60_000)),
        extend("token of the future", Extend(b"c1", at(b"c1") + 1, 60_000)),
        extend("released", Extend(b"s1", at(b"s1"), 60_000)),
        extend("superseded", Extend(b"s1", older, 60_000)),
        extend("dead", Extend(b"x1", at(b"x1"), 60_000)),
        extend("ready", Extend(b"r1", 1, 60_000)),
        extend("absent", Extend(b"none", 1, 60_000)),
        extend("256 absent", *(Extend(item_id, 1, 5) for item_id in MANY)),
        extend("absent, of UTF-8", Extend(UTF8, 1, 5), Extend("é".encode() * 128, 1, 5)),
        extend("two", Extend(b"c1", at(b"c1"), 60_000), Extend(b"c2", at(b"c2"), 50_000)),
        extend("twice", Extend(b"c1", at(b"c1"), 9000), Extend(b"c1", at(b"c1"), 70_000)),
        extend(
            "mixed", Extend(b"c1", 1, 5), Extend(b"c2", at(b"c2"), 90_000), Extend(b"e3", at(b"e3"), 80_000)
        ),
    ]


def releases(world: World) -> list[Sample]:
    """Calls of release."""
    at = world.token
    older = world.tokens[b"s1"][0] if world.tokens[b"s1"] else 1

    def one(name: bytes, title: str, **options: Any) -> Sample:
        return release(f"{title} {name.decode()}", Release(name, at(name), **options))

    plain = [one(name, "plain") for name in (b"c1", b"c2", b"e1", b"e2", b"e3", b"s1", b"x1", b"none")]
    return [
        *plain,
        *(one(name, "delay", delay=1000) for name in (b"c1", b"c2", b"e3")),
        one(b"c1", "delay 0", delay=0),
        one(b"c1", "delay 1", delay=1),
        one(b"c1", "far delay", delay=20 * HOUR),
        *(one(name, "uncounted", uncounted=True) for name in (b"c1", b"c2", b"e3", b"s1")),
        one(b"c1", "uncounted and delay", uncounted=True, delay=5000),
        *(one(name, "error", error=b"why") for name in (b"c1", b"c2", b"e1", b"e3")),
        one(b"c1", "empty error", error=b""),
        one(b"e1", "empty error", error=b""),
        one(b"c1", "error uncounted", error=b"why", uncounted=True),
        one(b"c1", "error of 8192", error=b"x" * 8192),
        one(b"c1", "error of 8193", error=b"x" * 8193),
        one(b"c1", "error cut in two bytes", error=b"x" * 8191 + "é".encode()),
        one(b"c1", "error cut in four bytes", error=b"x" * 8189 + "\U0001f600".encode()),
        one(b"c1", "error of no text", error=b"x" * 8188 + b"\x80" * 9),
        *(one(name, "dead", dead=True) for name in (b"c1", b"c2", b"e1")),
        one(b"c1", "dead with error", dead=True, error=b"no such customer"),
        *(one(name, "dead keep 0", dead=True, keep=0) for name in (b"c1", b"c2", b"e1")),
        *(one(name, "keep", keep=1000) for name in (b"c1", b"c2", b"e2", b"none")),
        one(b"c1", "everything", error=b"why", delay=9, keep=5, uncounted=True),
        one(b"c2", "keep and error", error=b"why", keep=315_360_000_000),
        release("superseded", Release(b"s1", older)),
        release("256 absent", *(Release(item_id, 1) for item_id in MANY)),
        one(b"c1", "longest delay", delay=315_360_000_000),
        release("absent, of UTF-8", Release(UTF8, 1), Release("é".encode() * 128, 1)),
        release("wrong token", Release(b"c1", at(b"c1") - 1)),
        release("token of the future", Release(b"c1", at(b"c1") + 1)),
        release("twice", Release(b"c1", at(b"c1")), Release(b"c1", at(b"c1"), dead=True)),
        release("two", Release(b"c1", at(b"c1")), Release(b"c2", at(b"c2"))),
        release(
            "mixed",
            Release(b"c1", at(b"c1"), 50, keep=9, error=b"m"),
            Release(b"e1", at(b"e1"), dead=True),
            Release(b"none", 1),
            Release(b"c2", at(b"c2"), keep=0),
            Release(b"e3", at(b"e3"), uncounted=True),
            Release(b"e2", at(b"e2"), delay=20),
        ),
    ]


def anys(_: World) -> list[Sample]:
    """Calls of lease_any."""
    return [
        lease_any(f"{queues} {count} for {duration} ms", queues, count, duration)
        for queues, count, duration in (
            *(("s", 1, 30_000), ("so", 1, 30_000), ("os", 1, 30_000), ("so", 3, 1), ("os", 256, MONTH)),
            *(("o", 2, 4000), ("so", 256, 4000)),
        )
    ]


BY_WORKERS: Final[dict[str, Callable[[World], list[Sample]]]] = {
    "complete": completes,
    "complete_and_lease": fused,
    "complete_with": finishes,
    "extend": extends,
    "lease": leases,
    "lease_any": anys,
    "release": releases,
}
"""What workers call on each kind of queue."""
