"""The targets: ratios of leaseq to others in one run, each with what it has to be and whether it is.

Rates, server CPU and latency are compared as measures/ab_compare.py has them: right beside each other.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import mean, median
from typing import TYPE_CHECKING, Any, Final

from peers.libraries import BY_NAME, JOB_PEERS, JOBS, PEERS
from peers.measures import ab_compare, jobs, parameter_sweep
from peers.measures.ab_compare import Pair
from peers.measures.latency import PERCENTILES
from peers.stats import by_repetition, by_slice, combined, percentile, pooled, ratios, summary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peers.bench import Record
    from peers.stats import ByRepetition, BySlice, Key

NEVER: Final = float("inf")
WORKERS: Final = ("leaseq", "leaseq-asyncio")
"""The worker in threads and on an event loop."""


SPARE: Final = 0.05
"""A target counts as met with so much to spare: what is met by a hair on one machine is missed on the next."""


def met(value: float, limit: float, *, at_least: bool, spare: float = SPARE) -> bool:
    """Return whether a figure keeps its limit."""
    return value >= limit * (1 + spare) if at_least else value <= limit * (1 - spare)


@dataclass(frozen=True)
class Target:
    """A promise about one ratio or figure.

    Attributes:
        name: what it is about.
        limit: the least or the most that it may be.
        at_least: whether it has to reach the limit; otherwise it must not pass it.
        value: its median; None where it was not measured.
        low: its minimum.
        high: its maximum.
        unit: "x" for a ratio, "s" for seconds.
    """

    name: str
    limit: float
    at_least: bool
    value: float | None
    low: float | None
    high: float | None
    unit: str = "x"

    @property
    def met(self) -> bool | None:
        """True if the promise is kept, with 5 % to spare; None where it was not measured."""
        return None if self.value is None else met(self.value, self.limit, at_least=self.at_least)

    def json(self) -> dict[str, Any]:
        """For the results."""
        return asdict(self) | {"met": self.met}


def target_of(name: str, limit: float, values: Sequence[float], *, at_least: bool, unit: str = "x") -> Target:
    """A target whose value is the median of these."""
    of = summary(values) or {}
    return Target(name, limit, at_least, of.get("median"), of.get("min"), of.get("max"), unit)


def targets(records: Sequence[Record]) -> list[Target]:
    """All of them, those that were not measured too."""
    return [
        *_rates(records),
        *_costs(records),
        *_latencies(records),
        *_recoveries(records),
        *_growth(records),
    ]


def _each_slice(records: Sequence[Record], measure: str, pair: Pair, figure: str) -> list[BySlice]:
    """The slices of both sides of a pair."""
    return [by_slice(records, measure, name, figure, pair.case) for name in pair]


def _rates(records: Sequence[Record]) -> list[Target]:
    def least(name: str, limit: float, measure: str, own: str, other: str) -> Target:
        pair = ratios(*_each_slice(records, measure, Pair(own, other), "per_second"))
        return target_of(name, limit, pair, at_least=True)

    original = "redis-work-queue"
    return [
        least("enqueue one by one, over redis-work-queue", 1.3, ab_compare.ENQUEUE, "leaseq", original),
        least("enqueue one by one, over huey", 1.0, ab_compare.ENQUEUE, "leaseq", "huey"),
        least("bulk enqueue, over redis-work-queue", 4, ab_compare.BULK, "leaseq", original),
        least("drain one by one, two calls, over redis-work-queue", 2, ab_compare.DRAIN, "leaseq-two-calls", original),
        least("drain one by one, fused, over redis-work-queue", 3.5, ab_compare.DRAIN, "leaseq-fused", original),
    ]  # fmt: skip


def _costs(records: Sequence[Record]) -> list[Target]:
    """Return what an item costs the server in its life: enqueued one by one or in bulk, then drained."""

    def cpu(measure: str, own: str) -> list[BySlice]:
        found = _each_slice(records, measure, Pair(own, "redis-work-queue"), "server_us")
        return found if measure == ab_compare.DRAIN else [averaged(of, ab_compare.SHORT) for of in found]

    def most(name: str, limit: float, own: dict[Key, float], other: dict[Key, float]) -> Target:
        return target_of(name, limit, ratios(own, other), at_least=False)

    one, other_one = cpu(ab_compare.ENQUEUE, "leaseq")
    bulk, _ = cpu(ab_compare.BULK, "leaseq")
    fused, beside_fused = cpu(ab_compare.DRAIN, "leaseq-fused")
    grouped, beside_grouped = cpu(ab_compare.DRAIN, "leaseq")
    waiting, theirs, bullmq = (
        by_repetition(records, "memory", name, "bytes_waiting")
        for name in ("leaseq", "redis-work-queue", "bullmq-node")
    )
    return [
        most(
            "server CPU of one item, one by one and fused, of redis-work-queue's",
            0.6,
            combined(sum, one, fused),
            combined(sum, other_one, beside_fused),
        ),
        most(
            "server CPU of one item, bulk and grouped, of redis-work-queue's",
            0.12,
            combined(sum, bulk, grouped),
            combined(sum, other_one, beside_grouped),
        ),
        most("memory of a waiting item, of redis-work-queue's", 1.4, waiting, theirs),
        most("memory of a waiting item, of BullMQ's", 0.5, waiting, bullmq),
    ]


def averaged(slices: BySlice, several: int) -> BySlice:
    """Return means of groups of slices of a repetition, in their order: for a measure with more slices than the other."""
    grouped: dict[tuple[int, int], list[float]] = {}
    for (repetition, at), value in sorted(slices.items()):
        grouped.setdefault((repetition, at // several), []).append(value)
    return {each: mean(values) for each, values in grouped.items()}


def _latencies(records: Sequence[Record]) -> list[Target]:
    return [target for own in WORKERS for target in _latencies_of(records, Pair(own, "huey"))]


def _latencies_of(records: Sequence[Record], pair: Pair) -> list[Target]:
    """Of all turns together: one repetition has too few of the slowest."""
    found = []
    own, other = (pooled(records, ab_compare.LATENCY, name, "all_ms", pair.case) for name in pair)
    for figure, share in PERCENTILES.items():
        of = figure.removesuffix("_ms").replace("p99_9", "p99.9")
        name = f"add to handler, {pair.one}, {of}, of huey's"
        enough = min(len(own), len(other)) * (100 - share) / 100 >= 1
        value = round(percentile(own, share) / percentile(other, share), 4) if enough else None
        each = ratios(*(by_repetition(records, ab_compare.LATENCY, name, figure, pair.case) for name in pair))
        low, high = (min(each), max(each)) if each else (None, None)
        found.append(Target(name, 1.0, at_least=False, value=value, low=low, high=high))
    return found


def seconds(records: Sequence[Record], library: str, case: str, measure: str = "recovery") -> list[float]:
    """Return how long each recovery took; NEVER where the item did not run again."""
    return [
        NEVER if (value := record.values["seconds"]) is None else value
        for record in records
        if (record.measure, record.library, record.case) == (measure, library, case)
    ]


def _recoveries(records: Sequence[Record]) -> list[Target]:
    peers = [median(times) for name in PEERS if (times := seconds(records, name, "default"))]
    found = []
    for library in WORKERS:
        own = seconds(records, library, "default")
        ratio = [each / min(peers) for each in own] if peers and min(peers) < NEVER else []
        # if no peer ever runs the item again, any finite time is first
        first = ratio or ([0.0 if each < NEVER else NEVER for each in own] if peers else [])
        name = f"runs again after kill -9, defaults, {library}, of the first peer's"
        found.append(target_of(name, 1.0, first, at_least=False))
    for library in WORKERS:
        for case in ("without a cleaner", "with a cleaner"):
            times = seconds(records, library, case, "recovery-1s")
            name = f"runs again after kill -9, a lease of 1 s, {library}, {case}"
            found.append(target_of(name, 1.1, times, at_least=False, unit="s"))
    return found


def _growth(records: Sequence[Record]) -> list[Target]:
    found = []
    for library, how in (("leaseq", "grouped"), ("leaseq-fused", "one by one")):
        large, small = (
            by_repetition(records, "growth", library, "server_us", case)
            for case in ("1,000,000 waiting", "1,000 waiting")
        )
        name = f"server CPU of one item at 1,000,000 waiting, of that at 1,000, {how}"
        found.append(target_of(name, 1.3, ratios(large, small), at_least=False))
    return found


# -- the job layer: ahead of the best of the job libraries, with results off and on, in one run

CASES: Final = ((jobs.OFF, "results off"), (jobs.ON, "results on"))


def job_targets(records: Sequence[Record]) -> list[Target]:
    """All of them, those that were not measured too."""
    return [
        target
        for measure, case in CASES
        for name in JOBS
        for target in _of(records, measure, f"{BY_NAME[name].title}, {case}", name)
    ]


def _of(records: Sequence[Record], measure: str, title: str, name: str) -> list[Target]:
    def own(figure: str) -> ByRepetition:
        return by_repetition(records, measure, name, figure)

    def ahead(what: str, figure: str, *of_peers: str, limit: float = 1.0) -> Target:
        over = ratios(own(figure), _first_peer(records, measure, max, of_peers or (figure,)))
        return target_of(f"{title}: {what}, over the best peer", limit, over, at_least=True)

    def cheaper(what: str, figure: str, *of_peers: str) -> Target:
        share = ratios(own(figure), _first_peer(records, measure, min, of_peers or (figure,)))
        return target_of(f"{title}: {what}, of the least peer's", 1.0, share, at_least=False)

    return [
        ahead("enqueue one by one", "enqueue_per_second"),
        ahead(
            "enqueue in bulk, or one by one where a peer has no call for many",
            "bulk_per_second",
            "bulk_per_second",
            "enqueue_per_second",
        ),
        ahead("drain", "drain_per_second", limit=2.0),
        cheaper("server CPU of one job", "server_us"),
        cheaper("server CPU of one job, in bulk", "bulk_server_us", "bulk_server_us", "server_us"),
    ]


def _first_peer(
    records: Sequence[Record], measure: str, function: Callable[[list[float]], float], figures: Sequence[str]
) -> ByRepetition:
    """The best figure of all peers in each repetition; of several figures each peer's own best counts."""
    parts = (by_repetition(records, measure, peer, figure) for peer in JOB_PEERS for figure in figures)
    return combined(function, *(part for part in parts if part))


