"""The notation of vectors in YAML for keys, times and byte strings, written and read.

A byte string is text where it is UTF-8, `{hex: ...}` where not; a long one says what it repeats. A time is the number of
seconds since 2026-01-01 and an s (`3600.000001s`), one far from that a date. A packed value says its fields, those that
are 0 left out; what no script can have written is `{hex: ...}`.

A change of keys names what is other afterwards: fields of hashes, members of sorted sets, and of packed values the
numbers that changed. null takes a key or a field away.
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.codec import (
    EPOCH,
    LEVEL,
    Extra,
    Outcome,
    Record,
    State,
    decode_extra,
    decode_outcome,
    decode_record,
    decode_state,
    place_level,
    place_time,
)
from leaseq_conformance.vectors.vector import HASHES, START, Dump, Kept, Refused, Reply, Value, bare

if TYPE_CHECKING:
    from collections.abc import Mapping

LISTS: Final = ("wake", "room")
ZERO: Final = datetime(1970, 1, 1, tzinfo=UTC)
NEAR: Final = 90 * 86_400_000_000
"""Times that are no further from the beginning are written in seconds."""
SECONDS: Final = re.compile(r"^(-?)(\d+)(?:\.(\d{1,6}))?s$")
PLACE: Final = re.compile(r"^(\S+)(?: p(-?\d+))?$")
DATE: Final = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+$")
KINDS: Final = {1: "result", 2: "failure"}
TIMES: Final = {"token", "created", "expires", "ended", "clock", "next_due"}
"""Fields of packed values that are times."""
RUN: Final = re.compile(rb"(.)\1{31,}", re.DOTALL)


class NotationError(ValueError):
    """Raised for YAML that is not in the notation. The message names it."""


# -- byte strings


def text(value: bytes) -> Any:
    """A byte string as it is written."""
    if len(value) > 64 and (run := RUN.search(value)):
        parts = [
            *([text(value[: run.start()])] if run.start() else []),
            {"repeat": [text(run.group(1)), run.end() - run.start()]},
            *([text(value[run.end() :])] if run.end() < len(value) else []),
        ]
        return parts[0] if len(parts) == 1 else {"join": parts}
    try:
        yaml_value = value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}
    return {"hex": value.hex()} if SECONDS.match(yaml_value) or DATE.match(yaml_value) else yaml_value


def untext(yaml_value: Any) -> bytes:
    """The byte string that is written."""
    if isinstance(yaml_value, str):
        return yaml_value.encode()
    if isinstance(yaml_value, int) and not isinstance(yaml_value, bool):
        return str(yaml_value).encode()
    if isinstance(yaml_value, dict) and len(yaml_value) == 1:
        match yaml_value:
            case {"hex": str(digits)}:
                return bytes.fromhex(digits)
            case {"repeat": [what, int(times)]}:
                return untext(what) * times
            case {"join": [*parts]}:
                return b"".join(map(untext, parts))
    raise NotationError(f"{yaml_value!r} is no byte string")


# -- times


def time(value: int) -> Any:
    """A time in microseconds as it is written."""
    if abs(value - START) <= NEAR:
        sign, (seconds, rest) = "-" * (value < START), divmod(abs(value - START), 1_000_000)
        return f"{sign}{seconds}{f'.{rest:06}'.rstrip('0') if rest else ''}s"
    if EPOCH - NEAR <= value <= EPOCH + 40 * 366 * 86_400_000_000:
        return (ZERO + timedelta(microseconds=value)).replace(tzinfo=None).isoformat()
    return value


def untime(yaml_value: Any) -> int:
    """The time that is written."""
    if isinstance(yaml_value, int) and not isinstance(yaml_value, bool):
        return yaml_value
    if isinstance(yaml_value, str) and (match := SECONDS.match(yaml_value)):
        sign, seconds, rest = match.groups()
        return START + (-1 if sign else 1) * (int(seconds) * 1_000_000 + int((rest or "0").ljust(6, "0")))
    if isinstance(yaml_value, str) and DATE.match(yaml_value):
        return (datetime.fromisoformat(yaml_value).replace(tzinfo=UTC) - ZERO) // timedelta(microseconds=1)
    raise NotationError(
        f"{yaml_value!r} is no time: write 3600s, the seconds since 2026-01-01, or a date in quotes"
    )


def _score(key: str, score: float) -> Any:
    if not math.isfinite(score):
        return str(score)
    if score % 1:
        return score
    if key != "ready":
        return time(int(score))
    yaml_value, level = time(place_time(int(score))), place_level(int(score))
    if not isinstance(yaml_value, str) or abs(level) > 9:
        return int(score)
    return f"{yaml_value} p{level}" if level else yaml_value


def _unscore(key: str, yaml_value: Any) -> float:
    if isinstance(yaml_value, str) and yaml_value in {"inf", "-inf", "nan"}:
        return float(yaml_value)
    if isinstance(yaml_value, float):
        return yaml_value
    if key == "ready" and isinstance(yaml_value, str) and (match := PLACE.match(yaml_value)):
        return float(untime(match.group(1)) - EPOCH - int(match.group(2) or 0) * LEVEL)
    return float(untime(yaml_value))


# -- packed values


def _numbers(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: time(value) if name in TIMES and value else value for name, value in fields.items()}


def _unnumbers(yaml_value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: untime(value) if name in TIMES else value for name, value in yaml_value.items()}


def _record(packed: bytes) -> dict[str, Any] | None:
    record = decode_record(packed)
    return record._asdict() if isinstance(record, Record) else None


def _state(packed: Any) -> dict[str, Any] | None:
    state = decode_state(packed) if isinstance(packed, bytes) else None
    return asdict(state) if isinstance(state, State) else None


def _changed(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a packed value that are others than before, or than 0."""
    return _numbers({name: value for name, value in new.items() if value != (old or {}).get(name, 0)})


