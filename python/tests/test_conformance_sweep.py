"""The sweep: it strikes every command, the Python client passes, and clients that do it wrong fail."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from leaseq_conformance.cases import Context, Outcome
from leaseq_conformance.crew import Crew
from leaseq_conformance.messages import SCHEMA
from leaseq_conformance.own_hand import drain, end_everything, run_script
from leaseq_conformance.rules import capabilities, rules
from leaseq_conformance.runner import run_case
from leaseq_conformance.server import OwnServer
from leaseq_conformance.sweep import cases
from leaseq_conformance.sweep.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

    from leaseq_conformance.cases import Verdict

pytestmark = [pytest.mark.on("last"), pytest.mark.timeout(300)]
MUTANT = (sys.executable, "-m", "leaseq_conformance.adapters.mutant")
ADAPTER = (sys.executable, "-m", "leaseq_conformance.adapters.python_sync")
LOOKING = {"stats", "inspect", "list", "queues", "lost", "hold", "held", "wait_outcome", "pipeline"}
"""Methods that change nothing, or that come down to those that are swept."""
WORKERS = {"work", "leave_off", "finish", "live_workers"}
"""Methods whose calls come when they come; what they change is what the others do."""


@pytest.fixture(scope="module")
def own() -> Iterator[OwnServer]:
    with OwnServer() as server:
        yield server


def swept(own: OwnServer, adapter: tuple[str, ...], *names: str) -> dict[str, Verdict]:
    with Crew(own, adapter) as crew:
        context = Context(own, adapter, frozenset(capabilities()), crew=crew)
        return {
            case.name: run_case(case, context) for case in cases() if case.name.partition("/")[2] in names
        }


def test_every_operation_that_changes_something_is_swept_in_four_ways() -> None:
    methods = {operation.call[0] for operation in OPERATIONS.values()}
    assert set(SCHEMA["$defs"]["methods"]) - LOOKING - WORKERS == methods
    assert len(cases()) == 4 * len(OPERATIONS)
    for case in cases():
        assert set(case.rules) <= set(rules())
        assert set(case.capabilities) <= set(capabilities())


def test_the_python_client_is_struck_at_each_command_and_passes(own: OwnServer) -> None:
    names = [
        f"{operation}-{fate}"
        for operation in ("complete", "hand-off")
        for fate in ("kill-after", "drop-before")
    ]
    verdicts = swept(own, ADAPTER, *names)
    assert len(verdicts) == len(names)
    for name, verdict in verdicts.items():
        assert verdict.outcome is Outcome.PASS, (name, verdict)
        struck = [line for line in verdict.transcript if line.startswith("struck") and " EVAL" in line]
        assert any("EVALSHA" in line for line in struck)
        assert any(" EVAL " in line for line in struck), "the fallback after NOSCRIPT is struck too"


@pytest.mark.parametrize(
    ("bug", "name", "said"),
    [
        ("lost-reply-definite", "complete-drop-after", "says that it knows the effect"),
        ("lost-reply-repeated", "complete-drop-before", "answered ok"),
        ("in-two-steps", "add-kill-before", "invariants"),
    ],
)
def test_a_client_that_does_it_wrong_fails(own: OwnServer, bug: str, name: str, said: str) -> None:
    ((_, verdict),) = swept(own, (*MUTANT, bug), name).items()
    assert verdict.outcome is Outcome.FAIL, verdict
    assert said in verdict.message


def test_the_suite_works_a_queue_to_its_end_by_itself(redis_client: redis.Redis) -> None:
    prefix = "leaseq:{g}:q:"
    run_script(
        redis_client, prefix, "add", 2, "a", "x", 0, "b", "y", 2, "delay", 3_600_000, "max_attempts", 1
    )
    run_script(redis_client, prefix, "lease", 1, 3_600_000)
    run_script(redis_client, prefix, "configure", 1, "paused", 1)
    assert drain(redis_client, prefix) == []
    end_everything(redis_client, prefix)
    assert sorted(drain(redis_client, prefix)) == [b"a", b"b"]
    assert redis_client.exists(f"{prefix}items") == 0
