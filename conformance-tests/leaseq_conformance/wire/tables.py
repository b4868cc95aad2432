"""Cases that are tables: what a case writes once, for its first leases and for each row, is written out.

leased: {a: {}, b: {keep: 60000}}   a first step that leases these; `$a` is then the token of a, wherever it stands alone
each: {op: [...], error: [...]}     the steps once for each op, and for each of them once for each error, and so on
$op, $op.args                       the value of the row, or a member of it
$op.argv...                         in a list: the members of that list
{$with: $op.sent, error: ...}       the members of an object, and these
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

Step = dict[str, Any]
Values = Mapping[str, Any]

FIRST_TOKEN: Final = 1795227027266854
DEADLINE: Final = 1795227057266854
DURATION_MS: Final = 30000
_PLACE: Final = re.compile(r"\$([a-z][a-z0-9_]*)((?:\.[a-z][a-z0-9_]*)*)(\.\.\.)?")


class TableError(Exception):
    """A table that cannot be written out; the message says why."""


def steps_of(written: dict[str, Any]) -> list[Step]:
    """All steps of a case, as they are run. Raises TableError."""
    leased = written.get("leased", {})
    tokens = {name: str(FIRST_TOKEN + number) for number, name in enumerate(leased)}
    steps = [_lease(leased, tokens)] if leased else []
    each = written.get("each", {})
    for row in itertools.product(*each.values()):
        values = {**tokens, **dict(zip(each, row, strict=True))}
        steps += _filled(written["steps"], values)
    return steps


def _lease(leased: Mapping[str, Mapping[str, Any]], tokens: Mapping[str, str]) -> Step:
    items = [part for name in leased for part in (name, f"data of {name}", int(tokens[name]), 1)]
    more = [
        part
        for number, options in enumerate(leased.values(), 1)
        for name, value in options.items()
        for part in (number, name, value)
    ]
    count = {"count": len(leased)} if len(leased) > 1 else {}
    return {
        "call": "lease",
        "args": {**count, "duration_ms": DURATION_MS},
        "sent": [
            {
                "script": "lease",
                "argv": [len(leased), DURATION_MS],
                "reply": [0, DEADLINE, len(leased), *items, *more],
            }
        ],
        "ok": {"leases": [{"id": name, "token": tokens[name]} for name in leased]},
    }


def _filled(value: Any, values: Values) -> Any:
    if isinstance(value, str):
        found = _PLACE.fullmatch(value)
        return value if found is None else _value(found, values)
    if isinstance(value, list):
        return list(_members(value, values))
    if isinstance(value, dict):
        filled = {name: _filled(part, values) for name, part in value.items() if name != "$with"}
        return {**filled, **_filled(value["$with"], values)} if "$with" in value else filled
    return value


def _members(parts: list[Any], values: Values) -> Iterator[Any]:
    for part in parts:
        found = _PLACE.fullmatch(part) if isinstance(part, str) else None
        if found is not None and found[3]:
            yield from _value(found, values)
        else:
            yield _filled(part, values)


def _value(found: re.Match[str], values: Values) -> Any:
    value: Any = values
    for name in (found[1] + found[2]).split("."):
        if not isinstance(value, Mapping) or name not in value:
            raise TableError(f"{found[0]} is no value of this row")
        value = value[name]
    return _filled(value, values)
