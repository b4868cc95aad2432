"""A relay that is killed at any step loses no job and hands on none twice, and nothing that was rolled back is enqueued."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from programs.outbox_relay import STEPS
from support import programs
from support.job_app import TIMEOUT_SECS

import leaseq

if TYPE_CHECKING:
    from support.outbox_shop import Shop

pytestmark = pytest.mark.slow
ORDERS = range(20)
ADDED = ("after the add", "after the delete")
"""The steps between the server's reply and the commit: the next relay finds rows of jobs that were enqueued."""


def order(shop: Shop, **options: Any) -> list[str]:
    """Write orders, and between them transactions that are rolled back. Return the ids of the jobs."""
    ids = []
    for number in ORDERS:
        ids.append(shop.order(number, **options))
        shop.fail_to_order(1000 + number)
    return ids


def relay(shop: Shop, step: str) -> int:
    """Run a relay as a program. Return its exit code."""
    done = subprocess.run(
        programs.command("outbox_relay", shop.database, step),
        env=programs.environment(REDIS_URL=shop.url),
        timeout=TIMEOUT_SECS,
        check=False,
    )
    return done.returncode


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("work_between", [False, True], ids=["jobs wait", "jobs end before the next relay"])
def test_each_committed_job_is_handed_on_once(shop: Shop, step: str, *, work_between: bool) -> None:
    ids = order(shop)
    assert relay(shop, step) == -signal.SIGKILL
    if work_between:
        shop.work()
    assert relay(shop, "") == 0
    assert shop.waiting() == []
    assert shop.work() == list(ORDERS)
    assert shop.app.statuses(map(shop.app.handle, ids)) == ["succeeded"] * len(ORDERS)
    assert shop.app.queue().stats().added == len(ORDERS)


@pytest.mark.parametrize("step", ADDED)
def test_a_job_that_is_cancelled_before_the_next_relay_stays_so(shop: Shop, step: str) -> None:
    ids = order(shop)
    assert relay(shop, step) == -signal.SIGKILL
    assert all(shop.app.handle(each).cancel() for each in ids)
    assert relay(shop, "") == 0
    assert shop.work() == []
    assert shop.waiting() == []


@pytest.mark.parametrize("step", ADDED)
def test_own_ids_are_told_from_earlier_jobs(shop: Shop, step: str) -> None:
    shop.confirm.with_options(id="order-7").enqueue(6)
    assert shop.work() == [6]
    shop.order(7, id="order-7")
    assert relay(shop, "after the note") == -signal.SIGKILL
    shop.confirm.with_options(id="order-8").enqueue(8)
    assert relay(shop, step) == -signal.SIGKILL
    assert shop.work() == [6, 8, 7]
    assert relay(shop, "") == 0
    assert shop.work() == [6, 8, 7]


@pytest.mark.parametrize("step", ADDED)
def test_a_job_without_a_result_runs_again_if_it_ends_before_the_next_relay(shop: Shop, step: str) -> None:
    """Not promised in docs/outbox.md: no trace of such a job is left."""
    shop.order(1, keep=None)
    assert relay(shop, step) == -signal.SIGKILL
    assert shop.work() == [1]
    assert relay(shop, "") == 0
    assert shop.work() == [1, 1]


@pytest.mark.parametrize("step", ADDED)
def test_a_plain_item_with_an_outcome_is_handed_on_once(shop: Shop, step: str) -> None:
    with shop.engine.begin() as connection:
        shop.outbox.add_item(connection, leaseq.Item(b"x"), "orders", keep=60)
    assert relay(shop, step) == -signal.SIGKILL
    with leaseq.WorkQueue("orders", shop.url) as queue:
        leased = queue.lease(60, timeout=0)
        assert leased is not None
        assert queue.complete(leased)
        assert relay(shop, "") == 0
        assert queue.stats().added == 1
    assert shop.waiting() == []


def test_kills_of_relays_at_random_steps(shop: Shop) -> None:
    """Many relays, each killed after another step, while orders come in and jobs run."""
    expected = []
    for number, step in enumerate(STEPS * 2):
        shop.order(number)
        expected.append(number)
        shop.fail_to_order(1000 + number)
        assert relay(shop, step) in {-signal.SIGKILL, 0}
        if number % 2:
            shop.work()
    assert relay(shop, "") == 0
    assert shop.work() == expected
    assert shop.waiting() == []
