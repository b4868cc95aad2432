"""What a worker was told, checked."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from leaseq import commands, flows
from leaseq.backoff import Backoff
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.worker.hooks import Hooks
from leaseq.worker.verdicts import Policy

MOST_SLOTS = 10_000
"""Handlers that one worker runs at a time, at most."""


@dataclass(frozen=True, slots=True)
class Settings:
    """See `leaseq.worker.Worker`."""

    concurrency: int
    lease_secs: float
    policy: Policy
    time_limit: float | None
    at_most_once: bool
    group: bool
    burst: bool
    grace_secs: float
    handle_signals: bool
    announce: bool


def settings(
    *,
    handler: Any,
    concurrency: int,
    lease_secs: float,
    max_attempts: int,
    backoff: Callable[[int], float] | None,
    dead_letter_on: Iterable[type[BaseException]] | type[BaseException],
    time_limit: float | None,
    grace_secs: float,
    **switches: bool,
) -> Settings:
    """The settings. Raises BadTypeError, BadArgumentError."""
    if not callable(handler):
        raise BadTypeError(f"a handler is called with an item; {type(handler).__name__} cannot be called")
    if not 1 <= commands.whole(concurrency, "concurrency") <= MOST_SLOTS:
        raise BadArgumentError(f"concurrency must be 1 to {MOST_SLOTS}")
    commands.check_lease_secs(lease_secs)
    if commands.whole(max_attempts, "max_attempts") < 0:
        raise BadArgumentError("max_attempts must not be negative; 0 is unlimited")
    if time_limit is not None and commands.milliseconds(time_limit, "time_limit") <= 0:
        raise BadArgumentError("time_limit must be above 0; None is unlimited")
    if commands.milliseconds(grace_secs, "grace_secs") < 0:
        raise BadArgumentError("grace_secs must not be negative")
    if backoff is not None and not callable(backoff):
        raise BadTypeError(
            "backoff is called with an attempt and answers seconds: leaseq.worker.Backoff(...)"
        )
    policy = Policy(max_attempts, Backoff() if backoff is None else backoff, _exceptions(dead_letter_on))
    return Settings(concurrency, lease_secs, policy, time_limit, grace_secs=grace_secs, **switches)


def listed_hooks(hooks: Hooks | Iterable[Hooks] | None) -> list[Hooks]:
    """One, several or none. Raises BadTypeError."""
    several = (
        [] if hooks is None else [hooks] if isinstance(hooks, Hooks) else list(flows.many(hooks, "hooks"))
    )
    for each in several:
        if not isinstance(each, Hooks):
            raise BadTypeError(f"hooks must be a leaseq.worker.Hooks, not {type(each).__name__}")
    return several


def _exceptions(kinds: Any) -> tuple[type[BaseException], ...]:
    listed = (kinds,) if isinstance(kinds, type) else tuple(flows.many(kinds, "exceptions"))
    for kind in listed:
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise BadTypeError(f"dead_letter_on takes classes of exceptions, not {kind!r}")
    return listed
