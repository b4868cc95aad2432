"""The scripts against the reference model: every operation in every situation, on a real server.

    LEASEQ_HYPOTHESIS_EXAMPLES=5000 LEASEQ_HYPOTHESIS_SEED=7 pytest python/tests/test_model.py

runs longer and elsewhere than the fixed profile; without a seed one is chosen and printed.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test
from support.corruptions import DAY, HOUR_MS
from support.queue_driver import QueueDriver
from support.state_coverage import COVERAGE, STATES, TOKENS, WITH_TOKEN, WITHOUT_TOKEN, every_cell
from support.stateful_queue import QueueMachine

from leaseq_conformance.model import keyspace as ks
from leaseq_conformance.model.calls import Add, Complete, Extend, Finish, Release

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis
    from support.state_coverage import Cell

EXAMPLES = int(os.environ.get("LEASEQ_HYPOTHESIS_EXAMPLES", "0"))
SEED = os.environ.get("LEASEQ_HYPOTHESIS_SEED")


@pytest.mark.slow
@pytest.mark.timeout(0 if EXAMPLES else 900)
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


def arrive(driver: QueueDriver, state: str, kind: str, keep: int | None) -> int:
    """Bring the id `x`, its outcome kept or not, into a state such that it has a token of a kind; gives that token."""
    x = b"x"
    if kind == "previous":
        driver.add(Add(x))
        driver.complete(Complete(x, driver.lease()[5]))
    if state == "absent":
        return driver.token(x, kind)
    if state == "lapsed":
        driver.add(Add(x, b"data", delay=1, expires_in=500, dies=kind == "none", keep=HOUR_MS))
        driver.now += 500_000
    leases = {"superseded": 2, "current": 1}.get(kind, 0)
    if state in {"leased", "expired", "dead"}:
        leases = max(leases, 1)
    waits_first = state == "delayed" and not leases
    limit = leases if state == "dead" else None
    driver.add(Add(x, b"data", delay=1000 if waits_first else None, max_attempts=limit, keep=keep))
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
    other = QueueDriver(driver.client, driver.group + "-other", driver)
    operations: dict[str, Callable[[], object]] = {
        "add": lambda: driver.add(Add(x, b"again")),
        "add delay": lambda: driver.add(Add(x, b"again", delay=9)),
        "remove": lambda: driver.remove(x),
        "inspect": lambda: driver.inspect(x),
        "lease": driver.lease,
        "light_clean": driver.light_clean,
        "deep_clean": driver.deep_clean,
        "stats": driver.stats,
        "list": lambda: [driver.page(where) for where in (*ks.ZSETS, "kept")],
        "settle": driver.settle,
        "configure": lambda: driver.configure(max_data=77),
        "pause": lambda: driver.configure(paused=1),
        "resume": lambda: (driver.configure(paused=1), driver.configure(paused=0)),
        "lease paused": lambda: (driver.configure(paused=1), driver.lease()),
        "lease_any": lambda: driver.lease_any(other),
        "add keep": lambda: driver.add(Add(x, b"again", keep=HOUR_MS)),
        "add full": lambda: (
            driver.configure(max_items=1),
            driver.add(Add(b"y")),
            driver.add(Add(x), Add(b"z")),
        ),
        "revive": lambda: driver.revive(x),
        "purge": lambda: driver.purge(x),
        "outcome": lambda: (driver.outcome(x), driver.outcome(x)),
        "complete_with": lambda: driver.complete_with(Finish(x, token)),
        "complete_with keep": lambda: [
            driver.complete_with(Finish(x, token, keep=0, result=b"r")) for _ in range(2)
        ],
        "complete_with then": lambda: [
            driver.complete_with(
                Finish(x, token, then=((1, Add(x, b"next")), (2, Add(b"z")))), targets=[driver, other]
            )
            for _ in range(2)
        ],
        "complete_with only_current": lambda: driver.complete_with(
            Finish(x, token, only_current=True, keep=HOUR_MS)
        ),
        "complete": lambda: driver.complete(Complete(x, token)),
        "complete only_current": lambda: driver.complete(Complete(x, token, only_current=True)),
        "complete_and_lease": lambda: driver.complete_and_lease(1, 1000, Complete(x, token)),
        "extend": lambda: driver.extend(Extend(x, token, 60_000)),
        "release": lambda: driver.release(Release(x, token)),
        "release delay": lambda: driver.release(Release(x, token, delay=9)),
        "release uncounted": lambda: driver.release(Release(x, token, uncounted=True)),
        "release error": lambda: driver.release(Release(x, token, error=b"no")),
        "release dead": lambda: driver.release(Release(x, token, error=b"no", dead=True)),
        "release keep": lambda: driver.release(Release(x, token, keep=0)),
    }
    operations[name]()
    other.drain()
    other.forget()


@pytest.mark.parametrize(
    ("clock", "keep"), [("forward", None), ("forward", HOUR_MS), ("still", HOUR_MS), ("back", None)]
)
def test_every_cell_of_the_state_table(redis_client: redis.Redis, clock: str, keep: int | None) -> None:
    """Every operation, in every state, with every kind of token, before and after a step of the server's clock.

    LQ-COMPLETE-1, LQ-COMPLETE-4, LQ-EXTEND-1, LQ-EXTEND-2, LQ-RELEASE-1 to 4, LQ-REMOVE-1, LQ-ADD-1, LQ-ADD-6.
    LQ-KEY-4, LQ-KEY-5: state and records are compared byte for byte; LQ-TIME-1: at a time that is only the server's.
    """
    COVERAGE.clear()
    reached: set[Cell] = set()
    for name in (*WITH_TOKEN, *WITHOUT_TOKEN):
        for state in STATES:
            for kind in TOKENS if name in WITH_TOKEN else ("none",):
                if (state, name, kind) not in every_cell():
                    continue
                driver = QueueDriver(redis_client, f"cell-{random.getrandbits(64):x}")
                token = arrive(driver, state, kind, keep)
                if clock == "forward" and state != "leased":
                    driver.now += 1
                elif clock == "back" and state not in {"expired", "lapsed"}:
                    driver.now -= DAY
                assert driver.kind_of(b"x", token) == kind
                before = COVERAGE.copy()
                act(driver, name, token)
                reached |= {cell for cell in COVERAGE - before if cell[1] == name}
                driver.stats()
                driver.settle()
                driver.outcome(b"x")
                driver.drain()
                driver.outcome(b"x")
                driver.light_clean()
                assert not driver.deep_clean()
                driver.forget()
    missing = every_cell() - reached
    assert not missing, sorted(missing)
