"""The libraries that are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LANGUAGES: Final = {"mjs": "node", "go": "go", "rs": "rust"}
"""By the ending of an adapter; those in Python are modules, without one."""
RIVER: Final = "github.com/riverqueue/river"


@dataclass(frozen=True)
class Library:
    """One library in one way to use it.

    Attributes:
        name: as `--only` and the results have it.
        title: as pages have it.
        adapter: the program under adapters/.
        environment: the folder under .peers/ with its packages, or the program that has them; "" is the checkout's own.
        package: what its version is looked up by.
        variant: see `common.Orders`.
        per_second: items that one worker drains in a second, roughly. The number of items in a measurement follows from it.
        bulk: its call for many items: "call", "gather" (single calls side by side), or "" where there is none.
        is_peer: not leaseq itself.
        slices: how many times as long a slice of a drain is; more for a library that fetches thousands at a time.
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
    slices: int = 1
    gap_ms: tuple[float, float] = (2.0, 8.0)

    @property
    def language(self) -> str:
        """Return what its adapter is written in: "python", "node", "go" or "rust"."""
        return LANGUAGES.get(self.adapter.rpartition(".")[2], "python")

    @property
    def on_postgres(self) -> bool:
        """True if it works on PostgreSQL, otherwise on Redis."""
        return self.package == RIVER


def _leaseq(variant: str, title: str, per_second: int) -> Library:
    name = "leaseq" if variant == "threads" else f"leaseq-{variant}"
    return Library(name, title, "leaseq", "", "leaseq", per_second, variant, is_peer=False)


def _jobs(variant: str, title: str, per_second: int) -> Library:
    name = "leaseq-jobs" if variant == "threads" else f"leaseq-jobs-{variant}"
    return Library(name, title, "leaseq_jobs", "", "leaseq", per_second, variant, is_peer=False)


def _node(variant: str, title: str, per_second: int) -> Library:
    name = "leaseq-node" if variant == "items" else f"leaseq-{variant}-node"
    return Library(name, title, "leaseq_node.mjs", "", "leaseq", per_second, variant, is_peer=False)


def _compiled(language: str, variant: str, title: str, per_second: int) -> Library:
    ending = next(ending for ending, name in LANGUAGES.items() if name == language)
    name = f"leaseq-{language}" if variant == "items" else f"leaseq-{variant}-{language}"
    return Library(name, title, f"leaseq.{ending}", language, "leaseq", per_second, variant, is_peer=False)


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
    Library("asynq", "asynq", "asynq.go", "go", "github.com/hibiken/asynq", 6_000, bulk="gather"),
    Library("river", "River", "river.go", "go", RIVER, 6_000, slices=4),
    _compiled("go", "items", "leaseq, Go", 60_000),
    _compiled("go", "jobs", "leaseq jobs, Go", 20_000),
    Library("apalis", "apalis", "apalis.rs", "rust", "apalis-redis", 6_000),
    _compiled("rust", "items", "leaseq, Rust", 60_000),
    _compiled("rust", "jobs", "leaseq jobs, Rust", 20_000),
)

BY_NAME: Final = {library.name: library for library in LIBRARIES}
PEERS: Final = tuple(each.name for each in LIBRARIES if each.is_peer and each.language not in {"go", "rust"})
OWN_ON_NODE: Final = ("leaseq-node", "leaseq-jobs-node")
"""leaseq in TypeScript, which is measured beside BullMQ alone."""
IN_GO: Final = ("asynq", "river", "leaseq-go", "leaseq-jobs-go")
IN_RUST: Final = ("apalis", "leaseq-rust", "leaseq-jobs-rust")
"""They are measured beside each other alone, in separate suites."""
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
