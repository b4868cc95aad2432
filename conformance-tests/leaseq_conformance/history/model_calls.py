"""A call of a script as it was sent, made again on the reference model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leaseq_conformance.model.calls import Add, Complete, Extend, Finish, Release
from leaseq_conformance.model.multi_queue import complete_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from leaseq_conformance.model.calls import Reply
    from leaseq_conformance.model.queue import Queue

FORGE: Final = "forge"
"""The harness's own script, which ends the time of a lease or a delay. No part of the protocol."""


class UnreadableError(Exception):
    """Arguments that no right client sends in a history."""


def run(queue: Queue, script: str, argv: list[bytes], now: int) -> Reply:
    """Make the call at that time of the server, microseconds.

    Raises:
        UnreadableError: it is none that a history has.
        leaseq_conformance.model.base.RefusedError: it is refused.
    """
    make = _CALLS.get(script)
    if make is None:
        raise UnreadableError(f"no program of a history calls {script}")
    try:
        return make(queue, iter(argv), now)
    except (StopIteration, ValueError) as error:
        raise UnreadableError(f"{script} was sent {argv}") from error


def duration_of(script: str, argv: list[bytes], entry: int = 0) -> int:
    """The duration that a lease or the entry of an extend asks for, microseconds."""
    return int(argv[3 + 3 * entry] if script == "extend" else argv[1]) * 1000


def _options(parts: Iterator[bytes]) -> dict[str, bytes]:
    return {next(parts).decode(): next(parts) for _ in range(int(next(parts)))}


def _number(options: dict[str, bytes], name: str) -> int | None:
    return int(options[name]) if name in options else None


def _add(queue: Queue, parts: Iterator[bytes], now: int) -> Reply:
    return queue.add(now, [_item(parts) for _ in range(int(next(parts)))])


def _item(parts: Iterator[bytes]) -> Add:
    item_id, data, options = next(parts), next(parts), _options(parts)
    return Add(item_id, data, delay=_number(options, "delay"))


def _lease(queue: Queue, parts: Iterator[bytes], now: int) -> Reply:
    return queue.lease(now, int(next(parts)), int(next(parts)))


def _completions(parts: Iterator[bytes]) -> list[Complete]:
    entries = []
    for _ in range(int(next(parts))):
        item_id, token = next(parts), int(next(parts))
        entries.append(Complete(item_id, token, only_current="only_current" in _options(parts)))
    return entries


def _complete(queue: Queue, parts: Iterator[bytes], _now: int) -> Reply:
    return queue.complete(_completions(parts))


def _complete_and_lease(queue: Queue, parts: Iterator[bytes], now: int) -> Reply:
    count, duration = int(next(parts)), int(next(parts))
    return queue.complete_and_lease(now, count, duration, _completions(parts))


def _complete_with(queue: Queue, parts: Iterator[bytes], now: int) -> Reply:
    """Every target is the queue itself."""
    count, targets = int(next(parts)), int(next(parts))
    entries = []
    for _ in range(count):
        item_id, token, options = next(parts), int(next(parts)), _options(parts)
        then = tuple((int(next(parts)), _item(parts)) for _ in range(int(next(parts))))
        keep, result = _number(options, "keep"), options.get("result")
        entries.append(Finish(item_id, token, "only_current" in options, keep, result, then))
    return complete_with(now, queue, [queue] * targets, entries)


def _outcome(queue: Queue, parts: Iterator[bytes], now: int) -> Reply:
    return queue.outcome(now, [next(parts) for _ in range(int(next(parts)))])


def _settle(queue: Queue, _parts: Iterator[bytes], now: int) -> Reply:
    return queue.settle(now)


def _extend(queue: Queue, parts: Iterator[bytes], now: int) -> Reply:
    entries = [Extend(next(parts), int(next(parts)), int(next(parts))) for _ in range(int(next(parts)))]
    return queue.extend(now, entries)


def _release(queue: Queue, parts: Iterator[bytes], now: int) -> Reply:
    entries = []
    for _ in range(int(next(parts))):
        item_id, token, options = next(parts), int(next(parts)), _options(parts)
        uncounted = "uncounted" in options
        entries.append(Release(item_id, token, delay=_number(options, "delay"), uncounted=uncounted))
    return queue.release(now, entries)


def _remove(queue: Queue, parts: Iterator[bytes], _now: int) -> Reply:
    return queue.remove([next(parts) for _ in range(int(next(parts)))])


def _light_clean(queue: Queue, parts: Iterator[bytes], now: int) -> Reply:
    return queue.light_clean(now, int(next(parts)))


def _forge(queue: Queue, parts: Iterator[bytes], _now: int) -> Reply:
    """End the time of an item that is leased or delayed, as if it had been over for long."""
    item = queue.items.get(next(parts))
    if item is None or item.where not in {"leased", "delayed"}:
        return b"no"
    item.score = 1
    if queue.state:
        queue.state.next_due = 0
    return item.where.encode()


_CALLS: Final[dict[str, Callable[[Queue, Iterator[bytes], int], Reply]]] = {
    "add": _add,
    "lease": _lease,
    "complete": _complete,
    "complete_and_lease": _complete_and_lease,
    "complete_with": _complete_with,
    "outcome": _outcome,
    "settle": _settle,
    "extend": _extend,
    "release": _release,
    "remove": _remove,
    "light_clean": _light_clean,
    FORGE: _forge,
}
