"""Failures that last: each is logged once when it starts and once when it is over."""

import logging

from leaseq.errors import (
    AccessDeniedError,
    LeaseqError,
    OutOfMemoryError,
    ReplyLostError,
    ServerError,
    UnavailableError,
)
from leaseq.formatting import one_line
from leaseq_cleaner.metrics import Metrics

log = logging.getLogger("leaseq_cleaner")


class UnexpectedError(LeaseqError):
    """An error that the client library should not have let through."""


def is_passing(error: LeaseqError) -> bool:
    """Return whether the server, and not the queue, is what fails: it is away, starts, is full, or refuses writes just now."""
    if isinstance(error, AccessDeniedError):
        return False
    # a definite refusal comes before the script; one from inside it is about what the queue holds
    return isinstance(error, UnavailableError | ReplyLostError | OutOfMemoryError) or (
        isinstance(error, ServerError) and error.definite
    )


def _problem_of(error: LeaseqError) -> str:
    """Return what is wrong with the server, in words."""
    refuses = isinstance(error, ServerError | OutOfMemoryError)
    return "the server refuses writes" if refuses else "the server does not answer"


class FailureLog:
    """The failures of one cleaner. `who` is a queue, or "the registry"; `call` is what was tried."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._away: dict[tuple[str, str], str] = {}
        self._others: dict[tuple[str, str], str] = {}

    @property
    def server_problem(self) -> str:
        """The reason why the server cannot be used, or "" if it takes calls and writes. From any thread."""
        return next(iter(list(self._away.values())), "")

    def has(self, who: str) -> bool:
        """Return whether something else is wrong there."""
        return any(key[0] == who for key in list(self._others))

    def record(self, who: str, call: str, error: LeaseqError) -> None:
        """Something failed."""
        key = (who, call)
        text = one_line(error)
        if is_passing(error):
            if not self._away:
                log.warning("%s, trying on: %s", _problem_of(error), text)
            self._away[key] = _problem_of(error)
            self._metrics.up.set(0)
        elif self._others.get(key) != text:
            log.error("%s of %s fails, trying on: %s", call, who, text)
            self._others[key] = text

    def over(self, who: str, call: str) -> None:
        """Note that it worked."""
        key = (who, call)
        if key in self._away:
            del self._away[key]
            if not self._away:
                log.info("the server answers again")
        if not self._away:
            self._metrics.up.set(1)
        if self._others.pop(key, None) is not None:
            log.info("%s of %s works again", call, who)

    def forget(self, who: str) -> None:
        """Forget it: it is no longer looked at."""
        self._away = {key: problem for key, problem in self._away.items() if key[0] != who}
        self._others = {key: text for key, text in self._others.items() if key[0] != who}
