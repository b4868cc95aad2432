"""The signature of a script, read from its header: arguments, options and reply, each with its type.

    -- @arg NAME TYPE [RANGE][, TEXT]              what a call has once
    -- @entry NAME TYPE [RANGE][, TEXT]            what each of its entries has, behind that
    -- @follow_up NAME TYPE [RANGE][, TEXT]        what each follow-up of an entry has
    -- @option NAME TYPE [RANGE][ = DEFAULT][, TEXT]   in canonical order; an option with its default value is not sent
    -- @reply NAME TYPE[, TEXT]                    in order; with a star, one field of the group above it

Types of values:

    integer         decimal digits
    ms              a duration in milliseconds
    kept_ms         the same, where 0 has a special meaning that a shorter duration must not get
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
has a number and then that many rows; `rest` has rows up to the end; `follow_ups` has a row for each follow-up of its entry; `named` has
name and value in any order; the name of a script is all of its reply. A reply of one value is that value.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

TIMES = {"ms", "kept_ms", "us", "time_ms", "time_us"}
VALUES = TIMES | {"integer", "token", "id", "bytes", "text", "flag", "boolean", "word", "any"}
GROUPS = {"each", "entries", "count", "rest", "follow_ups", "named"}
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
    """One value, or one group of values, of the script `owner`."""

    name: str
    type: str
    min: int | None = None
    max: int | None = None
    words: list[str] | None = None
    default: int | None = None
    text: str = ""
    fields: "list[Field]" = field(default_factory=list)
    owner: str = ""

    @property
    def prefix(self) -> str:
        """Of an option that is given any number of times, as `header:NAME`: what stands before each name; else empty."""
        return self.name.removesuffix(":NAME") if self.name.endswith(":NAME") else ""

    @property
    def switch(self) -> str:
        """Of an option that is given or not: the one value it has; else empty."""
        words = ["1"] if self.type == "flag" else self.words or []
        return words[0] if len(words) == 1 else ""

    @property
    def zero_is_none(self) -> bool:
        """True for a duration whose 0 is not sent: it stands for none."""
        return self.type == "kept_ms" and bool(self.min)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON data, without what is empty."""
        names = ("name", "type", "min", "max", "words", "default", "text")
        found = {name: getattr(self, name) for name in names if getattr(self, name) not in (None, "")}
        return found | ({"fields": [each.plain() for each in self.fields]} if self.fields else {})


@dataclass(frozen=True)
class Signature:
    """The parts of a call and of its reply."""

    arguments: list[Field]
    entry: list[Field]
    follow_up: list[Field]
    options: list[Field]
    reply: list[Field]

    def given(self, fields: Iterable[Field]) -> list[Field]:
        """Return what a caller gives for fields of a call: lists in place of their lengths, an entry in place of its script.

        Entries of one value are its `ids`.
        """
        lists = {"entries": "ids" if len(self.entry) == 1 else "entries", "follow_ups": "follow_ups"}
        return [
            replace(each, name=lists[each.name], type=lists[each.name])
            if each.name in lists
            else each
            if each.type in VALUES | {"count", "options"}
            else replace(each, type="entry")
            for each in fields
        ]

    @property
    def shape(self) -> str:
        """The form of the reply.

        `value`: one value; `each`: one for each entry; `rows`: rows and nothing else; `follow_ups`: a value for each entry, and
        a row for each of its follow-ups; `named`: names and values, at most one value before them; `fields`: values, then groups.
        """
        *before, last = self.reply
        if last.type == "named":
            return "named"
        if before or last.type not in VALUES | GROUPS:
            return "fields"
        if not last.fields:
            return "value"
        inner = {each.type for each in last.fields}
        return "each" if last.type == "each" else "follow_ups" if "follow_ups" in inner else "rows"

    def plain(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {part: [each.plain() for each in fields] for part, fields in vars(self).items()}


def parse(script: str, tags: dict[str, list[str]], scripts: Iterable[str]) -> Signature:
    """Return the signature of a script, from the tags of its header.

    Raises:
        HeaderError: a line of the header is malformed, or lines contradict each other.
    """
    others = {*scripts}
    options = [_field(script, text, VALUES) for text in tags.get("option", [])]
    most = sum(MAX_HEADERS if each.prefix else 1 for each in options)
    parts = {}
    for tag in ("arg", "entry", "follow_up"):
        found = [_field(script, text, VALUES | {"count", "options"} | others) for text in tags.get(tag, [])]
        least = int(tag == "arg")
        parts[tag] = [
            replace(each, min=least, max=most) if each.type == "options" else each for each in found
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


def _reply(script: str, lines: list[str], known: set[str]) -> list[Field]:
    """Return the fields of a reply; those with stars belong to the group above them with a star less."""
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


def _field(script: str, text: str, known: set[str]) -> Field:
    match = LINE.fullmatch(text)
    if not match or match["type"] not in known or (match["type"] == "word") != bool(match["words"]):
        raise HeaderError(f"{script}: no argument, option or reply: {text}")
    words = match["words"].split("|") if match["words"] else None
    numbers: dict[str, Any] = {
        name: int(match[name]) for name in ("min", "max", "default") if match[name] is not None
    }
    return Field(match["name"], match["type"], words=words, text=match["text"] or "", owner=script, **numbers)
