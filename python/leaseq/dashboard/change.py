"""A change that a visitor can make: what it would do, and what it did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from leaseq.dashboard.access import Action
from leaseq.dashboard.purge_plans import PurgePlan
from leaseq.keys import RegisteredQueue

Fact = tuple[str, str | float]
"""A name, and a text or a moment."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a change: what it would do now.

    Attributes:
        question: a sentence for the visitor.
        shown: the state that it was shown for. It comes back with the form.
        facts: more about it, by name; a number is a moment in seconds since 1970.
        fields: numbers to be given: name, meaning and value of each. The limits of a queue.
        areas: texts to be given: name, meaning and value of each. The data of an item.
        refusal: why it cannot be done now, or "".
    """

    question: str
    shown: Mapping[str, str] = field(default_factory=dict)
    facts: Sequence[Fact] = ()
    fields: Sequence[tuple[str, str, str]] = ()
    areas: Sequence[tuple[str, str, str]] = ()
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a change: what it did.

    Attributes:
        text: a sentence for the visitor.
        changed: how many things it changed.
        plans: the purges that it planned. They can be undone.
        new_id: the id of the item that it added, or "".
    """

    text: str
    changed: int = 0
    plans: Sequence[PurgePlan] = ()
    new_id: str = ""


class Change(Protocol):
    """A change of one thing."""

    @property
    def action(self) -> Action:
        """The action that a visitor needs to be allowed."""

    @property
    def name(self) -> str:
        """The name of the change on its pages and in the audit log."""

    @property
    def queue(self) -> RegisteredQueue | None:
        """The queue that it is about; None for a worker."""

    @property
    def permanent(self) -> bool:
        """True if it cannot be undone."""

    def options(self) -> Mapping[str, Any]:
        """Return what the audit log has of it."""

    def plan(self) -> Plan:
        """Return what it would do. Raises the errors of leaseq."""

    def perform(self, shown: Mapping[str, str]) -> Report:
        """Do it, if all is as it was shown; else report what happened meanwhile. Raises the errors of leaseq."""
