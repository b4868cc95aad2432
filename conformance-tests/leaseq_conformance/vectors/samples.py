"""Calls of scripts, and what the reference model makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.model import several
from leaseq_conformance.vectors.builder import DAY, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from leaseq_conformance.model.calls import Add, Answer, Complete, Extend, Finish, Release, Reply

TARGET: Final = ("items", "meta", "ready", "delayed", "dead", "expiry", "kept", "state", "wake")
LEASE: Final = SCRIPTS["lease"].keys
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
