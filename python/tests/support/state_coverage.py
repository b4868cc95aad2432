"""The table of which `test_model` visits every cell: state of the item, operation, kind of token."""

from __future__ import annotations

from collections import Counter
from typing import Final

Cell = tuple[str, str, str]
COVERAGE: Final[Counter[Cell]] = Counter()
"""Visits of (state, operation, kind of token), over everything this process drove."""
STATES: Final = ("absent", "delayed", "ready", "lapsed", "leased", "expired", "dead")
"""`lapsed` was never leased and its time is over; the lease of `expired` is."""
TOKENS: Final = ("none", "current", "superseded", "previous")
WITH_TOKEN: Final = (
    *("complete", "complete only_current", "complete_and_lease", "extend"),
    *("complete_with", "complete_with keep", "complete_with then", "complete_with only_current"),
    *("release", "release delay", "release uncounted", "release error", "release dead", "release keep"),
)
WITHOUT_TOKEN: Final = (
    *("add", "add delay", "add keep", "add full", "remove", "inspect", "revive", "purge", "outcome"),
    *("lease", "lease paused", "lease_any", "light_clean", "deep_clean", "stats", "list", "settle"),
    *("configure", "pause", "resume"),
)


def every_cell() -> set[Cell]:
    """The cells that exist.

    Of an absent item, only a token of a previous one or none can be had, and so of one that was never leased.
    """
    cells = {(state, name, "none") for state in STATES for name in WITHOUT_TOKEN}
    for name in WITH_TOKEN:
        cells |= {(state, name, token) for state in STATES for token in TOKENS}
        for state in ("absent", "lapsed"):
            cells -= {(state, name, "current"), (state, name, "superseded")}
    return cells
