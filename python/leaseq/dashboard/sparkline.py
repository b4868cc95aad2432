"""The points of a sparkline."""

from collections.abc import Sequence
from typing import Final

WIDTH: Final = 120
HEIGHT: Final = 24
"""The size of the picture, in its own units."""


def points(values: Sequence[float], slots: int = 0) -> str:
    """Return the points of a polyline from 0 to the largest value; the last value is at the right edge.

    `slots` is how many values fill the picture. Without it, these do.
    """
    highest = max(values, default=0) or 1.0
    step = WIDTH / max(1, (slots or len(values)) - 1)
    left = WIDTH - step * (len(values) - 1)
    return " ".join(
        f"{left + number * step:.1f},{HEIGHT - 1 - value / highest * (HEIGHT - 2):.1f}"
        for number, value in enumerate(values)
    )
