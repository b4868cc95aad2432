"""The calls of vectors, written in words: what is sent for each, and the same call of the reference model."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.manifest import REPAIRS, SCRIPTS
from leaseq_conformance.model import multi_queue
from leaseq_conformance.model.calls import Add, Complete, Extend, Finish, Release
from leaseq_conformance.model.deep_clean import PHASES, deep_clean
from leaseq_conformance.vectors.notation import NotationError, untext, untime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from leaseq_conformance.model.calls import Answer, Reply
    from leaseq_conformance.model.keyspace import Keyspace
    from leaseq_conformance.model.queue import Queue

BYTES: Final = {"id", "data", "error", "result", "content_type"}
SERIES: Final = re.compile(r"^([a-z]+)(\d+)\.\.\1(\d+)$")
"""Ids that are written as one: `z0..z255`."""
QUEUES: Final = ("self", "other")
TARGET: Final = ("items", "meta", "ready", "delayed", "dead", "expiry", "kept", "state", "wake")
ENTRIES: Final = {
    "add": Add,
    "complete": Complete,
    "complete_and_lease": Complete,
    "complete_with": Finish,
    "extend": Extend,
    "release": Release,
}
"""Scripts whose entries have fields."""
IDS: Final = {"inspect", "outcome", "promote", "purge", "remove", "revive"}
"""Scripts whose entries are ids."""
TIMED: Final = {"outcome", "promote", "revive"}


@dataclass(frozen=True)
class Call:
    """A call: its arguments, its keys behind the fixed ones, and what the model does; None where it cannot be asked."""

    argv: list[bytes]
    more: list[str] = field(default_factory=list)
    run: Callable[[Queue, Queue, int], Reply] | None = None


def call(script: str, arguments: Mapping[str, Any]) -> Call:
    """The call that is written.

    Raises:
        NotationError: it is none of the script.
    """
    try:
        if "argv" in arguments:
            argv = [untext(each) for each in arguments["argv"]]
            return Call(argv, list(map(_key_name, arguments.get("more_keys", []))))
        return _BY_SCRIPT[script](script, arguments)
    except (KeyError, TypeError, AttributeError) as error:
        raise NotationError(f"{dict(arguments)!r} is no call of {script} ({error!r})") from error


def _key_name(written: Any) -> str:
    return untext(written).decode("latin-1")


def _sent(arguments: Iterable[Answer | str]) -> list[bytes]:
    return [each if isinstance(each, bytes) else str(each).encode() for each in arguments]


# -- entries


def _series(written: Any) -> list[Any]:
    """The ids that one text stands for."""
    if isinstance(written, str) and (match := SERIES.match(written)):
        name, first, last = match.groups()
        return [f"{name}{number}" for number in range(int(first), int(last) + 1)]
    return [written]


def _entries(script: str, arguments: Mapping[str, Any]) -> list[Any]:
    return [
        _entry(ENTRIES[script], {**written, "id": item_id})
        for written in arguments["entries"]
        for item_id in _series(written["id"])
    ]


def _entry(kind: Any, arguments: Mapping[str, Any]) -> Any:
    known = {each.name for each in fields(kind)} - {"then", "dies"}
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        if name == "follow_ups" and kind is Finish:
            values["then"] = tuple(
                (each["to"], _entry(Add, {key: part for key, part in each.items() if key != "to"}))
                for each in value
            )
        elif name == "expires_to" and kind is Add and value == "dead":
            values["dies"] = True
        elif name not in known:
            raise NotationError(f"an entry has no {name}")
        elif name in BYTES:
            values[name] = untext(value)
        elif name == "headers":
            values[name] = tuple((untext(key), untext(part)) for key, part in value.items())
        else:
            values[name] = untime(value) if name == "token" else value
    return kind(**values)


def _ids(arguments: Mapping[str, Any]) -> list[bytes]:
    return [untext(item_id) for written in arguments["ids"] for item_id in _series(written)]


def _results(ids: Iterable[bytes]) -> list[str]:
    return ["result:" + item_id.decode("latin-1") for item_id in ids]


def _keys(names: Iterable[str], queue: str) -> list[str]:
    return ["other:" * QUEUES.index(queue) + name for name in names]


def _argv(entries: Sequence[Any]) -> list[Any]:
    return [len(entries), *(part for entry in entries for part in entry.argv())]


# -- the calls of each script


def _with_entries(script: str, arguments: Mapping[str, Any]) -> Call:
    entries = _entries(script, arguments)
    more = _results(entry.id for entry in entries if script == "release" and entry.keep is not None)

    def run(queue: Queue, _other: Queue, now: int) -> Reply:
        method: Any = getattr(queue, script)
        reply: Reply = method(entries) if script == "complete" else method(now, entries)
        return reply

    return Call(_sent(_argv(entries)), more, run)


def _complete_and_lease(script: str, arguments: Mapping[str, Any]) -> Call:
    entries, count, duration = _entries(script, arguments), arguments["count"], arguments["duration"]
    return Call(
        _sent([count, duration, *_argv(entries)]),
        run=lambda queue, _, now: queue.complete_and_lease(now, count, duration, entries),
    )


def _complete_with(script: str, arguments: Mapping[str, Any]) -> Call:
    entries, targets = _entries(script, arguments), arguments.get("targets", [])
    count, *rest = _argv(entries)
    more = [name for target in targets for name in _keys(TARGET, target)]
    more += _results(entry.id for entry in entries if entry.keep is not None)

    def run(queue: Queue, other: Queue, now: int) -> Reply:
        chosen = [(queue, other)[QUEUES.index(target)] for target in targets]
        return multi_queue.complete_with(now, queue, chosen, entries)

    return Call(_sent([count, len(targets), *rest]), more, run)


def _with_ids(script: str, arguments: Mapping[str, Any]) -> Call:
    ids = _ids(arguments)
    older_than: list[int] = [arguments["older_than"]] if script == "purge" else []

    def run(queue: Queue, _other: Queue, now: int) -> Reply:
        method: Any = getattr(queue, script)
        if script == "purge":
            return queue.purge(now, older_than[0], ids)
        reply: Reply = method(now, ids) if script in TIMED else method(ids)
        return reply

    return Call(_sent([*older_than, len(ids), *ids]), _results(ids) if script == "outcome" else [], run)


def _lease(_script: str, arguments: Mapping[str, Any]) -> Call:
    count, duration = arguments["count"], arguments["duration"]
    return Call(_sent([count, duration]), run=lambda queue, _, now: queue.lease(now, count, duration))


def _lease_any(_script: str, arguments: Mapping[str, Any]) -> Call:
    queues, count, duration = arguments["queues"], arguments["count"], arguments["duration"]

    def run(queue: Queue, other: Queue, now: int) -> Reply:
        chosen = [(queue, other)[QUEUES.index(each)] for each in queues]
        return multi_queue.lease_any(now, chosen, count, duration)

    more = [name for each in queues for name in _keys(SCRIPTS["lease"].keys, each)]
    return Call(_sent([len(queues), count, duration]), more, run)


def _list(_script: str, arguments: Mapping[str, Any]) -> Call:
    place = (arguments["state"], arguments["offset"], arguments["limit"], arguments["order"])
    return Call(_sent(place), run=lambda queue, _other, _now: queue.page(*place))


def _configure(_script: str, arguments: Mapping[str, Any]) -> Call:
    argv = [len(arguments), *(part for pair in arguments.items() for part in pair)]
    return Call(_sent(argv), run=lambda queue, _other, _now: queue.configure(**arguments))


def _light_clean(_script: str, arguments: Mapping[str, Any]) -> Call:
    return Call(
        _sent([arguments["limit"]]), run=lambda queue, _, now: queue.light_clean(now, arguments["limit"])
    )


def _deep_clean(_script: str, arguments: Mapping[str, Any]) -> Call:
    """Its model is not of queues but of keys."""
    return Call(_sent([arguments["cursor"], arguments["limit"], arguments["dry_run"]]))


def _bare(script: str, arguments: Mapping[str, Any]) -> Call:
    if arguments:
        raise NotationError(f"{script} takes no arguments")

    def run(queue: Queue, _other: Queue, now: int) -> Reply:
        reply: Reply = getattr(queue, script)(now)
        return reply

    return Call([], run=run)


_BY_SCRIPT: Final[dict[str, Callable[[str, Mapping[str, Any]], Call]]] = {
    **dict.fromkeys(("add", "complete", "extend", "release"), _with_entries),
    **dict.fromkeys(IDS, _with_ids),
    **dict.fromkeys(("delete", "settle", "stats"), _bare),
    "complete_and_lease": _complete_and_lease,
    "complete_with": _complete_with,
    "configure": _configure,
    "deep_clean": _deep_clean,
    "lease": _lease,
    "lease_any": _lease_any,
    "light_clean": _light_clean,
    "list": _list,
}


# -- deep_clean


def page(keys: Keyspace, arguments: Mapping[str, Any], now: int) -> tuple[Reply, Keyspace]:
    """Return what a page of `deep_clean` answers and leaves, of keys that one page shows whole."""
    number = int(str(arguments["cursor"]).partition(":")[0]) or 1
    phase = PHASES[number - 1]
    looked = copy.deepcopy(keys)
    counts = deep_clean(looked, now, phase, _page_of(looked, phase))
    cursor = b"%d:0" % (number + 1) if number < len(PHASES) else b"0"
    reply: Reply = [cursor, *(part for kind in REPAIRS for part in (kind.encode(), counts[kind]))]
    return reply, keys if arguments["dry_run"] else looked


def _page_of(keys: Keyspace, phase: str) -> list[bytes]:
    """The ids that one page shows while a key is small: a hash in the order in which it was written."""
    if phase == "items":
        return sorted(keys.items)
    if phase == "meta":
        return sorted([*keys.meta, *(b"\0" + name for name in keys.extras)])
    zset: dict[bytes, int] = {**keys.zsets(), **keys.indexes()}[phase]
    return sorted(zset, key=lambda name: (zset[name], name))
