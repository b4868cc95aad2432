"""The form of a vector, in memory and as JSON.

In JSON a byte string is a text with one character for each byte (Latin-1). A packed value is an object that says its
fields (`record`, `extra`, `state`, `outcome`), a long one says what it repeats, and what no script can have written stays
text. `then` and `again` are merge patches: null takes away, what is not named stays.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.codec import (
    Extra,
    Outcome,
    Record,
    State,
    decode_extra,
    decode_outcome,
    decode_record,
    decode_state,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCHEMA: Final = 1
START: Final = 1_767_225_600_000_000
"""When the queues begin: 2026-01-01."""
NOW: Final = START + 3_600_000_000
"""When the calls are made: an hour later."""
HASHES: Final = {"items", "meta", "counters"}
FOLDER: Final = files("leaseq_conformance") / "vectors" / "data"

Scores = dict[bytes, float]
Fields = dict[bytes, bytes]


@dataclass(frozen=True)
class Kept:
    """A list with a time to live, in milliseconds."""

    values: tuple[bytes, ...]
    ttl: int


Value = bytes | list[bytes] | Fields | Scores | Kept
Dump = dict[str, Value]
"""Keys by their names without the prefix of the queue; those of the second queue begin with `other:`."""
Reply = int | bytes | list[int | bytes]


@dataclass(frozen=True)
class Refused:
    """An error, by its code."""

    code: str


@dataclass
class Vector:
    """One call of a script and what must come of it.

    `more` are the keys behind the fixed ones, by their names; `keys` takes the place of all. `full` says that the server
    has reached its memory limit. `again` is what the same call must answer and leave the second time. A cursor of
    `deep_clean` that goes on within a key is 1: which one it is only the server knows.
    """

    name: str
    script: str
    rules: tuple[str, ...]
    now: int
    given: Dump
    argv: list[bytes]
    reply: Reply | Refused
    then: Dump
    again: Reply | Refused
    then_again: Dump
    more: list[str] = field(default_factory=list)
    keys: list[str] | None = None
    full: bool = False
    base: str = ""
    server: str = ""
    """What is the matter with the server: `full`, `replica`, or `without COMMAND`, the caller lacks the right to."""


def bare(key: str) -> str:
    """The name of a key without the queue it is of."""
    return key.removeprefix("other:")


# -- to JSON


def text(value: bytes) -> Any:
    """Bytes as JSON."""
    if len(value) > 64 and len(set(value)) == 1:
        return {"repeat": [value[:1].decode("latin-1"), len(value)]}
    return value.decode("latin-1")


def _packed(key: str, name: bytes, value: bytes) -> Any:
    if bare(key) == "meta":
        decoded = decode_extra(value) if name[:1] == b"\0" else decode_record(value)
        if isinstance(decoded, Record):
            return {"record": {part: number for part, number in decoded._asdict().items() if number}}
        if isinstance(decoded, Extra):
            return {"extra": [text(decoded.error), *([text(a), text(b)] for a, b in decoded.pairs)]}
    return text(value)


def _score(score: float) -> Any:
    return str(score) if score in {float("inf"), float("-inf")} else int(score) if score % 1 == 0 else score


def value_to_json(key: str, value: Value) -> Any:
    """What a key holds as JSON."""
    if isinstance(value, Kept):
        outcome = decode_outcome(value.values[0])
        return {
            "outcome": {**outcome._asdict(), "content": text(outcome.content)}
            if isinstance(outcome, Outcome)
            else text(value.values[0]),
            "ttl": value.ttl,
        }
    if isinstance(value, bytes):
        state = decode_state(value) if bare(key) == "state" else value
        if isinstance(state, State):
            return {"state": {part: number for part, number in asdict(state).items() if number}}
        return text(value)
    if isinstance(value, list):
        return [text(each) for each in value]
    fields: dict[bytes, Any] = dict(sorted(value.items()))
    return {name.decode("latin-1"): _field_to_json(key, name, each) for name, each in fields.items()}


def _field_to_json(key: str, name: bytes, value: bytes | float) -> Any:
    return _packed(key, name, value) if isinstance(value, bytes) else _score(value)


def dump_to_json(dump: Dump) -> dict[str, Any]:
    """A keyspace as JSON."""
    return {key: value_to_json(key, dump[key]) for key in sorted(dump)}


def difference(before: Dump, after: Dump) -> dict[str, Any]:
    """The merge patch, as JSON, that makes one keyspace of another."""
    patch: dict[str, Any] = {}
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if new is None:
            patch[key] = None
        elif isinstance(old, dict) and isinstance(new, dict):
            patch[key] = {
                name.decode("latin-1"): _field_to_json(key, name, new[name]) if name in new else None
                for name in sorted(old.keys() | new.keys())
                if old.get(name) != new.get(name)
            }
        else:
            patch[key] = value_to_json(key, new)
    return patch


def reply_to_json(reply: Reply | Refused) -> Any:
    """A reply as JSON; an error is an object."""
    if isinstance(reply, Refused):
        return {"error": reply.code}
    if isinstance(reply, list):
        return [text(each) if isinstance(each, bytes) else each for each in reply]
    return text(reply) if isinstance(reply, bytes) else reply


# -- from JSON


def untext(value: Any) -> bytes:
    """Bytes from JSON."""
    if isinstance(value, dict):
        what, times = value["repeat"]
        return bytes(what.encode("latin-1") * times)
    return str(value).encode("latin-1")


def _field_from_json(key: str, value: Any) -> Any:
    if bare(key) not in HASHES:
        return float(value)
    if isinstance(value, dict) and "record" in value:
        return Record(**{"attempt": 0, "token": 0, "created": 0, **value["record"]}).encode()
    if isinstance(value, dict) and "extra" in value:
        error, *pairs = value["extra"]
        return Extra(untext(error), tuple((untext(name), untext(each)) for name, each in pairs)).encode()
    return untext(value)


def value_from_json(key: str, value: Any) -> Value:
    """What a key holds."""
    if isinstance(value, dict) and "ttl" in value:
        said = value["outcome"]
        packed = (
            Outcome(**{**said, "content": untext(said["content"])}).encode()
            if isinstance(said, dict) and "kind" in said
            else untext(said)
        )
        return Kept((packed,), value["ttl"])
    if isinstance(value, list):
        return [untext(each) for each in value]
    if isinstance(value, str) or "repeat" in value:
        return untext(value)
    if bare(key) == "state":
        return State(**value["state"]).encode()
    return {name.encode("latin-1"): _field_from_json(key, each) for name, each in value.items()}


def patched(dump: Dump, patch: Mapping[str, Any]) -> Dump:
    """A keyspace with a merge patch put on it."""
    after = dict(dump)
    for key, value in patch.items():
        old = after.get(key)
        if value is None:
            after.pop(key, None)
        elif isinstance(old, dict) and isinstance(value, dict):
            fields: dict[bytes, Any] = dict(old)
            for name, each in value.items():
                if each is None:
                    fields.pop(name.encode("latin-1"), None)
                else:
                    fields[name.encode("latin-1")] = _field_from_json(key, each)
            after[key] = fields
            if not fields:
                del after[key]
        else:
            after[key] = value_from_json(key, value)
    return after


def _reply_from_json(value: Any) -> Reply | Refused:
    if isinstance(value, dict) and "error" in value:
        return Refused(value["error"])
    if isinstance(value, list):
        return [each if isinstance(each, int) else untext(each) for each in value]
    return value if isinstance(value, int) else untext(value)


def _repeated(keys: list[str]) -> Any:
    return {"repeat": [keys[0], len(keys)]} if len(keys) > 64 and len(set(keys)) == 1 else keys


def _unrepeated(said: Any) -> list[str] | None:
    return [said["repeat"][0]] * said["repeat"][1] if isinstance(said, dict) else said


# -- files


def vector_to_json(vector: Vector, base: Dump) -> dict[str, Any]:
    """A vector as JSON, given as a patch of the queue it names."""
    said: dict[str, Any] = {"name": vector.name, "rules": list(vector.rules), "given": vector.base}
    if but := difference(base, vector.given):
        said["but"] = but
    said |= {"now": vector.now, "argv": [text(each) for each in vector.argv]}
    if vector.keys is not None:
        said["keys"] = _repeated(vector.keys)
    if vector.more:
        said["more"] = vector.more
    if vector.full:
        said["full"] = True
    said["reply"] = reply_to_json(vector.reply)
    if not isinstance(vector.reply, Refused):
        said["then"] = difference(vector.given, vector.then)
        said["again"] = reply_to_json(vector.again)
        if patch := difference(vector.then, vector.then_again):
            said["then_again"] = patch
    return said


def render(script: str, queues: Mapping[str, Dump], vectors: list[Vector]) -> str:
    """The file of a script: a queue or a vector on each line."""
    lines = ["{", f'"schema": {SCHEMA},', f'"script": "{script}",', '"queues": {']
    named = [f"{json.dumps(name)}: {json.dumps(dump_to_json(queues[name]))}" for name in sorted(queues)]
    lines += [line + "," * (at < len(named)) for at, line in enumerate(named, 1)]
    lines += ["},", '"vectors": [']
    rows = [json.dumps(vector_to_json(vector, queues[vector.base])) for vector in vectors]
    lines += [line + "," * (at < len(rows)) for at, line in enumerate(rows, 1)]
    return "\n".join([*lines, "]", "}", ""])


def parse(content: str) -> list[Vector]:
    """The vectors of a file."""
    said = json.loads(content)
    assert said["schema"] == SCHEMA, "these vectors are of another version of the suite"
    queues = {name: patched({}, dump) for name, dump in said["queues"].items()}
    return [_vector(said["script"], queues, each) for each in said["vectors"]]


def _vector(script: str, queues: Mapping[str, Dump], said: Mapping[str, Any]) -> Vector:
    given = patched(queues[said["given"]], said.get("but", {}))
    then = patched(given, said.get("then", {}))
    reply = _reply_from_json(said["reply"])
    return Vector(
        name=said["name"],
        script=script,
        rules=tuple(said["rules"]),
        now=said["now"],
        given=given,
        argv=[untext(each) for each in said["argv"]],
        reply=reply,
        then=then,
        again=_reply_from_json(said.get("again", said["reply"])),
        then_again=patched(then, said.get("then_again", {})),
        more=said.get("more", []),
        keys=_unrepeated(said.get("keys")),
        full=said.get("full", False),
        base=said["given"],
    )


def scripts() -> list[str]:
    """The scripts that there are vectors of."""
    return sorted(each.name.removesuffix(".json") for each in FOLDER.iterdir() if each.name.endswith(".json"))


def load(script: str) -> list[Vector]:
    """The vectors of a script."""
    return parse((FOLDER / f"{script}.json").read_text())


def load_all() -> Iterator[Vector]:
    """All vectors."""
    for script in scripts():
        yield from load(script)
