"""Options of items and queues that are wrong, alone or together: refused by name, and nothing is changed (LQ-ERROR-1)."""

from collections.abc import Iterator, Sequence

import pytest
import redis
from support.script_calls import HERE, THERE, of, results
from support.script_lab import HOUR_MS, NOW, PREFIX, Arg, Lab, key
from support.script_queues import DAY_MS

HEADERS: list[Arg] = [part for n in range(16) for part in (f"header:h{n}", "v")]
FIT = 4096 - len("header:a") - len("content_type")
"""The bytes that are left for the values of a header `a` and the content type."""


@pytest.fixture
def lab(redis_client: redis.Redis) -> Iterator[Lab]:
    laboratory = Lab(redis_client)
    laboratory.queue("full")
    yield laboratory
    laboratory.close()


def refused(lab: Lab, script: str, args: Sequence[Arg], code: str, more: Sequence[str] = ()) -> None:
    """The call is refused by this name and leaves every byte as it was."""
    before = lab.snapshot()
    outcome = lab.run(script, args, more=more)
    assert outcome.code == code, (args, outcome)
    assert lab.snapshot() == before


def adds(lab: Lab, options: Sequence[Arg], code: str | None) -> None:
    """What add says to these options, of one item, of the second of two and of a follow-up, which are added alike."""
    item: list[Arg] = ["new", "data", len(options) // 2, *options]
    tried: list[tuple[str, list[Arg], tuple[str, ...]]] = [
        ("add", [1, *item], ()),
        ("add", [2, "first", "", 0, *item], ()),
        ("complete_with", [1, 1, "c1", lab.tokens["c1"], 0, 1, 1, *item], THERE),
    ]
    before = lab.snapshot()
    for script, args, more in tried:
        if code:
            refused(lab, script, args, code, more)
        else:
            lab.restore(before)
            lab.ok(script, *args, more=more)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["keep", DAY_MS, "keep", DAY_MS], "LEASEQ_BAD_ARGUMENT"),
        (["expires_in", 9, "expires_in", 9], "LEASEQ_BAD_ARGUMENT"),
        (["content_type", "", "content_type", ""], "LEASEQ_BAD_ARGUMENT"),
        (["header:a", "", "header:a", ""], "LEASEQ_BAD_ARGUMENT"),
        (["expires_in", 9, "expires_to", "dead", "expires_to", "dead"], "LEASEQ_BAD_ARGUMENT"),
        (["expires_to", "dead"], "LEASEQ_BAD_ARGUMENT"),
        (["expires_in", 9, "expires_to", "Dead"], "LEASEQ_BAD_ARGUMENT"),
        (["expires_in", 9, "expires_to", ""], "LEASEQ_BAD_ARGUMENT"),
        (["expires_in", 9, "delay", 9], "LEASEQ_BAD_ARGUMENT"),
        (["delay", 10, "expires_in", 9], "LEASEQ_BAD_ARGUMENT"),
        (["not_before", NOW // 1000 + 9, "expires_in", 9], "LEASEQ_BAD_ARGUMENT"),
        (["not_before", NOW // 1000 + 8, "expires_in", 9], None),
        (["delay", 8, "expires_in", 9, "expires_to", "dead"], None),
        (["not_before", 1, "expires_in", 1], None),
        (["content-type", ""], "LEASEQ_BAD_ARGUMENT"),
        (["Content_Type", ""], "LEASEQ_BAD_ARGUMENT"),
        (["error", ""], "LEASEQ_BAD_ARGUMENT"),
        (["result", ""], "LEASEQ_BAD_ARGUMENT"),
        *(
            ([name, "v"], "LEASEQ_BAD_ARGUMENT")
            for name in [
                *("header", "header:", "Header:a", "header:a b", "header:a:b", "header:a\n", "header:\u20ac"),
                *(
                    b"header:\x80",
                    b"header:a\0",
                    "header:" + "n" * 101,
                    " header:a",
                    "header :a",
                    "header:a/b",
                ),
            ]
        ),
        *(([name, "v"], None) for name in ("header:a", "header:A.b-c_9", "header:-", "header:" + "n" * 100)),
        (["header:a", b"\0\xff\r\n"], None),
        (HEADERS, None),
        ([*HEADERS, "content_type", "", "priority", 1, "keep", 9], None),
        ([*HEADERS, "header:one-more", "v"], "LEASEQ_BAD_ARGUMENT"),
        (["header:a", "v" * 4088], None),
        (["header:a", "v" * 4089], "LEASEQ_TOO_LARGE"),
        (["content_type", "v" * 4084], None),
        (["content_type", "v" * 4085], "LEASEQ_TOO_LARGE"),
        (["header:a", "v" * (FIT - 9), "content_type", "123456789"], None),
        (["header:a", "v" * (FIT - 9), "content_type", "1234567890"], "LEASEQ_TOO_LARGE"),
        ([*HEADERS, *["keep", 9] * 5], "LEASEQ_BAD_ARGUMENT"),
        ([*HEADERS, *["keep", 9] * 9], "LEASEQ_BAD_ARGUMENT"),
    ],
)
def test_the_options_of_an_item_together(lab: Lab, options: list[Arg], code: str | None) -> None:
    """LQ-CALL-6, LQ-ADD-4, LQ-ITEM-6."""
    adds(lab, options, code)


def test_the_expiry_of_an_item_lies_before_2060(lab: Lab) -> None:
    """LQ-ADD-4: a time that is in its range can still lead too far."""
    now = 2_840_140_800_000_000 - 1_000_000
    before = lab.snapshot()
    assert lab.run("add", [1, "new", "", 1, "expires_in", 1000], now=now).code == "LEASEQ_BAD_ARGUMENT"
    assert lab.snapshot() == before
    assert lab.run("add", [1, "new", "", 1, "expires_in", 999], now=now).code is None


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (["dead", 1, "delay", 0], 0),
        (["dead", 1, "delay", 9], 0),
        (["delay", 9, "dead", 1], 0),
        (["dead", 1, "uncounted", 1], 0),
        (["uncounted", 1, "dead", 1], 0),
        (["dead", 1, "dead", 1], 0),
        (["dead", 0], 0),
        (["error", "", "error", ""], 0),
        (["keep", 9, "keep", 9], 2),
        (["keep", 9, "keep", 9], 1),
        (["keep", 9], 0),
        (["keep", 9], 2),
        (["dead", 1], 1),
        (["result", ""], 0),
        (["max_attempts", 1], 0),
        (["error", "", "delay", 1, "uncounted", 1, "keep", 1, "error", "", "delay", 1], 1),
    ],
)
def test_the_options_of_a_release_together(lab: Lab, options: list[Arg], keys: int) -> None:
    """LQ-CALL-6, LQ-CALL-1: alone, and where another entry could have been released."""
    entry: list[Arg] = ["c1", lab.tokens["c1"], len(options) // 2, *options]
    more = results(*["c1"] * keys)
    refused(lab, "release", [1, *entry], "LEASEQ_BAD_ARGUMENT", more)
    refused(lab, "release", [2, "c2", lab.tokens["c2"], 0, *entry], "LEASEQ_BAD_ARGUMENT", more)


def finish(lab: Lab, *options: Arg) -> list[Arg]:
    """One entry of complete_with without follow-ups."""
    return ["c1", lab.tokens["c1"], len(options) // 2, *options, 0]


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (["result", "r"], 0),
        (["result", "r"], 1),
        (["result", "r", "result", "r", "keep", 9], 1),
        (["keep", 9, "keep", 9], 2),
        (["keep", 9], 0),
        (["keep", 9], 2),
        (["only_current", 1], 1),
        (["only_current", 1, "only_current", 1], 0),
        (["only_current", 0], 0),
        (["error", "r", "keep", 9], 1),
        (["delay", 9], 0),
        (["keep", 9, "result", "", "only_current", 1, "keep", 9], 1),
    ],
)
def test_the_options_of_complete_with_together(lab: Lab, options: list[Arg], keys: int) -> None:
    """LQ-CALL-6, LQ-CALL-1: alone, and where another entry could have been completed."""
    more = results(*["c1"] * keys)
    refused(lab, "complete_with", [1, 0, *finish(lab, *options)], "LEASEQ_BAD_ARGUMENT", more)
    entry: list[Arg] = ["c2", lab.tokens["c2"], 0, 0]
    refused(lab, "complete_with", [2, 0, *entry, *finish(lab, *options)], "LEASEQ_BAD_ARGUMENT", more)


