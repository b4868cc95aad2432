"""Write what the reference model says of each vector into its file: `python -m leaseq_conformance.vectors.refresh`.

With --check nothing is written; the exit code is 1 where a file is not as it would be written. A case that says
`refused` or `by_hand` is not asked about: the model knows neither wrong arguments nor all damage.
"""

from __future__ import annotations

import argparse
import copy
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leaseq_conformance.model.base import RefusedError
from leaseq_conformance.model.codec import (
    Record,
    State,
    decode_extra,
    decode_outcome,
    decode_record,
    decode_state,
)
from leaseq_conformance.model.keyspace import INDEXES, ZSETS, Keyspace
from leaseq_conformance.model.queue import Queue
from leaseq_conformance.vectors import case_file
from leaseq_conformance.vectors.calls import call, page
from leaseq_conformance.vectors.notation import NotationError, difference, keys_from_yaml, reply_to_yaml
from leaseq_conformance.vectors.vector import Dump, Kept, Refused, Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leaseq_conformance.vectors.calls import Call


class UnsoundError(Exception):
    """The model cannot be asked: the keys are not such as scripts leave; the message says which."""


# -- keys that the model understands


def keyspace_of(dump: Dump, prefix: str = "") -> Keyspace:
    """The keys of one queue, decoded.

    Raises:
        UnsoundError: one of them holds what no script writes.
    """
    keys = Keyspace()
    for name, value in dump.items():
        if name.startswith("other:") == bool(prefix):
            try:
                _decode(keys, name.removeprefix(prefix), value)
            except (ValueError, TypeError, AttributeError) as error:
                raise UnsoundError(f"{name} cannot be decoded: {error}") from error
    return keys


def _decode(keys: Keyspace, name: str, value: Any) -> None:
    if name in {"items", "counters"}:
        setattr(
            keys, name, {field: value[field] if name == "items" else int(value[field]) for field in value}
        )
    elif name == "meta":
        keys.extras = {field[1:]: decode_extra(value[field]) for field in value if field[:1] == b"\0"}
        keys.meta = {field: decode_record(value[field]) for field in value if field[:1] != b"\0"}
    elif name in (*ZSETS, *INDEXES):
        setattr(keys, name, {field: _whole(score) for field, score in value.items()})
    elif name in {"wake", "room"}:
        if any(each != b"1" for each in value) or not isinstance(value, list):
            raise UnsoundError(f"{name} holds something else")
        setattr(keys, name, len(value))
    elif name == "state":
        if not isinstance(value, bytes):
            raise UnsoundError("state is of another type")
        keys.state = decode_state(value)
    elif name.startswith("result:") and isinstance(value, Kept) and len(value.values) == 1:
        item_id = name.removeprefix("result:").encode("latin-1")
        keys.results[item_id] = decode_outcome(value.values[0])
        keys.ttls[item_id] = value.ttl
    else:
        raise UnsoundError(f"{name} is unknown")


def _whole(score: float) -> int:
    if score % 1:
        raise UnsoundError(f"the score {score} is not whole")
    return int(score)


def dump_of(keys: Keyspace, prefix: str = "") -> Dump:
    """The keys as they are stored."""
    packed: dict[bytes, bytes] = {
        item_id: record if isinstance(record, bytes) else record.encode()
        for item_id, record in keys.meta.items()
    }
    for item_id, extra in keys.extras.items():
        packed[b"\0" + item_id] = extra if isinstance(extra, bytes) else extra.encode()
    dump: dict[str, Any] = {
        "items": keys.items,
        "meta": packed,
        "counters": {name: str(count).encode() for name, count in keys.counters.items()},
        **{
            name: {item_id: float(score) for item_id, score in zset.items()}
            for name, zset in {**keys.zsets(), **keys.indexes()}.items()
        },
        "wake": [b"1"] * keys.wake,
        "room": [b"1"] * keys.room,
        "state": keys.state.encode() if isinstance(keys.state, State) else keys.state,
    }
    for item_id, outcome in keys.results.items():
        content = outcome if isinstance(outcome, bytes) else outcome.encode()
        dump["result:" + item_id.decode("latin-1")] = Kept((content,), keys.ttls[item_id])
    return {prefix + name: value for name, value in dump.items() if value}


def queue_of(keys: Keyspace) -> Queue:
    """The model's queue of these keys; an item may be in no state.

    Raises:
        UnsoundError: they are not those of a queue.
    """
    places = [item_id for zset in keys.zsets().values() for item_id in zset]
    is_broken = set(places) - keys.items.keys() or len(places) != len(set(places))
    if is_broken or (keys.meta.keys() | keys.extras.keys()) - keys.items.keys():
        raise UnsoundError("an id has no data, or is in several states")
    nowhere = keys.items.keys() - set(places)
    placed = copy.deepcopy(keys)
    placed.ready.update(dict.fromkeys(nowhere, 0))
    try:
        queue = Queue.load(placed)
    except RefusedError as error:
        raise UnsoundError(str(error)) from error
    for item_id in nowhere:
        record = keys.meta.get(item_id)
        queue.items[item_id].move("none", 0)
        queue.items[item_id].created = record.created if isinstance(record, Record) else 0
    queue.ttls = dict(keys.ttls)
    return queue


