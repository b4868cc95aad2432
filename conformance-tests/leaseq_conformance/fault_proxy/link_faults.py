"""Faults of a network link: what happens to the bytes of connections, whatever they say."""

from __future__ import annotations

import random
import threading


class LinkFaults:
    """Switches for the faults of a link, off at first; set them at any time from any thread.

    Attributes:
        latency: seconds, added to each portion of bytes, in each direction.
        jitter: seconds, the largest random addition to the latency.
        refuse: reset new connections.
        discard_commands: swallow what clients send.
        discard_replies: swallow what the server replies.
        cut_replies_after: reset the connection once that many more bytes of replies were delivered; turns None then.
        hold_commands: keep what clients send until this is False again.
        hold_replies_after: keep replies, in order, once that many more bytes of them were delivered, until this is None.
        bytes_from_clients: what clients have sent so far, held bytes included.
    """

    _switching: threading.RLock

    def __init__(self) -> None:
        object.__setattr__(self, "_switching", threading.RLock())
        self.latency = 0.0
        self.jitter = 0.0
        self.refuse = False
        self.discard_commands = False
        self.discard_replies = False
        self.cut_replies_after: int | None = None
        self.hold_commands = False
        self.hold_replies_after: int | None = None
        self.bytes_from_clients = 0

    def delay(self) -> float:
        """Return how many seconds a portion of bytes is late."""
        return self.latency + random.uniform(0, self.jitter)  # noqa: S311 (no secret)

    def __setattr__(self, name: str, value: object) -> None:
        with self._switching:  # not while a byte is counted against the old value
            super().__setattr__(name, value)

    def count_from_client(self, size: int) -> None:
        """Count bytes that a client sent."""
        with self._switching:
            self.bytes_from_clients += size

    def split_held(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the part of a reply that is delivered now, and the part that is held."""
        with self._switching:
            if self.hold_replies_after is None:
                return data, b""
            now = min(len(data), self.hold_replies_after)
            self.hold_replies_after -= now
            return data[:now], data[now:]

    def split_cut(self, data: bytes) -> tuple[bytes, bool]:
        """Return the part of a reply that is delivered, and whether the connection is cut behind it."""
        with self._switching:
            left = self.cut_replies_after
            if left is None:
                return data, False
            self.cut_replies_after = left - len(data) if left > len(data) else None
            return data[:left], left <= len(data)