def _extra(packed: bytes) -> Any:
    extra = decode_extra(packed)
    if not isinstance(extra, Extra) or len({name for name, _ in extra.pairs}) != len(extra.pairs):
        return {"hex": packed.hex()}
    pairs = {name.decode(): text(value) for name, value in extra.pairs}
    return {"error": text(extra.error), **({"pairs": pairs} if pairs else {})}


def _unextra(yaml_value: Any) -> bytes:
    if set(yaml_value) == {"hex"}:
        return untext(yaml_value)
    pairs = yaml_value.get("pairs", {})
    return Extra(
        untext(yaml_value.get("error", "")), tuple((k.encode(), untext(v)) for k, v in pairs.items())
    ).encode()


def _result(value: Kept) -> Any:
    outcome = decode_outcome(value.values[0])
    if len(value.values) != 1 or not isinstance(outcome, Outcome):
        return {"hex": [each.hex() for each in value.values], "ttl": value.ttl}
    _, attempt, *times, content = outcome
    names = ("token", "created", "ended")
    counts = _numbers({"attempt": attempt, **dict(zip(names, times, strict=True))})
    return {"kind": KINDS[outcome.kind], **counts, "content": text(content), "ttl": value.ttl}


def _unresult(yaml_value: Mapping[str, Any]) -> Kept:
    if "hex" in yaml_value:
        return Kept(tuple(map(bytes.fromhex, yaml_value["hex"])), yaml_value["ttl"])
    kind = next(number for number, name in KINDS.items() if name == yaml_value["kind"])
    numbers = _unnumbers({name: yaml_value.get(name, 0) for name in ("attempt", "token", "created", "ended")})
    outcome = Outcome(kind=kind, content=untext(yaml_value["content"]), **numbers)
    return Kept((outcome.encode(),), yaml_value["ttl"])


# -- keys


def difference(before: Dump, after: Dump) -> dict[str, Any]:
    """Return what has to be changed of one keyspace to make another, as it is written."""
    found: dict[str, Any] = {}
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old != new:
            found |= _change(key, old, new)
    return found


def _change(key: str, old: Value | None, new: Value | None) -> dict[str, Any]:
    name = bare(key)
    if new is None:
        return {key: None}
    if isinstance(new, Kept):
        return {key: _result(new)}
    if isinstance(new, list):
        ones = name in LISTS and all(each == b"1" for each in new)
        return {key: len(new) if ones else {"as_list": [text(each) for each in new]}}
    if isinstance(new, bytes):
        if name != "state":
            return {key: {"as_string": text(new)}}
        fields = _state(new)
        return {key: {"hex": new.hex()} if fields is None else _changed(_state(old), fields)}
    fields_before: dict[bytes, Any] = old if isinstance(old, dict) else {}
    yaml_value: dict[str, dict[str, Any]] = {}
    for field in sorted(fields_before.keys() | new.keys()):
        value = new.get(field)
        if value == fields_before.get(field):
            continue
        extra = name == "meta" and field[:1] == b"\0"
        place = key.replace("meta", "extras") if extra else key
        written = None if value is None else _field(name, fields_before.get(field), value, extra=extra)
        yaml_value.setdefault(place, {})[(field[1:] if extra else field).decode()] = written
    return yaml_value


