"""The scripts against the reference model: every operation in every situation, on a real server.

    LEASEQ_HYPOTHESIS_EXAMPLES=5000 LEASEQ_HYPOTHESIS_SEED=7 pytest python/tests/test_model.py

runs longer and elsewhere than the fixed profile; without a seed one is chosen and printed.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import keyspace as ks
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test
from queue_damage import DAMAGES, DAY, ODD
from queue_driver import COVERAGE, STATES, TOKENS, WITH_TOKEN, WITHOUT_TOKEN, QueueDriver, every_cell
from queue_machine import QueueMachine
from reference_calls import Add, Complete, Extend, Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import redis
    from keyspace import Keyspace
    from queue_driver import Cell

EXAMPLES = int(os.environ.get("LEASEQ_HYPOTHESIS_EXAMPLES", "0"))
SEED = os.environ.get("LEASEQ_HYPOTHESIS_SEED")


@pytest.fixture
def driver(redis_client: redis.Redis) -> Iterator[QueueDriver]:
    """A queue of this test's own."""
    made = QueueDriver(redis_client, f"model-{random.getrandbits(64):x}")
    yield made
    made.forget()


@pytest.mark.slow
@pytest.mark.timeout(0 if EXAMPLES else 300)
def test_scripts_do_what_the_model_does(
    redis_client: redis.Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    """Random histories. LQ-ITEM-3, LQ-CALL-5 and the rules cited in the machine."""

    class Machine(QueueMachine):
        name = f"machine-{random.getrandbits(64):x}"

    Machine.client = redis_client
    profile = settings(
        max_examples=EXAMPLES or 250,
        stateful_step_count=50,
        deadline=None,
        derandomize=not (EXAMPLES or SEED),
        database=None,
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    if not profile.derandomize:
        number = int(SEED or random.SystemRandom().getrandbits(32))
        seeded(number)(Machine)
        with capsys.disabled():
            print(f"\nLEASEQ_HYPOTHESIS_SEED={number}")  # noqa: T201
    COVERAGE.clear()
    run_state_machine_as_test(Machine, settings=profile)
    cells = every_cell()
    with capsys.disabled():
        visited = sum(COVERAGE[cell] for cell in cells)
        print(f"\n{len(cells & set(COVERAGE))} of {len(cells)} cells by chance, {visited} visits")  # noqa: T201


def arrive(driver: QueueDriver, state: str, kind: str) -> int:
    """Bring the id `x` into a state such that it has a token of a kind; gives that token."""
    x = b"x"
    if kind == "previous":
        driver.add(Add(x))
        driver.complete(Complete(x, driver.lease()[5]))
    if state == "absent":
        return driver.token(x, kind)
    leases = {"superseded": 2, "current": 1}.get(kind, 0)
    if state in {"leased", "expired", "dead"}:
        leases = max(leases, 1)
    waits_first = state == "delayed" and not leases
    driver.add(
        Add(x, b"data", delay=1000 if waits_first else None, max_attempts=leases if state == "dead" else None)
    )
    for n in range(leases):
        driver.now += 7
        driver.lease(1, 1000)
        last = n == leases - 1
        if not last or state in {"ready", "dead"}:
            driver.release(Release(x, driver.token(x, "current")))
        elif state == "delayed":
            driver.release(Release(x, driver.token(x, "current"), delay=5000))
    if state == "expired":
        driver.now += 1_000_000
    assert driver.where(x) == state
    return driver.token(x, kind)


def act(driver: QueueDriver, name: str, token: int) -> None:
    """Do one operation to `x`, or to the queue."""
    x = b"x"
    operations: dict[str, Callable[[], object]] = {
        "add": lambda: driver.add(Add(x, b"again")),
        "add delay": lambda: driver.add(Add(x, b"again", delay=9)),
        "remove": lambda: driver.remove(x),
        "inspect": lambda: driver.inspect(x),
        "lease": driver.lease,
        "light_clean": driver.light_clean,
        "deep_clean": driver.deep_clean,
        "stats": driver.stats,
        "list": lambda: [driver.page(where) for where in ks.ZSETS],
        "settle": driver.settle,
        "configure": lambda: driver.configure(77),
        "complete": lambda: driver.complete(Complete(x, token)),
        "complete only_current": lambda: driver.complete(Complete(x, token, only_current=True)),
        "complete_and_lease": lambda: driver.complete_and_lease(1, 1000, Complete(x, token)),
        "extend": lambda: driver.extend(Extend(x, token, 60_000)),
        "release": lambda: driver.release(Release(x, token)),
        "release delay": lambda: driver.release(Release(x, token, delay=9)),
        "release uncounted": lambda: driver.release(Release(x, token, uncounted=True)),
    }
    operations[name]()


@pytest.mark.parametrize("clock", ["forward", "still", "back"])
def test_every_cell_of_the_state_table(redis_client: redis.Redis, clock: str) -> None:
    """Every operation, in every state, with every kind of token, before and after a step of the server's clock.

    LQ-COMPLETE-1, LQ-COMPLETE-4, LQ-EXTEND-1, LQ-EXTEND-2, LQ-RELEASE-1 to 4, LQ-REMOVE-1, LQ-ADD-1, LQ-ADD-6.
    """
    COVERAGE.clear()
    reached: set[Cell] = set()
    for name in (*WITH_TOKEN, *WITHOUT_TOKEN):
        for state in STATES:
            for kind in TOKENS if name in WITH_TOKEN else ("none",):
                if (state, name, kind) not in every_cell():
                    continue
                driver = QueueDriver(redis_client, f"cell-{random.getrandbits(64):x}")
                token = arrive(driver, state, kind)
                if clock == "forward" and state != "leased":
                    driver.now += 1
                elif clock == "back" and state != "expired":
                    driver.now -= DAY
                assert driver.kind_of(b"x", token) == kind
                before = COVERAGE.copy()
                act(driver, name, token)
                reached |= {cell for cell in COVERAGE - before if cell[1] == name}
                driver.stats()
                driver.settle()
                driver.drain()
                assert not driver.deep_clean()
                driver.forget()
    missing = every_cell() - reached
    assert not missing, sorted(missing)


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
            driver.completed = 0
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
    assert not ks.violations(stored, completed=0)


@pytest.mark.parametrize("priority", range(-7, 8))
def test_an_item_whose_record_was_lost_can_be_completed(driver: QueueDriver, priority: int) -> None:
    """LQ-COMPLETE-2: its place, from which its creation is taken, carries its priority."""
    driver.add(Add(b"x", b"data", priority=priority))
    driver.adopt(driver.forge(lambda stored: stored.meta.clear()))
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
    assert isinstance(whole, ks.Record)
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