# -- TypeScript, Go and Rust beside libraries of the same language: ahead in each


def language_targets(records: Sequence[Record], pairs: Sequence[Pair]) -> list[Target]:
    """All of them, those that were not measured too."""
    return [target for pair in pairs for target in _of_language(records, pair)]


def _of_language(records: Sequence[Record], pair: Pair) -> list[Target]:
    peer = BY_NAME[pair.other].title.partition(",")[0]

    def sliced(measure: str, figure: str) -> list[float]:
        return ratios(*_each_slice(records, measure, pair, figure))

    def repeated(measure: str, figure: str, case: str = "") -> list[float]:
        return ratios(*(by_repetition(records, measure, name, figure, case) for name in pair))

    def target(what: str, found: Sequence[float], *, at_least: bool) -> Target:
        over = f"over {peer}" if at_least else f"of {peer}'s"
        return target_of(f"{BY_NAME[pair.one].title}: {what}, {over}", 1.0, found, at_least=at_least)

    return [
        target("enqueue one by one", sliced(ab_compare.ENQUEUE, "per_second"), at_least=True),
        target("enqueue by 100 callers at once", sliced(ab_compare.CROWD, "per_second"), at_least=True),
        target("enqueue in bulk", sliced(ab_compare.BULK, "per_second"), at_least=True),
        target("drain", sliced(ab_compare.DRAIN, "per_second"), at_least=True),
        target(
            "handlers of 5 ms, 20 at a time",
            repeated(parameter_sweep.WORKERS, "per_second", parameter_sweep.CASE),
            at_least=True,
        ),
        target("server CPU of an enqueue", sliced(ab_compare.ENQUEUE, "server_us"), at_least=False),
        target(
            "server CPU of an enqueue by 100 callers", sliced(ab_compare.CROWD, "server_us"), at_least=False
        ),
        target("server CPU of a drain", sliced(ab_compare.DRAIN, "server_us"), at_least=False),
        target("client CPU of a drain", sliced(ab_compare.DRAIN, "client_us"), at_least=False),
        target("add to handler, p50", repeated("latency", "p50_ms"), at_least=False),
        target("memory of a waiting item", repeated("memory", "bytes_waiting"), at_least=False),
    ]
