"""The words of a call by the manifest, so that a difference names an argument and not a place."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from leaseq_conformance.manifest import manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Words = dict[str, bytes]

SHOWN_BYTES = 100
"""Bytes of a long value that are shown."""


def difference(script: str, wanted: Sequence[bytes], sent: Sequence[bytes]) -> str:
    """Return how the arguments of a call differ from those that are expected; empty if they do not."""
    if wanted == sent:
        return ""
    expected, found = _named(script, wanted), _named(script, sent)
    for name, value in expected.items():
        if name not in found:
            return f"{name} is missing, expected {shown(value, b'')}"
        if found[name] != value and not name.startswith("number of options"):
            return f"{name} is {shown(found[name], value)}, expected {shown(value, found[name])}"
    for name, value in found.items():
        if name not in expected:
            return f"{name} is {shown(value, b'')}, expected none"
    return f"the order is {', '.join(found)}, expected {', '.join(expected)}"


def shown(value: bytes, other: bytes) -> str:
    """Return a value for people, cut if it is long: from a little before the place where it differs from the other."""
    if len(value) <= SHOWN_BYTES:
        return repr(value)
    pairs = enumerate(zip(value, other, strict=False))
    differs = next((place for place, (one, two) in pairs if one != two), min(len(value), len(other)))
    start = max(0, min(differs - SHOWN_BYTES // 2, len(value) - SHOWN_BYTES))
    cut = value[start : start + SHOWN_BYTES]
    return f"{'...' if start else ''}{cut!r}... ({len(value)} bytes, from {start})"


def _named(script: str, words: Sequence[bytes]) -> Words:
    """Each word by its name, such as `option keep of entry 2`; a word too many by its place."""
    left, counted, named = list(words), Counter[str](), Words()
    try:
        for name, word in _names(script, left):
            counted[name] += 1
            named[name if counted[name] == 1 else f"{name}, {counted[name]} times"] = word
    except (IndexError, ValueError):
        pass  # the words end early, or a number is none: the rest has no name
    for number, word in enumerate(left, len(words) - len(left) + 1):
        named[f"word {number}"] = word
    return named


def _names(script: str, words: list[bytes]) -> Iterator[tuple[str, bytes]]:
    signature, counts = manifest()["scripts"][script], dict[str, int]()
    for field in signature["arguments"]:
        if field["type"] == "options":
            yield from _options(words, "")
            continue
        word = words.pop(0)
        yield field["name"], word
        if field["type"] == "count":
            counts[field["name"]] = int(word)
    for number in range(1, counts.get("entries", 0) + 1):
        yield from _entry(script, words, f" of entry {number}")


def _entry(script: str, words: list[bytes], of: str) -> Iterator[tuple[str, bytes]]:
    signature = manifest()["scripts"][script]
    for field in signature["entry"]:
        if field["type"] == "options":
            yield from _options(words, of)
            continue
        word = words.pop(0)
        yield f"{field['name']}{of}", word
        if field["name"] == "follow_ups":
            for number in range(1, int(word) + 1):
                yield from _follow_up(signature["follow_up"], words, f" of follow-up {number}{of}")


def _follow_up(fields: Sequence[dict[str, Any]], words: list[bytes], of: str) -> Iterator[tuple[str, bytes]]:
    for field in fields:
        if field["type"] in manifest()["scripts"]:
            yield from _entry(field["type"], words, of)
        else:
            yield f"{field['name']}{of}", words.pop(0)


def _options(words: list[bytes], of: str) -> Iterator[tuple[str, bytes]]:
    count = words.pop(0)
    yield f"number of options{of}", count
    for _ in range(int(count)):
        name, value = words.pop(0).decode(errors="backslashreplace"), words.pop(0)
        yield f"option {name}{of}", value
