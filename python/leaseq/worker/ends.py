"""What the handlers tell: how each item ended."""

from typing import Any, Literal

Why = Literal["", "gone", "lost", "late", "stop"]
"""What ended it from outside: the lease was lost before its handler began, or while it ran; its time was over; the worker
stops. Else nothing did."""


End = tuple[Any, BaseException | None, float, Why, bool]
"""A handler has ended: the item, the error that it raised if any, the seconds it took, why, and whether it frees its slot:
threads run on when given up. A bare tuple, since there is one for every item."""