def dump_of_queue(queue: Queue, prefix: str = "") -> Dump:
    """The keys of a queue of the model as they are stored."""
    nowhere = [item_id for item_id, item in queue.items.items() if item.where == "none"]
    placed = copy.copy(queue)
    placed.items = {
        item_id: replace(item, where="ready") if item_id in nowhere else item
        for item_id, item in queue.items.items()
    }
    keys = placed.keyspace()
    for item_id in nowhere:
        del keys.ready[item_id]
    return dump_of(keys, prefix)


# -- one case


def played(
    given: Dump, made: Call, fields: Mapping[str, Any], now: int
) -> list[tuple[Reply | Refused, Dump]]:
    """Return what the call answers and leaves, the first and the second time, by the model.

    Raises:
        UnsoundError: the model cannot be asked.
    """
    if "cursor" in fields:
        return _pages(given, fields, now)
    if made.run is None:
        raise UnsoundError("the arguments are not written in words")
    queues = [queue_of(keyspace_of(given, prefix)) for prefix in ("", "other:")]
    if any(
        dump_of_queue(queue, prefix) != _of(given, prefix)
        for queue, prefix in zip(queues, ("", "other:"), strict=True)
    ):
        raise UnsoundError("the model would store these keys in another way")
    found: list[tuple[Reply | Refused, Dump]] = []
    for _ in range(2):
        before = copy.deepcopy(queues)
        reply: Reply | Refused
        try:
            reply = made.run(queues[0], queues[1], now)
        except RefusedError as error:
            reply, queues = Refused(str(error)), before
        found.append((reply, dump_of_queue(queues[0]) | dump_of_queue(queues[1], "other:")))
    return found


def _of(dump: Dump, prefix: str) -> Dump:
    return {key: value for key, value in dump.items() if key.startswith("other:") == bool(prefix)}


def _pages(given: Dump, fields: Mapping[str, Any], now: int) -> list[tuple[Reply | Refused, Dump]]:
    keys, rest = keyspace_of(given), _of(given, "other:")
    found: list[tuple[Reply | Refused, Dump]] = []
    for _ in range(2):
        reply: Reply | Refused
        try:
            reply, keys = page(keys, fields, now)
        except RefusedError as error:
            reply = Refused(str(error))
        found.append((reply, dump_of(keys) | rest))
    return found


def refreshed(script: str, fields: Mapping[str, Any], queues: Mapping[str, Dump]) -> dict[str, Any]:
    """The case with what the model says of it.

    Raises:
        UnsoundError: the model cannot be asked; the case has to say `refused` or `by_hand`.
    """
    case = dict(fields)
    if "refused" in case or case.get("by_hand"):
        return case
    given = keys_from_yaml({}, {}) | case_file.given(case, queues)
    (reply, then), (again, then_again) = played(
        given, call(script, case["call"]), case["call"], case_file.now(case)
    )
    damage = case.get("damage", {})
    given, then, then_again = (keys_from_yaml(dump, damage) for dump in (given, then, then_again))
    for name in ("then", "again"):
        case.pop(name, None)
    case["then"] = {"reply": reply_to_yaml(reply), "keys": difference(given, then)}
    if again != reply or then_again != then:
        case["again"] = {"reply": reply_to_yaml(again), "keys": difference(then, then_again)}
    for name in ("then", "again"):
        if name in case and not case[name]["keys"]:
            del case[name]["keys"]
    return case


def main() -> None:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help="scripts to take, all without any")
    parser.add_argument("--check", action="store_true", help="write nothing, say which files are stale")
    options = parser.parse_args()
    queues = case_file.queues()
    stale, cases = [], 0
    for script in options.scripts or case_file.scripts():
        path = Path(str(case_file.FOLDER)) / f"{script}.yaml"
        content = case_file.read(script)
        made = []
        for case in content["cases"]:
            try:
                made.append(refreshed(script, case, queues))
            except (UnsoundError, NotationError) as error:
                sys.exit(f"{path.name}: {case['name']}: {error}")
        cases += len(made)
        text = case_file.render(script, made)
        if path.read_text("utf-8") != text:
            stale.append(path.name)
            if not options.check:
                path.write_text(text, "utf-8")
    if options.check and stale:
        sys.exit(f"stale, run python -m leaseq_conformance.vectors.refresh: {', '.join(stale)}")
    print(f"{cases} vectors, {'all as the model says' if not stale else 'written: ' + ', '.join(stale)}")


if __name__ == "__main__":
    main()
