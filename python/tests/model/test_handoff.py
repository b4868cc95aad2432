"""The scripts against the reference model where one more decides: hand-off."""

from __future__ import annotations

import pytest
from support.corruptions import HOUR_MS
from support.queue_driver import QueueDriver, own_queue, queue_beside

from leaseq_conformance.model.calls import Add, Complete, Finish

driver = pytest.fixture(own_queue)
other = pytest.fixture(queue_beside)


def test_follow_ups_go_past_limits_and_pause(driver: QueueDriver, other: QueueDriver) -> None:
    """LQ-HANDOFF-2: but for the length of data; and nobody is woken in a paused queue but for a nearer timer."""
    driver.add(Add(b"x"), Add(b"y"), Add(b"z"))
    driver.lease(3)
    other.configure(max_items=1, max_data=4)
    other.configure(paused=1)
    x, y, z = (driver.current(name) for name in (b"x", b"y", b"z"))
    then = ((1, Add(b"1")), (1, Add(b"2", b"data")), (1, Add(b"1")))
    created, second, again = driver.complete_with(Finish(b"x", x, then=then), targets=[other])[1:]
    assert created < second
    assert again == 0
    assert other.model.wake == 0
    too_long = Finish(b"y", y, then=((1, Add(b"3", b"datum")),))
    assert driver.complete_with(too_long, targets=[other]) == "LEASEQ_TOO_LARGE"
    driver.complete_with(Finish(b"y", y, then=((1, Add(b"4", delay=HOUR_MS)),)), targets=[other])
    assert other.model.wake == 1
    assert driver.complete_with(Finish(b"z", z), Finish(b"z", z), targets=[other, driver] * 8) == [1, 0]


@pytest.mark.parametrize("keep", [None, 0, HOUR_MS])
def test_follow_ups_of_a_second_run_are_not_added(
    driver: QueueDriver, other: QueueDriver, keep: int | None
) -> None:
    """A repetition of the winner answers 1 again where a result is kept, another lease 0; neither adds.

    LQ-HANDOFF-2, LQ-OUTCOME-2.
    """
    driver.add(Add(b"x", keep=HOUR_MS))
    driver.lease(1, 1000)
    driver.now += 1_000_000
    old = driver.current(b"x")
    driver.lease()
    token = driver.current(b"x")

    def call(by: int, only_current: bool = False) -> list[bool]:
        entry = Finish(b"x", by, only_current, keep, then=((1, Add(b"n")), (2, Add(b"x", keep=HOUR_MS))))
        return [answer > 0 for answer in driver.complete_with(entry, targets=[other, other])]

    assert call(old, only_current=True) == [False, False, False]
    assert call(old) == [True, True, True]
    other.lease(2)
    other.complete(*[Complete(name, other.current(name)) for name in (b"n", b"x")])
    assert call(old) == [keep is not None, False, False]
    assert call(token) == [False, False, False]


def test_a_follow_up_of_its_own_id_forgets_the_result(driver: QueueDriver) -> None:
    """LQ-HANDOFF-2, LQ-OUTCOME-5: it is a new item, added after the old one is gone; and the wake-up is there."""
    driver.add(Add(b"x"))
    token = driver.lease()[5]
    driver.pop_wake()
    driver.waiters = 0
    entry = Finish(b"x", token, keep=HOUR_MS, result=b"r", then=((1, Add(b"x", b"new")),))
    assert driver.complete_with(entry, targets=[driver])[0] == 1
    assert driver.model.wake == 1
    assert not driver.model.kept
    assert driver.complete_with(entry, targets=[driver]) == [0, -1]
    assert driver.outcome(b"x")[0] == b"ready"


def test_a_follow_up_forgets_what_is_kept_of_its_id_though_the_state_was_lost(
    driver: QueueDriver, other: QueueDriver
) -> None:
    """LQ-OUTCOME-5: what is kept says itself that there is something."""
    driver.add(Add(b"x"))
    other.add(Add(b"n"))
    driver.lease()
    other.lease()
    other.complete_with(Finish(b"n", other.current(b"n"), keep=HOUR_MS))
    other.now += 1
    other.tolerated = {"by the counters"}
    other.model.state = None
    other.client.delete(other.prefix + "state")
    driver.complete_with(Finish(b"x", driver.current(b"x"), then=((1, Add(b"n")),)), targets=[other])
    assert not other.model.kept


