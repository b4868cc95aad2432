"""How fast the machine is from moment to moment: no figure is corrected by it, but a reader sees the slow phases."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peers.bench import Record

LOOPS: Final = 20_000


def probe() -> float:
    """The ms that a fixed piece of CPU work takes now; about 1."""
    began, total = time.perf_counter(), 0
    for number in range(LOOPS):
        total += number * number % 7
    return round((time.perf_counter() - began) * 1000, 4)


def probes(records: Iterable[Record]) -> dict[int, list[float]]:
    """What was probed beside the slices of each repetition."""
    found: dict[int, list[float]] = {}
    for record in records:
        if "slices" in record.values:
            found.setdefault(record.repetition, []).extend(record.values["slices"]["probe_ms"])
    return found


def shares(records: Sequence[Record]) -> dict[int, dict[str, float]]:
    """Of each repetition, the speed of the machine as a share of the best of the run: median, least and most."""
    seen = probes(records)
    best = min((each for took in seen.values() for each in took), default=0.0)
    return {
        repetition: {
            "median": round(best / median(took), 3),
            "min": round(best / max(took), 3),
            "max": round(best / min(took), 3),
        }
        for repetition, took in sorted(seen.items())
    }


def told(records: Sequence[Record], new: Sequence[Record]) -> str:
    """For the progress: how fast the machine was during what was just measured; "" where it was not probed."""
    took = [each for of in probes(new).values() for each in of]
    if not took:
        return ""
    best = min(each for of in probes([*records, *new]).values() for each in of)
    low, high = best / max(took), best / min(took)
    return f"the machine ran at {low:.0%} to {high:.0%} of its best"
