"""Which steps a run has: the measures in their order, the libraries of each, what `--only` leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Final

from peers.libraries import BY_NAME, IN_GO, IN_RUST, JOB_PEERS, JOBS, LIBRARIES, OWN_ON_NODE, PEERS
from peers.measures import (
    ab_compare,
    check,
    idle,
    jobs,
    latency,
    memory,
    parameter_sweep,
    queue_depth,
    recovery,
    throughput,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from peers.bench import Bench, Step

ALL: Final = tuple(
    each.name for each in LIBRARIES if each.name not in (*JOBS, *OWN_ON_NODE, *IN_GO, *IN_RUST)
)
WORKERS: Final = ("leaseq", "leaseq-asyncio", *PEERS)
"""Libraries that differ in how they wait. leaseq's loops without a worker are left out: they are about throughput."""
SWEPT: Final = ("leaseq", "redis-work-queue", "huey", "bullmq-node")
"""Where there are many cases: those that are closest, so that the run ends in time. `--only` takes any other."""


@dataclass(frozen=True)
class Measure:
    """One measure: its name, who takes part unless `--only` says so, and its steps."""

    name: str
    libraries: tuple[str, ...]
    steps: Callable[[Bench, Sequence[str]], Iterator[Step]]
    about: str


def _pairs(measure: str, about: str, pairs: Sequence[ab_compare.Pair] = ()) -> Measure:
    chosen = pairs or ab_compare.PAIRS[measure]
    return Measure(measure, ab_compare.among(chosen), ab_compare.steps_of(measure, chosen), about)


ITEMS: Final = (
    Measure("check", ALL, check.steps, "every adapter handles each item once"),
    _pairs(ab_compare.ENQUEUE, "enqueue one by one, by turns"),
    _pairs(ab_compare.BULK, "enqueue in bulk, by turns"),
    _pairs(ab_compare.DRAIN, "drain by one worker, by turns"),
    _pairs(ab_compare.LATENCY, "from adding an item to its handler, by turns"),
    Measure("drain", ALL, throughput.steps, "enqueue one by one and in bulk, drain by one worker"),
    Measure("memory", ("leaseq", *PEERS), memory.steps, "memory of a waiting item"),
    Measure("latency", WORKERS, latency.steps, "from adding an item to its handler"),
    Measure("growth", ("leaseq", "leaseq-fused"), queue_depth.steps, "cost with many waiting"),
    Measure("recovery-1s", ("leaseq", "leaseq-asyncio"), recovery.own_recovery_steps, "a lease of 1 s and a killed worker"),
    Measure("recovery", WORKERS, recovery.recovery_steps, "a killed worker's item, side by side"),
    Measure("idle", WORKERS, idle.steps, "commands of an idle worker, side by side"),
    Measure("payload", SWEPT, parameter_sweep.payload_steps, "by size of the data"),
    Measure("workers", ("leaseq", "leaseq-asyncio", "redis-work-queue", "streaq", "bullmq-python", "bullmq-node"), parameter_sweep.workers_steps, "by 20 handlers side by side that take 5 ms"),
)  # fmt: skip
LAYERS: Final = (
    Measure(jobs.OFF, (*JOBS, *JOB_PEERS), partial(jobs.steps, results=False), "jobs whose results are not kept"),
    Measure(jobs.ON, (*JOBS, *JOB_PEERS), partial(jobs.steps, results=True), "jobs whose results are kept"),
    Measure("workers", (*JOBS, *JOB_PEERS), parameter_sweep.workers_steps, "by 20 handlers side by side that take 5 ms"),
)  # fmt: skip


def _in_one_language(pairs: Sequence[ab_compare.Pair]) -> tuple[Measure, ...]:
    libraries = ab_compare.among(pairs)
    return (
        Measure("check", libraries, check.steps, "every adapter handles each item once"),
        _pairs(ab_compare.ENQUEUE, "enqueue one by one, by turns", pairs),
        _pairs(ab_compare.CROWD, "enqueue by 100 callers at once, by turns", pairs),
        _pairs(ab_compare.BULK, "enqueue in bulk, by turns", pairs),
        _pairs(ab_compare.DRAIN, "drain by one worker, by turns", pairs),
        Measure("latency", libraries, latency.steps, "from adding an item to its handler"),
        Measure("memory", libraries, memory.steps, "memory of a waiting item"),
        Measure("workers", libraries, parameter_sweep.workers_steps, "by 20 handlers side by side that take 5 ms"),
    )  # fmt: skip


SUITES: Final = {
    "items": ITEMS,
    "jobs": LAYERS,
    **{suite: _in_one_language(pairs) for suite, pairs in ab_compare.BY_LANGUAGE.items()},
}
"""The suites. Each is a separate run, so that a run stays well within 40 minutes."""


class NothingToDoError(Exception):
    """`--only` names nothing that there is."""


@dataclass(frozen=True)
class Only:
    """A filter `--only LIBRARY/MEASURE`; either part may be a pattern or be missing."""

    library: str = "*"
    measure: str = "*"

    @classmethod
    def parse(cls, text: str) -> Only:
        """Parse an argument of the command line: "rq", "rq/drain", "/latency", "leaseq*/drain"."""
        library, _, measure = text.partition("/")
        return cls(library or "*", measure or "*")

    def libraries(self, measure: Measure) -> list[str]:
        """Return the libraries of a measure that the filter leaves. A library that it names in full is in every measure."""
        if not fnmatchcase(measure.name, self.measure):
            return []
        among = (self.library,) if self.library in BY_NAME else measure.libraries
        return [name for name in among if fnmatchcase(name, self.library)]


def chosen(only: Sequence[Only], suite: str = "items") -> list[tuple[Measure, list[str]]]:
    """The measures of a suite with the libraries of each. Raises NothingToDoError."""
    found = []
    for measure in SUITES[suite]:
        wanted = {name for each in only or [Only()] for name in each.libraries(measure)}
        if wanted:
            found.append((measure, [name for name in BY_NAME if name in wanted]))
    if not found:
        names = ", ".join(BY_NAME), ", ".join(measure.name for measure in SUITES[suite])
        raise NothingToDoError(f"--only leaves nothing. Libraries: {names[0]}. Measures: {names[1]}.")
    return found


def steps(bench: Bench, only: Sequence[Only], suite: str = "items") -> list[Step]:
    """All steps of a suite in their order. Raises NothingToDoError."""
    return [step for measure, names in chosen(only, suite) for step in measure.steps(bench, names)]


def minutes(steps: Iterable[Step]) -> float:
    """Return how long they take, roughly, on a machine that does nothing else."""
    return sum(step.secs for step in steps) / 60


def summary(steps: Sequence[Step]) -> str:
    """The plan, a line for each measure."""
    lines = []
    for measure in {each.name: each for each in (*ITEMS, *LAYERS)}.values():
        own = [step for step in steps if step.measure == measure.name]
        if own:
            who = len({name for step in own for name in step.libraries})
            lines.append(f"  {measure.name:13} {minutes(own):5.1f} min  {who:2} libraries  {measure.about}")
    return "\n".join([*lines, f"  {'in all':13} {math.ceil(minutes(steps)):3} min"])
