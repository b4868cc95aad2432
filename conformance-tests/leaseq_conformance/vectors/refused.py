"""Arguments and keys that every script must refuse, and then leave everything as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.vectors.builder import DAY
from leaseq_conformance.vectors.particular import DECADE, SPECIAL, Row
from leaseq_conformance.vectors.samples import LEASE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from leaseq_conformance.vectors.builder import World

MONTH: Final = 30 * DAY
BAD_IDS: Final[dict[str, bytes]] = {
    "empty": b"",
    "257 bytes": b"i" * 257,
    "258 bytes of UTF-8": "é".encode() * 129,
    "NUL": b"a\0b",
    "NUL first": b"\0x1",
    "NUL alone": b"\0",
    "lone continuation": b"\x80",
    "overlong of two": b"\xc0\x80",
    "overlong of two, the last": b"\xc1\xbf",
    "overlong of three": b"\xe0\x9f\xbf",
    "surrogate": b"\xed\xa0\x80",
    "overlong of four": b"\xf0\x8f\xbf\xbf",
    "above the last": b"\xf4\x90\x80\x80",
    "lead that is none": b"\xf5\x80\x80\x80",
    "cut after one": b"a\xc3",
    "cut after two": b"\xe2\x82",
    "cut after three": b"\xf0\x9f\x98",
    "cut, then ASCII": b"\xc3a",
    "not UTF-8": b"\xff",
    "UTF-8, then not": b"\xc3\xa9\xff",
}
NO_NUMBERS: Final = ("", "-1", "x", "1.0", "0x1", "1e1", " 1", "1 ", "+1", "nan", "0" * 16 + "1")
BAD_TOKENS: Final = ("", "x", "-1", "1.5", "0x10", "1e3", " 1", "nan", "1" * 17)
ENTRY: Final[dict[str, list[Any]]] = {
    "add": [1, "ID", "data", 0],
    "complete": [1, "ID", "TOKEN", 0],
    "complete_and_lease": [1, 1000, 1, "ID", "TOKEN", 0],
    "complete_with": [1, 0, "ID", "TOKEN", 0, 0],
    "extend": [1, "ID", "TOKEN", 1000],
    "inspect": [1, "ID"],
    "outcome": [1, "ID"],
    "purge": [0, 1, "ID"],
    "release": [1, "ID", "TOKEN", 0],
    "remove": [1, "ID"],
    "revive": [1, "ID"],
}
"""One entry without options, where id and token are to be put in."""
NUMBERS: Final[dict[str, list[tuple[list[Any], int, int, int]]]] = {
    "add": [
        ([1, "n1", "x", 0], 0, 1, 256),
        ([1, "n1", "x", 0], 3, 0, 24),
        *(
            ([1, "n1", "x", 1, name, 1], 5, low, high)
            for name, low, high in (
                *(("delay", 0, DECADE), ("not_before", 0, 2_840_140_799_999), ("max_attempts", 0, 65_534)),
                *(("expires_in", 1, DECADE), ("keep", 1, DECADE)),
            )
        ),
    ],
    "complete": [([1, "c1", 5, 0], 0, 1, 256), ([1, "c1", 5, 0], 3, 0, 1)],
    "complete_and_lease": [
        ([1, 1000, 1, "c1", 5, 0], 0, 1, 256),
        ([1, 1000, 1, "c1", 5, 0], 1, 1, MONTH),
        ([1, 1000, 1, "c1", 5, 0], 2, 1, 256),
        ([1, 1000, 1, "c1", 5, 0], 5, 0, 1),
    ],
    "complete_with": [
        ([1, 0, "c1", 5, 0, 0], 0, 1, 256),
        ([1, 0, "c1", 5, 0, 0], 1, 0, 16),
        ([1, 0, "c1", 5, 0, 0], 4, 0, 3),
        ([1, 0, "c1", 5, 0, 0], 5, 0, 256),
        ([1, 0, "c1", 5, 1, "keep", 1, 0], 6, 0, DECADE),
    ],
    "configure": [
        ([1, "paused", 1], 0, 1, 4),
        ([1, "paused", 1], 2, 0, 1),
        ([1, "max_data", 1], 2, 1, 536_870_912),
        ([1, "max_items", 1], 2, 0, 4_294_967_295),
        ([1, "max_attempts", 1], 2, 0, 65_534),
    ],
    "deep_clean": [(["0", 10, 0], 1, 1, 256), (["0", 10, 0], 2, 0, 1)],
    "extend": [([1, "c1", 5, 1000], 0, 1, 256), ([1, "c1", 5, 1000], 3, 1, MONTH)],
    "inspect": [([1, "c1"], 0, 1, 256)],
    "lease": [([1, 1000], 0, 1, 256), ([1, 1000], 1, 1, MONTH)],
    "lease_any": [([1, 1, 1000], 0, 1, 16), ([1, 1, 1000], 1, 1, 256), ([1, 1, 1000], 2, 1, MONTH)],
    "light_clean": [([1], 0, 1, 256)],
    "list": [(["ready", 0, 1, "forward"], 1, 0, 2**53 - 1), (["ready", 0, 1, "forward"], 2, 1, 256)],
    "outcome": [([1, "c1"], 0, 1, 256)],
    "purge": [([0, 1, "x1"], 0, 0, DECADE), ([0, 1, "x1"], 1, 1, 256)],
    "release": [
        ([1, "c1", 5, 0], 0, 1, 256),
        ([1, "c1", 5, 0], 3, 0, 5),
        ([1, "c1", 5, 1, "delay", 1], 5, 0, DECADE),
        ([1, "c1", 5, 1, "keep", 1], 5, 0, DECADE),
    ],
    "remove": [([1, "c1"], 0, 1, 256)],
    "revive": [([1, "x1"], 0, 1, 256)],
}
"""Calls with a number in them: the arguments, its place, the least and the most it may be."""


def more_of(script: str, argv: Sequence[Any]) -> list[str]:
    """The keys behind the fixed ones that these calls pass."""
    if script == "lease_any":
        return list(LEASE)
    if script == "outcome":
        return [f"result:{_text(argv[1])}"]
    return ["result:c1"] * ("keep" in argv and script in {"release", "complete_with"})


def _text(item_id: Any) -> str:
    return item_id.decode("latin-1") if isinstance(item_id, bytes) else str(item_id)


def arguments(script: str, world: World) -> Iterator[Row]:
    """Calls whose arguments are wrong."""
    yield from _numbers(script)
    yield from _entries(script)
    yield from _counts(script)
    for title, argv, code, more in SPECIAL.get(script, []):
        named = [world.token(b"c1") if each == "TOKEN" else each for each in argv]
        yield title, named, code, more


def _numbers(script: str) -> Iterator[Row]:
    for argv, at, low, high in NUMBERS.get(script, []):
        what = f"argument {at} of {' '.join(map(str, argv))}"
        wrong: list[Any] = [*NO_NUMBERS, high + 1]
        if low:
            wrong.append(low - 1)
        for value in wrong:
            changed = [*argv[:at], value, *argv[at + 1 :]]
            yield f"{what} is {value!r}", changed, "BAD_ARGUMENT", more_of(script, changed)


def _entries(script: str) -> Iterator[Row]:
    entry = ENTRY.get(script)
    if not entry:
        return
    for title, item_id in BAD_IDS.items():
        argv = [{"ID": item_id, "TOKEN": 5}.get(each, each) for each in entry]
        yield f"id: {title}", argv, "BAD_ID", more_of(script, [1, item_id])
    first = entry.index("ID")
    good, bad = (
        [{"ID": item_id, "TOKEN": 5}.get(each, each) for each in entry[first:]] for item_id in ("r1", b"\xff")
    )
    for title, both in (("second", [*good, *bad]), ("first", [*bad, *good])):
        argv = [*entry[: first - 1], 2, *both]
        if script == "complete_with":
            argv = [2, 0, *both]
        more = ["result:r1", "result:\xff"] if script == "outcome" else []
        yield f"id of the {title} of two", argv, "BAD_ID", more
    for token in BAD_TOKENS if "TOKEN" in entry else ():
        argv = [{"ID": "c1", "TOKEN": token}.get(each, each) for each in entry]
        yield f"token {token!r}", argv, "BAD_ARGUMENT", more_of(script, argv)


PLAIN: Final[dict[str, list[Any]]] = {
    **{name: [{"ID": "c1", "TOKEN": 5}.get(each, each) for each in entry] for name, entry in ENTRY.items()},
    "configure": [1, "paused", 1],
    "deep_clean": ["0", 10, 0],
    "lease": [1, 1000],
    "lease_any": [1, 1, 1000],
    "light_clean": [1],
    "list": ["ready", 0, 1, "forward"],
    "settle": [],
    "stats": [],
}
"""A call of each script that would be right."""


NONE: Final[dict[str, list[Any]]] = {
    **{
        name: [0]
        for name in ("add", "complete", "extend", "inspect", "outcome", "release", "remove", "revive")
    },
    "complete_and_lease": [1, 1000, 0],
    "complete_with": [0, 0],
    "purge": [0, 0],
}
"""Calls of no entries."""


def _counts(script: str) -> Iterator[Row]:
    plain = PLAIN[script]
    if script in NONE:
        yield "no entries", NONE[script], "BAD_ARGUMENT", []
    more = more_of(script, plain)
    yield "one argument too many", [*plain, "x"], "BAD_ARGUMENT", more
    yield "two arguments too many", [*plain, "x", "0"], "BAD_ARGUMENT", more
    if plain:
        yield "no arguments", [], "BAD_ARGUMENT", more
        last_is_id = ENTRY.get(script, [""])[-1] == "ID"
        yield "one argument too few", plain[:-1], "BAD_ID" if last_is_id else "BAD_ARGUMENT", more


def key_counts(script: str) -> Iterator[tuple[str, list[Any], list[str]]]:
    """Calls with too few or too many keys."""
    plain = PLAIN[script]
    keys = [*SCRIPTS[script].keys, *more_of(script, plain)]
    yield "no keys", plain, []
    yield "one key too few", plain, keys[:-1]
    yield "one key too many", plain, [*keys, "result:c1"]
