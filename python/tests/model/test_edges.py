"""The scripts against the reference model where a microsecond, a byte or one entry more decides."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from support.corruptions import DAMAGES, ODD
from support.queue_driver import QueueDriver, own_queue

from leaseq_conformance.model import codec, invariants, reading
from leaseq_conformance.model import keyspace as ks
from leaseq_conformance.model.base import CAP, END
from leaseq_conformance.model.calls import Add, Complete, Release

if TYPE_CHECKING:
    from leaseq_conformance.model.keyspace import Keyspace


driver = pytest.fixture(own_queue)


def test_a_sweep_takes_64_of_each_and_says_that_more_is_left(driver: QueueDriver) -> None:
    """LQ-LEASE-5, LQ-LEASE-7, LQ-LIGHT-3, LQ-FAIL-1."""
    driver.add(*[Add(b"l%d" % n, max_attempts=n % 2) for n in range(150)])
    driver.lease(150, 1000)
    driver.add(*[Add(b"d%d" % n, delay=500, priority=n % 3 - 1) for n in range(150)])
    driver.now += 1_000_000
    driver.lease(1, 60_000)
    driver.complete_and_lease(
        200, 60_000, *[Complete(b"l%d" % n, driver.token(b"l%d" % n, "current")) for n in range(70)]
    )
    driver.light_clean(3)
    driver.lease(256, 60_000)
    driver.light_clean(256)
    driver.drain()


def test_a_lease_that_only_finds_deaths_says_that_more_is_left(driver: QueueDriver) -> None:
    """LQ-LEASE-7: wait 0, as the next call may give one."""
    driver.add(*[Add(b"l%d" % n, max_attempts=1) for n in range(70)], Add(b"z"))
    driver.lease(70, 1000)
    driver.lease(1, 1001)
    driver.now += 2_000_000
    assert driver.lease()[:3] == [0, 0, 0]
    assert driver.lease()[3] == b"z"


def test_a_lease_stops_at_one_mebibyte(driver: QueueDriver) -> None:
    """LQ-LEASE-6: also where the state, and with it the largest size, was lost."""
    sizes = [400_000, 400_000, 248_576, 1, 0, 1_048_576, 0, 600_000, 600_000]
    for lost in (False, True):
        driver.add(*[Add(b"%d" % n, b"x" * size) for n, size in enumerate(sizes)])
        if lost:
            driver.model.state = None
            driver.client.delete(driver.prefix + "state")
            driver.now += 100
            driver.model.finished = 0
            driver.tolerated = {"by the counters"}
        assert [driver.lease(256)[2] for _ in range(6)] == [3, 2, 2, 1, 1, 0]
        driver.complete(*[Complete(b"%d" % n, driver.token(b"%d" % n, "current")) for n in range(len(sizes))])


@pytest.mark.parametrize("limit", [10, 100, 256])
def test_a_pass_reaches_everything_in_large_hashes(driver: QueueDriver, limit: int) -> None:
    """LQ-DEEP-1: past the size at which the server keeps a hash or a sorted set in one piece."""
    for first in range(0, 1200, 200):
        driver.add(*[Add(b"n%d" % n, delay=9000 if n % 7 == 0 else None) for n in range(first, first + 200)])
    driver.lease(256, 60_000)
    assert not driver.deep_clean(limit)

    def change(stored: Keyspace) -> None:
        for n in range(0, 1200, 5):
            item_id = b"n%d" % n
            DAMAGES[n // 5 % 5 + (n // 5 % 5 == 4)](stored, item_id, n % 4, driver.now)

    kept = driver.forge(change).items
    found = driver.deep_clean(limit, strict=False)
    assert set(found) >= {"unplaced", "several_states", "dropped", "record_without_item"}
    assert ks.read(driver.client, driver.prefix).items == kept
    driver.tolerated = {*ODD, "by the counters"}
    driver.adopt(ks.read(driver.client, driver.prefix))
    assert not driver.deep_clean(limit)


def test_an_id_without_data_is_dropped_by_lease(driver: QueueDriver) -> None:
    """LQ-LEASE-8: alone, between others and at the head."""
    driver.add(*[Add(b"%d" % n, b"x") for n in range(6)])
    for n in (0, 1, 3, 5):
        driver.client.hdel(driver.prefix + "items", b"%d" % n)
    assert driver.call("lease", [1, 1000])[2:] == [0]
    assert driver.call("lease", [1, 1000])[2:] == [0]
    assert driver.call("lease", [3, 1000])[3::4] == [b"2", b"4"]
    assert driver.call("lease", [3, 1000])[2] == 0
    stored = ks.read(driver.client, driver.prefix)
    assert stored.counters == {b"dropped": 4}
    assert not invariants.violations(stored, completed=0)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("priority", range(-7, 8))
def test_an_item_whose_record_was_lost_can_be_completed(
    driver: QueueDriver, priority: int, count: int
) -> None:
    """LQ-COMPLETE-2: its place, from which its creation is taken, carries its priority."""
    driver.add(Add(b"x", b"data", priority=priority))
    driver.light_clean()
    driver.adopt(driver.forge(lambda stored: stored.meta.clear()))
    driver.lease(count)
    driver.drain()
    assert not driver.model.items


def test_a_damaged_record_behind_the_sweep_leaves_both_halves_undone(driver: QueueDriver) -> None:
    """LQ-VERSION-2, LQ-ERROR-1: completing makes room in the sweep, which must not meet a bad record only then."""
    driver.add(*[Add(b"%03d" % n) for n in range(66)])
    driver.lease(66, 1000)
    driver.now += 1_000_000
    before = driver.forge(lambda stored: stored.meta.update({b"065": b"bad"}))
    completes = [
        part for n in range(2) for part in Complete(b"%03d" % n, driver.token(b"%03d" % n, "current")).argv()
    ]
    assert driver.call("complete_and_lease", [1, 1000, 2, *completes]) == "LEASEQ_FORMAT"
    assert ks.read(driver.client, driver.prefix) == before


@pytest.mark.parametrize("script", ["inspect", "lease", "release", "light_clean", "complete", "extend"])
def test_a_record_cut_off_in_its_options_is_named(driver: QueueDriver, script: str) -> None:
    """LQ-VERSION-2: not the server's own words for it."""
    driver.add(Add(b"x", priority=3))
    token = driver.lease(1, 1000)[5]
    whole = driver.model.keyspace().meta[b"x"]
    assert isinstance(whole, codec.Record)
    before = driver.forge(lambda stored: stored.meta.update({b"x": whole.encode()[:23]}))
    driver.now += 2_000_000
    argv: dict[str, list[int | bytes]] = {
        "inspect": [1, b"x"],
        "lease": [1, 1000],
        "release": [1, b"x", token, 0],
        "light_clean": [9],
        "complete": [1, b"x", token, 0],
        "extend": [1, b"x", token, 9],
    }
    assert driver.call(script, argv[script]) == "LEASEQ_FORMAT"
    assert ks.read(driver.client, driver.prefix) == before


