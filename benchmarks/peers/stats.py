"""Medians, percentiles, and ratios of pairs."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from bench_server import Summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from peers.bench import Record

ByRepetition = dict[int, float]
"""A figure of each repetition."""
BySlice = dict[tuple[int, int], float]
"""A figure of each slice: repetition, and which of its slices."""
Key = TypeVar("Key", int, tuple[int, int])


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value that `share` percent of the values do not exceed; of at least one, in ascending order."""
    return ordered[max(0, math.ceil(len(ordered) * share / 100) - 1)]


def by_repetition(
    records: Iterable[Record], measure: str, library: str, figure: str, case: str = ""
) -> ByRepetition:
    """One figure of a library, of the repetitions that have it."""
    return {
        record.repetition: record.values[figure]
        for record in records
        if (record.measure, record.library, record.case) == (measure, library, case)
        and record.values.get(figure) is not None
    }


def by_slice(records: Iterable[Record], measure: str, library: str, figure: str, case: str) -> BySlice:
    """One figure of one side of a pair, in each slice."""
    return {
        (record.repetition, at): value
        for record in records
        if (record.measure, record.library, record.case) == (measure, library, case)
        for at, value in enumerate(record.values["slices"][figure])
    }


def combined(function: Callable[[list[float]], float], *parts: dict[Key, float]) -> dict[Key, float]:
    """A figure made of several, such as their sum or their maximum, in the repetitions that have all of them."""
    if not parts:
        return {}
    common = set.intersection(*(set(part) for part in parts))
    return {each: function([part[each] for part in parts]) for each in sorted(common)}


def ratios(over: dict[Key, float], under: dict[Key, float]) -> list[float]:
    """The ratio of each pair: of the repetitions, or the slices, that both have."""
    return [round(over[each] / under[each], 4) for each in sorted(set(over) & set(under)) if under[each]]


def summary(values: Iterable[float]) -> dict[str, float] | None:
    """Median, minimum and maximum; None of nothing."""
    listed = list(values)
    return Summary.of(listed).record() if listed else None


def middle(values: ByRepetition) -> float | None:
    """The median; None of nothing."""
    return median(values.values()) if values else None


def pooled(records: Iterable[Record], measure: str, library: str, figure: str, case: str = "") -> list[float]:
    """All values of the lists that repetitions have, in ascending order."""
    values: list[Any] = []
    for record in records:
        if (record.measure, record.library, record.case) == (measure, library, case):
            values += record.values[figure]
    return sorted(values)
