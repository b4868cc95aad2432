# Generated from _aio/pending_call.py by tools/unasync.py: do not edit.
"""A call that is under way."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from leaseq._sync import concurrency
from leaseq._sync.connection import Connection
from leaseq.commands import Command

T = TypeVar("T")


@dataclass(slots=True)
class PendingCall(Generic[T]):
    """The state of a call, for an interruption of its caller.

    Attributes:
        command: the script's call; None for plain commands, which are only forgotten.
        settles: commands that pass on a wake-up that this call may have taken.
        connection: the borrowed one; None if it was returned or left to a background task.
        is_sent: whether `command` was sent, if it comes behind a block.
        sent_at: when it was sent, on `concurrency.now`.
        answer: received, and not yet returned.
        until: when its time is over, on `concurrency.now`: connecting, redirections and the reply share it (LQ-CLUSTER-5).
    """

    command: Command[T] | None = None
    settles: Sequence[Command[bool]] = ()
    connection: Connection | None = None
    is_sent: bool = True
    sent_at: float = 0.0
    answer: Any = None
    until: float = math.inf

    def reply_secs(self, connection: Connection, timeout: float | None = None) -> float:
        """Return the seconds that a reply may take from now on, at most `timeout` or what the client says."""
        limit = connection.endpoint.reply_secs if timeout is None else timeout
        return min(limit, max(0.0, self.until - concurrency.now()))
