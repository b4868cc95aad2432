"""The verdict of a case, and the errors that end a case with one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence


class Outcome(StrEnum):
    """The outcome of a case. Only `pass` is a pass."""

    PASS = "pass"  # noqa: S105  # no password
    FAIL = "fail"
    SKIP = "skip"
    """The adapter does not declare a capability of the case, or the server is not the suite's to restart."""
    UNKNOWN = "unknown"
    """The case could not be judged: an answer did not come in time, or the harness itself was late."""
    ERROR = "error"
    """The adapter broke the adapter protocol, or the harness broke."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a case, with the evidence.

    Attributes:
        message: why, in a line or two; empty for a pass.
        transcript: the messages and commands of the case, one per line.
        difference: what in the keys differs from what is expected; empty if that is not the reason.
        stderr: the last lines that the adapters wrote to stderr; set by the runner, if the case did not pass.
        seconds: how long it took; set by the runner.
    """

    outcome: Outcome
    message: str = ""
    transcript: tuple[str, ...] = ()
    difference: str = ""
    stderr: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)


def passed(transcript: Sequence[str] = ()) -> Verdict:
    """The verdict of a case that passes."""
    return Verdict(Outcome.PASS, transcript=tuple(transcript))


def failed(message: str, transcript: Sequence[str] = (), difference: str = "") -> Verdict:
    """The verdict of a case that fails."""
    return Verdict(Outcome.FAIL, message, tuple(transcript), difference)


class VerdictError(Exception):
    """Ends a case with a verdict other than a pass. The runner turns it into that verdict."""

    outcome: ClassVar[Outcome]
    stderr: tuple[str, ...] = ()
    """Last lines of stderr of an adapter that is not in the pool."""

    def __init__(self, message: str, transcript: Sequence[str] = (), difference: str = "") -> None:
        super().__init__(message)
        self.transcript = tuple(transcript)
        self.difference = difference

    def judged(self) -> Verdict:
        """The verdict that it stands for."""
        return Verdict(self.outcome, str(self), self.transcript, self.difference, self.stderr)


class FailedError(VerdictError):
    """An assertion does not hold."""

    outcome = Outcome.FAIL


class UnjudgedError(VerdictError):
    """The case cannot be judged."""

    outcome = Outcome.UNKNOWN


class SkippedError(VerdictError):
    """The case cannot be run here."""

    outcome = Outcome.SKIP


class BrokenError(VerdictError):
    """The adapter broke the adapter protocol, or the harness broke."""

    outcome = Outcome.ERROR
