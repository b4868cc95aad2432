"""The commands that clients send through the proxy, and the breakpoints that stop them."""

from __future__ import annotations

import hashlib
import itertools
import threading
from typing import TYPE_CHECKING

from leaseq_conformance.fault_proxy.breakpoints import Breakpoint
from leaseq_conformance.fault_proxy.command import Command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leaseq_conformance.fault_proxy.breakpoints import Action, When


class CommandLog:
    """The commands of all clients in the order in which they came, and the breakpoints that each is compared with.

    Args:
        scripts: names of scripts by their SHA-1 digest, for the labels of commands.
    """

    def __init__(self, scripts: Mapping[str, str] | None = None) -> None:
        self.commands: list[Command] = []
        self._scripts = dict(scripts or {})
        self._breakpoints: list[Breakpoint] = []
        self._numbers = itertools.count(1)
        self._connections = itertools.count(1)
        self._lock = threading.Lock()

    def learn_scripts(self, digests: Mapping[str, str]) -> None:
        """Know these scripts too: name -> digest, as a client declares them."""
        self._scripts.update({digest: name for name, digest in digests.items()})

    def add_breakpoint(
        self,
        client: str,
        label: str | None = None,
        when: When = "before",
        action: Action = "hold",
        nth: int = 1,
    ) -> Breakpoint:
        """Stop the nth command from now on that this client sends, of those that `Command.is_named` so."""
        point = Breakpoint(client, label, when, action, nth)
        self.add(point)
        return point

    def add(self, point: Breakpoint) -> None:
        """Ask this breakpoint about every command from now on."""
        with self._lock:
            self._breakpoints.append(point)

    def replace(self, point: Breakpoint, new: Breakpoint) -> None:
        """Ask another one in its place, with no command in between."""
        with self._lock:
            self._breakpoints[self._breakpoints.index(point)] = new

    def remove(self, point: Breakpoint) -> None:
        """Stop asking it."""
        with self._lock:
            self._breakpoints.remove(point)

    def clear(self) -> None:
        """Remove all breakpoints, resume what they hold, and forget the commands that were seen."""
        with self._lock:
            points, self._breakpoints = self._breakpoints, []
            self.commands = []
        for point in points:
            point.resume()

    def transcript(self) -> list[str]:
        """Return the commands and their replies, one line each."""
        with self._lock:
            return [command.describe() for command in self.commands]

    def commands_of(self, client: str, label: str | None = None) -> list[Command]:
        """Return the commands that a client sent: all, or those that `Command.is_named` so."""
        with self._lock:
            return [
                command for command in self.commands if command.client == client and command.is_named(label)
            ]

    def record(
        self, client: str, connection: int, arguments: tuple[bytes, ...], port: int
    ) -> tuple[Command, list[Breakpoint]]:
        """Write a command down, and find the breakpoints that stop it."""
        script = self._script(arguments)
        command = Command(next(self._numbers), client, connection, arguments, script, port=port)
        with self._lock:
            self.commands.append(command)
            return command, [point for point in self._breakpoints if point.matches(command)]

    def _script(self, arguments: tuple[bytes, ...]) -> str | None:
        if len(arguments) < 3:
            return None
        if arguments[0].upper() == b"EVALSHA":
            return self._scripts.get(arguments[1].decode("ascii", "replace").lower())
        if arguments[0].upper() == b"EVAL":
            return self._scripts.get(hashlib.sha1(arguments[1], usedforsecurity=False).hexdigest())
        return None

    def connection_number(self) -> int:
        """Return a number for a new connection."""
        return next(self._connections)
