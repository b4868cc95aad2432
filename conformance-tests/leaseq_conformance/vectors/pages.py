"""Pages of deep_clean: where damage begins, on a full server, and of keys that one page does not show whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.base import END
from leaseq_conformance.model.calls import Add
from leaseq_conformance.model.codec import Extra, Record
from leaseq_conformance.model.deep_clean import PHASES
from leaseq_conformance.vectors import damage, fixtures, repairs
from leaseq_conformance.vectors.build import refused
from leaseq_conformance.vectors.builder import NOW, START, US_DAY, World, of_keyspace
from leaseq_conformance.vectors.malformed import record, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from leaseq_conformance.model.keyspace import Keyspace
    from leaseq_conformance.vectors.vector import Vector

ODD: Final = NOW + 500_123
NOT_KNOWN: Final = 2**32 - 1
"""What `largest` is where it is not known."""


def vectors() -> Iterator[Vector]:
    """All of them."""
    yield from _around_limits()
    yield from _of_one_item()
    yield from _of_newer_clients()
    yield from _on_a_full_server()
    yield from _of_part_of_a_key()
    yield from _of_any_data()


def _page(
    title: str,
    base: str,
    phase: str,
    spoil: Callable[[Keyspace], Any],
    *rules: str,
    world: World | None = None,
    now: int = NOW,
) -> Vector:
    """One page of a queue that was spoilt; somebody is awake."""
    world = world or {**fixtures.WORLDS, **damage.SERVED}[base]()
    keys = world.queue.keyspace()
    keys.wake = 1
    spoil(keys)
    number = PHASES.index(phase) + 1
    made = repairs.page(f"{title}, {phase}", base, keys, world, number, dry_run=False, now=now)
    return replace(made, rules=rules)


def _no_damage(_: Keyspace) -> None:
    pass


def _state(**fields: int) -> Callable[[Keyspace], None]:
    def change(keys: Keyspace) -> None:
        for name, value in fields.items():
            setattr(keys.state, name, value)

    return change


def _meta(item_id: bytes, kept: Record | bytes) -> Callable[[Keyspace], None]:
    return lambda keys: keys.meta.update({item_id: kept})


def _deadline(deadline: int) -> Callable[[Keyspace], None]:
    return lambda keys: keys.leased.update({b"c1": deadline})


def _around_limits() -> Iterator[Vector]:
    """What is just damage and what is just none."""
    month = 31 * US_DAY
    yield _page("deadline 31 days ahead, seen", "settled", "items", _deadline(NOW + month), "LQ-DEEP-8")
    far = _deadline(ODD + month + 1)
    yield _page("deadline beyond 31 days, at odd µs", "settled", "items", far, "LQ-DEEP-8", now=ODD)
    yield _page("paused, outcomes are kept", "rich", "kept", _state(flags=3), "LQ-DEEP-2", "LQ-KEY-7")
    yield _page("clock of 2059, seen", "settled", "ready", _state(clock=END - 1), "LQ-DEEP-9")
    records: tuple[tuple[str, Record | bytes], ...] = (
        ("creation of 2059", Record(0, 0, END - 1, max_attempts=1)),
        ("a tail, creation of 0", Record(1, START + 5, 0, max_attempts=1)),
        ("expires at 1", Record(0, 0, START + 1, expires=1)),
        *((f"options {options} without a tail", record(options=options)) for options in (1, 3, 5, 7)),
    )
    for title, kept in records:
        rules = ("LQ-DEEP-7", "LQ-DEEP-9", "LQ-DEEP-13")
        yield _page(f"record, {title}", "settled", "meta", _meta(b"r1", kept), *rules)


def _of_one_item() -> Iterator[Vector]:
    """One is enough for a state that is lost, for somebody to be woken, and for a bound to be none; and the last of two."""
    for phase in ("items", "ready"):
        yield _page("state lost", "lone", phase, _no_damage, "LQ-DEEP-10", "LQ-KEY-4")
    yield _page("wake lost", "single", "ready", lambda keys: setattr(keys, "wake", 0), "LQ-DEEP-2")
    yield _page("bound below 0", "single", "ready", _state(next_due=-1), "LQ-DEEP-10")
    world = World()
    world.queue.add(START, [Add(b"r1", b"one"), Add(b"r2", b"the other")])
    title = "the last of two in no state"
    yield _page(title, "empty", "items", lambda keys: keys.ready.pop(b"r2"), "LQ-DEEP-5", world=world)


def _of_newer_clients() -> Iterator[Vector]:
    """Records that nothing is known of, and so not how long they are or where their times stand."""
    for title, packed in (
        *((f"of options {options} and 22 bytes", record(options=options)) for options in (2, 4, 6, 8, 9)),
        ("of options 9 with no times", record(options=9, created=-1, current=float("nan")) + tail()),
        ("of version 2 with no times", record(version=2, created=-1, current=float("nan"))),
    ):
        keys = fixtures.settled().queue.keyspace()
        keys.meta[b"c1"] = packed
        name = f"record {title}, a page of meta"
        given = of_keyspace(keys)
        yield refused("deep_clean", name, "settled", given, ["2:0", 256, 0], "FORMAT", ("LQ-VERSION-2",))


def _on_a_full_server() -> Iterator[Vector]:
    """Whatever a repair writes first."""
    says_extra = Record(1, START + 5, START + 1, options=3)
    for title, phase, spoil in (
        ("unplaced", "items", lambda keys: keys.ready.pop(b"r1")),
        ("largest forgotten", "items", _state(largest=0)),
        ("an extra that is not there", "meta", _meta(b"r1", says_extra)),
        ("an extra that no record says", "meta", lambda keys: keys.extras.update({b"r2": Extra(b"odd")})),
        ("a ghost", "ready", lambda keys: keys.ready.update({b"g1": 5})),
        ("wake lost", "ready", lambda keys: setattr(keys, "wake", 0)),
        ("due below 0", "delayed", lambda keys: keys.delayed.update({b"f1": -1})),
    ):
        made = _page(f"full server, {title}", "settled", phase, spoil, "LQ-SCRIPT-6")
        yield replace(made, full=True)


def _forty() -> World:
    """Forty items with records, whose ids are too long for a server to keep them in a list: it keeps them hashed."""
    world = World()
    world.queue.add(START, [Add(b"%02d" % n + b"i" * 63, b"x", max_attempts=9) for n in range(40)])
    return world.quiet()


def _of_part_of_a_key() -> Iterator[Vector]:
    """With limit 1 a page ends within a key, with 256 not."""
    for phase in ("items", "meta", "ready"):
        rules = ("LQ-DEEP-1", "LQ-DEEP-2")
        whole = _page("forty", "empty", phase, _no_damage, *rules, world=_forty())
        yield whole
        assert isinstance(whole.reply, list)
        within = b"%d:1" % (PHASES.index(phase) + 1)
        reply = [within, *whole.reply[1:]]
        argv = [whole.argv[0], b"1", whole.argv[2]]
        yield replace(whole, name=f"{whole.name}, limit 1", argv=argv, reply=reply, again=reply)


def _of_any_data() -> Iterator[Vector]:
    """However long the data may be, as far as is known, a page has something."""
    rules = ("LQ-DEEP-1", "LQ-DEEP-2")
    any_data = _state(largest=NOT_KNOWN)
    yield _page("forty of any data", "empty", "items", any_data, *rules, world=_forty())
    yield _page("data of up to 5 MB", "single", "items", _state(largest=5_000_000), *rules)
