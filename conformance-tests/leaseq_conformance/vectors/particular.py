"""What each script must refuse in a way of its own."""

from __future__ import annotations

from typing import Any, Final

from leaseq_conformance.vectors.builder import NOW
from leaseq_conformance.vectors.samples import LEASE, TARGET, keys_of

Row = tuple[str, list[Any], str, list[str]]
"""A title, the arguments, the code, and the keys behind the fixed ones."""

DECADE: Final = 315_360_000_000


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
        ("options in the place of an entry, id 0", [2, "n1", "0", 1, "0", "x", 0], "BAD_ARGUMENT", []),
        ("options in the place of an entry, data 0", [2, "n1", "0", 1, "n2", "0", 0], "BAD_ARGUMENT", []),
        ("an option each that is not there", [2, "n1", "x", 1, "n2", "y", 1], "BAD_ARGUMENT", []),
        ("no entry of two", [2], "BAD_ID", []),
        (
            "an argument too many for each of two",
            [2, "n1", "x", 0, "n2", "y", 0, "z", "z"],
            "BAD_ARGUMENT",
            [],
        ),
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
        (
            "header twice, behind another",
            _option("header:b", 1, "header:a", 1, "header:a", 2),
            "BAD_ARGUMENT",
            [],
        ),
        ("max_attempts twice", _option("max_attempts", 1, "max_attempts", 1), "BAD_ARGUMENT", []),
        ("expires_in twice", _option("expires_in", 9, "expires_in", 9), "BAD_ARGUMENT", []),
        (
            "expires_to twice",
            _option("expires_in", 9, "expires_to", "dead", "expires_to", "dead"),
            "BAD_ARGUMENT",
            [],
        ),
        ("keep twice", _option("keep", 9, "keep", 9), "BAD_ARGUMENT", []),
        ("delay twice", _option("delay", 9, "delay", 9), "BAD_ARGUMENT", []),
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
        ("one argument too many behind two", [2, "n1", "x", 0, "n2", "x", 0, "x"], "BAD_ARGUMENT", []),
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
