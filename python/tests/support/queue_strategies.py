"""Strategies for the steps of random histories."""

from __future__ import annotations

import hypothesis.strategies as st
from support.corruptions import HOUR_MS, IDS

from leaseq_conformance.model.calls import Add

Chosen = tuple[bytes, bytes, dict[str, int], dict[str, object]]
"""Of an entry of add: its id, data, time and other options."""
BAD_IDS = (b"", b"\0", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"i" * 257)

ids = st.sampled_from(IDS)
few_ids = st.lists(ids, min_size=1, max_size=4)
token_kinds = st.sampled_from(
    ["current"] * 5 + ["superseded", "superseded", "previous", "previous", "none", "future"]
)
delays = st.sampled_from([0, 1, 500, 3_000, 10_000, 315_360_000_000])
durations = st.sampled_from([1, 100, 3_000, 4_000, 60_000, 2_592_000_000])
data = st.sampled_from([b"", b"x", b"\0\xff\r\n", b"data" * 10])
limits = st.sampled_from([1, 2, 256])
timed = st.one_of(
    st.just({}),
    st.just({}),
    st.builds(lambda delay: {"delay": delay}, delays),
    st.builds(lambda offset: {"offset": offset}, st.sampled_from([-5_000, -1, 0, 1, 7_000])),
)
order = st.builds(
    lambda priority, max_attempts: {"priority": priority, "max_attempts": max_attempts},
    st.sampled_from([None, None, None, 0, 1, -1, 7, -7]),
    st.sampled_from([None, None, 0, 1, 1, 2, 3]),
)
keeps = st.sampled_from([None, None, None, 1, 2_000, HOUR_MS, 315_360_000_000])
call_keeps = st.sampled_from([None, 0, 0, 0, 3_000, HOUR_MS])
errors = st.sampled_from([None, None, b"", b"no", b"another \xff"])
extras = st.sampled_from(
    [
        {},
        {},
        {"content_type": b""},
        {"headers": ((b"a.b", b"1"), (b"Z", b"\0\xff"))},
        {"content_type": b"text/plain"},
    ]
)
expiries = st.sampled_from([{}, {}, {}, {"expires_in": 2_000}, {"expires_in": 20_000}])
rest = st.builds(
    lambda order, expires, dies, keep, extra: {
        **order,
        **expires,
        "dies": dies and bool(expires),
        "keep": keep,
        **extra,
    },
    order,
    expiries,
    st.booleans(),
    keeps,
    extras,
)


def entry(item_id: bytes, content: bytes, when: dict[str, int], more: dict[str, object], now: int) -> Add:
    """An entry of add, its times of the queue's own."""
    time = {"not_before": now // 1000 + when["offset"]} if "offset" in when else when
    return Add(item_id, content, **time, **more)  # type: ignore[arg-type]
