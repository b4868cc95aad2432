"""The signature of a script, read from its header: arguments, options and reply, each with its type.

    -- @arg NAME TYPE [RANGE][, TEXT]              what a call has once
    -- @entry NAME TYPE [RANGE][, TEXT]            what each of its entries has, behind that
    -- @follow_up NAME TYPE [RANGE][, TEXT]        what each follow-up of an entry has
    -- @option NAME TYPE [RANGE][ = DEFAULT][, TEXT]   in canonical order; one that has its default value is not sent
    -- @reply NAME TYPE[, TEXT]                    in order; with a star, one field of the group above it

Types of values:

    integer         decimal digits
    ms              a duration in milliseconds
    kept_ms         the same, where 0 has a meaning of its own that a shorter duration must not get
    us              a duration in microseconds
    time_ms, time_us   a time since 1970
    token, id, bytes, text
    flag            1; without it, not
    boolean         0 or 1
    word A|B        one of these
    any             whatever it is

Of an argument: `count` is the number of entries, queues or the like that follow; `options` is the number of options and then each
name and value; the name of a script is one entry of it.

Of a reply: `each` has the fields for each entry, bare where the call has one; `entries` has them in a row for each entry; `count`
has a number and so many rows; `rest` has rows up to the end; `follow_ups` has a row for each follow-up of its entry; `named` has
name and value in any order; the name of a script is all of its reply. A reply of one value is that value.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

VALUES = frozenset(
    (
        "integer",
        "ms",
        "kept_ms",
        "us",
        "time_ms",
        "time_us",
        "token",
        "id",
        "bytes",
        "text",
        "flag",
        "boolean",
        "word",
        "any",
    )
)
GROUPS = frozenset(("each", "entries", "count", "rest", "follow_ups", "named"))
MAX_HEADERS = 16
LINE = re.compile(
    r"(?P<name>\w+(?::NAME)?) (?P<type>\w+)"
    r"(?: (?P<min>-?\d+)\.\.(?P<max>\d+)| (?P<words>[a-z_]+(?:\|[a-z_]+)*))?"
    r"(?: = (?P<default>-?\d+))?(?:, (?P<text>.+))?"
)


class HeaderError(ValueError):
    """A header that is malformed, or that its script contradicts."""


@dataclass(frozen=True)
class Field:
    """One value, or one group of values."""

    name: str
    type: str
    min: int | None = None
    max: int | None = None
    words: list[str] | None = None
    default: int | None = None
    text: str = ""
    fields: "list[Field]" = field(default_factory=list)

    def plain(self) -> dict[str, object]:
        """As JSON data, without what is empty."""
        return _plain(asdict(self))


def _plain(values: dict[str, object]) -> dict[str, object]:
    found = {name: value for name, value in values.items() if value not in (None, "", [])}
    if "fields" in found:
        found["fields"] = [_plain(each) for each in found["fields"]]  # type: ignore[attr-defined]
    return found


@dataclass(frozen=True)
class Signature:
    """The parts of a call and of its reply."""

    arguments: list[Field]
    entry: list[Field]
    follow_up: list[Field]
    options: list[Field]
    reply: list[Field]


@dataclass(frozen=True)
class Script:
    """One script: what its header says, and the text the server gets."""

    name: str
    summary: str
    keys: list[dict[str, str]]
    more_keys: list[dict[str, str | list[str]]]
    signature: Signature
    errors: list[str]
    complexity: str
    source: str

    @property
    def sha1(self) -> str:
        """The digest that EVALSHA takes."""
        return hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()


def parse(script: str, tags: dict[str, list[str]], scripts: Iterable[str]) -> Signature:
    """The signature of a script, from the tags of its header. Raises HeaderError."""
    others = frozenset(scripts)
    options = [_field(script, text, VALUES) for text in tags.get("option", [])]
    counted = GROUPS & {"count"} | {"options"} | others
    parts = {
        tag: [_field(script, text, VALUES | counted) for text in tags.get(tag, [])]
        for tag in ("arg", "entry", "follow_up")
    }
    most = sum(MAX_HEADERS if each.name.endswith(":NAME") else 1 for each in options)
    for part, found in parts.items():
        parts[part] = [
            Field(each.name, each.type, int(part == "arg"), most, text=each.text)
            if each.type == "options"
            else each
            for each in found
        ]
    has_options = any(each.type == "options" for found in parts.values() for each in found)
    if has_options != bool(options):
        raise HeaderError(f"{script}: @option and an argument `options` go together")
    if parts["entry"] and not any(each.name == "entries" and each.type == "count" for each in parts["arg"]):
        raise HeaderError(f"{script}: what has @entry has @arg entries count")
    return Signature(
        parts["arg"],
        parts["entry"],
        parts["follow_up"],
        options,
        _reply(script, tags["reply"], VALUES | GROUPS | others),
    )


def _reply(script: str, lines: list[str], known: frozenset[str]) -> list[Field]:
    """The fields of a reply; those with stars belong to the group above them with a star less."""
    top: list[Field] = []
    groups = [top]
    for line in lines:
        stars = len(line) - len(line.lstrip("*"))
        found = _field(script, line[stars:].lstrip(), known)
        if stars >= len(groups):
            raise HeaderError(f"{script}: there is no group above @reply {line}")
        del groups[stars + 1 :]
        groups[-1].append(found)
        if found.type in GROUPS:
            groups.append(found.fields)
    return top


def _field(script: str, text: str, known: frozenset[str]) -> Field:
    match = LINE.fullmatch(text)
    if not match or match["type"] not in known or (match["type"] == "word") != bool(match["words"]):
        raise HeaderError(f"{script}: no argument, option or reply: {text}")
    number: dict[str, Any] = {
        name: int(match[name]) for name in ("min", "max", "default") if match[name] is not None
    }
    words = match["words"].split("|") if match["words"] else None
    return Field(match["name"], match["type"], words=words, text=match["text"] or "", **number)
