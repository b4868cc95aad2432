"""What the reply of each script looks like, how many elements of which kind, and what a queue looks like."""

import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import redis
from support.script_lab import MANIFEST, Arg, Snapshot, key, pairs

TOLD = ("keep", "content_type")
STATES = ("delayed", "ready", "leased", "dead", "none", "absent")
KINDS = {
    name: [kind.strip() for kind in said["reply"].split(":", 1)[1].split(",")]
    for name, said in MANIFEST["scripts"].items()
    if name in {"deep_clean", "stats"}
}
"""What the headers of these scripts say that they count."""


def is_entry(script: str, answer: Any) -> bool:
    """Whether it answers one entry."""
    if script in {"complete", "purge", "revive"}:
        return answer in (0, 1)
    if script in {"add", "extend"}:
        return isinstance(answer, int) and answer >= (-1 if script == "add" else 0)
    states = ("ready", "delayed", "dead", "lost") if script == "release" else STATES
    return isinstance(answer, bytes) and answer.decode() in states


def lease_ends(reply: Sequence[Any], *, lowest: int = 0) -> bool:
    """Whether it is the reply of a lease; what is told of no item has a number from `lowest` to 0."""
    wait, deadline, count, *rest = reply
    items, told = rest[: 4 * count], rest[4 * count :]
    well = all(isinstance(each, int) for each in (wait, deadline, count)) and len(items) == 4 * count
    well &= (deadline > 0) == (count > 0) and wait >= -1
    for at in range(0, 4 * count, 4):
        item_id, data, token, attempt = items[at : at + 4]
        well &= isinstance(item_id, bytes) and isinstance(data, bytes) and token > 0 and attempt > 0
    well &= len(told) % 3 == 0
    for number, name, value in zip(told[::3], told[1::3], told[2::3], strict=True):
        if number > 0:
            header = name.decode().startswith("header:") or name.decode() in TOLD
            well &= number <= count and header and isinstance(value, int if name == b"keep" else bytes)
        else:
            well &= lowest <= number and name == b"died" and isinstance(value, bytes)
    return bool(well)


def follow_ups(arguments: Sequence[Arg]) -> list[int]:
    """How many follow-up items each entry of complete_with has, by its own count."""
    at, counts = 2, []
    for _ in range(int(arguments[0])):
        at += 3 + 2 * int(arguments[at + 2])
        counts.append(int(arguments[at]))
        at += 1
        for _ in range(counts[-1]):
            at += 4 + 2 * int(arguments[at + 3])
    return counts


def misshapen(script: str, arguments: Sequence[Arg], reply: Any) -> bool:
    """Whether this is no reply that the script may give to these arguments."""
    return not WELL[script](arguments, reply) if script in WELL else not entries(script, arguments, reply)


def entries(script: str, arguments: Sequence[Arg], reply: Any) -> bool:
    """One answer bare, several in an array."""
    count = int(arguments[script == "purge"])
    answers = [reply] if count == 1 else reply
    return len(answers) == count and all(is_entry(script, answer) for answer in answers)


def rows(answers: Sequence[Any], count: int, *kinds: type) -> bool:
    """Whether they are so many times elements of these kinds."""
    return len(answers) == count * len(kinds) and all(
        isinstance(answer, kinds[at % len(kinds)]) for at, answer in enumerate(answers)
    )


def complete_with(arguments: Sequence[Arg], reply: Any) -> bool:
    """For each entry 1 or 0 and the answers of its follow-ups."""
    at = 0
    for count in follow_ups(arguments):
        won, added = reply[at], reply[at + 1 : at + 1 + count]
        at += 1 + count
        if won not in (0, 1) or len(added) != count or min(added, default=0) < -1:
            return False
    return at == len(reply)


def light_clean(_: Sequence[Arg], reply: Any) -> bool:
    """Five counts and a wait, then ids."""
    return (
        rows(reply[:6], 1, *[int] * 6)
        and min(reply[:5]) >= 0 <= reply[5] + 1
        and rows(reply[6:], len(reply) - 6, bytes)
    )


def outcome(arguments: Sequence[Arg], reply: Any) -> bool:
    """Six elements for each entry."""
    kinds = {kind.decode() for kind in reply[::6]}
    return rows(reply, int(arguments[0]), bytes, int, int, int, int, bytes) and kinds <= {
        *("result", "failure"),
        *STATES,
    }


