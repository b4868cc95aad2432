"""Cuts a history that did not pass off behind the first step that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leaseq_conformance.history.record import History


def truncated(history: History) -> History:
    """The shortest beginning that does not pass."""
    return history
