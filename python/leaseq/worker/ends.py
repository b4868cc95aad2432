"""What the handlers tell: how each item ended."""

from typing import Any, Literal, NamedTuple

Why = Literal["", "gone", "lost", "late", "stop"]
"""What ended it from outside: the lease was lost before its handler began, or while it ran; its time was over; the worker
stops. Else nothing did."""


class End(NamedTuple):
    """A handler has ended: returned, or raised `error`. `frees`: its slot is free again; threads run on when given up."""

    item: Any
    error: BaseException | None
    seconds: float
    why: Why = ""
    frees: bool = True