WELL: dict[str, Any] = {
    "complete_and_lease": lambda arguments, reply: (
        lease_ends(reply[: -int(arguments[2])]) and set(reply[-int(arguments[2]) :]) <= {0, 1}
    ),
    "complete_with": complete_with,
    "configure": lambda _, reply: reply == 1,
    "deep_clean": lambda _, reply: (
        isinstance(reply[0], bytes)
        and [kind.decode() for kind in reply[1::2]] == KINDS["deep_clean"]
        and min(reply[2::2]) >= 0
    ),
    "inspect": lambda arguments, reply: (
        rows(reply, int(arguments[0]), bytes, *[int] * 9, bytes)
        and {state.decode() for state in reply[::11]} <= set(STATES)
    ),
    "lease": lambda _, reply: lease_ends(reply),
    "lease_any": lambda arguments, reply: (
        0 <= reply[0] <= int(arguments[0])
        and (reply[0] > 0) == (reply[3] > 0)
        and lease_ends(reply[1:], lowest=-int(arguments[0]))
    ),
    "light_clean": light_clean,
    "list": lambda arguments, reply: (
        len(reply) <= 1 + 2 * int(arguments[2]) and rows(reply[1:], len(reply) // 2, bytes, int)
    ),
    "outcome": outcome,
    "settle": lambda _, reply: reply in (0, 1),
    "stats": lambda _, reply: (
        [name.decode() for name in reply[::2]] == KINDS["stats"] and rows(reply, len(reply) // 2, bytes, int)
    ),
}


# -- queues


class Contents(NamedTuple):
    """The keys of one queue."""

    items: dict[bytes, bytes]
    records: dict[bytes, bytes]
    extras: set[bytes]
    states: dict[str, dict[bytes, float]]
    expiry: dict[bytes, float]
    kept: dict[bytes, float]
    flags: int


def contents(snapshot: Snapshot, client: redis.Redis, on: str) -> Contents:
    """The keys of a queue that is on the server."""

    def content(name: str) -> dict[bytes, Any]:
        stored = snapshot.get(key(on + name).encode())
        return dict(stored.content) if stored else {}

    def scores(name: str) -> dict[bytes, float]:
        stored = snapshot.get(key(on + name).encode())
        return {item: float(score) for item, score in pairs(stored.content)} if stored else {}

    meta, blob = content("meta"), client.get(key(on + "state"))
    return Contents(
        content("items"),
        {name: value for name, value in meta.items() if not name.startswith(b"\0")},
        {name[1:] for name in meta if name.startswith(b"\0")},
        {name: scores(name) for name in ("ready", "delayed", "leased", "dead")},
        scores("expiry"),
        scores("kept"),
        blob[1] if isinstance(blob, bytes) else 0,
    )


def unsound(snapshot: Snapshot, client: redis.Redis, on: str) -> list[str]:
    """What is not as the tables of the specification say, in a queue that is on the server."""
    queue = contents(snapshot, client, on)
    places = {item for state in queue.states.values() for item in state}
    known = places | set(queue.records) | queue.extras | set(queue.expiry)
    broken = [f"{item!r} is not there" for item in known - set(queue.items)]
    broken += [f"{item!r}: no record" for item in {*queue.extras, *queue.expiry} - set(queue.records)]
    for item in queue.items:
        where = [name for name, state in queue.states.items() if item in state]
        if len(where) != 1 or (where != ["ready"] and item not in queue.records):
            broken.append(f"{item!r} is in {where}")
    broken += [f"{item!r}: {each}" for item in queue.records for each in unsound_record(queue, item)]
    if queue.kept and queue.flags < 2:
        broken.append("outcomes without the flag")
    lists = ["wake", "room", *(f"result:{item.decode()}" for item in queue.kept)]
    return broken + [f"{name} has several elements" for name in lists if client.llen(key(on + name)) > 1]


def unsound_record(queue: Contents, item: bytes) -> Iterator[str]:
    """What contradicts the table of records, the extra, the index of expiries or the flags of the state."""
    record = queue.records[item]
    options = record[1]
    if options not in {0, 1, 3, 5, 7} or len(record) != (39 if options else 22):
        yield f"options {options} in {len(record)} bytes"
        return
    expires = struct.unpack("<d", record[31:39])[0] if options else 0
    if (item in queue.extras) != (options & 2 > 0):
        yield f"options {options} against its extra"
    if (expires or None) != queue.expiry.get(item):
        yield f"expires {expires}, in the index {queue.expiry.get(item)}"
    if expires and item in queue.states["leased"]:
        yield "leased, and can expire"
    if any(record[25:31]) and queue.flags < 2:
        yield "keep without the flag"
