"""A breakpoint: the place at which the proxy stops one command, and what becomes of it there."""

from __future__ import annotations

import threading
from typing import Final, Literal

from leaseq_conformance.fault_proxy.command import Command, DeferredReply

TIMEOUT_SECS: Final = 120.0
"""Seconds that a command is held at most, and that `Breakpoint.wait` waits by default."""

When = Literal["before", "after"]
"""Before the server receives the command, or after it replied."""
Action = Literal["hold", "resume", "disconnect", "kill"] | bytes | DeferredReply
"""An action on a command. Bytes are a reply that the client gets in place of the server's."""


class FaultProxyError(Exception):
    """A command that was waited for did not come."""


class Breakpoint:
    """A place at which one command is stopped; made by `FaultProxy.add_breakpoint`.

    It waits for one command. `action` says in advance what becomes of it; with "hold" one of `resume`, `disconnect`,
    `kill` and `reply_with` does so later. A held command holds those behind it on the same connection, and no others.

    Args:
        client: the client whose commands it stops.
        label: see `Command.is_named`.
        nth: which of these commands, from now on.
    """

    def __init__(self, client: str, label: str | None, when: When, action: Action, nth: int) -> None:
        self.client = client
        self.when = when
        self.command: Command | None = None
        self._label = label
        self._action: Action = action
        self._left = nth
        self._hit = threading.Event()
        self._decided = threading.Event()
        if action != "hold":
            self._decided.set()

    def matches(self, command: Command) -> bool:
        """Return whether it stops this command; counts those that it lets pass."""
        if command.client != self.client or not command.is_named(self._label):
            return False
        self._left -= 1  # below 0 once it has its command
        return self._left == 0

    def stop(self, command: Command) -> Action:
        """Hold the command until it is decided what becomes of it."""
        self.command = command
        self._hit.set()
        return self._action if self._decided.wait(TIMEOUT_SECS) else "disconnect"

    def wait(self, timeout: float = TIMEOUT_SECS) -> Command:
        """Wait for the command.

        Raises:
            FaultProxyError: it did not come in that many seconds.
        """
        if not self._hit.wait(timeout) or self.command is None:
            raise FaultProxyError(f"{self.client} sent no {self._label or 'command'} in {timeout:.0f} s")
        return self.command

    @property
    def hit(self) -> bool:
        """True if the command has come."""
        return self._hit.is_set()

    def resume(self) -> None:
        """Pass the command, or its reply, on."""
        self._decide("resume")

    def disconnect(self) -> None:
        """Cut the connection: the command never reaches the server, or its reply never the client."""
        self._decide("disconnect")

    def kill(self) -> None:
        """Kill the client, then cut its connection."""
        self._decide("kill")

    def reply_with(self, reply: bytes) -> None:
        """Send the client these bytes as the reply; a command stopped before the server never reaches it."""
        self._decide(reply)

    def _decide(self, action: Action) -> None:
        self._action = action
        self._decided.set()


class Refusal(Breakpoint):
    """Refuses every command of a client that is named so, with this error; the server receives none of them."""

    def __init__(self, client: str, label: str, error: str) -> None:
        super().__init__(client, label, "before", f"-{error}\r\n".encode(), nth=1)

    def matches(self, command: Command) -> bool:
        """Return whether it refuses this command."""
        return command.client == self.client and command.is_named(self._label)