def test_the_creation_of_an_item_is_not_a_token_of_it(driver: QueueDriver) -> None:
    """LQ-COMPLETE-1: `created < token`."""
    created = driver.add(Add(b"x"))
    driver.lease()
    assert driver.complete(Complete(b"x", created)) == 0
    assert driver.complete(Complete(b"x", created), Complete(b"x", created, only_current=True)) == [0, 0]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("early", [1, 0])
def test_an_item_is_due_in_the_microsecond_of_its_time(driver: QueueDriver, count: int, early: int) -> None:
    """LQ-TIME-2, LQ-LEASE-5: on the hot path and on the other, a due item goes before one of lower priority."""
    driver.add(Add(b"now"), Add(b"due", delay=1, priority=1))
    driver.light_clean()
    driver.now += 1000 - early
    assert driver.lease(count)[3] == (b"now" if early else b"due")


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("late", [0, 1])
def test_a_timer_within_the_cap_is_announced(driver: QueueDriver, count: int, late: int) -> None:
    """LQ-SETTLE-1, LQ-SETTLE-4: 4 s are within it, a microsecond more is not."""
    driver.add(Add(b"x"), Add(b"later", delay=5000))
    driver.light_clean()
    driver.now += 5_000_000 - CAP - late
    driver.pop_wake()
    driver.lease(count)
    assert driver.model.wake == 1 - late
    if not late:
        driver.pop_wake()
    assert driver.settle() == 1 - late


@pytest.mark.parametrize("limit", [1, 256])
@pytest.mark.parametrize("states", [pair for n in range(5) for pair in combinations(ks.ZSETS, n)])
def test_an_id_in_any_states_ends_in_the_right_one(
    driver: QueueDriver, states: tuple[str, ...], limit: int
) -> None:
    """LQ-DEEP-4, LQ-DEEP-5."""
    driver.add(Add(b"x"), Add(b"y"))

    def change(stored: Keyspace) -> None:
        stored.ready.clear()
        for item_id in (b"x", b"y"):
            for state in states:
                stored.zsets()[state][item_id] = 1 if state == "ready" else driver.now + 5

    driver.forge(change)
    driver.deep_clean(limit, strict=False)
    first = next((name for name in ("leased", "dead", "delayed", "ready") if name in states), "ready")
    stored = ks.read(driver.client, driver.prefix)
    assert stored.where(b"x") == stored.where(b"y") == [first]
    driver.tolerated = ODD
    driver.adopt(stored)
    assert not driver.deep_clean(limit)