def test_a_lost_state_is_made_anew_from_before_the_completion(
    driver: QueueDriver, other: QueueDriver
) -> None:
    """Of the source, which is a target too, and of the other."""
    driver.add(Add(b"x"), Add(b"y"))
    other.add(Add(b"o"))
    driver.lease()
    for each in (driver, other):
        each.tolerated = {"by the counters", "the clock is behind", "next_due is late"}
        each.model.state = None
        each.client.delete(each.prefix + "state")
    driver.now += 1
    entry = Finish(b"x", driver.current(b"x"), keep=HOUR_MS, then=((2, Add(b"n")), (1, Add(b"n"))))
    driver.complete_with(entry, targets=[driver, other])
    driver.drain()
    other.drain()


def test_the_largest_hand_off(driver: QueueDriver, other: QueueDriver) -> None:
    """LQ-HANDOFF-3: 256 entries, 256 follow-ups, 16 targets, and not one more."""
    driver.add(*[Add(b"%d" % n, keep=HOUR_MS) for n in range(256)])
    driver.lease(256)
    headers = tuple((b"%d" % n, b"v") for n in range(16))

    def follow_up(n: int) -> Add:
        ends = {"delay": HOUR_MS, "expires_in": 2 * HOUR_MS, "keep": HOUR_MS, "priority": 1}
        return Add(b"f%d" % n, b"data", content_type=b"t", headers=headers, **ends)  # type: ignore[arg-type]

    adds = [follow_up(n) for n in range(257)]
    tokens = [driver.current(b"%d" % n) for n in range(256)]
    first = Finish(b"0", tokens[0], then=tuple((1 + n % 16, add) for n, add in enumerate(adds)))
    assert driver.complete_with(first, targets=[other] * 16) == "LEASEQ_BAD_ARGUMENT"
    halves = [Finish(b"%d" % n, tokens[n], then=tuple((1, add) for add in adds[n::2])) for n in range(2)]
    assert driver.complete_with(*halves, targets=[other]) == "LEASEQ_BAD_ARGUMENT"
    assert driver.complete_with(Finish(b"0", tokens[0]), targets=[other] * 17) == "LEASEQ_BAD_ARGUMENT"
    entries = [
        Finish(b"%d" % n, tokens[n], keep=0, result=b"%d" % n, then=((1 + n % 16, adds[n]),))
        for n in range(256)
    ]
    driver.complete_with(*entries, targets=[other, driver] * 8)
    assert driver.page("kept")[0] == 256
    driver.outcome(*[b"%d" % n for n in range(256)])
    other.now += HOUR_MS * 1000
    for _ in range(2):
        other.light_clean()
        driver.lease_any(other, count=256)
        other.lease_any(driver, count=256)


def test_a_result_is_as_long_as_data_at_most(driver: QueueDriver) -> None:
    """LQ-OUTCOME-7, LQ-OUTCOME-1: of the queue in which the item was."""
    driver.configure(max_data=3)
    driver.add(Add(b"x"))
    token = driver.lease()[5]
    assert driver.complete_with(Finish(b"x", token, keep=0, result=b"four")) == "LEASEQ_TOO_LARGE"
    assert driver.complete_with(Finish(b"x", token, result=b"")) == "LEASEQ_BAD_ARGUMENT"
    assert driver.complete_with(Finish(b"x", token, keep=0, result=b"iii")) == [1]
    assert not driver.model.kept


@pytest.mark.parametrize("key", ["items", "wake", "result"])
def test_a_hand_off_stays_in_the_group(driver: QueueDriver, key: str) -> None:
    """LQ-HANDOFF-4, LQ-ERROR-1: on a single server too."""
    driver.add(Add(b"x"))
    token = driver.lease()[5]
    before = driver.stored()
    keys = [
        (driver.prefix if name != key else "leaseq:{elsewhere}:q:") + name
        for name in ("items", "meta", "ready", "delayed", "dead", "expiry", "kept", "state", "wake", "result")
    ]
    argv: list[int | bytes] = [1, 1, b"x", token, 1, b"keep", HOUR_MS, 1, 1, b"n", b"", 0]
    assert driver.call("complete_with", argv, more=keys) == "LEASEQ_CROSS_GROUP"
    assert driver.call("complete_with", argv, more=keys[:-1]) in {"LEASEQ_BAD_ARGUMENT", "LEASEQ_CROSS_GROUP"}
    assert driver.stored() == before
