"""Calls of complete and complete_with on queues that were made for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.base import END
from leaseq_conformance.model.calls import Add, Complete, Finish
from leaseq_conformance.model.queue import Queue
from leaseq_conformance.vectors import fixtures, samples
from leaseq_conformance.vectors.build import refused, vector
from leaseq_conformance.vectors.builder import DAY, NOW, SECOND, START
from leaseq_conformance.vectors.corners.making import (
    bounded,
    crowded_call,
    edge,
    one_dead,
    with_fields,
)
from leaseq_conformance.vectors.malformed import record
from leaseq_conformance.vectors.particular import LATE, SPECIAL
from leaseq_conformance.vectors.refused import BAD_IDS, NUMBERS
from leaseq_conformance.vectors.samples import complete
from leaseq_conformance.vectors.vector import Kept, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator


def finishes() -> Iterator[Vector]:
    """Of complete_with."""
    yield crowded_call("complete_with", [1, 0, "c1", 5, 0, 0])
    yield from _followed()
    yield from _followed_wrongly()
    yield from _finished()
    world = fixtures.rich()
    token = world.token(b"c1")
    for version in (0, 2):
        given = with_fields(world.stored(), {"meta": {b"c1": record(version=version)}})
        said = f"record of version {version} behind another entry"
        argv = [2, 0, "c2", world.token(b"c2"), 0, 0, "c1", token, 0, 0]
        yield refused("complete_with", said, "rich", given, argv, "FORMAT", ("LQ-ERROR-1",))
    given = {**world.stored(), "result:k1": Kept((b"\1\3",), DAY)}
    argv = [2, 0, "c1", token, 0, 0, "k1", world.token(b"k1"), 1, "keep", 0, 0]
    more = samples.result(b"k1")
    yield refused(
        "complete_with",
        "an outcome behind another entry",
        "rich",
        given,
        argv,
        "FORMAT",
        ("LQ-OUTCOME-8",),
        more=more,
    )


FOLLOW_UPS: Final = (
    *(Add(b"n1", b"", delay=delay) for delay in (0, 1, 315_360_000_000)),
    *(Add(b"n1", b"", not_before=due) for due in (0, NOW // 1000 - 1, NOW // 1000, NOW // 1000 + 1)),
    Add(b"n1", b"", not_before=2_840_140_799_999),
    *(Add(b"n1", b"", priority=level) for level in (-7, 0, 1, 7)),
    *(Add(b"n1", b"", max_attempts=limit) for limit in (0, 1, 65_534)),
    *(Add(b"n1", b"", expires_in=span) for span in (1, 315_360_000_000)),
    Add(b"n1", b"", expires_in=1, dies=True),
    *(Add(b"n1", b"", keep=span) for span in (1, 315_360_000_000)),
    Add(b"n1", b"", content_type=b"text/plain"),
    Add(b"n1", b"", headers=((b"h", b"v" * 4088),)),
    Add(b"n1", b"", content_type=b"", headers=tuple((b"h%d" % n, b"%d" % n) for n in range(16))),
    Add(b"n1", b"", headers=((b"h" * 100, b"x"),)),
    Add(b"n1", b"", headers=((b"a", b"header:c"), (b"b", b""), (b"c", b""))),
    Add(b"i" * 256, b""),
)
"""One of every option, at its limits."""


def _followed() -> Iterator[Vector]:
    """What a follow-up may be."""
    base = fixtures.rich()
    token = base.token(b"c1")
    for number, entry in enumerate(FOLLOW_UPS):
        sample = samples.finish(f"follow-up {number}", Finish(b"c1", token, then=((1, entry),)), targets="o")
        yield vector("complete_with", base, "rich", sample, ("LQ-HANDOFF-2",))
    plain = samples.finish(
        "follow-up, 00 options", Finish(b"c1", token, then=((1, Add(b"n1")),)), targets="o"
    )
    made = vector("complete_with", base, "rich", plain, ("LQ-HANDOFF-2", "LQ-CALL-2"))
    made.argv[-1] = b"00"
    yield made
    many = tuple((1, Add(b"z%d" % number)) for number in range(256))
    sample = samples.finish("256 follow-ups", Finish(b"c1", token, then=many), targets="o")
    yield vector("complete_with", base, "rich", sample, ("LQ-HANDOFF-2",))
    sample = samples.finish(
        "sixteen targets", Finish(b"c1", token, then=((16, Add(b"n1")),)), targets="o" * 16
    )
    yield vector("complete_with", base, "rich", sample, ("LQ-HANDOFF-2",))
    last = END - 1 - 1000
    for title, entry in (
        ("due in the last microsecond", Add(b"n1", delay=1)),
        ("expires in the last microsecond", Add(b"n1", expires_in=1)),
    ):
        sample = samples.finish(title, Finish(b"c1", token, then=((1, entry),)), targets="o")
        yield vector(
            "complete_with", base, "rich", sample, ("LQ-ADD-4",), now=last, title="rich, at the last"
        )
    yield from _followed_at()


def _followed_at() -> Iterator[Vector]:
    """Target queues of which one thing is told."""
    world, token = fixtures.rich(), fixtures.rich().token(b"c1")
    plain = Finish(b"c1", token, then=((1, Add(b"n1", b"ab")),))
    late = Finish(b"c1", token, then=((1, Add(b"n1", delay=72_000_000)),))
    for title, target, entry in (
        ("paused, the bound not known", bounded(0, NOW + SECOND), plain),
        ("nothing ready, due sooner", bounded(NOW + SECOND, NOW + SECOND), late),
    ):
        world.other = target.queue
        if "paused" in title:
            assert world.other.state
            world.other.state.flags = 1
        yield vector(
            "complete_with",
            world,
            "rich",
            samples.finish("follow-up", entry, targets="o"),
            ("LQ-HANDOFF-2",),
            title=title,
        )
    world.other = Queue()
    kept = samples.finish(
        "follow-up, keep 1", Finish(b"c1", token, then=((1, Add(b"n1", keep=1)),)), targets="o"
    )
    yield vector("complete_with", world, "rich", kept, ("LQ-KEY-7",), title="an empty target")
    for size in (2, 1):
        world.other.configure(max_data=size)
        sample = samples.finish("follow-up of 2 bytes", plain, targets="o")
        yield vector(
            "complete_with", world, "rich", sample, ("LQ-ITEM-4",), title=f"a target that takes {size}"
        )


def _followed_wrongly() -> Iterator[Vector]:
    """What a follow-up may not be, as `add` refuses it."""
    world = fixtures.rich()
    head = [1, 1, "c1", world.token(b"c1"), 0, 1, 1]
    keys = samples.keys_of(samples.TARGET, other=True)
    rows: list[tuple[str, list[Any], str, int]] = [
        (title, argv, code, NOW) for title, argv, code, _ in SPECIAL["add"] if argv[0] == 1
    ]
    rows += [(title, argv, "BAD_ARGUMENT", now) for title, argv, now in LATE["add"]]
    for argv, at, low, high in NUMBERS["add"][1:]:
        rows += [
            (f"{argv[-2]} is {value}", [*argv[:at], value, *argv[at + 1 :]], "BAD_ARGUMENT", NOW)
            for value in (low - 1, high + 1)
        ]
    rows += [(f"id: {title}", [1, item_id, "", 0], "BAD_ID", NOW) for title, item_id in BAD_IDS.items()]
    for title, argv, code, now in rows:
        name = f"follow-up refused as by add: {title}"
        rules = ("LQ-HANDOFF-2", "LQ-ERROR-1")
        yield refused(
            "complete_with", name, "rich", world.stored(), [*head, *argv[1:]], code, rules, now=now, more=keys
        )
    more = keys * 17
    yield refused(
        "complete_with",
        "17 targets",
        "rich",
        world.stored(),
        [1, 17, *head[2:5], 0],
        "BAD_ARGUMENT",
        ("LQ-CALL-2",),
        more=more,
    )


def _finished() -> Iterator[Vector]:
    """Results and outcomes at their limits."""
    world = fixtures.rich()
    at = world.token
    item = world.queue.items[b"c1"]
    three = Finish(b"c1", at(b"c1"), only_current=True, keep=1, result=b"all options")
    for title, entry in (
        ("all options, keep 1 ms", three),
        ("token is its creation", Finish(b"c1", item.created, keep=5)),
        ("a failure that is kept, wrong token", Finish(b"x2", 1, keep=5)),
        ("a failure that is kept", Finish(b"x2", at(b"x2"), keep=5)),
        ("a result of a mebibyte", Finish(b"c1", at(b"c1"), keep=5, result=b"x" * 1_048_576)),
    ):
        sample = samples.finish(title, entry)
        yield vector(
            "complete_with",
            world,
            "rich",
            sample,
            ("LQ-OUTCOME-1", "LQ-OUTCOME-2"),
            now=NOW + 500_123,
            title="rich, at odd µs",
        )
    world.queue.items[b"c1"].keep = 1
    sample = samples.finish("its own keep of 1 ms", Finish(b"c1", at(b"c1"), keep=0))
    yield vector("complete_with", world, "rich", sample, ("LQ-OUTCOME-1",))
    world.queue.results[b"k1"] = world.queue.results[b"k1"]._replace(content=b"")
    sample = samples.finish("repeats an empty result", Finish(b"k1", at(b"k1"), keep=5))
    yield vector("complete_with", world, "rich", sample, ("LQ-OUTCOME-2",))
    world = fixtures.halted()
    token = world.token(b"c1")
    yield vector(
        "complete_with",
        world,
        "halted",
        samples.finish("keep", Finish(b"c1", token, keep=5)),
        ("LQ-KEY-7",),
        title="paused, nothing was kept",
    )
    world = one_dead(keep=5000, ago=9, state=None)
    world.queue.kept[b"x1"] = NOW + SECOND
    sample = samples.finish("its failure was kept", Finish(b"x1", START + 1))
    yield vector("complete_with", world, "empty", sample, ("LQ-KEY-7",), title="one dead, no state")
    world = fixtures.rich()
    for size in (2, 1):
        world.queue.configure(max_data=size)
        entry = Finish(b"c1", at(b"c1"), keep=5, result=b"ab")
        sample = samples.finish("a result of 2 bytes", entry)
        yield vector(
            "complete_with", world, "rich", sample, ("LQ-OUTCOME-7",), title=f"a queue that takes {size}"
        )


def completes() -> Iterator[Vector]:
    """Of complete."""
    settled, rich = fixtures.settled(), fixtures.rich()
    at = settled.token(b"c1")
    long = "é".encode() * 128
    yield edge(
        "complete",
        "settled",
        settled,
        complete("absent, 256 bytes of UTF-8", Complete(long, 1)),
        ("LQ-ITEM-1",),
    )
    created = settled.queue.items[b"c1"].created
    pair = complete("token is its creation, of two", Complete(b"c1", created), Complete(b"c2", created))
    yield edge("complete", "settled", settled, pair, ("LQ-COMPLETE-1",))
    extra = Complete(b"\0c1", at)
    for title, entries in (("one", [extra]), ("two", [extra, Complete(b"none", 1)])):
        sample = complete(f"an extra's name, {title}", *entries)
        yield edge("complete", "rich", rich, sample, ("LQ-ITEM-1",))
