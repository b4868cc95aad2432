"""The settings of a worker, checked."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from leaseq import commands, flows
from leaseq.backoff import AnyBackoff, Backoff, as_policy
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.worker.hooks import Hooks
from leaseq.worker.retry_policy import RetryPolicy

Readiness = Literal["starting", "leasing", "away", "stopping", "quiet"]
"""The state that a worker is in. "away": the server does not answer, or refuses."""

MAX_CONCURRENCY = 10_000
"""Handlers that one worker runs at a time, at most."""


@dataclass(frozen=True, slots=True)
class Settings:
    """See `leaseq.worker.Worker`."""

    concurrency: int
    lease_secs: float
    policy: RetryPolicy
    time_limit: float | None
    at_most_once: bool
    burst: bool
    grace_secs: float
    handle_signals: bool
    announce: bool

    def __post_init__(self) -> None:
        """Raises BadTypeError, BadArgumentError."""
        if not 1 <= commands.whole(self.concurrency, "concurrency") <= MAX_CONCURRENCY:
            raise BadArgumentError(f"concurrency must be 1 to {MAX_CONCURRENCY}")
        commands.check_lease_secs(self.lease_secs)
        if self.time_limit is not None and commands.milliseconds(self.time_limit, "time_limit") <= 0:
            raise BadArgumentError("time_limit must be above 0; None is unlimited")
        if commands.milliseconds(self.grace_secs, "grace_secs") < 0:
            raise BadArgumentError("grace_secs must not be negative")


def checked_policy(
    max_attempts: int,
    backoff: AnyBackoff | None,
    dead_letter_on: Iterable[type[BaseException]] | type[BaseException],
) -> RetryPolicy:
    """Return what becomes of failures. Raises BadTypeError, BadArgumentError."""
    if commands.whole(max_attempts, "max_attempts") < 0:
        raise BadArgumentError("max_attempts must not be negative; 0 is unlimited")
    policy = as_policy(Backoff() if backoff is None else backoff)
    return RetryPolicy(max_attempts, policy, _exceptions(dead_letter_on))


def as_hook_list(hooks: Hooks | Iterable[Hooks] | None) -> list[Hooks]:
    """One, several or none. Raises BadTypeError."""
    several = (
        []
        if hooks is None
        else [hooks]
        if isinstance(hooks, Hooks)
        else list(flows.require_iterable(hooks, "hooks"))
    )
    for each in several:
        if not isinstance(each, Hooks):
            raise BadTypeError(f"hooks must be a leaseq.worker.Hooks, not {type(each).__name__}")
    return several


def _exceptions(kinds: Any) -> tuple[type[BaseException], ...]:
    classes = (kinds,) if isinstance(kinds, type) else tuple(flows.require_iterable(kinds, "exceptions"))
    for kind in classes:
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise BadTypeError(f"dead_letter_on takes classes of exceptions, not {kind!r}")
    return classes
