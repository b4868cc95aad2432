"""The names of a queue's keys (LQ-KEY-1, LQ-KEY-2)."""

import re
from collections.abc import Hashable
from typing import NamedTuple

from leaseq._scripts import Script
from leaseq.errors import BadNameError, BadTypeError

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}", re.ASCII)

REGISTRY = "leaseq:queues"
"""The key of the registry of queues, a SET of entries (LQ-REGISTRY-1)."""


class RegisteredQueue(NamedTuple):
    """A queue that clients have registered.

    Attributes:
        name: the name of the queue.
        group: the group of the queue, as for `WorkQueue`.
    """

    name: str
    group: str


def registered(entry: bytes) -> RegisteredQueue | None:
    """Parse an entry of the registry; None for an invalid entry (LQ-REGISTRY-4)."""
    group, _, name = entry.decode("ascii", errors="replace").partition(":")
    return RegisteredQueue(name, group) if _NAME.fullmatch(group) and _NAME.fullmatch(name) else None


class QueueKeys:
    """The keys of one queue. All share the hash slot of the group."""

    def __init__(self, name: str, group: str | None = None) -> None:
        """`group` defaults to the name. Raises BadNameError."""
        self.name = _checked(name, "name")
        self.group = _checked(name if group is None else group, "group")
        self._prefix = f"leaseq:{{{self.group}}}:{self.name}:"
        self.entry = f"{self.group}:{self.name}"
        """Its entry in the registry."""
        self.result = f"{self._prefix}result:"
        """The start of the key of an outcome."""
        self.vectors: dict[str, tuple[str, ...]] = {}
        """The answers of `vector`, by the name of the script."""
        self.known: dict[str, tuple[tuple[str, ...], bytes]] = {}
        """The answers of `start`, by the name of the script."""

    def key(self, part: str) -> str:
        """One key, for example `key("wake")`."""
        return self._prefix + part

    def vector(self, script: Script) -> tuple[str, ...]:
        """The keys a script takes, in its order."""
        vector = self.vectors.get(script.name)
        if vector is None:
            vector = self.vectors[script.name] = tuple(map(self.key, script.keys))
        return vector

    def start(self, script: Script) -> tuple[tuple[str, ...], bytes]:
        """The same, and a call of the script as it is sent, from the name of the command to the last key."""
        start = self.known.get(script.name)
        if start is None:
            vector = self.vector(script)
            packed = bulk("EVALSHA", script.sha1, str(len(vector)), *vector)
            start = self.known[script.name] = (vector, packed)
        return start


def bulk(*parts: str) -> bytes:
    """Parts of a command as they are sent."""
    return b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in map(str.encode, parts))


class NamedQueue:
    """The base of sync and async queues: a name, and a group that decides the hash slot.

    Attributes:
        keys: the names of its keys.
        place: where its server is; what is no tuple cannot be compared (see `route`).
    """

    def __init__(self, keys: QueueKeys, place: Hashable = None) -> None:
        self.keys = keys
        self.place = place

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.keys.name

    @property
    def group(self) -> str:
        """The queue's group."""
        return self.keys.group


def _checked(text: str, what: str) -> str:
    if not isinstance(text, str):
        raise BadTypeError(f"the {what} of a queue must be a str, not {type(text).__name__}")
    if not _NAME.fullmatch(text):
        raise BadNameError(
            f"the {what} of a queue must be 1 to 100 of the characters A-Z a-z 0-9 _ . - and is {text!r}"
        )
    return text
