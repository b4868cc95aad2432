# Generated from _aio/pending_call.py by tools/unasync.py: do not edit.
"""A call that is under way."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

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
    """

    command: Command[T] | None = None
    settles: Sequence[Command[bool]] = ()
    connection: Connection | None = None
    is_sent: bool = True
    sent_at: float = 0.0
    answer: Any = None
