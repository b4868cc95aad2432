"""Calls on queues that were made for one of them: limits just reached, and damage that only one place comes upon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leaseq_conformance.vectors.corners import (
    adding,
    cleaning,
    finishing,
    fused,
    leasing,
    outcomes,
    releasing,
    several,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from leaseq_conformance.vectors.vector import Vector

FIRST: Final[dict[str, Callable[[], Iterator[Vector]]]] = {
    "add": adding.vectors,
    "complete": finishing.completes,
    "complete_and_lease": fused.short_way,
    "lease": leasing.short_way,
    "release": releasing.vectors,
    "settle": cleaning.settles,
}
"""Those that stand right behind the sample calls in the file of a script."""
LAST: Final[dict[str, Callable[[], Iterator[Vector]]]] = {
    "complete_and_lease": fused.vectors,
    "complete_with": finishing.finishes,
    "deep_clean": cleaning.deep_cleans,
    "lease": leasing.of_lease,
    "lease_any": several.vectors,
    "light_clean": cleaning.light_cleans,
    "outcome": outcomes.vectors,
}
"""Those that stand at its end."""
