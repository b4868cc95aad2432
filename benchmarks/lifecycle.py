"""The server's cost of one item's life (add, lease, complete): script time, inner commands, memory."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

from bench_server import Summary
from floor import Floor
from leaseq import _scripts, commands
from leaseq.item import Item, LeasedItemBase
from leaseq.keys import QueueKeys

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench_server import BenchServer
    from leaseq.commands import LeaseReply

LEASE_SECS = 3600.0
STEPS = ("add", "lease", "complete")
DATA = b"x" * 100
SLICES = 60
KEYS = QueueKeys("bench")


class Subject(Protocol):
    """A measured implementation of add, lease and complete."""

    def add(self, ids: list[str], data: bytes) -> None:
        """Add one batch."""

    def lease(self, milliseconds: int) -> Any:
        """Lease one batch."""

    def complete(self, held: Any) -> None:
        """Complete the items of one lease."""


class Leaseq:
    """leaseq's own scripts and commands, sent over one bare connection."""

    def __init__(self, server: BenchServer, batch: int) -> None:
        self._server = server
        self._batch = batch
        for script in (_scripts.ADD, _scripts.LEASE, _scripts.COMPLETE):
            server.load(script.source)

    def add(self, ids: list[str], data: bytes) -> None:
        """Add one batch."""
        command = commands.add(KEYS, [Item(data, item) for item in ids])
        if not all(command.parse(self._server.call(*command.evalsha()))):
            raise AssertionError(ids)

    def lease(self, milliseconds: int) -> list[LeasedItemBase]:
        """Lease one batch."""
        command = commands.lease(KEYS, self._batch, milliseconds / 1000)
        reply = command.parse(self._server.call(*command.evalsha()))
        return leased_items(reply)

    def complete(self, held: list[LeasedItemBase]) -> None:
        """Complete the items of one lease."""
        command = commands.complete(KEYS, [commands.Completion(item) for item in held])
        won = command.parse(self._server.call(*command.evalsha()))
        if len(won) != self._batch or not all(won):
            raise AssertionError(held)


def leased_items(reply: LeaseReply) -> list[LeasedItemBase]:
    """Return what complete and its like take, from what lease answered."""
    return [LeasedItemBase(*taken, reply.deadline, LEASE_SECS) for taken in reply.items]


SUBJECTS: dict[str, Callable[[BenchServer, int], Subject]] = {"floor": Floor, "leaseq": Leaseq}


def ids_of(count: int) -> list[str]:
    """Ids of 10 bytes."""
    return [f"item-{number:05d}" for number in range(count)]


def one_life(server: BenchServer, subject: Subject, items: int, batch: int) -> dict[str, float]:
    """All items added, then all leased, then all completed: script time per item of each step, in microseconds.

    A step is the median of its slices, so that what other programs take from some of them does not count; `plain` is
    the time of all steps without that.
    """
    ids, milliseconds = ids_of(items), int(LEASE_SECS * 1000)
    before = server.preemptions()
    server.reset()
    added, _ = _sliced(
        server, [ids[at : at + batch] for at in range(0, items, batch)], lambda part: subject.add(part, DATA)
    )
    leased, held = _sliced(server, [None] * (items // batch), lambda _: subject.lease(milliseconds))
    completed, _ = _sliced(server, held, subject.complete)
    usec = {"add": added / batch, "lease": leased / batch, "complete": completed / batch}
    usec |= {"total": sum(usec.values()), "plain": server.script_usec() / items}
    return {step: round(value, 3) for step, value in usec.items()} | {
        "preemptions": server.preemptions() - before
    }


def _sliced(server: BenchServer, inputs: list[Any], call: Callable[[Any], Any]) -> tuple[float, list[Any]]:
    """Make a call for each input: the median of the slices' script time per call, and what the calls answered."""
    width = max(1, len(inputs) // SLICES)
    times, answers, last = [], [], server.script_usec()
    for at in range(0, len(inputs), width):
        part = [call(each) for each in inputs[at : at + width]]
        now = server.script_usec()
        times.append((now - last) / len(part))
        answers += part
        last = now
    return median(times), answers


def script_time(
    server: BenchServer, *, batch: int, items: int, repetitions: int, log: Callable[[str], None]
) -> dict[str, Any]:
    """Measure floor and leaseq in turn. Each repetition is a pair; the first of the two alternates."""
    pairs: list[dict[str, Any]] = []
    for number in range(repetitions):
        pair: dict[str, Any] = {}
        for name in sorted(SUBJECTS, reverse=number % 2 == 1):
            server.client.flushall()
            pair[name] = one_life(server, SUBJECTS[name](server, batch), items, batch)
        pair["ratio"] = {
            step: round(pair["leaseq"][step] / pair["floor"][step], 4) for step in (*STEPS, "total")
        }
        pairs.append(pair)
        log(
            f"batch {batch}, repetition {number + 1} of {repetitions}: {pair['ratio']['total']:.2f} x the floor"
        )
    return {
        "batch": batch,
        "items": items,
        "repetitions": pairs,
        **{
            name: {
                step: Summary.of([pair[name][step] for pair in pairs]).record() for step in (*STEPS, "total")
            }
            for name in (*SUBJECTS, "ratio")
        },
    }


def inner_commands(server: BenchServer, *, batch: int, calls: int = 20) -> dict[str, dict[str, float]]:
    """Return what each call runs inside, in the middle of a busy queue: what only a queue's first calls do is left out."""
    subject = Leaseq(server, batch)
    server.client.flushall()
    ids = ids_of((calls + 3) * batch)
    steps: dict[str, Callable[[Any], Any]] = {
        "add": lambda at: subject.add(ids[at : at + batch], DATA),
        "lease": lambda _: subject.lease(int(LEASE_SECS * 1000)),
        "complete": subject.complete,
    }
    for at in (-3 * batch, -2 * batch):
        subject.add(ids[at : at + batch], DATA)
    subject.lease(int(LEASE_SECS * 1000))
    counts, inputs = {}, [at * batch for at in range(calls)]
    for step, run in steps.items():
        server.reset()
        inputs = [run(each) for each in inputs]
        seen = server.calls()
        if seen.pop("evalsha") != calls:
            raise AssertionError(seen)
        counts[step] = {name.upper(): total / calls for name, total in sorted(seen.items()) if total}
    return counts


def memory(server: BenchServer, *, items: int, batch: int = 100) -> dict[str, Any]:
    """Server memory per item, all of them waiting and then all of them leased."""
    subject = Leaseq(server, batch)
    server.client.flushall()
    ids = ids_of(items)
    empty = server.used_memory()
    for at in range(0, items, batch):
        subject.add(ids[at : at + batch], DATA)
    waiting = server.used_memory()
    for _ in range(0, items, batch):
        subject.lease(int(LEASE_SECS * 1000))
    leased = server.used_memory()
    return {
        "items": items,
        "data_bytes": len(DATA),
        "id_bytes": len(ids[0]),
        "used_memory": {"empty": empty, "waiting": waiting, "leased": leased},
        "bytes_waiting": round((waiting - empty) / items, 1),
        "bytes_leased": round((leased - empty) / items, 1),
    }
