"""Signals: what happens to jobs, and the functions that receive it."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar, get_args

from leaseq.callables import is_async, name_of_callable, refuse_generators, refuse_other_arguments
from leaseq.errors import BadArgumentError, BadTypeError

logger = logging.getLogger("leaseq.jobs")

Signal = Literal["enqueued", "started", "retried", "succeeded", "failed", "cancelled"]

IN_CALLS: Final = frozenset({"enqueued", "cancelled"})
"""Signals of the program that enqueues or cancels; the others are signals of a worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """One signal of one job, as receivers get it: see `App.on`.

    Attributes:
        signal: "enqueued", "started", "retried", "succeeded", "failed" or "cancelled".
        id: the id of the job.
        queue: the name of its queue.
        function: the name of its function; "" for "cancelled".
        attempt: the number of the attempt, 1 for the first; 0 for "enqueued" and "cancelled".
        args: the positional arguments, without the context; empty if they do not fit the function, and for "cancelled".
        kwargs: the keyword arguments.
        headers: the headers of the job.
        seconds: the seconds for which the attempt ran; None if it has not ended, or did not run.
        result: what the function returned, for "succeeded". For a job in a separate process it is None unless it is kept.
        error: for "retried" and "failed", the exception with its traceback, or a `JobFailed` with its text if it was raised
            in another process.
        delay: seconds until the next attempt, for "retried".
    """

    signal: Signal
    id: str
    queue: str
    function: str = ""
    attempt: int = 0
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None
    result: Any = None
    error: BaseException | None = None
    delay: float | None = None


Receiver = Callable[[JobEvent], Awaitable[Any] | Any]
"""Receives signals."""

R = TypeVar("R", bound=Receiver)


class Receivers:
    """The receivers of an App.

    Attributes:
        by_signal: the receivers, by signal; empty if there are none.
    """

    def __init__(self) -> None:
        self.by_signal: dict[str, list[Receiver]] = {}

    def add(self, receiver: Any, signals: Iterable[str]) -> None:
        """Add a receiver of these signals. Raises BadArgumentError, BadTypeError."""
        known = get_args(Signal)
        wanted = tuple(signals)
        for signal in wanted:
            if signal not in known:
                raise BadArgumentError(f"there is no signal {signal!r}; there are {', '.join(known)}")
        check_receiver(receiver)
        if is_async(receiver) and (here := IN_CALLS.intersection(wanted)):
            raise BadTypeError(
                f"a receiver of {min(here)!r} is called in the call that enqueues or cancels, which may be in a thread: make it a"
                " `def` function"
            )
        for signal in wanted:
            self.by_signal.setdefault(signal, []).append(receiver)

    def of(self, signal: Signal) -> list[Receiver]:
        """The receivers of a signal, in the order in which they were added."""
        return self.by_signal.get(signal, [])

    @property
    def of_worker(self) -> bool:
        """True if one of them receives a signal of a worker."""
        return bool(self.by_signal.keys() - IN_CALLS)

    def call(self, event: JobEvent) -> None:
        """Call the receivers of a signal of this program. A failure is logged and changes nothing."""
        for receiver in self.of(event.signal):
            try:
                receiver(event)
            except Exception as error:  # noqa: BLE001 (logged)
                log_failure(receiver, event, error)


def log_failure(receiver: Receiver, event: JobEvent, error: BaseException) -> None:
    """Log the exception of a receiver."""
    extra = {"item": event.id, "function": event.function, "attempt": event.attempt}
    logger.error(
        "the receiver %s failed with %r of job %r of %s",
        name_of_callable(receiver),
        event.signal,
        event.id,
        event.function or "a function",
        exc_info=error,
        extra=extra,
    )


def check_receiver(receiver: Any) -> None:
    """Raise BadTypeError for what cannot receive signals."""
    if not callable(receiver):
        raise BadTypeError(f"a receiver takes a JobEvent; {type(receiver).__name__} cannot be called")
    refuse_generators(receiver, "a receiver")
    refuse_other_arguments(receiver, "a receiver", "a JobEvent")


def listed_receivers(given: Any) -> tuple[Receiver, ...]:
    """Return receivers as a tuple: one, several or None. Raises BadTypeError."""
    if given is None:
        return ()
    receivers = tuple(given) if isinstance(given, list | tuple) else (given,)
    for receiver in receivers:
        check_receiver(receiver)
    return receivers
