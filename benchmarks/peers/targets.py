"""The targets: ratios of leaseq to others in one run, each with what it has to be and whether it is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from peers.figures import ByRepetition, by_repetition, combined, percentile, pooled, ratios, summary
from peers.libraries import PEERS, PYTHON_PEERS
from peers.measures.latency import PERCENTILES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peers.bench import Record

NEVER: Final = float("inf")


@dataclass(frozen=True)
class Target:
    """What is promised of one ratio or figure.

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
        """Whether the promise is kept; None where it was not measured."""
        if self.value is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit

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


def getter(records: Sequence[Record], figure: str) -> Callable[[str, str], ByRepetition]:
    """What finds this figure of a library in a measure."""
    return lambda library, measure: by_repetition(records, measure, library, figure)


def best(get: Callable[[str, str], ByRepetition], libraries: Sequence[str], measure: str) -> ByRepetition:
    """The largest figure of these libraries in each repetition, of those that were measured."""
    return combined(max, *(part for name in libraries if (part := get(name, measure))))


def _rates(records: Sequence[Record]) -> list[Target]:
    rate = getter(records, "per_second")
    peers, node, original = (
        best(rate, PYTHON_PEERS, "drain"),
        rate("bullmq-node", "drain"),
        "redis-work-queue",
    )

    def least(name: str, limit: float, own: ByRepetition, other: ByRepetition) -> Target:
        return target_of(name, limit, ratios(own, other), at_least=True)

    one = rate("leaseq", "enqueue")
    return [
        least("enqueue one by one, over redis-work-queue", 1.3, one, rate(original, "enqueue")),
        least("enqueue one by one, over huey", 1.0, one, rate("huey", "enqueue")),
        least("bulk enqueue, over redis-work-queue", 4, rate("leaseq", "bulk"), rate(original, "bulk")),
        least("drain, threads, over the best Python peer", 8, rate("leaseq", "drain"), peers),
        least("drain, asyncio, over the best Python peer", 8, rate("leaseq-asyncio", "drain"), peers),
        least("drain, threads, over BullMQ on Node", 4, rate("leaseq", "drain"), node),
        least("drain, asyncio, over BullMQ on Node", 4, rate("leaseq-asyncio", "drain"), node),
        least("drain one by one, two calls, over redis-work-queue", 2, rate("leaseq-two-calls", "drain"), rate(original, "drain")),
        least("drain one by one, fused, over redis-work-queue", 3.5, rate("leaseq-fused", "drain"), rate(original, "drain")),
    ]  # fmt: skip


def _costs(records: Sequence[Record]) -> list[Target]:
    cpu, memory = getter(records, "server_us"), getter(records, "bytes_waiting")
    original = combined(sum, cpu("redis-work-queue", "enqueue"), cpu("redis-work-queue", "drain"))
    singly = combined(sum, cpu("leaseq-fused", "enqueue"), cpu("leaseq-fused", "drain"))
    grouped = combined(sum, cpu("leaseq", "bulk"), cpu("leaseq", "drain"))

    def most(name: str, limit: float, own: ByRepetition, other: ByRepetition) -> Target:
        return target_of(name, limit, ratios(own, other), at_least=False)

    waiting = memory("leaseq", "memory")
    return [
        most("server CPU of one item, one by one and fused, of redis-work-queue's", 0.6, singly, original),
        most("server CPU of one item, bulk and grouped, of redis-work-queue's", 0.12, grouped, original),
        most(
            "memory of a waiting item, of redis-work-queue's",
            1.4,
            waiting,
            memory("redis-work-queue", "memory"),
        ),
        most("memory of a waiting item, of BullMQ's", 0.5, waiting, memory("bullmq-node", "memory")),
    ]


def _latencies(records: Sequence[Record]) -> list[Target]:
    """Of all samples together: one repetition has too few of the slowest."""
    found = []
    own, other = (pooled(records, "latency", name, "all_ms") for name in ("leaseq", "huey"))
    for figure, share in PERCENTILES.items():
        name = f"add to handler, {figure.removesuffix('_ms').replace('p99_9', 'p99.9')}, of huey's"
        enough = min(len(own), len(other)) * (100 - share) / 100 >= 1
        value = round(percentile(own, share) / percentile(other, share), 4) if enough else None
        pairs = ratios(*(by_repetition(records, "latency", each, figure) for each in ("leaseq", "huey")))
        low, high = (min(pairs), max(pairs)) if pairs else (None, None)
        found.append(Target(name, 1.0, at_least=False, value=value, low=low, high=high))
    return found


def seconds(records: Sequence[Record], library: str, case: str, measure: str = "recovery") -> list[float]:
    """How long each recovery took; NEVER where the item did not run again."""
    return [
        NEVER if (value := record.values["seconds"]) is None else value
        for record in records
        if (record.measure, record.library, record.case) == (measure, library, case)
    ]


def _recoveries(records: Sequence[Record]) -> list[Target]:
    peers = [median(times) for name in PEERS if (times := seconds(records, name, "default"))]
    own = seconds(records, "leaseq", "default")
    ratio = [each / min(peers) for each in own] if peers and min(peers) < NEVER else []
    # where every peer is never, whoever runs again at all is first
    first = ratio or ([0.0 if each < NEVER else NEVER for each in own] if peers else [])
    found = [target_of("runs again after kill -9, defaults, of the first peer's", 1.0, first, at_least=False)]
    for library in ("leaseq", "leaseq-asyncio"):
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
