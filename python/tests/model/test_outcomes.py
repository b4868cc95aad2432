"""The scripts against the reference model where one more decides: dead letters and outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.corruptions import DAY, HOUR_MS
from support.queue_driver import QueueDriver, own_queue, queue_beside

from leaseq_conformance.model import codec
from leaseq_conformance.model.calls import Add, Complete, Finish, Release

if TYPE_CHECKING:
    from leaseq_conformance.model.keyspace import Keyspace

driver = pytest.fixture(own_queue)
other = pytest.fixture(queue_beside)


# Dead letters


def test_a_release_dead_letters_whatever_the_attempts(driver: QueueDriver) -> None:
    """LQ-DEAD-1: only for the current lease; once in a call."""
    driver.add(Add(b"x", max_attempts=0), Add(b"y", max_attempts=9))
    driver.lease(2, 1000)
    old = driver.current(b"x")
    driver.now += 1_000_000
    driver.lease(2)
    token = driver.current(b"x")
    assert driver.release(Release(b"x", old, dead=True)) == b"lost"
    assert driver.release(Release(b"x", token, dead=True), Release(b"x", token, dead=True)) == [
        b"dead",
        b"lost",
    ]
    assert driver.release(Release(b"y", driver.current(b"y"), delay=5, dead=True)) == "LEASEQ_BAD_ARGUMENT"
    assert (
        driver.release(Release(b"y", driver.current(b"y"), uncounted=True, dead=True))
        == "LEASEQ_BAD_ARGUMENT"
    )
    assert driver.complete(Complete(b"x", old)) == 1


@pytest.mark.parametrize("older_than", [0, 1, 7])
@pytest.mark.parametrize("young", [0, 1])
def test_purge_takes_what_is_dead_for_so_long(driver: QueueDriver, older_than: int, young: int) -> None:
    """LQ-DEAD-4: to the microsecond; nothing that is not dead, and nothing twice."""
    driver.add(Add(b"x", headers=((b"a", b""),)), Add(b"y"))
    driver.lease()
    driver.release(Release(b"x", driver.current(b"x"), dead=True))
    driver.now += older_than * 1000 - young
    assert driver.purge(b"y", b"x", b"x", b"z", older_than=older_than) == [0, 1 - young, 0, 0]


def test_revived_items_take_the_last_place_of_their_level(driver: QueueDriver) -> None:
    """LQ-DEAD-3: in the order of the call; a lapsed one does not lapse again."""
    driver.add(
        Add(b"a", priority=1),
        Add(b"b"),
        Add(b"c"),
        Add(b"lapsed", expires_in=1, dies=True, headers=((b"h", b"v"),)),
    )
    driver.lease(3, 60_000)
    driver.release(
        *[Release(name, driver.current(name), dead=True, error=b"e") for name in (b"c", b"a", b"b")]
    )
    driver.now += 1_000_000
    driver.light_clean()
    driver.add(Add(b"new"))
    assert driver.revive(b"lapsed", b"c", b"new", b"c", b"b", b"a") == [1, 1, 0, 0, 1, 1]
    driver.now += 1_000_000
    reply = driver.lease(9, 1000)
    assert reply[3 : 3 + 4 * 5 : 4] == [b"a", b"new", b"lapsed", b"c", b"b"]
    assert reply[6 : 3 + 4 * 5 : 4] == [1] * 5
    assert driver.inspect(b"lapsed", b"c")[10::11] == [b"expired", b"e"]


def test_reviving_while_paused_wakes_nobody(driver: QueueDriver) -> None:
    """LQ-PAUSE-3: resuming will."""
    driver.add(Add(b"a"))
    driver.lease()
    driver.release(Release(b"a", driver.current(b"a"), dead=True))
    driver.configure(paused=1)
    driver.pop_wake()
    driver.waiters = 0
    driver.revive(b"a")
    assert driver.model.wake == 0


@pytest.mark.parametrize("way", ["lease", "complete_and_lease", "light_clean", "lease_any"])
def test_deaths_of_items_that_keep_an_outcome_are_told(
    driver: QueueDriver, other: QueueDriver, way: str
) -> None:
    """By reclaiming and by expiry; the failure is there once outcome was asked, until an older lease completes it.

    LQ-OUTCOME-6.
    """
    died = (b"a", b"c", b"lapsed")
    driver.add(
        Add(b"a", max_attempts=1, keep=HOUR_MS),
        Add(b"b", max_attempts=1),
        Add(b"c", max_attempts=1, keep=HOUR_MS),
    )
    driver.lease(3, 1)
    driver.add(
        *[
            Add(name, priority=1, expires_in=1, dies=True, keep=keep)
            for name, keep in ((b"lapsed", HOUR_MS), (b"no", None))
        ]
    )
    other.add(Add(b"ready"))
    driver.now += 1000
    reply = {
        "lease": lambda: driver.lease(9)[3:],
        "complete_and_lease": lambda: driver.complete_and_lease(9, 1000, Complete(b"b", 1))[3:-1],
        "light_clean": lambda: driver.light_clean()[6:],
        "lease_any": lambda: driver.lease_any(other, count=9)[4:],
    }[way]()
    told = reply if way == "light_clean" else reply[2::3]
    assert sorted(told) == sorted(died)
    assert [driver.where(name) for name in died] == ["dead"] * 3
    assert driver.outcome(*died)[::6] == [b"failure"] * 3
    assert driver.outcome(b"lapsed")[5] == b"expired"
    assert driver.page("kept")[0] == 3
    assert driver.complete_with(Finish(b"a", driver.current(b"a"), keep=0)) == [1]
    assert driver.outcome(b"a")[0] == b"result"


# Outcomes


def finished(driver: QueueDriver, keep: int | None = None, **more: int) -> int:
    """Add, lease and complete `x` with a result; the token."""
    driver.add(Add(b"x", keep=keep))
    token: int = driver.lease()[5]
    assert driver.complete_with(Finish(b"x", token, keep=0 if keep else HOUR_MS, result=b"first")) == [1]
    return token


def test_an_outcome_is_of_the_item_and_of_no_other(driver: QueueDriver) -> None:
    """An item added again has none until its own end, and what was kept of the earlier one is gone.

    LQ-OUTCOME-4, LQ-OUTCOME-5.
    """
    first = finished(driver)
    assert driver.outcome(b"x")[5] == b"first"
    driver.add(Add(b"x"))
    assert driver.complete_with(Finish(b"x", first, keep=0)) == [0]
    assert driver.outcome(b"x")[0] == b"ready"
    assert not driver.model.results
    driver.lease()
    assert driver.complete(Complete(b"x", driver.current(b"x"))) == 1
    assert driver.outcome(b"x")[0] == b"absent"


@pytest.mark.parametrize("lost", [False, True])
def test_every_id_of_a_call_begins_without_an_outcome(driver: QueueDriver, lost: bool) -> None:
    """LQ-OUTCOME-5: also where the state, which says that some are kept, was lost."""
    ids = (b"a", b"b", b"c")
    driver.add(*[Add(item_id) for item_id in ids])
    driver.lease(3)
    driver.complete_with(*[Finish(item_id, driver.current(item_id), keep=HOUR_MS) for item_id in ids])
    if lost:
        driver.now += 1
        driver.tolerated = {"by the counters"}
        driver.model.state = None
        driver.client.delete(driver.prefix + "state")
    driver.add(Add(b"c"), Add(b"new"), Add(b"b"))
    assert list(driver.model.kept) == [b"a"]


def test_a_failure_is_no_completion(driver: QueueDriver) -> None:
    """LQ-OUTCOME-2: the lease under which an item died did not complete it, though the failure carries its token."""
    driver.add(Add(b"x", keep=HOUR_MS))
    token = driver.lease()[5]
    driver.release(Release(b"x", token, dead=True, keep=0))
    driver.purge(b"x")
    assert driver.complete_with(Finish(b"x", token, keep=0)) == [0]
    assert driver.outcome(b"x")[0] == b"failure"


@pytest.mark.parametrize("keep", [None, 0])
def test_a_completion_ends_the_failure_of_a_dead_item(driver: QueueDriver, keep: int | None) -> None:
    """LQ-OUTCOME-5: where no result takes its place, nothing is kept."""
    driver.add(Add(b"x", headers=((b"a", b"b"),)))
    token = driver.lease()[5]
    driver.release(Release(b"x", token, dead=True, keep=HOUR_MS))
    assert driver.complete_with(Finish(b"x", token, keep=keep)) == [1]
    assert driver.outcome(b"x")[0] == b"absent"


def test_a_stale_list_is_no_outcome(driver: QueueDriver) -> None:
    """LQ-KEY-10: where the id was added again, completed without keeping, and nobody asked in between."""
    first = finished(driver, HOUR_MS)
    driver.add(Add(b"x"))
    token = driver.lease()[5]
    driver.complete(Complete(b"x", token))
    assert driver.complete_with(*[Finish(b"x", each, keep=0) for each in (first, token)]) == [0, 0]
    assert driver.outcome(b"x", b"x")[::6] == [b"absent"] * 2
    assert not driver.model.results


def test_an_outcome_ends_with_its_time(driver: QueueDriver) -> None:
    """LQ-KEY-10, LQ-OUTCOME-2: and the winner is not known as such any more."""
    token = finished(driver)
    assert driver.complete_with(Finish(b"x", token, keep=0)) == [1]
    driver.now += HOUR_MS * 1000
    assert driver.light_clean()[4] == 1
    assert driver.complete_with(Finish(b"x", token, keep=0)) == [0]
    assert driver.outcome(b"x")[0] == b"absent"


def test_a_failure_is_of_the_item_that_died(driver: QueueDriver) -> None:
    """LQ-OUTCOME-5, LQ-OUTCOME-6: not of one that was revived, nor of one with the same id that was added again."""
    driver.add(Add(b"x", keep=HOUR_MS, max_attempts=1))
    driver.lease(1, 1000)
    driver.release(Release(b"x", driver.current(b"x"), error=b"one", keep=2 * HOUR_MS))
    driver.now += 1_000_000
    assert driver.outcome(b"x")[::5] == [b"failure", b"one"]
    driver.revive(b"x")
    assert driver.outcome(b"x")[0] == b"ready"
    driver.lease(1, 1000)
    driver.now += 1_000_000
    driver.light_clean()
    died = driver.now
    driver.now += 5
    kind, _, ended, attempt, keep, content = driver.outcome(b"x")
    assert (kind, ended, attempt, keep, content) == (b"failure", died, 1, HOUR_MS, b"one")
    driver.purge(b"x")
    assert driver.outcome(b"x")[0] == b"failure"
    driver.add(Add(b"x", keep=HOUR_MS, max_attempts=1))
    driver.lease(1, 1000)
    driver.now += 1_000_000
    driver.light_clean()
    assert driver.outcome(b"x")[5] == b""


def test_a_failure_is_kept_only_where_it_dies_and_was_asked_for(driver: QueueDriver) -> None:
    """LQ-OUTCOME-3: by the item or the call, and with the key."""
    driver.add(*[Add(b"%d" % n, keep=HOUR_MS if n < 2 else None) for n in range(5)])
    driver.lease(5)
    tokens = [driver.current(b"%d" % n) for n in range(5)]
    driver.release(
        Release(b"0", tokens[0], dead=True),
        Release(b"1", tokens[1], dead=True, keep=0),
        Release(b"2", tokens[2], dead=True, keep=0),
        Release(b"3", tokens[3], dead=True, keep=HOUR_MS, error=b"x" * 9000),
        Release(b"4", tokens[4], keep=HOUR_MS),
    )
    assert set(driver.model.kept) == {b"1", b"3"}
    assert driver.outcome(b"0")[0] == b"failure"


@pytest.mark.parametrize(
    "broken", [b"", b"\1\1", b"\2\1" + bytes(40), b"\1\3" + bytes(40), b"\1\0" + bytes(40)]
)
def test_an_outcome_of_another_format_is_refused(driver: QueueDriver, broken: bytes) -> None:
    """Nothing is changed; where the id is not in kept, the list is stale whatever it holds.

    LQ-OUTCOME-8, LQ-ERROR-1.
    """
    token = finished(driver)
    (key,) = driver.results([b"x"])
    driver.client.lset(key.decode(), 0, broken)  # type: ignore[arg-type]  # bytes are fine
    before = driver.stored()
    assert driver.call("outcome", [1, b"x"], more=[key]) == "LEASEQ_FORMAT"
    assert driver.call("complete_with", [1, 0, b"x", token, 1, b"keep", 0, 0], more=[key]) == "LEASEQ_FORMAT"
    assert driver.stored() == before
    driver.client.delete(driver.prefix + "kept")
    assert driver.call("outcome", [1, b"x"], more=[key])[0] == b"absent"
    assert not driver.stored().results


@pytest.mark.parametrize(("last", "told"), [(0, 4), (1, 3)])
def test_one_call_tells_some_mebibytes_of_contents(driver: QueueDriver, last: int, told: int) -> None:
    """LQ-OUTCOME-9: the entry that goes beyond 4 MiB is the last; what is behind it is neither told nor published."""
    driver.configure(max_data=2**21 + 1)
    driver.add(*[Add(b"%d" % n) for n in range(3)], Add(b"dead", keep=HOUR_MS))
    driver.lease(4)
    for n, size in enumerate((2**21, 0, 2**21 + last)):
        token = driver.current(b"%d" % n)
        driver.complete_with(Finish(b"%d" % n, token, keep=HOUR_MS, result=bytes(size)))
    driver.release(Release(b"dead", driver.current(b"dead"), dead=True))
    reply = driver.outcome(b"0", b"1", b"2", b"dead")
    assert len(reply) == 6 * told
    assert (b"dead" in driver.model.kept) == (told == 4)


@pytest.mark.parametrize("late", [0, 999, 1000])
def test_a_failure_is_kept_from_the_death_on(driver: QueueDriver, late: int) -> None:
    """LQ-OUTCOME-6: however late it is asked for; to the millisecond, and what is published goes when it is over."""
    driver.add(Add(b"x", keep=HOUR_MS, max_attempts=1))
    driver.lease(1, 1000)
    driver.now += 1_000_000
    driver.light_clean()
    driver.now += HOUR_MS * 1000 - 1000 + late
    assert driver.outcome(b"x")[0] == (b"dead" if late == 1000 else b"failure")
    driver.now += 1000
    driver.light_clean()
    assert driver.outcome(b"x")[0] == b"dead"
    assert not driver.model.results


@pytest.mark.parametrize("keep", [None, HOUR_MS])
@pytest.mark.parametrize("dead", [False, True])
def test_what_is_kept_of_an_earlier_item_is_not_told(
    driver: QueueDriver, keep: int | None, dead: bool
) -> None:
    """LQ-OUTCOME-5: where a lost state let it stay: it goes as soon as it is met, and a dead item has its own."""
    driver.add(Add(b"x", keep=keep))
    if dead:
        driver.lease()
        driver.release(Release(b"x", driver.current(b"x"), dead=True))
    driver.results([b"x"])

    def change(stored: Keyspace) -> None:
        assert isinstance(stored.state, codec.State)
        stored.state.flags = 2
        stored.kept[b"x"] = driver.now + DAY
        stored.results[b"x"] = codec.Outcome(2, 1, 7, 5, 6, b"earlier")

    driver.forge(change)
    driver.adopt(driver.stored())
    told = (b"failure" if keep else b"dead") if dead else b"ready"
    assert driver.outcome(b"x")[::5] == [told, b""]
    assert (b"x" in driver.model.kept) == (b"x" in driver.model.results) == (told == b"failure")