@pytest.mark.parametrize("times", [(END, 0), (0, END), (END - 1, 0), (0, END - 1), (END, END)])
def test_times_that_no_clock_gave_do_not_move_the_clock(driver: QueueDriver, times: tuple[int, int]) -> None:
    """LQ-DEEP-9: the clock is taken from tokens and creations, so one that cannot be is not believed."""
    driver.add(Add(b"x"))
    driver.forge(lambda stored: stored.meta.update({b"x": codec.Record(1, *times)}))
    found = driver.deep_clean(strict=False)
    assert (found["bad_record"], found["clock"]) == ((1, 0) if END in times else (0, 1))
    state = ks.read(driver.client, driver.prefix).state
    assert isinstance(state, codec.State)
    assert state.clock < END


def test_an_uncounted_release_never_counts_below_0(driver: QueueDriver) -> None:
    """LQ-RELEASE-4: of an item that damage made leased, its attempt taken back before."""
    driver.add(Add(b"x", max_attempts=1))
    token = driver.lease()[5]
    driver.release(Release(b"x", token, uncounted=True))

    def change(stored: Keyspace) -> None:
        stored.leased[b"x"] = driver.now + 5
        del stored.ready[b"x"]

    driver.forge(change)
    assert driver.call("release", [1, b"x", token, 1, "uncounted", 1]) == b"ready"
    record = ks.read(driver.client, driver.prefix).meta[b"x"]
    assert isinstance(record, codec.Record)
    assert record.attempt == 0


def test_a_dry_run_tells_what_a_far_deadline_does_to_the_bound(driver: QueueDriver) -> None:
    """LQ-DEEP-3, LQ-DEEP-8: the driver runs every page dry before it runs it."""
    driver.add(Add(b"x"))
    driver.lease()
    driver.forge(lambda stored: stored.leased.update({b"x": driver.now + 31 * 86_400_000_000 + 1}))
    assert driver.deep_clean() == {"far_deadline": 1, "next_due": 1}
    driver.drain()


@pytest.mark.parametrize("priority", range(-7, 8))
def test_a_pass_reads_places_of_every_priority_exactly(driver: QueueDriver, priority: int) -> None:
    """LQ-DEEP-2: a place of priority -7 and the zero of places add up to more than a double holds exactly."""
    for n in range(8):
        driver.add(Add(b"%d" % n, priority=priority))
        driver.now += 1
        assert not driver.deep_clean()


def test_a_healthy_lease_survives_a_clock_that_steps_back(driver: QueueDriver) -> None:
    """LQ-DEEP-2, LQ-DEEP-8: the longest lease, and a clock that is a little earlier when the cleaner looks."""
    driver.add(Add(b"x"))
    driver.lease(duration=2_592_000_000)
    driver.now -= 60_000_000
    assert not driver.deep_clean()


@pytest.mark.parametrize("damage", [b"x", b"1.5", b"", b"9223372036854775807"])
def test_a_damaged_counter_begins_anew(driver: QueueDriver, damage: bytes) -> None:
    """LQ-ITEM-3: no script stops at one between two states of an item."""
    driver.add(*[Add(name, max_attempts=1) for name in (b"late", b"held", b"buried", b"revived", b"removed")])
    driver.lease(1, 1_000)
    driver.lease(3, 60_000)
    driver.release(*[Release(name, driver.token(name, "current")) for name in (b"buried", b"revived")])
    driver.add(Add(b"due", delay=1), Add(b"over", expires_in=1))
    driver.now += 5_000_000
    counters = driver.prefix + "counters"
    token = driver.token(b"held", "current")
    for name, arguments, counted in (
        ("stats", (), ""),
        ("light_clean", (10,), "promoted died expired"),
        ("remove", (1, b"removed"), "removed"),
        ("release", (1, b"held", token, 1, b"delay", 1), "released died"),
        ("revive", (1, b"revived"), "revived"),
        ("purge", (0, 1, b"buried"), "purged"),
    ):
        driver.client.delete(counters)
        driver.client.hset(counters, mapping=dict.fromkeys(reading.COUNTED, damage))
        reply = driver.call(name, arguments)
        assert not isinstance(reply, str), (name, reply)
        values = zip(reading.COUNTED, driver.client.hmget(counters, reading.COUNTED), strict=True)
        assert [key for key, value in values if value == b"1"] == counted.split(), name
    assert driver.client.zrange(driver.prefix + "ready", 0, -1)[:1] == [b"due"]
