"""Arguments that are wrong: each is refused by name and nothing is changed (LQ-ERROR-1)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.script_calls import CALLS, HERE, THERE, calls, of, results
from support.script_lab import Arg, Lab

from leaseq import _scripts

NAMES = [script.name for script in _scripts.SCRIPTS]
NO_NUMBERS: list[Arg] = [
    *(
        "",
        " ",
        "-1",
        "+1",
        "-0",
        "1.5",
        "1.0",
        ".1",
        "1.",
        "1e3",
        "1E3",
        "0x10",
        "0X1",
        "nan",
        "NaN",
        "inf",
        "-inf",
    ),
    *(
        " 1",
        "1 ",
        "1\n",
        "\t1",
        b"1\0",
        b"\x001",
        "1,000",
        "1_000",
        "one",
        "true",
        "\N{ARABIC-INDIC DIGIT ONE}",
    ),
    *("1" * 17, "0" * 17, "9" * 400, "18446744073709551617"),
]
LARGEST = 9_999_999_999_999_999
"""The largest number of 16 digits."""


class Number(NamedTuple):
    """A numeric argument: a call that is right with `?` in its place, and the range of its values."""

    script: str
    args: tuple[Arg, ...]
    low: int
    high: int
    padded: bool = True
    """Whether leading zeros are taken."""
    more: tuple[str, ...] = ()
    """The keys behind the fixed ones."""


DURATION = (1, 2_592_000_000)
TEN_YEARS = 315_360_000_000
ENTRY: dict[str, tuple[Arg, ...]] = {
    "add": ("new", "data", 0),
    "complete": ("c1", "{c1}", 0),
    "complete_and_lease": ("c1", "{c1}", 0),
    "complete_with": ("c1", "{c1}", 0, 0),
    "extend": ("c1", "{c1}", 1000),
    "inspect": ("c1",),
    "outcome": ("c1",),
    "purge": ("c1",),
    "release": ("c1", "{c1}", 0),
    "remove": ("c1",),
    "revive": ("c1",),
}
"""One entry of the scripts that take several."""
BEFORE: dict[str, list[Arg]] = {"complete_and_lease": [1, 1000], "purge": [0]}
BEHIND: dict[str, list[Arg]] = {"complete_with": [0]}
"""What stands before the count of entries and behind it."""

NUMBERS = [
    Number("add", (1, "new", "data", 1, "delay", "?"), 0, 315_360_000_000),
    Number("add", (1, "new", "data", 1, "not_before", "?"), 0, 2_840_140_799_999),
    Number("add", (1, "new", "data", 1, "priority", "?"), -7, 7, padded=False),
    Number("add", (1, "new", "data", 1, "max_attempts", "?"), 0, 65534),
    Number("add", (2, "new", "data", 1, "max_attempts", "?", "new", "again", 0), 0, 65534),
    Number("add", (1, "new", "data", 1, "expires_in", "?"), 1, TEN_YEARS),
    Number("add", (1, "new", "data", 1, "keep", "?"), 1, TEN_YEARS),
    Number("lease", ("?", 1000), 1, 256),
    Number("lease", (1, "?"), *DURATION),
    Number("lease", (2, "?"), *DURATION),
    Number("complete", (1, "c1", "?", 0), 0, LARGEST),
    Number("complete", (2, "c1", "?", 0, "r1", 1, 0), 0, LARGEST),
    Number("complete", (1, "c1", 1, 1, "only_current", "?"), 1, 1, padded=False),
    Number("complete_and_lease", ("?", 1000, 1, "c1", 1, 0), 1, 256),
    Number("complete_and_lease", (1, "?", 1, "c1", 1, 0), *DURATION),
    Number("complete_and_lease", (1, 1000, 1, "c1", "?", 0), 0, LARGEST),
    Number("complete_and_lease", (1, 1000, 1, "c1", 1, 1, "only_current", "?"), 1, 1, padded=False),
    Number("complete_with", (1, 0, "c1", "?", 0, 0), 0, LARGEST),
    Number("complete_with", (1, 0, "c1", 1, 1, "only_current", "?", 0), 1, 1, padded=False),
    Number("complete_with", (1, 0, "c1", 1, 1, "keep", "?", 0), 0, TEN_YEARS, more=results("c1")),
    Number("complete_with", (1, 2, "c1", 1, 0, 1, "?", "more", "", 0), 1, 2, more=(*HERE, *THERE)),
    Number("complete_with", (1, 1, "c1", 1, 0, 1, 1, "more", "", 1, "keep", "?"), 1, TEN_YEARS, more=THERE),
    Number("configure", (1, "max_data", "?"), 1, 536_870_912),
    Number("configure", (1, "max_items", "?"), 0, 4_294_967_295),
    Number("configure", (1, "max_attempts", "?"), 0, 65534),
    Number("configure", (2, "max_items", 9, "paused", "?"), 0, 1),
    Number("deep_clean", (0, "?", 0), 1, 256),
    Number("deep_clean", (0, 256, "?"), 0, 1),
    Number("extend", (1, "c1", "?", 1000), 0, LARGEST),
    Number("extend", (1, "c1", 1, "?"), *DURATION),
    Number("lease_any", (1, "?", 1000), 1, 256, more=of("lease")),
    Number("lease_any", (1, 1, "?"), *DURATION, more=of("lease")),
    Number("light_clean", ("?",), 1, 256),
    Number("list", ("ready", "?", 1, "forward"), 0, 9_007_199_254_740_991),
    Number("list", ("ready", 0, "?", "forward"), 1, 256),
    Number("purge", ("?", 1, "c1"), 0, TEN_YEARS),
    Number("release", (1, "c1", "?", 0), 0, LARGEST),
    Number("release", (1, "c1", 1, 1, "delay", "?"), 0, 315_360_000_000),
    Number("release", (1, "c1", 1, 1, "uncounted", "?"), 1, 1, padded=False),
    Number("release", (1, "c1", 1, 1, "dead", "?"), 1, 1, padded=False),
    Number("release", (1, "c1", 1, 1, "keep", "?"), 0, TEN_YEARS, more=results("c1")),
]


@pytest.fixture
def lab(redis_client: redis.Redis) -> Iterator[Lab]:
    laboratory = Lab(redis_client)
    laboratory.queue("full")
    yield laboratory
    laboratory.close()


def refused(lab: Lab, script: str, args: list[Arg], *codes: str, more: Sequence[str] = ()) -> None:
    """The call is refused by one of these names and leaves the queue as it was."""
    outcome = lab.run(script, args, more=more)
    assert outcome.code in (codes or ("LEASEQ_BAD_ARGUMENT",)), (script, args, outcome)
    assert len(str(outcome.error)) > 30, "the message says what is wrong"


def filled(args: tuple[Arg, ...], value: Arg, lab: Lab) -> list[Arg]:
    tokens = {f"{{{item}}}": token for item, token in lab.tokens.items()}
    return [value if arg == "?" else tokens.get(str(arg), arg) for arg in args]


def test_every_script_with_numbers_is_tried() -> None:
    """A new script, or a new number of an old one, needs a row here."""
    tried = {number.script for number in NUMBERS} | set(ENTRY)
    assert tried | {"settle", "stats"} == set(NAMES) == set(CALLS)


@pytest.mark.parametrize(
    "number", NUMBERS, ids=lambda number: f"{number.script}-{'-'.join(map(str, number.args))}"
)
def test_a_number_is_decimal_digits_in_its_range(lab: Lab, number: Number) -> None:
    """LQ-CALL-2."""
    before = lab.snapshot()
    for wrong in NO_NUMBERS:
        if wrong in {"-1", "-0"} and number.low < 0:
            continue
        refused(lab, number.script, filled(number.args, wrong, lab), more=number.more)
    for outside in (number.low - 1, number.high + 1):
        refused(lab, number.script, filled(number.args, outside, lab), more=number.more)
    assert lab.snapshot() == before
    for inside in (number.low, number.high):
        lab.restore(before)
        lab.ok(number.script, *filled(number.args, inside, lab), more=number.more)
    lab.restore(before)
    for one in ("01", "1".zfill(16)):
        lab.restore(before)
        padded = lab.run(number.script, filled(number.args, one, lab), more=number.more)
        assert padded.code == (None if number.padded else "LEASEQ_BAD_ARGUMENT"), one


class Entries:
    """Calls of a script with so many entries as it says, or other numbers of them."""

    def __init__(self, script: str, lab: Lab) -> None:
        self.script, self.entry = script, filled(ENTRY[script], "", lab)

    def args(self, said: Arg, parts: Sequence[Arg]) -> list[Arg]:
        """The arguments of a call that says how many entries it has, and has these."""
        return [*BEFORE.get(self.script, []), said, *BEHIND.get(self.script, []), *parts]

    def many(self, count: int) -> list[Arg]:
        """So many entries, each of an id of its own."""
        return [part if part != self.entry[0] else f"id{n}" for n in range(count) for part in self.entry]

    def keys(self, count: int) -> tuple[str, ...]:
        """The keys that go with them."""
        return results(*(f"id{n}" for n in range(count))) if self.script == "outcome" else ()


@pytest.mark.parametrize("script", sorted(ENTRY))
def test_counts_that_disagree_with_the_arguments_are_refused(lab: Lab, script: str) -> None:
    """LQ-CALL-3: too many and too few, entry by entry and argument by argument."""
    before, of_it, codes = lab.snapshot(), Entries(script, lab), ("LEASEQ_BAD_ARGUMENT", "LEASEQ_BAD_ID")
    for wrong in [*NO_NUMBERS, 0, 257]:
        refused(lab, script, of_it.args(wrong, of_it.entry), *codes, more=of_it.keys(1))
        refused(lab, script, of_it.args(wrong, []), *codes, more=of_it.keys(1))
    for said, there in ((1, 0), (1, 2), (2, 1), (2, 3), (256, 1), (256, 255), (1, 256), (255, 256)):
        for keys in {said, there}:
            refused(lab, script, of_it.args(said, of_it.many(there)), *codes, more=of_it.keys(keys))
    assert lab.snapshot() == before
    for count in (1, 2, 256):
        lab.restore(before)
        lab.ok(script, *of_it.args(count, of_it.many(count)), more=of_it.keys(count))


@pytest.mark.parametrize(
    "script", sorted(name for name, entry in ENTRY.items() if len(entry) > 2 and name != "extend")
)
def test_a_count_of_options_that_disagrees_with_them_is_refused(lab: Lab, script: str) -> None:
    """LQ-CALL-3."""
    before, of_it = lab.snapshot(), Entries(script, lab)
    head, rest = of_it.entry[:2], of_it.entry[3:]
    for wrong in [*NO_NUMBERS, 25]:
        refused(lab, script, of_it.args(1, [*head, wrong, *rest]))
        refused(lab, script, of_it.args(1, [*head, wrong, "delay", 1, *rest]))
    for said in (0, 2):
        refused(lab, script, of_it.args(1, [*head, said, "only_current", 1, *rest]))
    assert lab.snapshot() == before


@pytest.mark.parametrize("script", NAMES)
def test_missing_and_surplus_arguments_are_refused(lab: Lab, script: str) -> None:
    """LQ-CALL-3."""
    before = lab.snapshot()
    for call in calls(script):
        args = call.arguments(lab)
        for length in range(len(args)):
            refused(lab, script, args[:length], "LEASEQ_BAD_ARGUMENT", "LEASEQ_BAD_ID", more=call.more)
        for surplus in ("", "0", "1", "delay"):
            refused(lab, script, [*args, surplus], more=call.more)
            refused(lab, script, [*args, surplus, "1"], more=call.more)
    assert lab.snapshot() == before


@pytest.mark.parametrize(
    ("script", "args"),
    [
        ("add", [1, "new", "", 1, "", ""]),
        ("add", [1, "new", "", 1, "Delay", 1]),
        ("add", [1, "new", "", 1, "expires", 1]),
        ("add", [1, "new", "", 2, "delay", 1, "delay", 1]),
        ("add", [1, "new", "", 2, "delay", 0, "not_before", 0]),
        ("add", [1, "new", "", 2, "not_before", 1, "not_before", 1]),
        ("add", [1, "new", "", 2, "priority", 0, "priority", 0]),
        ("add", [1, "new", "", 2, "max_attempts", 0, "max_attempts", 0]),
        ("add", [2, "new", "", 0, "new2", "", 1, "uncounted", 1]),
        ("add", [1, "new", "", 1, "priority", "+1"]),
        ("add", [1, "new", "", 1, "priority", "--1"]),
        ("add", [1, "new", "", 25, *["delay", 1] * 25]),
        ("complete", [1, "c1", 1, 1, "current", 1]),
        ("complete", [1, "c1", 1, 2, "only_current", 1, "only_current", 1]),
        ("complete", [2, "c1", 1, 0, "c2", 1, 1, "", ""]),
        ("complete_and_lease", [1, 1, 1, "c1", 1, 1, "current", 1]),
        ("configure", [1, "max_attempt", 1]),
        ("configure", [5, "max_data", 1, "max_items", 1, "max_attempts", 1, "paused", 0, "max_data", 1]),
        *(("configure", [2, name, 1, name, 1]) for name in ("max_items", "max_attempts", "paused")),
        ("configure", [2, "max_data", 1, "max_data", 1]),
        ("configure", [0]),
        ("release", [1, "c1", 1, 1, "priority", 1]),
        ("release", [1, "c1", 1, 2, "delay", 1, "delay", 1]),
        ("release", [1, "c1", 1, 2, "uncounted", 1, "uncounted", 1]),
        ("release", [1, "c1", 1, 3, "uncounted", 1, "delay", 1, "delay", 1]),
        ("list", ["completed", 0, 1, "forward"]),
        ("list", ["", 0, 1, "forward"]),
        ("list", ["ready", 0, 1, "sideways"]),
        ("list", ["ready", 0, 1, ""]),
        *(
            ("deep_clean", [cursor, 1, 0])
            for cursor in [
                *(
                    "",
                    "1",
                    "-1",
                    "1:",
                    ":0",
                    "0:0",
                    "9:0",
                    "1:-1",
                    "1:x",
                    "11:0",
                    "1:1.5",
                    " 1:0",
                    "1:0 ",
                    "1:0:0",
                ),
                *("1:18446744073709551616", "1:" + "9" * 20, "1:" + "9" * 21, "3:18446744073709551616", "00"),
            ]
        ),
    ],
)
def test_an_option_that_is_unknown_or_given_twice_is_refused(lab: Lab, script: str, args: list[Arg]) -> None:
    """LQ-CALL-6, LQ-ADD-4, and words that are none of those known."""
    before = lab.snapshot()
    refused(lab, script, args)
    assert lab.snapshot() == before


def test_an_item_cannot_become_due_after_2059(lab: Lab) -> None:
    """LQ-ADD-4: a delay that is in its range can still lead too far."""
    last = 1_735_689_600_000_000 + 315_360_000_000_000  # ten years after 2025
    assert lab.run("add", [1, "new", "", 1, "delay", 315_360_000_000], now=last).code is None
    late = 2_840_140_800_000_000 - 1_000_000
    for script, entry in (("add", ["new", ""]), ("release", ["c1", lab.tokens["c1"]])):
        before = lab.snapshot()
        assert lab.run(script, [1, *entry, 1, "delay", 1000], now=late).code == "LEASEQ_BAD_ARGUMENT"
        assert lab.snapshot() == before
        assert lab.run(script, [1, *entry, 1, "delay", 999], now=late).code is None


def test_the_largest_cursor_is_taken(lab: Lab) -> None:
    """LQ-DEEP-1: whatever cursor the server gave can be given back."""
    for phase in range(1, 9):
        lab.ok("deep_clean", f"{phase}:18446744073709551615", 1, 1)


def test_data_beyond_the_limit_is_refused(lab: Lab) -> None:
    """LQ-ITEM-4, LQ-ADD-5, LQ-CONFIG-1."""
    for limit in (1024 * 1024, 3):
        if limit == 3:
            lab.ok("configure", 1, "max_data", 3)
        before = lab.snapshot()
        fits = b"\0" * limit
        refused(lab, "add", [1, "new", fits + b"x", 0], "LEASEQ_TOO_LARGE")
        refused(lab, "add", [2, "new", fits, 0, "more", fits + b"x", 0], "LEASEQ_TOO_LARGE")
        refused(lab, "add", [1, "r1", fits + b"x", 0], "LEASEQ_TOO_LARGE")
        assert lab.snapshot() == before
        lab.ok("add", 2, "new", fits, 0, "more", fits, 0)
        lab.ok("remove", 2, "new", "more")
        assert lab.ok("add", 1, "single", fits, 0)
        lab.ok("remove", 1, "single")


# -- ids

GOOD_IDS: list[bytes] = [
    b"a", b"\x01", b"\x7f", b" ", b"\r\n", b"{x}", b"%z", b"%a", b"-", b"0", b"x" * 256, "\u20ac".encode() * 85,
    *("".join(map(chr, pair)).encode() for pair in [
        (0x80, 0x7FF), (0x800, 0xFFF), (0x1000, 0xCFFF), (0xD000, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x3FFFF),
        (0x40000, 0xFFFFF), (0x100000, 0x10FFFF),
    ]),
]  # fmt: skip
BAD_IDS: list[bytes] = [
    b"", b"\0", b"a\0", b"\0a", b"\xc2\x80\0", b"x" * 257, "\u20ac".encode() * 86, b"\x80" * 257,
    b"\x80", b"\xbf", b"a\x80", b"\xc2\x80\x80",  # continuation bytes alone
    b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf",  # overlong
    b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\xa0\x80\xed\xb0\x80",  # surrogates
    b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf7\xbf\xbf\xbf",  # above U+10FFFF
    b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80", b"\xfe", b"\xff",
    b"\xc2", b"\xe0\xa0", b"\xe1\x80", b"\xed\x80", b"\xf0\x90\x80", b"\xf4\x80\x80", b"\xf1\x80", b"\xe1", b"\xf1",
    b"\xc2a", b"\xe1\x80a", b"\xf1\x80\x80a", b"\xe0\xc2\x80\x80", b"\xf0\x90\xc2\x80\x80", b"\xe1\xc2\x80",
]  # fmt: skip


def is_id(text: bytes) -> bool:
    """What an id is, by Python's own strict decoder."""
    try:
        return 1 <= len(text) <= 256 and "\0" not in text.decode("utf-8", "strict")
    except UnicodeDecodeError:
        return False