def _field(name: str, old: Any, new: bytes | float, *, extra: bool) -> Any:
    if not isinstance(new, bytes):
        return _score(name, new)
    if extra:
        return _extra(new)
    if name == "meta":
        fields = _record(new)
        if fields is None:
            return {"hex": new.hex()}
        return _changed(_record(old) if isinstance(old, bytes) else None, fields)
    if name == "counters" and re.fullmatch(rb"0|-?[1-9]\d{0,18}", new):
        return int(new)
    return text(new)


def keys_from_yaml(dump: Dump, yaml_value: Mapping[str, Any]) -> Dump:
    """A keyspace after a change that is written."""
    after = dict(dump)
    for key, change in yaml_value.items():
        try:
            _apply(after, key, change)
        except (TypeError, KeyError, AttributeError) as error:
            raise NotationError(f"{key}: {change!r} is no change of it ({error})") from error
    return after


def _apply(after: Dump, key: str, change: Any) -> None:
    name = bare(key)
    stored = key.replace("extras", "meta") if name == "extras" else key
    if change is None:
        after.pop(stored, None)
    elif isinstance(change, int):
        after[key] = [b"1"] * change
        if not change:
            del after[key]
    elif "as_list" in change:
        after[key] = [untext(each) for each in change["as_list"]]
    elif "as_string" in change:
        after[key] = untext(change["as_string"])
    elif name == "state":
        whole = set(change) == {"hex"}
        after[key] = (
            untext(change) if whole else State(**_unnumbers_of_state(after.get(key), change)).encode()
        )
    elif name.startswith("result:"):
        after[key] = _unresult(change)
    else:
        _apply_fields(after, stored, name, change)


def _unnumbers_of_state(old: Any, change: Mapping[str, Any]) -> dict[str, Any]:
    return {**(_state(old) or {}), **_unnumbers(change)}


def _apply_fields(after: Dump, key: str, name: str, change: Mapping[str, Any]) -> None:
    old = after.get(key)
    fields: dict[bytes, Any] = dict(old) if isinstance(old, dict) else {}
    for written, value in change.items():
        field = b"\0" * (name == "extras") + untext(written)
        if value is None:
            fields.pop(field, None)
        elif name == "extras":
            fields[field] = _unextra(value)
        elif bare(key) not in HASHES:
            fields[field] = _unscore(name, value)
        elif name == "meta" and isinstance(value, dict) and "hex" not in value:
            known = _record(fields[field]) if field in fields else None
            fields[field] = Record(
                **{"attempt": 0, "token": 0, "created": 0, **(known or {}), **_unnumbers(value)}
            ).encode()
        else:
            fields[field] = untext(value)
    after.pop(key, None)
    if fields:
        after[key] = fields


# -- replies


def reply_to_yaml(reply: Reply | Refused) -> Any:
    """A reply as it is written; an error is an object."""
    if isinstance(reply, Refused):
        return {"error": reply.code}
    if isinstance(reply, list):
        return [text(each) if isinstance(each, bytes) else _number_or_time(each) for each in reply]
    return text(reply) if isinstance(reply, bytes) else _number_or_time(reply)


def _number_or_time(number: Any) -> Any:
    # a script that is wrong may answer a status, or a float under RESP3
    return time(number) if isinstance(number, int) and number >= EPOCH else number


def reply_from_yaml(yaml_value: Any) -> Reply | Refused:
    """The reply that is written."""
    if isinstance(yaml_value, dict) and "error" in yaml_value:
        return Refused(yaml_value["error"])
    if isinstance(yaml_value, list):
        return [_value(each) for each in yaml_value]
    return _value(yaml_value)


def _value(yaml_value: Any) -> int | bytes:
    if isinstance(yaml_value, int):
        return yaml_value
    if isinstance(yaml_value, str) and (SECONDS.match(yaml_value) or DATE.match(yaml_value)):
        return untime(yaml_value)
    return untext(yaml_value)
