"""The calls that are made on every kind of queue, and what the reference model makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from leaseq import _scripts
from leaseq_conformance.model import several
from leaseq_conformance.model.calls import Add, Complete, Extend, Finish, Release
from leaseq_conformance.vectors.worlds import DAY, HOUR, NOW, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from leaseq_conformance.model.calls import Answer, Reply

TARGET: Final = ("items", "meta", "ready", "delayed", "dead", "expiry", "kept", "state", "wake")
LEASE: Final = tuple({script.name: script for script in _scripts.SCRIPTS}["lease"].keys)
MONTH: Final = 30 * DAY


@dataclass(frozen=True)
class Sample:
    """A call: its arguments, the keys behind the fixed ones, and the same call of the model at a time."""

    title: str
    argv: Sequence[Answer | str]
    run: Callable[[World, int], Reply]
    more: Sequence[str] = ()
    rules: Sequence[str] = ()


def result(*ids: bytes) -> list[str]:
    """The names of the keys of results."""
    return ["result:" + item_id.decode("latin-1") for item_id in ids]


def keys_of(names: Iterable[str], *, other: bool = False) -> list[str]:
    """The names of keys of one of the two queues."""
    return ["other:" * other + name for name in names]


def _argv(entries: Sequence[Any]) -> list[Answer]:
    return [len(entries), *(part for entry in entries for part in entry.argv())]


def add(title: str, *entries: Add, rules: Sequence[str] = ()) -> Sample:
    """A call of add."""
    return Sample(title, _argv(entries), lambda world, now: world.queue.add(now, entries), (), rules)


def lease(title: str, count: int, duration: int, rules: Sequence[str] = ()) -> Sample:
    """A call of lease."""
    return Sample(
        title, [count, duration], lambda world, now: world.queue.lease(now, count, duration), (), rules
    )


def complete(title: str, *entries: Complete, rules: Sequence[str] = ()) -> Sample:
    """A call of complete."""
    return Sample(title, _argv(entries), lambda world, _: world.queue.complete(entries), (), rules)


def complete_and_lease(title: str, count: int, duration: int, *entries: Complete) -> Sample:
    """A call of complete_and_lease."""
    argv: list[Answer | str] = [count, duration, *_argv(entries)]
    return Sample(
        title, argv, lambda world, now: world.queue.complete_and_lease(now, count, duration, entries)
    )


def finish(title: str, *entries: Finish, targets: str = "", rules: Sequence[str] = ()) -> Sample:
    """A call of complete_with; a target is s, the queue itself, or o, the other one."""
    count, *rest = _argv(entries)
    more = [name for target in targets for name in keys_of(TARGET, other=target == "o")]
    more += result(*(entry.id for entry in entries if entry.keep is not None))

    def run(world: World, now: int) -> Reply:
        queues = [world.other if target == "o" else world.queue for target in targets]
        return several.complete_with(now, world.queue, queues, entries)

    return Sample(title, [count, len(targets), *rest], run, more, rules)


def extend(title: str, *entries: Extend) -> Sample:
    """A call of extend."""
    return Sample(title, _argv(entries), lambda world, now: world.queue.extend(now, entries))


def release(title: str, *entries: Release, rules: Sequence[str] = ()) -> Sample:
    """A call of release."""
    more = result(*(entry.id for entry in entries if entry.keep is not None))
    return Sample(title, _argv(entries), lambda world, now: world.queue.release(now, entries), more, rules)


def lease_any(title: str, queues: str, count: int, duration: int) -> Sample:
    """A call of lease_any; a queue is s or o."""
    more = [name for queue in queues for name in keys_of(LEASE, other=queue == "o")]

    def run(world: World, now: int) -> Reply:
        models = [world.other if queue == "o" else world.queue for queue in queues]
        return several.lease_any(now, models, count, duration)

    return Sample(title, [len(queues), count, duration], run, more)


def ids(title: str, method: str, *entries: bytes, timed: bool = False) -> Sample:
    """A call whose entries are ids."""

    def run(world: World, now: int) -> Reply:
        call: Any = getattr(world.queue, method)
        reply: Reply = call(now, entries) if timed else call(entries)
        return reply

    return Sample(title, [len(entries), *entries], run, result(*entries) if method == "outcome" else ())


def purge(title: str, older_than: int, *entries: bytes) -> Sample:
    """A call of purge."""
    argv: list[Answer | str] = [older_than, len(entries), *entries]
    return Sample(title, argv, lambda world, now: world.queue.purge(now, older_than, entries))


def page(where: str, offset: int, limit: int, order: str) -> Sample:
    """A call of list."""
    return Sample(
        f"{where} {offset} {limit} {order}",
        [where, offset, limit, order],
        lambda world, _: world.queue.page(where, offset, limit, order),
    )


def configure(**values: int) -> Sample:
    """A call of configure."""
    argv: list[Any] = [len(values), *(part for name, value in values.items() for part in (name, value))]
    title = " ".join(f"{name}={value}" for name, value in values.items())
    return Sample(title, argv, lambda world, _: world.queue.configure(**values))


MANY: Final = tuple(b"z%d" % n for n in range(256))
"""As many ids as a call may have."""
HEADERS: Final = ((b"a", b"1"), (b"B.c_-", b""))
UTF8: Final = (
    "\x01\x7f\x80\u07ff\u0800\u1234\ud7ff\ue000\uffff\U00010000\U00050000\U000fffff\U0010ffff".encode()
)
"""An id of characters of every length, from both ends of each range."""


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


def anys(_: World) -> list[Sample]:
    """Calls of lease_any."""
    return [
        lease_any(f"{queues} {count} for {duration} ms", queues, count, duration)
        for queues, count, duration in (
            *(("s", 1, 30_000), ("so", 1, 30_000), ("os", 1, 30_000), ("so", 3, 1), ("os", 256, MONTH)),
            *(("o", 2, 4000), ("so", 256, 4000)),
        )
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


SAMPLES: Final[dict[str, Callable[[World], list[Sample]]]] = {
    "add": adds,
    "complete": completes,
    "complete_and_lease": fused,
    "complete_with": finishes,
    "configure": configures,
    "extend": extends,
    "inspect": inspects,
    "lease": leases,
    "lease_any": anys,
    "light_clean": cleans,
    "list": pages,
    "outcome": outcomes,
    "purge": purges,
    "release": releases,
    "remove": removes,
    "revive": revives,
    "settle": settles,
    "stats": counts,
}
"""What is called on each kind of queue; deep_clean is in `damage`."""
