"""Arguments and keys that every script must refuse, and then leave everything as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq import _scripts
from leaseq_conformance.vectors.samples import LEASE, TARGET, keys_of
from leaseq_conformance.vectors.worlds import DAY, NOW

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from leaseq_conformance.vectors.worlds import World

Row = tuple[str, list[Any], str, list[str]]
"""A title, the arguments, the code, and the keys behind the fixed ones."""

SCRIPTS: Final = {script.name: script for script in _scripts.SCRIPTS}
DECADE: Final = 315_360_000_000
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


def _option(name: Any, value: Any, *more: Any) -> list[Any]:
    pairs = [name, value, *more]
    return [1, "n1", "x", len(pairs) // 2, *pairs]


_WITH: Final = [1, 1, "c1", "TOKEN", 0, 1, 1, "n1", "x"]
SPECIAL: Final[dict[str, list[Row]]] = {
    "add": [
        ("an option that is not there", [1, "n1", "x", 1], "BAD_ARGUMENT", []),
        ("an option that is not there, data 0", [1, "n1", "0", 1], "BAD_ARGUMENT", []),
        ("an entry that is not there", [2, "n1", "x", 0], "BAD_ID", []),
        ("id of 257 bytes, of two", [2, "i" * 257, "x", 0, "n1", "x", 0], "BAD_ID", []),
        ("an entry that is not there, id 1", [2, "1", "x", 0], "BAD_ID", []),
        *(
            (f"priority {value!r}", _option("priority", value), "BAD_ARGUMENT", [])
            for value in ("8", "-8", "+1", "01", "", "-", "1.0", "--1", "10", "-10", "x", "1e0")
        ),
        ("unknown option", _option("colour", "red"), "BAD_ARGUMENT", []),
        ("expires_to without expires_in", _option("expires_to", "dead"), "BAD_ARGUMENT", []),
        ("expires_to elsewhere", _option("expires_in", 1, "expires_to", "ready"), "BAD_ARGUMENT", []),
        ("option twice", _option("priority", 1, "priority", 1), "BAD_ARGUMENT", []),
        ("header twice", _option("header:a", 1, "header:a", 2), "BAD_ARGUMENT", []),
        ("content type twice", _option("content_type", "", "content_type", ""), "BAD_ARGUMENT", []),
        ("delay and not_before", _option("delay", 0, "not_before", 0), "BAD_ARGUMENT", []),
        ("not_before and delay", _option("not_before", 0, "delay", 0), "BAD_ARGUMENT", []),
        ("expires when it is due", _option("delay", 5, "expires_in", 5), "BAD_ARGUMENT", []),
        ("expires before it is due", _option("delay", 6, "expires_in", 5), "BAD_ARGUMENT", []),
        ("expires, though due in the past", _option("not_before", 0, "expires_in", 0), "BAD_ARGUMENT", []),
        ("header without a name", _option("header:", "x"), "BAD_ARGUMENT", []),
        ("header's name of 101", _option("header:" + "h" * 101, "x"), "BAD_ARGUMENT", []),
        ("header's name with a space", _option("header:a b", "x"), "BAD_ARGUMENT", []),
        ("header's name with UTF-8", _option("header:é".encode(), "x"), "BAD_ARGUMENT", []),
        ("header's name with a line end", _option("header:a\n", "x"), "BAD_ARGUMENT", []),
        ("no header but like one", _option("xheader:a", "x"), "BAD_ARGUMENT", []),
        (
            "17 headers",
            _option(*(part for n in range(17) for part in (f"header:h{n}", "x"))),
            "BAD_ARGUMENT",
            [],
        ),
        ("extra of 4097 bytes", _option("header:h", "v" * 4089), "TOO_LARGE", []),
        (
            "extra of 4097 bytes in two",
            _option("header:h", "v" * 4070, "header:i", "v" * 11),
            "TOO_LARGE",
            [],
        ),
        ("content type of 4097 bytes", _option("content_type", "v" * 4085), "TOO_LARGE", []),
        ("data too long", [1, "n1", b"x" * 1_048_577, 0], "TOO_LARGE", []),
        ("data too long, with an option", [1, "n1", b"x" * 1_048_577, 1, "delay", 1], "TOO_LARGE", []),
        ("data too long, second of two", [2, "n1", "", 0, "n2", b"x" * 1_048_577, 0], "TOO_LARGE", []),
        (
            "25 options",
            _option(*(part for n in range(25) for part in (f"header:{n}", ""))),
            "BAD_ARGUMENT",
            [],
        ),
        ("second of two is wrong", [2, "n1", "x", 0, "n2", "x", 1, "keep", 0], "BAD_ARGUMENT", []),
        ("option without a value", [1, "n1", "x", 1, "delay"], "BAD_ARGUMENT", []),
        ("fewer options than said", [1, "n1", "x", 2, "delay", 1], "BAD_ARGUMENT", []),
    ],
    "complete": [
        ("an entry that is not there", [2, "1", 5, 0], "BAD_ARGUMENT", []),
        ("257 entries", [257, *["c1", 5, 0] * 257], "BAD_ARGUMENT", []),
        ("id of 257 bytes, of two", [2, "i" * 257, 5, 0, "c1", 5, 0], "BAD_ID", []),
        ("token of 17 digits, of two", [2, "c1", "1" * 17, 0, "c2", 5, 0], "BAD_ARGUMENT", []),
        ("two options, one there", [1, "c1", "TOKEN", 2, "only_current", 1], "BAD_ARGUMENT", []),
        ("an option that is not there", [1, "c1", "TOKEN", 1], "BAD_ARGUMENT", []),
        ("an option that is not there, token 0", [1, "c1", 0, 1], "BAD_ARGUMENT", []),
        ("unknown option", [1, "c1", "TOKEN", 1, "keep", 1], "BAD_ARGUMENT", []),
        ("only_current 0", [1, "c1", "TOKEN", 1, "only_current", 0], "BAD_ARGUMENT", []),
        ("option without a value", [1, "c1", "TOKEN", 1, "only_current"], "BAD_ARGUMENT", []),
        ("second of two is wrong", [2, "c1", "TOKEN", 0, "c2", "x", 0], "BAD_ARGUMENT", []),
    ],
    "complete_and_lease": [
        ("unknown option", [1, 1000, 1, "c1", "TOKEN", 1, "keep", 1], "BAD_ARGUMENT", []),
        ("only_current 0", [1, 1000, 1, "c1", "TOKEN", 1, "only_current", 0], "BAD_ARGUMENT", []),
        ("second of two is wrong", [1, 1000, 2, "c1", "TOKEN", 0, "c2", "x", 0], "BAD_ARGUMENT", []),
    ],
    "complete_with": [
        ("unknown option", [1, 0, "c1", "TOKEN", 1, "colour", 1, 0], "BAD_ARGUMENT", []),
        ("only_current 0", [1, 0, "c1", "TOKEN", 1, "only_current", 0, 0], "BAD_ARGUMENT", []),
        (
            "only_current twice",
            [1, 0, "c1", "TOKEN", 2, "only_current", 1, "only_current", 1, 0],
            "BAD_ARGUMENT",
            [],
        ),
        ("keep twice", [1, 0, "c1", "TOKEN", 2, "keep", 1, "keep", 1, 0], "BAD_ARGUMENT", ["result:c1"] * 2),
        (
            "result twice",
            [1, 0, "c1", "TOKEN", 3, "keep", 1, "result", "", "result", "", 0],
            "BAD_ARGUMENT",
            ["result:c1"],
        ),
        ("result without keep", [1, 0, "c1", "TOKEN", 1, "result", "r", 0], "BAD_ARGUMENT", []),
        (
            "result too long",
            [1, 0, "c1", "TOKEN", 2, "keep", 1, "result", b"x" * 1_048_577, 0],
            "TOO_LARGE",
            ["result:c1"],
        ),
        ("keep without its key", [1, 0, "c1", "TOKEN", 1, "keep", 1, 0], "BAD_ARGUMENT", []),
        ("a result key too many", [1, 0, "c1", "TOKEN", 0, 0], "BAD_ARGUMENT", ["result:c1"]),
        ("result key of another", [1, 0, "c1", "TOKEN", 1, "keep", 1, 0], "BAD_ARGUMENT", ["result:c2"]),
        ("result key that is none", [1, 0, "c1", "TOKEN", 1, "keep", 1, 0], "BAD_ARGUMENT", ["xresult:c1x"]),
        (
            "result keys in another order",
            [2, 0, "c1", "TOKEN", 1, "keep", 1, 0, "c2", "TOKEN", 1, "keep", 1, 0],
            "BAD_ARGUMENT",
            ["result:c2", "result:c1"],
        ),
        ("follow-up without a target", [1, 0, "c1", "TOKEN", 0, 1, 1, "n1", "x", 0], "BAD_ARGUMENT", []),
        ("target without keys", [1, 1, "c1", "TOKEN", 0, 0], "BAD_ARGUMENT", []),
        (
            "target with eight keys",
            [1, 1, "c1", "TOKEN", 0, 0],
            "BAD_ARGUMENT",
            keys_of(TARGET, other=True)[:8],
        ),
        *(
            (f"follow-up: {title}", [*_WITH[:6], *rest], code, keys_of(TARGET, other=True))
            for title, rest, code in (
                ("target 0", [0, "n1", "x", 0], "BAD_ARGUMENT"),
                ("target 2", [2, "n1", "x", 0], "BAD_ARGUMENT"),
                ("its id", [1, b"\xff", "x", 0], "BAD_ID"),
                ("its id empty", [1, "", "x", 0], "BAD_ID"),
                ("its option", [1, "n1", "x", 1, "colour", 1], "BAD_ARGUMENT"),
                ("its option twice", [1, "n1", "x", 2, "keep", 1, "keep", 1], "BAD_ARGUMENT"),
                ("its priority", [1, "n1", "x", 1, "priority", 8], "BAD_ARGUMENT"),
                ("its delay", [1, "n1", "x", 1, "delay", DECADE + 1], "BAD_ARGUMENT"),
                ("its delays", [1, "n1", "x", 2, "not_before", 1, "delay", 1], "BAD_ARGUMENT"),
                ("its expiry", [1, "n1", "x", 2, "delay", 9, "expires_in", 9], "BAD_ARGUMENT"),
                ("its expires_to", [1, "n1", "x", 1, "expires_to", "dead"], "BAD_ARGUMENT"),
                ("its keep", [1, "n1", "x", 1, "keep", 0], "BAD_ARGUMENT"),
                ("its max_attempts", [1, "n1", "x", 1, "max_attempts", 65_535], "BAD_ARGUMENT"),
                ("its extra", [1, "n1", "x", 1, "header:h", "v" * 4089], "TOO_LARGE"),
                ("its header", [1, "n1", "x", 1, "header:", "v"], "BAD_ARGUMENT"),
                ("its data", [1, "n1", b"x" * 1_048_577, 0], "TOO_LARGE"),
                ("one argument too many", [1, "n1", "x", 0, "y"], "BAD_ARGUMENT"),
                ("one argument too few", [1, "n1", "x"], "BAD_ARGUMENT"),
            )
        ),
        (
            "257 follow-ups",
            [2, 1, "c1", "TOKEN", 0, 256, *[1, "n1", "", 0] * 256, "c2", 5, 0, 1, 1, "n1", "", 0],
            "BAD_ARGUMENT",
            keys_of(TARGET, other=True),
        ),
        (
            "a target of another group",
            [1, 1, "c1", "TOKEN", 0, 0],
            "CROSS_GROUP",
            ["leaseq:{elsewhere}:queue:" + name for name in TARGET],
        ),
        (
            "a target's last key of another group",
            [1, 1, "c1", "TOKEN", 0, 0],
            "CROSS_GROUP",
            [*keys_of(TARGET, other=True)[:8], "leaseq:{elsewhere}:other:wake"],
        ),
        (
            "a result key of another group",
            [1, 0, "c1", "TOKEN", 1, "keep", 1, 0],
            "CROSS_GROUP",
            ["leaseq:{elsewhere}:queue:result:c1"],
        ),
        (
            "a result key without a group",
            [1, 0, "c1", "TOKEN", 1, "keep", 1, 0],
            "CROSS_GROUP",
            ["leaseq::queue:result:c1"],
        ),
    ],
    "configure": [
        ("unknown option", [1, "colour", 1], "BAD_ARGUMENT", []),
        ("option twice", [2, "paused", 1, "paused", 1], "BAD_ARGUMENT", []),
        (
            "five options",
            [5, "max_data", 1, "max_items", 1, "max_attempts", 1, "paused", 1, "paused", 1],
            "BAD_ARGUMENT",
            [],
        ),
        ("second is wrong", [2, "paused", 1, "max_data", 0], "BAD_ARGUMENT", []),
        ("no options", [0], "BAD_ARGUMENT", []),
    ],
    "deep_clean": [
        (f"cursor {cursor!r}", [cursor, 10, 0], "BAD_ARGUMENT", [])
        for cursor in (
            *("", "1", "0:0", "9:0", "1:", ":0", "1:x", "1:-1", "1:0 ", " 1:0", "12:0", "1:0:0", "00"),
            *("1:18446744073709551616", "1:000000000000000000000", "1:99999999999999999999", "2:1e3"),
        )
    ],
    "lease": [
        ("three digits more", ["1000", 1000], "BAD_ARGUMENT", []),
        ("one argument", [1], "BAD_ARGUMENT", []),
    ],
    "lease_any": [
        ("two queues and keys of one", [2, 1, 1000], "BAD_ARGUMENT", list(LEASE)),
        ("one queue and keys of two", [1, 1, 1000], "BAD_ARGUMENT", [*LEASE, *keys_of(LEASE, other=True)]),
        ("17 queues", [17, 1, 1000], "BAD_ARGUMENT", [*LEASE] * 17),
    ],
    "list": [
        ("unknown state", ["absent", 0, 1, "forward"], "BAD_ARGUMENT", []),
        ("expiry is no state", ["expiry", 0, 1, "forward"], "BAD_ARGUMENT", []),
        ("unknown order", ["ready", 0, 1, "up"], "BAD_ARGUMENT", []),
    ],
    "outcome": [
        ("no result key", [1, "c1"], "BAD_ARGUMENT", []),
        ("a result key too many", [1, "c1"], "BAD_ARGUMENT", ["result:c1", "result:c1"]),
        ("result key of another", [1, "c1"], "BAD_ARGUMENT", ["result:c2"]),
        ("result key that is none", [1, "c1"], "BAD_ARGUMENT", ["xresult:c1x"]),
        ("result keys in another order", [2, "c1", "c2"], "BAD_ARGUMENT", ["result:c2", "result:c1"]),
    ],
    "release": [
        ("unknown option", [1, "c1", "TOKEN", 1, "colour", 1], "BAD_ARGUMENT", []),
        ("uncounted 0", [1, "c1", "TOKEN", 1, "uncounted", 0], "BAD_ARGUMENT", []),
        ("dead 0", [1, "c1", "TOKEN", 1, "dead", 0], "BAD_ARGUMENT", []),
        *(
            (f"{name} twice", [1, "c1", "TOKEN", 2, name, 1, name, 1], "BAD_ARGUMENT", [])
            for name in ("delay", "uncounted", "error", "dead")
        ),
        ("keep twice", [1, "c1", "TOKEN", 2, "keep", 1, "keep", 1], "BAD_ARGUMENT", ["result:c1"] * 2),
        ("dead and delay", [1, "c1", "TOKEN", 2, "dead", 1, "delay", 0], "BAD_ARGUMENT", []),
        ("dead and uncounted", [1, "c1", "TOKEN", 2, "uncounted", 1, "dead", 1], "BAD_ARGUMENT", []),
        ("error without a value", [1, "c1", "TOKEN", 1, "error"], "BAD_ARGUMENT", []),
        ("keep without its key", [1, "c1", "TOKEN", 1, "keep", 1], "BAD_ARGUMENT", []),
        ("a result key too many", [1, "c1", "TOKEN", 0], "BAD_ARGUMENT", ["result:c1"]),
        ("result key of another", [1, "c1", "TOKEN", 1, "keep", 1], "BAD_ARGUMENT", ["result:c2"]),
        ("result key that is none", [1, "c1", "TOKEN", 1, "keep", 1], "BAD_ARGUMENT", ["xresult:c1x"]),
        ("second of two is wrong", [2, "c1", "TOKEN", 0, "c2", 5, 1, "delay", "x"], "BAD_ARGUMENT", []),
        ("six options", [1, "c1", "TOKEN", 6, *["delay", 1] * 6], "BAD_ARGUMENT", []),
    ],
}
"""What is wrong in a way of its own; TOKEN is the current one of c1."""
LATE: Final[dict[str, list[tuple[str, list[Any], int]]]] = {
    "add": [
        ("due in 2060", _option("delay", 1), 2_840_140_800_000_000 - 1000),
        ("due in 2060 by not_before", _option("not_before", 2_840_140_799_999, "delay", 1), NOW),
        ("expires in 2060", _option("expires_in", 1), 2_840_140_800_000_000 - 1000),
    ],
    "release": [("due in 2060", [1, "c1", 5, 1, "delay", 1], 2_840_140_800_000_000 - 1000)],
}
"""What reaches the end of time, with the server's time."""
