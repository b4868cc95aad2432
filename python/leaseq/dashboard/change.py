"""A change that a visitor can make: what it would do, and what it did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from leaseq.dashboard.access import Action
from leaseq.keys import RegisteredQueue


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a change: what it would do now.

    Attributes:
        question: a sentence for the visitor.
        shown: the state that it was shown for. It comes back with the form.
        facts: more about it, by name.
        fields: numbers to be given, by name: the limits of a queue.
        refusal: why it cannot be done now, or "".
    """

    question: str
    shown: Mapping[str, str] = field(default_factory=dict)
    facts: Sequence[tuple[str, str]] = ()
    fields: Sequence[tuple[str, str, str]] = ()
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a change: what it did.

    Attributes:
        text: a sentence for the visitor.
        changed: how many things it changed.
    """

    text: str
    changed: int = 0


class Change(Protocol):
    """A change of one thing."""

    action: Action
    queue: RegisteredQueue
    permanent: bool
    """True if it cannot be undone."""

    def options(self) -> Mapping[str, Any]:
        """Return what the audit log has of it."""

    def plan(self) -> Plan:
        """Return what it would do. Raises the errors of leaseq."""

    def perform(self, shown: Mapping[str, str]) -> Report:
        """Do it, if all is as it was shown; else report what happened meanwhile. Raises the errors of leaseq."""
