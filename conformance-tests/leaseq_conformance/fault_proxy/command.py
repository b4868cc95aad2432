"""A command that passed the proxy."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from leaseq_conformance import resp
from leaseq_conformance.timestamp import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

ANY_SCRIPT: Final = "SCRIPT"
"""The label of a call of any script."""
ANY_CALL: Final = "CALL"
"""The label of what an operation consists of: calls of scripts, and blocks."""
COMPLETION: Final = "COMPLETION"
"""The label of a call that completes items, whatever else it does."""
COMPLETIONS: Final = frozenset({"complete", "complete_with", "complete_and_lease"})
BLOCKS: Final = frozenset({"BLPOP", "BLMOVE"})


class DeferredReply:
    """The reply to a command that the server never receives, given later. Replies behind it on its connection wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reply: bytes | None = None
        self._send: Callable[[bytes], None] | None = None

    def give(self, reply: bytes) -> None:
        """Send the reply. Does nothing if one was given before or the connection is gone."""
        with self._lock:
            if self._reply is not None:
                return
            self._reply = reply
            send = self._send
        if send is not None:
            send(reply)

    def bind(self, send: Callable[[bytes], None]) -> None:
        """Name what sends it, once the command has its place among those that wait for replies."""
        with self._lock:
            self._send = send
            reply = self._reply
        if reply is not None:
            send(reply)


@dataclass
class Command:
    """A command as a client sent it.

    Attributes:
        number: its place among all commands through the proxy, in the order in which they came.
        client: the name of the listener that it came through.
        arguments: exactly the bytes that were sent.
        script: the name of the script that it calls, if the proxy knows the digest or the source.
        sent: whether it was passed on to the server.
        reply: the bytes that the server replied; None if it did not or the connection was cut.
        delivered: the bytes that the client received; None if it received nothing.
        port: the port of the listener that it came through.
        came_at: when, on `time.time`.
        outgoing: the bytes that the client is to receive, once they are known: the server's reply or another.
        deferred: what will give these bytes, if a breakpoint says so.
    """

    number: int
    client: str
    connection: int
    arguments: tuple[bytes, ...]
    script: str | None = None
    sent: bool = False
    reply: bytes | None = None
    delivered: bytes | None = None
    port: int = 0
    came_at: float = field(default_factory=time.time)
    outgoing: bytes | None = field(default=None, repr=False)
    deferred: DeferredReply | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The command's name, in upper case."""
        return self.arguments[0].decode("ascii", "replace").upper() if self.arguments else ""

    @property
    def label(self) -> str:
        """The name of the script that it calls if that is known, else the command's."""
        return self.script or self.name

    def is_named(self, label: str | None) -> bool:
        """Return whether it is the command or a call of the script of that name; `SCRIPT`, `CALL`, `COMPLETION` and None are wildcards."""
        if label == ANY_SCRIPT:
            return self.script is not None
        if label == ANY_CALL:
            return self.script is not None or self.name in BLOCKS
        if label == COMPLETION:
            return self.script in COMPLETIONS
        return label in {None, self.label, self.name}

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys of a call of a script."""
        return self.arguments[3 : 3 + int(self.arguments[2])] if self.script else ()

    @property
    def argv(self) -> tuple[bytes, ...]:
        """The arguments of a call of a script, without its keys."""
        return self.arguments[3 + int(self.arguments[2]) :] if self.script else ()

    def describe(self) -> str:
        """Return one line for a transcript."""
        words = self.keys + self.argv if self.script else self.arguments[1:]
        end = resp.shown(self.delivered) if self.delivered is not None else "(no reply)"
        if not self.sent:
            end += " [never reached the server]"
        elif self.delivered is None and self.reply is not None:
            end += f" [the server replied {resp.shown(self.reply)}]"
        name = f"{self.name} {self.script}" if self.script else self.name
        return f"{timestamp(self.came_at)} {self.client}/{self.connection} {name} {' '.join(map(_shown, words))} -> {end}"


def _shown(part: bytes) -> str:
    text = part.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 80 else text[:80] + "...")