def with_id(script: str, text: bytes, lab: Lab, *, batch: bool = False) -> list[Arg]:
    """A call with this id, alone or as the second of two."""
    entry = filled(ENTRY[script], "", lab)
    first: list[Arg] = ["fresh" if script == "add" else entry[0], *entry[1:]] if batch else []
    return [*BEFORE.get(script, []), 1 + batch, *BEHIND.get(script, []), *first, text, *entry[1:]]


def test_the_examples_are_what_they_say() -> None:
    assert all(map(is_id, GOOD_IDS))
    assert not any(map(is_id, BAD_IDS))


@pytest.mark.parametrize("script", sorted(ENTRY))
def test_an_id_is_utf8_without_nul(lab: Lab, script: str) -> None:
    """LQ-ITEM-1: alone and in a batch, also where the first entry could have been done."""
    before = lab.snapshot()
    for batch in (False, True):
        for text in BAD_IDS:
            keys = results(*["x"] * (1 + batch)) if script == "outcome" else ()
            refused(lab, script, with_id(script, text, lab, batch=batch), "LEASEQ_BAD_ID", more=keys)
    assert lab.snapshot() == before
    for batch in (False, True):
        for text in GOOD_IDS:
            lab.restore(before)
            keys = results(*["c1"] * batch, text.decode()) if script == "outcome" else ()
            lab.ok(script, *with_id(script, text, lab, batch=batch), more=keys)
            if script == "add":
                assert text in lab.client.hkeys("leaseq:{lab}:queue:items")


nearly_text = st.builds(
    lambda text, at, byte: text[: at % (len(text) + 1)] + byte + text[at % (len(text) + 1) :],
    st.text(max_size=8).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.integers(0, 40),
    st.binary(max_size=3),
)
bytes_of_leads = st.lists(
    st.sampled_from(
        [b"\xc2", b"\xe0", b"\xed", b"\xf0", b"\xf4", b"\x80", b"\x8f", b"\x90", b"\x9f", b"\xa0", b"\xbf"]
    ),
    max_size=6,
).map(b"".join)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.one_of(st.binary(max_size=8), nearly_text, bytes_of_leads, st.binary(min_size=250, max_size=260))
)
def test_the_scripts_and_python_agree_on_every_id(lab: Lab, text: bytes) -> None:
    """LQ-ITEM-1: random bytes, text with some bytes put in, and sequences of the bytes at the boundaries."""
    outcome = lab.run("inspect", [1, text])
    assert outcome.code == (None if is_id(text) else "LEASEQ_BAD_ID"), text
