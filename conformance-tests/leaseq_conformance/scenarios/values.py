r"""The notation of scenarios for values of messages: text for bytes, names of saved values, matchers.

In arguments and expectations, what is bytes in a message may be written as text. `$name` stands for a saved value.

    {$b64: ...}                     bytes that are no text
    {$repeat: [text, n]}            a long text
    {$text: 'a\ud800'}              an id that is text and no bytes, with escapes as JSON has them
    {$numbered: n}                  items whose ids are 0 to n-1, without data; $numbers: their ids
    {$times: [value, n, ...]}       a list with each value n times
    {$save: name}                   matches anything, and saves it
    {$above: value, plus: n}        a number above that value plus n (and not below it, with $from)
    {$from: value, plus: n}
    {$either: [...]}                one of these
    {$contains: text}               a text with that in it
    {$any: true}                    matches anything
    {$unordered: [...]}             a list in any order
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

BYTES: Final = frozenset({"id", "data", "result", "content", "content_type"})
"""Fields of messages that hold bytes; `ids` and the values of `headers` do too."""
NAME: Final = re.compile(r"^\$[a-z][a-z0-9_]*$")

Saved = dict[str, Any]


class MismatchError(Exception):
    """An answer is not what was expected."""


def encoded(value: Any) -> Any:
    """Text as the bytes of a message."""
    if isinstance(value, int):
        value = str(value)
    if isinstance(value, str) and not NAME.match(value):
        return {"$b64": base64.b64encode(value.encode()).decode()}
    if isinstance(value, dict) and "$repeat" in value:
        text, times = value["$repeat"]
        return {"$b64": base64.b64encode(text.encode() * times).decode()}
    if isinstance(value, dict) and "$text" in value:
        return {"$text": json.loads(f'"{value["$text"]}"')}
    return value


def text(value: dict[str, str]) -> str:
    """Bytes of a message as text."""
    return base64.b64decode(value["$b64"]).decode()


def plain(value: Any, place: str = "") -> Any:
    """A value as messages say it: text is made bytes where they want bytes, and short forms long."""
    if isinstance(value, dict) and value.keys() & {"$numbered", "$numbers", "$times"}:
        value = _long(value)
    if place in BYTES:
        return encoded(value)
    if place == "error" and isinstance(value, dict) and "$repeat" in value:
        text, times = value["$repeat"]
        return str(text) * int(times)
    if isinstance(value, list):
        return [plain(part, "id" if place == "ids" else "") for part in value]
    if isinstance(value, dict):
        return {name: plain(part, "data" if place == "headers" else name) for name, part in value.items()}
    return value


def _long(value: dict[str, Any]) -> list[Any]:
    if "$numbered" in value:
        return [{"id": str(number), "data": ""} for number in range(value["$numbered"])]
    if "$numbers" in value:
        return [str(number) for number in range(value["$numbers"])]
    parts = value["$times"]
    return [part for part, times in zip(parts[::2], parts[1::2], strict=True) for _ in range(times)]


def filled(value: Any, saved: Saved) -> Any:
    """A value with what was saved in the place of names."""
    if isinstance(value, str) and NAME.match(value):
        return saved[value[1:]]
    if isinstance(value, list):
        return [filled(part, saved) for part in value]
    if isinstance(value, dict):
        return {name: filled(part, saved) for name, part in value.items()}
    return value


def names_in(value: Any) -> Iterator[str]:
    """The names that are used."""
    if isinstance(value, str) and NAME.match(value):
        yield value[1:]
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from names_in(part)


def names_saved(value: Any) -> Iterator[str]:
    """The names that are given a value."""
    if isinstance(value, dict):
        if "$save" in value:
            yield value["$save"]
        for part in value.values():
            yield from names_saved(part)
    elif isinstance(value, list):
        for part in value:
            yield from names_saved(part)


def match(expected: Any, got: Any, saved: Saved, place: str = "the answer") -> None:
    """Compare: objects by the fields that are expected, all else as it is.

    Raises:
        MismatchError: it is something else.
    """
    if (
        isinstance(expected, dict)
        and any(name.startswith("$") for name in expected)
        and "$b64" not in expected
    ):
        _match_special(expected, got, saved, place)
    elif isinstance(expected, dict):
        if not isinstance(got, dict):
            raise MismatchError(f"{place} is {got!r}, no object")
        for name, part in expected.items():
            if name not in got:
                raise MismatchError(f"{place} has no {name}: {got!r}")
            match(part, got[name], saved, f"{place}.{name}")
    elif isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            raise MismatchError(f"{place} is {shown(got)}, expected {len(expected)} of {shown(expected)}")
        for number, (part, found) in enumerate(zip(expected, got, strict=True)):
            match(part, found, saved, f"{place}[{number}]")
    else:
        wanted = filled(expected, saved)
        if wanted != got or isinstance(wanted, bool) != isinstance(got, bool):
            raise MismatchError(f"{place} is {shown(got)}, expected {shown(wanted)}")


def _match_special(expected: dict[str, Any], got: Any, saved: Saved, place: str) -> None:
    if "$save" in expected:
        saved[expected["$save"]] = got
    for name, least in (("$above", 1), ("$from", 0)):
        if name in expected:
            bound = int(filled(expected[name], saved)) + expected.get("plus", 0)
            if int(got) < bound + least:
                raise MismatchError(f"{place} is {got}, expected {'above' if least else 'at least'} {bound}")
    if "$contains" in expected and expected["$contains"] not in got:
        raise MismatchError(f"{place} is {shown(got)}, which does not contain {expected['$contains']!r}")
    if "$either" in expected and got not in filled(expected["$either"], saved):
        raise MismatchError(f"{place} is {shown(got)}, expected one of {shown(expected['$either'])}")
    if "$unordered" in expected:
        _match_unordered(expected["$unordered"], got, saved, place)


def _match_unordered(expected: list[Any], got: Any, saved: Saved, place: str) -> None:
    left = list(got) if isinstance(got, list) else []
    if len(left) != len(expected):
        raise MismatchError(f"{place} is {shown(got)}, expected {shown(expected)} in any order")
    for part in expected:
        for found in left:
            try:
                match(part, found, saved, place)
            except MismatchError:
                continue
            left.remove(found)
            break
        else:
            raise MismatchError(f"{place} is {shown(got)}, expected {shown(part)} among it")


def shown(value: Any) -> str:
    """A value for people: bytes as text."""
    text = re.sub(r"\{'\$b64': '([^']*)'\}", _decoded, repr(value))
    return text if len(text) <= 600 else text[:600] + "..."


def _decoded(found: re.Match[str]) -> str:
    return repr(base64.b64decode(found[1]))