def test_the_targets_of_complete_with_are_counted(lab: Lab) -> None:
    """LQ-CALL-1, LQ-CALL-3: from 0 to 16, with nine keys for each."""
    entry = finish(lab)
    before = lab.snapshot()
    for targets in ("", "-1", "x", "1.0", 17):
        refused(lab, "complete_with", [1, targets, *entry], "LEASEQ_BAD_ARGUMENT", THERE * 16)
    for targets, keys in ((0, 9), (1, 0), (1, 8), (1, 10), (1, 18), (2, 9), (16, 135)):
        refused(lab, "complete_with", [1, targets, *entry], "LEASEQ_BAD_ARGUMENT", (THERE * 20)[:keys])
    for targets in (0, 1, 16):
        lab.restore(before)
        assert lab.ok("complete_with", 1, targets, *entry, more=THERE * targets) == [1]


def test_follow_ups_are_counted(lab: Lab) -> None:
    """LQ-CALL-3: 256 of them in one call, among all its entries."""
    before = lab.snapshot()

    def entry(item: str, follow_ups: int) -> list[Arg]:
        following = [part for n in range(follow_ups) for part in (1, f"{item}/{n}", "", 0)]
        return [item, lab.tokens[item], 0, follow_ups, *following]

    for wrong in ("", "-1", "x", "0x1", 257):
        args: list[Arg] = [1, 1, "c1", lab.tokens["c1"], 0, wrong, 1, "more", "", 0]
        refused(lab, "complete_with", args, "LEASEQ_BAD_ARGUMENT", THERE)
    for target in (0, 2, "", "x"):
        args = [1, 1, "c1", lab.tokens["c1"], 0, 1, target, "more", "", 0]
        refused(lab, "complete_with", args, "LEASEQ_BAD_ARGUMENT", THERE)
    refused(
        lab, "complete_with", [1, 0, "c1", lab.tokens["c1"], 0, 1, 1, "more", "", 0], "LEASEQ_BAD_ARGUMENT"
    )
    refused(lab, "complete_with", [1, 1, *entry("c1", 257)], "LEASEQ_BAD_ARGUMENT", THERE)
    refused(lab, "complete_with", [2, 1, *entry("c1", 129), *entry("c2", 128)], "LEASEQ_BAD_ARGUMENT", THERE)
    for sizes in ([256], [129, 127], [0, 256], [256, 0]):
        lab.restore(before)
        entries = [
            part for item, size in zip(("c1", "c2"), sizes, strict=False) for part in entry(item, size)
        ]
        reply = lab.ok("complete_with", len(sizes), 1, *entries, more=THERE)
        assert len(reply) == 256 + len(sizes)
        assert min(reply) == 1
        assert lab.client.hlen(key("other:items")) == 256


