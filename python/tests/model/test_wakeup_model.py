"""The wake-up rules hold in every interleaving, and each of them is needed."""

from __future__ import annotations

import gc
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.wakeup_checker import Result, explore
from support.wakeup_model import CAP, NEVER, Rules, World

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = Rules()
ONE = (0,)
TWO = (0, 1)
WORLDS = {
    "one queue": World((2,), (ONE, ONE)),
    "pausing": World((2,), (ONE, ONE), pausing=True),
    "clients die": World((2,), (ONE, ONE), faults=True),
    "three items": World((3,), (ONE, ONE)),
    "three workers": World((2,), (ONE, ONE, ONE)),
    "two queues": World((1, 1), (TWO, (1,)), (1,)),
    "two queues each": World((1, 1), (TWO, TWO), (1,)),
}
if LARGE := bool(os.environ.get("LEASEQ_MODEL_LARGE")):  # minutes and gigabytes
    WORLDS |= {
        "three workers, clients die": World((2,), (ONE, ONE, ONE), faults=True),
        "two queues, clients die": World((1, 1), (TWO, (1,)), (1,), faults=True),
        "two queues, far timers": World((1, 1), (TWO, (1,))),
        "two queues each, far timers": World((1, 1), (TWO, TWO)),
    }
QUICK = tuple(WORLDS) if LARGE else ("one queue", "pausing")

# Scripts that must put an element because something is ready (light_clean need not, yet does), and those that must
# because a timer is near.
NEEDED_READY = ("add", "release", "resume", "lease", "leave", "other")
NEEDED_NEAR = ("add", "extend", "lease", "leave", "other")
WHERE = {"resume": "pausing", "other": "two queues"}

SLEEPS = "a worker sleeps beside a leasable item"
SPINS = "workers ask without end"
MUTANTS: dict[str, tuple[Rules, str, str]] = {
    **{
        f"{name} does not hand on ready items": (
            replace(RULES, ready=RULES.ready - {name}),
            WHERE.get(name, "one queue"),
            SLEEPS,
        )
        for name in NEEDED_READY
    },
    **{
        f"{name} does not make a near timer known": (
            replace(RULES, near=RULES.near - {name}),
            WHERE.get(name, "one queue"),
            SLEEPS,
        )
        for name in NEEDED_NEAR
    },
    "a near timer is one much nearer than the cap": (replace(RULES, window=CAP - 2), "one queue", SLEEPS),
    "near timers of a paused queue are not made known": (
        replace(RULES, paused_near=False),
        "pausing",
        SLEEPS,
    ),
    "an empty lease puts": (replace(RULES, empty_puts=True), "one queue", SPINS),
    "an empty lease tells a time that it does not store": (
        replace(RULES, reported_time="exact"),
        "one queue",
        SLEEPS,
    ),
    "a paused queue promotes nothing": (replace(RULES, paused_promotes=False), "pausing", SPINS),
    "a sleeper ignores the time it was given": (replace(RULES, timers=False), "one queue", SLEEPS),
    "a sleeper has no cap": (replace(RULES, cap=False), "one queue", SLEEPS),
    "the cap counts from the block, not from the lease": (
        replace(RULES, cap_from_lease=False),
        "one queue",
        SLEEPS,
    ),
    "a leaver settles before its block has ended": (replace(RULES, ended=False), "one queue", SLEEPS),
}
EQUIVALENTS = {
    "only the needed scripts hand on ready items": replace(RULES, ready=frozenset(NEEDED_READY)),
    "an empty lease tells the stored bound": replace(RULES, reported_time="bound"),
    "a lease tells, and a delay is compared with, the true time": replace(
        RULES, reported_time="exact", earlier="exact"
    ),
    "every script hands on ready items": replace(RULES, ready=RULES.ready | {"complete", "extend", "pause"}),
    "every timer is near": replace(RULES, window=NEVER - 1),
    "one call promotes at most one item": replace(RULES, limit=1),
    "a timer at the cap is not near": replace(RULES, window=CAP - 1),
}


@pytest.fixture(autouse=True)
def _no_collection() -> Iterator[None]:
    # The states hold no cycles; looking for some takes a third of the time.
    gc.disable()
    yield
    gc.enable()


def report(result: Result) -> str:
    return "\n".join([result.broken, *result.trace])


@pytest.mark.promise("G6")
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", WORLDS)
def test_the_rules_hold(name: str) -> None:
    """LQ-BLOCK-7 with two queues, in the model; no client here waits on several; a client that does needs another test."""
    result = explore(WORLDS[name], RULES)
    assert not result.broken, report(result)
    assert result.states > 4000


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_each_rule_is_needed(name: str) -> None:
    rules, where, what = MUTANTS[name]
    result = explore(WORLDS[where], rules)
    assert result.broken.startswith(what), f"{name}: not noticed in {result.states} states"
    assert result.trace


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("world", QUICK)
@pytest.mark.parametrize("name", EQUIVALENTS)
def test_rules_that_would_do_as_well(name: str, world: str) -> None:
    result = explore(WORLDS[world], EQUIVALENTS[name])
    assert not result.broken, report(result)


def test_a_death_is_felt_for_the_whole_cap() -> None:
    # The exception that the check makes after a death is neither idle nor wider than it has to be.
    result = explore(replace(WORLDS["clients die"], grace=CAP - 1), RULES)
    assert result.broken.startswith(SLEEPS)
