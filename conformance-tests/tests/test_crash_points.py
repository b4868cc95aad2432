"""Crash points: a fault at every command, which the Python client survives and clients that are wrong do not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from leaseq_conformance.adapter_pool import AdapterPool
from leaseq_conformance.adapter_protocol import SCHEMA
from leaseq_conformance.cases import Context
from leaseq_conformance.crash_points import cases
from leaseq_conformance.crash_points.operations import OPERATIONS
from leaseq_conformance.queue_admin import drain_queue, expire_everything, run_script
from leaseq_conformance.redis_server import SpawnedServer
from leaseq_conformance.rules import capabilities, rules
from leaseq_conformance.runner import run_case
from leaseq_conformance.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

    from leaseq_conformance.verdict import Verdict


ADAPTER = (sys.executable, "-m", "conformance_adapter.sync_client")
ELSEWHERE = {
    "enqueue",
    "job",
    "job_result",
    "cancel_job",
    "queues",
    "lost",
    "hold",
    "held",
    "work",
    "handed_out",
    "end_handlers",
    "leave_off",
    "finish",
    "live_workers",
    "steer",
    "pipeline",
}
"""Methods that call no script, or whose calls are made by something else: a heartbeat, a worker, the user's pipeline."""


@pytest.fixture(scope="module")
def own() -> Iterator[SpawnedServer]:
    with SpawnedServer() as server:
        yield server


def run(own: SpawnedServer, adapter: tuple[str, ...], name: str) -> Verdict:
    (case,) = [case for case in cases() if case.name == f"crash-points/{name}"]
    with AdapterPool(own, adapter) as pool:
        return run_case(case, Context(own, adapter, frozenset(capabilities()), pool=pool))


def test_every_operation_has_cases() -> None:
    methods = {operation.call[0] for operation in OPERATIONS.values()}
    assert set(SCHEMA["$defs"]["methods"]) - ELSEWHERE == methods
    assert len(cases()) == 3 * len(OPERATIONS)
    for case in cases():
        assert set(case.rules) <= set(rules())
        assert set(case.capabilities) <= set(capabilities())


def test_the_command_after_noscript_is_a_crash_point(own: SpawnedServer) -> None:
    verdict = run(own, ADAPTER, "hand-off-drop-before")
    assert verdict.outcome is Outcome.PASS, verdict
    lines = [line for line in verdict.transcript if " client/" in line]
    assert any(" EVAL " in line for line in lines)
    assert any("(no reply)" in line for line in lines)


def test_a_queue_is_worked_to_its_end(redis_client: redis.Redis) -> None:
    prefix = "leaseq:{g}:q:"
    entries = ("a", "x", 0, "b", "y", 2, "delay", 3_600_000, "max_attempts", 1)
    run_script(redis_client, prefix, "add", 2, *entries)
    run_script(redis_client, prefix, "lease", 1, 3_600_000)
    run_script(redis_client, prefix, "configure", 1, "paused", 1)
    assert drain_queue(redis_client, prefix) == []
    expire_everything(redis_client, prefix)
    assert sorted(drain_queue(redis_client, prefix)) == [b"a", b"b"]
    assert redis_client.exists(f"{prefix}items") == 0