def test_an_id_of_a_follow_up_is_checked(lab: Lab) -> None:
    """LQ-ITEM-1: also of an entry that will not be completed."""
    for item in ("c1", "none"):
        for wrong in ("", "a\0", "x" * 257, b"\x80"):
            args: list[Arg] = [1, 1, item, lab.tokens.get(item, 1), 0, 2, 1, "good", "", 0, 1, wrong, "", 0]
            refused(lab, "complete_with", args, "LEASEQ_BAD_ID", THERE)


def test_a_result_and_a_follow_up_fit_their_queues(lab: Lab) -> None:
    """LQ-ITEM-4, LQ-OUTCOME-7: the result that of the queue it comes from, a follow-up that of the queue it goes to."""
    lab.ok("configure", 1, "max_data", 3)
    lab.ok("configure", 1, "max_data", 5, on="other:")
    before = lab.snapshot()
    for target, limit in ((HERE, 3), (THERE, 5)):
        for size in (limit + 1, limit):
            args: list[Arg] = [1, 1, "c1", lab.tokens["c1"], 0, 1, 1, "more", "x" * size, 0]
            if size > limit:
                refused(lab, "complete_with", args, "LEASEQ_TOO_LARGE", target)
            else:
                assert lab.ok("complete_with", *args, more=target)[0] == 1
        lab.restore(before)
    for size in (4, 3):
        args = [1, 0, *finish(lab, "keep", 9, "result", "x" * size)]
        if size > 3:
            refused(lab, "complete_with", args, "LEASEQ_TOO_LARGE", results("c1"))
        else:
            assert lab.ok("complete_with", *args, more=results("c1")) == [1]


