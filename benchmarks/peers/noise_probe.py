"""A probe of the machine's speed, taken with each measurement. It corrects no figure; it shows which were slow phases."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peers.bench import Record

LOOPS: Final = 20_000
LEAST_BUSY: Final = 0.95


def probe() -> float:
    """The ms that a fixed piece of CPU work takes now; about 1."""
    began, total = time.perf_counter(), 0
    for number in range(LOOPS):
        total += number * number % 7
    return round((time.perf_counter() - began) * 1000, 4)


def by_repetition(records: Iterable[Record], figure: str) -> dict[int, list[float]]:
    """A figure of all slices of each repetition."""
    found: dict[int, list[float]] = {}
    for record in records:
        found.setdefault(record.repetition, []).extend(record.values.get("slices", {}).get(figure, ()))
    return {repetition: values for repetition, values in found.items() if values}


def busy(records: Sequence[Record]) -> dict[int, dict[str, float]]:
    """Of each repetition, the share of the CPU that both ends had in a slice: median and least."""
    return {
        repetition: {"median": median(of), "min": min(of)}
        for repetition, of in sorted(by_repetition(records, "busy").items())
    }


def disturbed(records: Sequence[Record]) -> str:
    """A warning where other programs took so much of the CPU that the ratios are not to be trusted, else ""."""
    had = [each for of in by_repetition(records, "busy").values() for each in of]
    if not had or median(had) >= LEAST_BUSY:
        return ""
    return (
        f"Other programs took the CPU: in the median slice both ends had {median(had):.0%} of it. "
        "Who waits more often loses more, so the ratios are not to be trusted."
    )


def shares(records: Sequence[Record]) -> dict[int, dict[str, float]]:
    """Of each repetition, the speed of the machine as a share of the best of the run: median, least and most."""
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
    """For the progress: how fast the machine was during what was just measured; "" where it was not probed."""
    took = [each for of in by_repetition(new, "probe_ms").values() for each in of]
    if not took:
        return ""
    best = min(each for of in by_repetition([*records, *new], "probe_ms").values() for each in of)
    low, high = best / max(took), best / min(took)
    had = [each for of in by_repetition(new, "busy").values() for each in of]
    both = f", both ends had {min(had):.0%} to {max(had):.0%} of the CPU" if had else ""
    return f"the machine ran at {low:.0%} to {high:.0%} of its best{both}"
