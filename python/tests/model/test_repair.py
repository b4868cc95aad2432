"""The scripts against the reference model where one more decides: repair of extras, indexes and what is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.corruptions import DAY, HOUR_MS
from support.queue_driver import QueueDriver, own_queue

from leaseq_conformance.model import codec
from leaseq_conformance.model import keyspace as ks
from leaseq_conformance.model.calls import Add, Finish, Release

if TYPE_CHECKING:
    from leaseq_conformance.model.keyspace import Keyspace


driver = pytest.fixture(own_queue)


def test_what_a_pass_finds_of_the_life_of_an_item(driver: QueueDriver) -> None:
    """LQ-DEEP-12 to LQ-DEEP-14, LQ-DEEP-2, and each kind by itself."""
    driver.add(
        Add(b"plain"),
        Add(b"typed", content_type=b"t"),
        Add(b"expires", expires_in=HOUR_MS),
        Add(b"b", priority=1),
    )
    driver.lease()
    driver.complete_with(Finish(b"b", driver.current(b"b"), keep=HOUR_MS))
    assert not driver.deep_clean()

    def forget_flag(stored: Keyspace) -> None:
        assert isinstance(stored.state, codec.State)
        stored.state.flags = 0

    def leased_and_may_expire(stored: Keyspace) -> None:
        stored.meta[b"plain"] = codec.Record(1, driver.now - 1, driver.now - 2, expires=driver.now + DAY)

    damages = {
        "bad_record": [leased_and_may_expire],
        "bad_extra": [
            lambda stored: stored.extras.clear(),
            lambda stored: stored.extras.update({b"plain": codec.Extra(b"e")}),
            lambda stored: stored.extras.update({b"expires": codec.Extra(b"e")}),
            lambda stored: stored.extras.update({b"gone": codec.Extra(b"e")}),
        ],
        "unindexed": [lambda stored: stored.expiry.clear()],
        "stale_index": [
            lambda stored: stored.expiry.update({b"plain": driver.now}),
            lambda stored: stored.expiry.update({b"gone": driver.now}),
            lambda stored: stored.expiry.update({b"typed": driver.now}),
        ],
        "state": [forget_flag],
        "bad_time": [lambda stored: stored.kept.update({b"b": -1})],
    }
    for kind, changes in damages.items():
        for change in changes:
            driver.forge(change)
            assert driver.deep_clean(strict=False) == {kind: 1}, kind
            assert not driver.deep_clean()
    driver.forge(lambda stored: stored.expiry.update({b"expires": driver.now + 5}))
    assert driver.deep_clean() == {"unindexed": 1}


def test_a_deadline_before_all_times_is_put_right(driver: QueueDriver) -> None:
    """LQ-DEEP-10: no bound is below 0, which no script would believe."""
    driver.add(Add(b"x"))
    driver.lease()
    driver.forge(lambda stored: stored.leased.update({b"x": -5}))
    assert driver.deep_clean() == {"bad_time": 1, "next_due": 1}
    driver.drain()


@pytest.mark.parametrize("limit", [40, 256])
def test_a_pass_reaches_every_extra_and_index(driver: QueueDriver, limit: int) -> None:
    """LQ-DEEP-12 to LQ-DEEP-14, LQ-DEEP-1: also where they are many."""
    for first in range(0, 600, 200):
        driver.add(
            *[
                Add(b"n%d" % n, expires_in=HOUR_MS, headers=((b"a", b"v"),), keep=HOUR_MS)
                for n in range(first, first + 200)
            ]
        )
    assert not driver.deep_clean(limit)

    def change(stored: Keyspace) -> None:
        for n in range(0, 600, 3):
            if n % 2:
                del stored.expiry[b"n%d" % n]
            else:
                del stored.extras[b"n%d" % n]
                stored.extras[b"gone%d" % n] = codec.Extra()
                stored.expiry[b"gone%d" % n] = 5
            stored.kept[(b"n%d" if n % 2 else b"past%d") % n] = driver.now if n % 2 else -5

    driver.forge(change)
    assert driver.deep_clean(limit) == {
        "bad_extra": 200,
        "unindexed": 100,
        "stale_index": 200,
        "bad_time": 100,
    }
    assert not driver.deep_clean(limit)


def test_an_index_that_leads_to_no_such_item_is_put_right(driver: QueueDriver) -> None:
    """By light_clean: what is leased, dead, absent, or does not expire is left as it is, and the entry goes.

    LQ-LIGHT-4.
    """
    driver.add(Add(b"plain"), Add(b"held", priority=2), Add(b"buried", priority=1), Add(b"odd", expires_in=1))
    driver.lease(2)
    driver.release(Release(b"buried", driver.current(b"buried"), dead=True))
    before = driver.stored().items
    driver.now += 1000

    def change(stored: Keyspace) -> None:
        stored.expiry.update(dict.fromkeys((b"plain", b"held", b"buried", b"gone", b"odd"), 5))
        stored.dead[b"odd"] = stored.ready.pop(b"odd")

    driver.forge(change)
    for _ in range(2):
        assert driver.call("light_clean", [3])[3] == 0
    stored = driver.stored()
    assert not stored.expiry
    assert stored.items == before
    assert ks.read(driver.client, driver.prefix) == stored
