"""What the server could do, in one table, and any figure as a share of that.

A rate is so much of the rate that the server's CPU would do of the floor's scripts, and of a cost, a time or a size the
least there can be is so much. Either way 100 % is the limit. What a library's client costs, and what it promises more
than the floor, is what is missing. A library that promises less, such as one that never completes an item, can be above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peers.figures import by_repetition, middle, percentile, pooled
from peers.libraries import LIBRARIES
from peers.measures import growth, jobs, latency, life, limit, pairs, sweeps, waves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peers.bench import Record

NOT_MEASURED: Final = "limit not measured"
ADD, BULK, DRAIN = "add", "bulk", "drain"
PART_OF_FIGURE: Final = {
    "enqueue_per_second": (ADD,),
    "bulk_per_second": (BULK,),
    "drain_per_second": (DRAIN,),
}
PLAIN: Final = {"enqueue_per_second": "SET, 1 at a time", "drain_per_second": "GET, 1 at a time"}
"""What heavy data are held against."""
PARTS: Final = {
    life.ENQUEUE: (ADD,),
    pairs.ENQUEUE: (ADD,),
    life.BULK: (BULK,),
    pairs.BULK: (BULK,),
    life.DRAIN: (DRAIN,),
    life.DRAIN4: (DRAIN,),
    pairs.DRAIN: (DRAIN,),
    sweeps.WORKERS: (DRAIN,),
    growth.NAME: (ADD, DRAIN),
    jobs.OFF: (ADD, DRAIN),
    jobs.ON: (ADD, DRAIN),
}
"""What is done with an item in a measure; where a figure's name says it, that counts."""
OWN_LIMITS: Final = frozenset({growth.NAME, sweeps.PAYLOAD, sweeps.SERVERS})
"""Their cases have a limit each."""
FUSED: Final = "leaseq-fused"
GROUPING: Final = frozenset({"leaseq", "leaseq-asyncio", "leaseq-jobs", "leaseq-jobs-asyncio"})
"""Their workers lease and complete many items in a call: less than one command for each item, as `drain` counts them.
The others are held against the floor at one item a call."""
LEAST_BYTES: Final = 15 + 100
"""A waiting item's id and data."""
NO_LIMIT: Final = frozenset({waves.IDLE})
"""An idle worker need not ask anything, and nothing is a share of 0."""
LEASE_SECS: Final = {"default": 30.0, "quickest": 1.0, "without a cleaner": 1.0, "with a cleaner": 1.0}
"""leaseq's, by the cases of the recovery."""


def draining(library: str, batch: int = limit.BATCH) -> tuple[str, ...]:
    """The floor's calls that an item is drained with."""
    if library in GROUPING:
        return (f"floor lease, batches of {batch}", f"floor complete, batches of {batch}")
    if library == FUSED:
        return ("floor complete and lease, 1 at a time",)
    return ("floor lease, 1 at a time", "floor complete, 1 at a time")


def calls(measure: str, library: str, figure: str, batch: int = limit.BATCH) -> list[str]:
    """The floor's calls that do the same with an item, by the names of the limit's cases."""
    made = {
        ADD: ("floor add, 1 at a time",),
        BULK: (f"floor add, batches of {batch}",),
        DRAIN: draining(library, batch),
    }
    return [call for part in PART_OF_FIGURE.get(figure, PARTS.get(measure, ())) for call in made[part]]


def limit_of(of: Sequence[Record], measure: str, library: str, figure: str, case: str = "") -> float | None:
    """The most of a rate, the least of anything else; None where there is none, or where it was not measured."""
    if measure == life.MEMORY:
        return LEAST_BYTES
    if measure in (waves.RECOVERY, waves.RECOVERY_1S):
        return _lease_left(library, case)
    if measure in (latency.NAME, pairs.LATENCY):
        woken = pooled(of, limit.NAME, limit.WHO, "all_ms", limit.WAKE_UP)
        return percentile(woken, latency.PERCENTILES[figure]) if woken else None
    most = _of_floor(of, measure, library, figure, case)
    if measure == sweeps.WORKERS and most:
        return min(most, _of_handlers(case))
    return most


def _of_floor(of: Sequence[Record], measure: str, library: str, figure: str, case: str) -> float | None:
    among, behind, names = limit.NAME, "", calls(measure, library, figure)
    if measure in OWN_LIMITS:
        among, behind = limit.CASES, f", {case}"
    if measure == sweeps.PAYLOAD:
        names = _with_data(library, figure, _first_number(case))
    rate = figure.endswith("per_second")
    column = "per_second" if rate else figure
    each = [middle(by_repetition(of, among, limit.WHO, column, name + behind)) for name in names]
    known = [value for value in each if value]
    if not known or len(known) < len(each):
        return None
    return 1 / sum(1 / value for value in known) if rate else sum(known)


def _with_data(library: str, figure: str, size: int) -> list[str]:
    """The calls that do most with data of a size: heavy data cost most in scripts, which copy them."""
    if size >= limit.HEAVY_BYTES:
        return [PLAIN[figure]]
    return calls(sweeps.PAYLOAD, library, figure, limit.batch_of(size))


def _of_handlers(case: str) -> float:
    """So many handlers cannot end more items in a second."""
    return _first_number(case) * 1000 / sweeps.WAIT_MS


def _first_number(case: str) -> int:
    return int(case.split(maxsplit=1)[0].replace(",", ""))


def _lease_left(library: str, case: str) -> float | None:
    """Until the lease ends that a killed worker held: others have none, or a time of their own."""
    if library not in {each.name for each in LIBRARIES if not each.is_peer}:
        return None
    return LEASE_SECS[case] - waves.HELD_SECS - waves.LOOK_SECS


def share_of(
    of: Sequence[Record], measure: str, library: str, figure: str, value: float | None, case: str = ""
) -> float | None:
    """The share of the limit that a figure is; None where there is no limit."""
    most = limit_of(of, measure, library, figure, case)
    if not most or not value:
        return None
    return value / most if figure.endswith("per_second") else most / value


def percent(share: float | None) -> str:
    """Two digits in brackets; "" of nothing."""
    if share is None:
        return ""
    if share < 0.0005:
        return "(<0.1%)"
    return f"({share:.0%})" if share >= 0.095 else f"({share:.1%})"