@pytest.mark.parametrize("at", range(9))
@pytest.mark.parametrize(
    "prefix",
    [
        "leaseq:{labs}:queue:",
        "leaseq:{}:queue:",
        "leaseq:lab:queue:",
        "{labs}:{lab}:",
        "queue:",
        "leaseq:{lab:queue:",
    ],
)
def test_keys_of_another_group_are_refused(lab: Lab, prefix: str, at: int) -> None:
    """LQ-HANDOFF-4, LQ-CLUSTER-1: each key of a target must be in the slot of the first, whether the server has slots or not."""
    before = lab.snapshot()
    right = [key(each) for each in (*of("complete_with"), *HERE)]
    keys = [prefix + each.removeprefix(PREFIX) if n == 8 + at else each for n, each in enumerate(right)]
    args: list[Arg] = [1, 1, "c1", lab.tokens["c1"], 0, 1, 1, "more", "", 0]
    outcome = lab.run("complete_with", args, keys=keys)
    assert outcome.code == "LEASEQ_CROSS_GROUP", outcome
    assert "group" in str(outcome.error)
    assert lab.snapshot() == before
    kept = [*right[:8], prefix + "result:c1"]
    assert lab.run("complete_with", [1, 0, *finish(lab, "keep", 9)], keys=kept).code == "LEASEQ_CROSS_GROUP"
    assert lab.snapshot() == before


def test_the_queues_of_lease_any_are_counted(lab: Lab) -> None:
    """LQ-CALL-1, LQ-CALL-3: from 1 to 16, with eleven keys for each."""
    both = (*of("lease"), *of("lease", "other:"))
    for queues in ("", "0", "-1", "x", "1.0", 17):
        for keys in (0, 11, 16 * 11, 17 * 11):
            refused(lab, "lease_any", [queues, 1, 1000], "LEASEQ_BAD_ARGUMENT", (both * 9)[:keys])
    for number, keys in ((1, 0), (1, 10), (1, 12), (1, 22), (2, 11), (16, 165)):
        refused(lab, "lease_any", [number, 1, 1000], "LEASEQ_BAD_ARGUMENT", (both * 9)[:keys])
    for number in (1, 2, 16):
        assert lab.ok("lease_any", number, 1, 1000, more=(both * 8)[: 11 * number])[0] == 1


def test_as_many_items_with_as_many_headers_as_one_call_takes(lab: Lab) -> None:
    """LQ-LEASE-6: 256 items with 16 headers, a content type and keep, added, leased and handed on in one call each."""
    lab.client.flushdb()
    options: list[Arg] = [18, *HEADERS, "content_type", "t", "keep", HOUR_MS]
    items = [part for n in range(256) for part in (f"i{n}", "", *options)]
    lab.ok("add", 256, *items)
    before = lab.snapshot()
    for script, args, more, head in (
        ("lease", [256, HOUR_MS], (), 0),
        ("lease_any", [1, 256, HOUR_MS], of("lease"), 1),
        ("complete_and_lease", [256, HOUR_MS, 1, "none", 1, 0], (), 0),
    ):
        lab.restore(before)
        reply = lab.ok(script, *args, more=more)
        assert reply[head + 2] == 256
        assert len(reply) - head - (script == "complete_and_lease") == 3 + 4 * 256 + 3 * 18 * 256
    token = reply[5]
    follow_ups = [part for n in range(256) for part in (1, f"f{n}", "", *options)]
    assert len(lab.ok("complete_with", 1, 1, "i0", token, 0, 256, *follow_ups, more=THERE)) == 257
    assert lab.client.hlen(key("other:meta")) == 512


def test_a_result_key_is_that_of_its_entry(lab: Lab) -> None:
    """LQ-CALL-9: keys in another order, or of another kind, would give an item the outcome of another."""
    ends: list[Arg] = []
    for item in ("c1", "c2"):
        ends += [item, lab.tokens[item], 1, "keep", 1000]
    handed: list[Arg] = [2, 0, *ends[:5], 0, *ends[5:], 0]
    calls: list[tuple[str, list[Arg]]] = [
        ("complete_with", handed),
        ("release", [2, *ends]),
        ("outcome", [2, "c1", "c2"]),
    ]
    for script, args in calls:
        for wrong in (
            results("c2", "c1"),
            (key("wake"), *results("c2")),
            (key("result:xc1"), *results("c2")),
        ):
            refused(lab, script, args, "LEASEQ_BAD_ARGUMENT", wrong)
        assert lab.run(script, args, more=results("c1", "c2")).error is None
