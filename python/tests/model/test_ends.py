"""The scripts against the reference model where one more decides: expiry, headers, errors and attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.corruptions import DAY, HOUR_MS
from support.queue_driver import QueueDriver, own_queue

from leaseq_conformance.model.base import END
from leaseq_conformance.model.calls import Add, Complete, Finish, Release

if TYPE_CHECKING:
    from collections.abc import Callable

driver = pytest.fixture(own_queue)


# Expiry


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("early", [1, 0])
@pytest.mark.parametrize("dies", [False, True])
def test_an_item_goes_in_the_microsecond_of_its_time(
    driver: QueueDriver, count: int, early: int, dies: bool
) -> None:
    """LQ-LEASE-10, LQ-KEY-8: leased before it, and then for ever free of it; dropped or dead from it on."""
    driver.add(Add(b"x", expires_in=1000, dies=dies, keep=HOUR_MS, headers=((b"a", b"b"),)))
    driver.now += 1_000_000 - early
    assert driver.lease(count)[2] == early
    driver.now += DAY
    driver.light_clean()
    assert driver.where(b"x") == ("ready" if early else "dead" if dies else "absent")
    driver.inspect(b"x")
    driver.outcome(b"x")


@pytest.mark.parametrize("early", [1, 0])
def test_a_light_clean_ends_in_the_microsecond_of_its_time(driver: QueueDriver, early: int) -> None:
    """LQ-LIGHT-4, LQ-LIGHT-5: items and outcomes."""
    driver.add(Add(b"x", expires_in=HOUR_MS), Add(b"y", priority=1))
    token = driver.lease()[5]
    driver.complete_with(Finish(b"y", token, keep=HOUR_MS))
    driver.now += HOUR_MS * 1000 - early
    assert driver.light_clean()[3:5] == [1 - early, 1 - early]


@pytest.mark.parametrize("limit", [1, 2, 3, 256])
def test_a_light_clean_ends_at_most_its_limit(driver: QueueDriver, limit: int) -> None:
    """And says with 0 that more is left; the index leads to delayed and ready items alike.

    LQ-LIGHT-3 to LQ-LIGHT-5.
    """
    driver.add(
        *[Add(b"%d" % n, delay=n % 2, expires_in=50 - n, dies=n % 3 == 0, keep=HOUR_MS) for n in range(6)]
    )
    driver.add(*[Add(b"k%d" % n, priority=1) for n in range(4)])
    driver.lease(4)
    driver.complete_with(*[Finish(b"k%d" % n, driver.current(b"k%d" % n), keep=HOUR_MS) for n in range(4)])
    driver.now += 4_000_000_000
    for _ in range(7):
        driver.light_clean(limit)
    assert driver.light_clean() == [0, 0, 0, 0, 0, -1]


def test_a_light_clean_that_only_ends_items_wakes_for_the_others(driver: QueueDriver) -> None:
    """LQ-SETTLE-3: also where it moved nothing else."""
    driver.add(Add(b"over", expires_in=1), Add(b"there"))
    driver.pop_wake()
    driver.waiters = 0
    driver.now += 1000
    driver.light_clean()
    assert driver.model.wake == 1


def test_a_light_clean_waits_for_the_first_of_all_times(driver: QueueDriver) -> None:
    """LQ-LIGHT-3: due times, deadlines, expiries, ends of outcomes: each in its turn."""
    driver.add(
        Add(b"k"),
        Add(b"expires", expires_in=HOUR_MS),
        Add(b"due", delay=2 * HOUR_MS),
        Add(b"held", priority=1),
    )
    driver.lease(1, 3 * HOUR_MS)
    driver.lease(1, 3 * HOUR_MS)
    driver.complete_with(Finish(b"k", driver.current(b"k"), keep=HOUR_MS // 2))
    waits = []
    while (wait := driver.light_clean()[5]) > 0:
        waits.append(wait)
        driver.now += wait
    assert waits == [HOUR_MS * 500, HOUR_MS * 500, HOUR_MS * 1000, HOUR_MS * 1000]


def test_expired_heads_use_up_a_lease(driver: QueueDriver) -> None:
    """LQ-LEASE-10, LQ-LEASE-6: they make `n` smaller, or 0 with wait 0, and their data counts."""
    driver.add(
        *[Add(b"%d" % n, b"x" * 300_000, expires_in=1, dies=n == 2) for n in range(6)], Add(b"z", b"z")
    )
    driver.now += 1000
    assert driver.lease(2)[:3] == [0, 0, 0]
    assert driver.lease(256)[:3] == [0, 0, 0]
    assert driver.lease(256)[3] == b"z"
    assert driver.page("dead")[0] == 1


@pytest.mark.parametrize(
    ("expires_in", "delay", "taken"), [(5, 5, 0), (5, 6, 0), (6, 5, 1), (1, None, 1), (1, 0, 1)]
)
def test_an_item_is_due_before_it_expires(
    driver: QueueDriver, expires_in: int, delay: int | None, taken: int
) -> None:
    """Else it is refused; by not_before too."""
    reply = driver.add(Add(b"x", delay=delay, expires_in=expires_in))
    assert (reply == "LEASEQ_BAD_ARGUMENT") != taken
    if delay:
        reply = driver.add(Add(b"y", not_before=driver.now // 1000 + delay, expires_in=expires_in))
        assert (reply == "LEASEQ_BAD_ARGUMENT") != taken


def test_nothing_expires_after_2059(driver: QueueDriver) -> None:
    """As nothing becomes due then."""
    driver.now = END - 1_000_000
    assert driver.add(Add(b"x", expires_in=1000)) == "LEASEQ_BAD_ARGUMENT"
    assert driver.add(Add(b"x", expires_in=999)) > 0
    assert not driver.deep_clean()


# Headers


@pytest.mark.parametrize("too_much", [0, 1])
@pytest.mark.parametrize("typed", [False, True])
def test_headers_take_4096_bytes(driver: QueueDriver, typed: bool, too_much: int) -> None:
    """LQ-ITEM-5, LQ-ITEM-6: with their option names; and come back as they were."""
    names = [b"content_type"] * typed + [b"header:h%02d" % n for n in range(16)]
    left = 4096 - sum(map(len, names)) + too_much
    values = [b"\0" * (left - 16), *[b"\xff"] * 16] if typed else [b"\0" * (left - 15), *[b"\xff"] * 15]
    kind = values.pop(0) if typed else None
    headers = tuple((b"h%02d" % n, value) for n, value in enumerate(values))
    reply = driver.add(Add(b"x", content_type=kind, headers=headers))
    assert (reply == "LEASEQ_TOO_LARGE") == bool(too_much)
    for _ in range(2):
        driver.lease(1)
        if not too_much:
            driver.release(Release(b"x", driver.current(b"x"), error=b"e" * 9000))


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        ([b"h%d" % n for n in range(16)], True),
        ([b"h%d" % n for n in range(17)], False),
        ([b"a" * 100], True),
        ([b"a" * 101], False),
        ([b""], False),
        ([b"-_.09azAZ"], True),
        *[([bad], False) for bad in (b"a b", b"\xc3\xa9", b"a:", b"a\n", b"\0", b"a%")],
    ],
)
def test_names_of_headers(driver: QueueDriver, names: list[bytes], taken: bool) -> None:
    """LQ-ITEM-6: 16 of 1 to 100 letters."""
    reply = driver.add(Add(b"x", headers=tuple((name, b"") for name in names)))
    assert (reply == "LEASEQ_BAD_ARGUMENT") != taken
    driver.drain()


@pytest.mark.parametrize("char", ["a", "é", "€", "😀"])
@pytest.mark.parametrize("shift", range(5))
def test_an_error_is_cut_between_characters(driver: QueueDriver, char: str, shift: int) -> None:
    """LQ-DEAD-2: at 8192 bytes at most, and no more is lost than one character."""
    driver.add(Add(b"x", headers=((b"a", b"b"),)), Add(b"y"))
    driver.lease(2)
    text = b"." * shift + char.encode() * 8192
    for size in (len(text), 8192 - 8192 % len(char.encode()) + shift, 8191):
        error = text[:size].decode(errors="ignore").encode()
        driver.release(*[Release(name, driver.current(name), error=error) for name in (b"x", b"y")])
        stored = driver.inspect(b"x", b"y")[10::11]
        assert error.startswith(stored[0])
        assert stored[0] == stored[1]
        assert min(len(error), 8192) - len(stored[0]) < len(char.encode())
        driver.lease(2)


@pytest.mark.parametrize("way", ["complete", "complete_and_lease", "complete_with", "remove", "purge"])
@pytest.mark.parametrize("several", [False, True])
def test_headers_go_with_their_item(driver: QueueDriver, way: str, several: bool) -> None:
    """LQ-KEY-9: however it ends, alone or with others in one call."""
    ids = [b"a", b"b", b"plain"][: 3 if several else 1]
    driver.add(*[Add(item_id, headers=((b"h", b"v"),) * (item_id != b"plain")) for item_id in ids])
    driver.lease(3)
    completes = [Complete(item_id, driver.current(item_id)) for item_id in ids]
    if several:
        driver.add(Add(b"due", delay=1))
        driver.now += 1000
    if way == "purge":
        driver.release(*[Release(entry.id, entry.token, dead=True) for entry in completes])
    ways: dict[str, Callable[[], object]] = {
        "complete": lambda: driver.complete(*completes),
        "complete_and_lease": lambda: driver.complete_and_lease(1, 1000, *completes),
        "complete_with": lambda: driver.complete_with(
            *[Finish(entry.id, entry.token) for entry in completes]
        ),
        "remove": lambda: driver.remove(*ids),
        "purge": lambda: driver.purge(*ids),
    }
    ways[way]()
    assert not driver.stored().extras


@pytest.mark.parametrize("end", [0, 1, 2, 3, 4, 5, 100])
def test_an_error_that_is_no_text_is_cut_too(driver: QueueDriver, end: int) -> None:
    """LQ-DEAD-2: three bytes are lost at most."""
    driver.add(Add(b"x"))
    driver.lease()
    error = b"." * (8192 - end) + b"\x80" * 200
    driver.release(Release(b"x", driver.current(b"x"), error=error))
    assert len(driver.inspect(b"x")[10]) >= 8189


# Attempts


def test_the_limit_of_the_queue_is_looked_up_when_an_attempt_ends(driver: QueueDriver) -> None:
    """LQ-CONFIG-3: for items that are there too; not for those that say 0, and not for those that say more."""
    driver.add(Add(b"plain"), Add(b"zero", max_attempts=0), Add(b"three", max_attempts=3), Add(b"late"))
    driver.lease(4, 1000)
    driver.configure(max_attempts=1)
    ids = (b"plain", b"zero", b"three")
    driver.release(*[Release(item_id, driver.current(item_id)) for item_id in ids])
    driver.now += 1_000_000
    driver.light_clean()
    assert [driver.where(item_id) for item_id in (*ids, b"late")] == ["dead", "ready", "ready", "dead"]
    assert driver.inspect(*ids)[7::11] == [1, 0, 3]
    driver.add(Add(b"new"))
    driver.configure(max_attempts=65_534)
    assert driver.inspect(b"new", b"zero")[7::11] == [65_534, 0]
    driver.configure(max_attempts=0)


def test_an_uncounted_release_and_an_error_leave_the_attempts(driver: QueueDriver) -> None:
    """LQ-DEAD-2, LQ-RELEASE-4: the error is kept, also where nothing else of the item differs from its default."""
    names = (b"x", b"y", b"z")
    driver.add(Add(b"x"), Add(b"y", priority=2), Add(b"z", expires_in=HOUR_MS, dies=True))
    driver.lease(3)
    for name in names:
        token = driver.current(name)
        driver.release(Release(name, token, delay=5, uncounted=True, error=b"one"))
    assert driver.inspect(*names)[10::11] == [b"one"] * 3
    driver.now += 5000
    driver.lease(3)
    driver.release(Release(b"x", driver.current(b"x"), error=b""), Release(b"y", driver.current(b"y")))
    assert driver.inspect(b"x", b"y")[10::11] == [b"", b"one"]
    driver.drain()
