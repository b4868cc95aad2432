"""Probes of the machine's speed, which show when it was slow. They correct no figure.

A slice is a short measurement (`measures/ab_compare.py`); "both ends" are the library's process and the server.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peers.bench import Record

LOOPS: Final = 20_000
LEAST_BUSY: Final = 0.95
"""The share of the CPU that both ends must have in the median slice."""


def probe() -> float:
    """Return the ms that a fixed piece of CPU work takes now; about 1."""
    began, total = time.perf_counter(), 0
    for number in range(LOOPS):
        total += number * number % 7
    return round((time.perf_counter() - began) * 1000, 4)


def by_repetition(records: Iterable[Record], figure: str) -> dict[int, list[float]]:
    """Return the values of a figure in all slices, for each repetition that has any."""
    found: dict[int, list[float]] = {}
    for record in records:
        found.setdefault(record.repetition, []).extend(record.values.get("slices", {}).get(figure, ()))
    return {repetition: values for repetition, values in found.items() if values}


def busy(records: Sequence[Record]) -> dict[int, dict[str, float]]:
    """Return for each repetition the share of the CPU that both ends had in a slice: median and least."""
    return {
        repetition: {"median": median(of), "min": min(of)}
        for repetition, of in sorted(by_repetition(records, "busy").items())
    }


def disturbed(records: Sequence[Record]) -> str:
    """Return a warning if other programs took so much CPU that the ratios cannot be trusted, else ""."""
    had = [each for of in by_repetition(records, "busy").values() for each in of]
    if not had or median(had) >= LEAST_BUSY:
        return ""
    return (
        f"Other programs took the CPU: in the median slice both ends had {median(had):.0%} of it. "
        "A side that waits more often loses more, so the ratios cannot be trusted."
    )


def shares(records: Sequence[Record]) -> dict[int, dict[str, float]]:
    """Return for each repetition the speed of the machine as a share of its best in the run: median, least, most."""
    seen = by_repetition(records, "probe_ms")
    best = min((each for took in seen.values() for each in took), default=0.0)
    return {
        repetition: {
            "median": round(best / median(took), 3),
            "min": round(best / max(took), 3),
            "max": round(best / min(took), 3),
        }
        for repetition, took in sorted(seen.items())
    }


def summary(records: Sequence[Record], new: Sequence[Record]) -> str:
    """Return a line of progress: the speed of the machine while `new` was measured; "" if it was not probed."""
    took = [each for of in by_repetition(new, "probe_ms").values() for each in of]
    if not took:
        return ""
    best = min(each for of in by_repetition([*records, *new], "probe_ms").values() for each in of)
    low, high = best / max(took), best / min(took)
    had = [each for of in by_repetition(new, "busy").values() for each in of]
    both = f", both ends had {min(had):.0%} to {max(had):.0%} of the CPU" if had else ""
    return f"the machine ran at {low:.0%} to {high:.0%} of its best{both}"
