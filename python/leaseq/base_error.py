"""The base of all errors of this package."""

from typing import Any, ClassVar, Final

BY_CODE: Final[dict[str, type["LeaseqError"]]] = {}
"""The errors that scripts raise and clients name, by their codes."""


class LeaseqError(Exception):
    """Base of all errors of this package.

    `definite` is true when the effect of the call is known: nothing, but for what `answers` says. It is false when the
    effect is unknown (a lost reply).
    `answers` holds what was answered before the error, for calls that send several batches: a list, one answer for
    each item in order. `in_doubt` is how many entries behind those may have taken effect or not; it is 0 where the error
    is definite. What comes behind them has not been done.
    """

    code: ClassVar[str | None] = None
    definite: bool = True

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.answers: list[Any] = []
        self._in_doubt = 1  # entries of a call whose effect is unknown

    @property
    def in_doubt(self) -> int:
        """The number of entries behind those of `answers` that may have taken effect or not."""
        return 0 if self.definite else self._in_doubt

    @in_doubt.setter
    def in_doubt(self, count: int) -> None:
        self._in_doubt = count

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if code := cls.__dict__.get("code"):
            BY_CODE[code] = cls
