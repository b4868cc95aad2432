"""Clients that say the wrong thing, or nothing, about the queues they use."""

from __future__ import annotations

from typing import Any

from leaseq._sync.calls import Held
from leaseq._sync.registry import Registration
from leaseq_conformance.mutants.registry import mutant, patch


@mutant("LQ-REGISTRY-1", "scenarios/registry")
def registered_without_group() -> None:
    """Enters a queue into the registry by its name alone: whose group is another's cannot be found again."""
    own = Registration.__init__

    def init(self: Registration, client: Any, keys: Any) -> None:
        own(self, client, keys)
        self._entry = keys.name

    patch(Registration, "__init__", init)


@mutant("LQ-REGISTRY-2", "scenarios/registry")
def never_registered() -> None:
    """Enters no queue into the registry, though it says that it does."""
    patch(Registration, "enter", lambda _self: None)


@mutant("LQ-REGISTRY-3", "scenarios/registry")
def registry_fails_the_call() -> None:
    """Takes a registry that it cannot write for a failure of the call behind which it wrote."""

    def enter(self: Registration) -> None:
        self._calls.talk(self._say, Held())

    patch(Registration, "enter", enter)
