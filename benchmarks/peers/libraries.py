"""The libraries that are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Library:
    """One library in one way to use it.

    Attributes:
        name: as `--only` and the results have it.
        title: as pages have it.
        adapter: the program under adapters/.
        environment: the folder under .peers/ with its packages; "" is the checkout's own.
        package: what its version is looked up by.
        variant: see `common.Orders`.
        per_second: items that one worker drains in a second, roughly. The number of items in a measurement follows from it.
        bulk: its call for many items: "call", "gather" (single calls side by side), or "" where there is none.
        is_peer: not leaseq itself.
        gap_ms: least and longest pause between items where an idle worker is wanted; long for libraries that poll.
    """

    name: str
    title: str
    adapter: str
    environment: str
    package: str
    per_second: int
    variant: str = ""
    bulk: str = "call"
    is_peer: bool = True
    gap_ms: tuple[float, float] = (2.0, 8.0)

    @property
    def on_node(self) -> bool:
        """True if it runs on Node, otherwise on Python."""
        return self.adapter.endswith(".mjs")


def _leaseq(variant: str, title: str, per_second: int) -> Library:
    name = "leaseq" if variant == "threads" else f"leaseq-{variant}"
    return Library(name, title, "leaseq", "", "leaseq", per_second, variant, is_peer=False)


def _jobs(variant: str, title: str, per_second: int) -> Library:
    name = "leaseq-jobs" if variant == "threads" else f"leaseq-jobs-{variant}"
    return Library(name, title, "leaseq_jobs", "", "leaseq", per_second, variant, is_peer=False)


def _node(variant: str, title: str, per_second: int) -> Library:
    name = "leaseq-node" if variant == "items" else f"leaseq-{variant}-node"
    return Library(name, title, "leaseq_node.mjs", "", "leaseq", per_second, variant, is_peer=False)


LIBRARIES: Final = (
    _leaseq("threads", "leaseq", 50_000),
    _leaseq("asyncio", "leaseq, asyncio", 40_000),
    _leaseq("two-calls", "leaseq, one by one", 5_000),
    _leaseq("fused", "leaseq, one by one, fused", 8_000),
    _jobs("threads", "leaseq.jobs", 4_000),
    _jobs("asyncio", "leaseq.jobs, asyncio", 8_000),
    Library(
        "redis-work-queue",
        "redis-work-queue",
        "redis_work_queue",
        "redis-work-queue",
        "redis-work-queue",
        3_500,
    ),
    Library("rq", "RQ", "rq", "rq", "rq", 450),
    Library("arq", "arq", "arq", "arq", "arq", 2_500, bulk="gather"),
    Library("saq", "SAQ", "saq", "saq", "saq", 1_600, bulk="gather"),
    Library("dramatiq", "dramatiq", "dramatiq", "dramatiq", "dramatiq", 8_000, bulk="", gap_ms=(50.0, 150.0)),
    Library("huey", "huey", "huey", "huey", "huey", 5_700, bulk=""),
    Library("taskiq-list", "taskiq, list", "taskiq", "taskiq", "taskiq", 3_200, "list", bulk="gather"),
    Library("taskiq-stream", "taskiq, stream", "taskiq", "taskiq", "taskiq", 3_100, "stream", bulk="gather"),
    Library("streaq", "streaQ", "streaq", "streaq", "streaq", 1_000),
    Library("celery", "Celery", "celery", "celery", "celery", 1_300, bulk=""),
    Library("bullmq-python", "BullMQ, Python", "bullmq", "bullmq", "bullmq", 2_000),
    Library("bullmq-node", "BullMQ, Node", "bullmq_node.mjs", "node", "bullmq", 6_400),
    _node("items", "leaseq, Node", 20_000),
    _node("jobs", "leaseq/jobs, Node", 10_000),
)

BY_NAME: Final = {library.name: library for library in LIBRARIES}
PEERS: Final = tuple(each.name for each in LIBRARIES if each.is_peer)
OWN_ON_NODE: Final = ("leaseq-node", "leaseq-jobs-node")
"""leaseq in TypeScript, which is measured beside BullMQ alone."""
JOBS: Final = ("leaseq-jobs", "leaseq-jobs-asyncio")
"""Functions as items; the others of leaseq's own have a handler for data."""
JOB_PEERS: Final = {
    "rq": "leaseq-jobs",
    "arq": "leaseq-jobs-asyncio",
    "saq": "leaseq-jobs-asyncio",
    "dramatiq": "leaseq-jobs",
    "huey": "leaseq-jobs",
    "taskiq-list": "leaseq-jobs-asyncio",
    "taskiq-stream": "leaseq-jobs-asyncio",
    "celery": "leaseq-jobs",
}
"""Whose results can be kept and asked for, each with that of leaseq's own which runs the same kind of functions."""
