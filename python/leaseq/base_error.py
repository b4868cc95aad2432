"""The base of all errors of this package."""

from typing import Any, ClassVar, Final

BY_CODE: Final[dict[str, type["LeaseqError"]]] = {}
"""The errors that scripts raise and clients name, by their codes."""


class LeaseqError(Exception):
    """Base of all errors of this package.

    Attributes:
        definite: true if the effect of the call is known: it changed nothing, except what `answers` reports. False if the effect is
            unknown, for example because the reply was lost (LQ-ERROR-4).
        answers: the answers that the call got before or with the error, one for each item, in order; [] without any. None
            is an entry without room, or a job of another queue that was not answered.
        in_doubt: the number of entries after those of `answers` that may have taken effect; 0 if the error is definite. Later
            entries were not sent.
        code: the protocol's name of the error, such as `LEASEQ_BAD_ID`; None if it has none.
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
