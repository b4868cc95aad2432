"""The options of a job: of its function, and of each call."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from leaseq import commands
from leaseq.backoff import AnyBackoff, Backoff, DelayFunction, Policy, as_policy
from leaseq.durations import Duration, Time, seconds_of, since_1970
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs.signals import Receiver, listed_receivers

DAY = 86400.0
MAX_ATTEMPTS = 65534

DURATIONS = ("delay", "expires", "timeout", "keep", "throttle")
"""Options that are durations, which may be a timedelta or text, such as "1h"."""


class CallOptions(TypedDict, total=False):
    """The options that `with_options` takes; see `Options`."""

    id: str | None
    unique: bool
    throttle: Duration | str | None
    queue: str
    priority: int
    delay: Duration | str
    at: Time | None
    expires: Duration | str | None
    dead_on_expiry: bool
    timeout: Duration | str | None
    retries: int | None
    backoff: AnyBackoff
    keep: Duration | str | None
    description: str | None
    attempt: int
    headers: Mapping[str, str]


OPTION_NAMES = frozenset(CallOptions.__annotations__)
"""The names of the options that `with_options` takes."""


class FunctionOptions(CallOptions, total=False):
    """The options that `@app.job` takes; see `Options`."""

    retry_on: type[BaseException] | Iterable[type[BaseException]]
    fork: bool
    on_success: Receiver | Sequence[Receiver] | None
    on_failure: Receiver | Sequence[Receiver] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a job, which `@app.job` and `with_options` take by name. Durations are in seconds.

    `delay`, `expires`, `timeout`, `keep` and `throttle` can also be a timedelta, or text: "90s", "5m", "1h", "7d".

    Attributes:
        id: the id of the job, 1 to 256 bytes of UTF-8; random by default. While a job with this id is in its queue, a
            second job is not enqueued.
        unique: make the id of the name of the function and the arguments, as JSON. While a job with the same ones is in its
            queue, or its result is kept, a second one is not enqueued. Not together with `id` or `throttle`.
        throttle: seconds of a slot: of jobs with the same function and arguments, one is enqueued in each slot of this length,
            by the server's clock. The id has the number of the slot. Not together with `id` or `unique`.
        queue: the name of the queue in which it waits, by default that of the App.
        priority: -7 to 7, higher first.
        delay: seconds before it may run.
        at: the time before which it does not run, instead of `delay`: seconds since 1970 or a datetime with a time zone.
        expires: seconds after it was due; if no worker has started it by then, it is dead. None: never. By default a day.
        dead_on_expiry: true by default. If false, a job that expires is deleted: its status is "unknown", and its id is free.
        timeout: seconds that one attempt may take, 300 by default. None: no limit.
        retries: attempts after the first one failed, 4 by default; then the job is dead. None: no limit.
        backoff: seconds until the next attempt: a `Backoff`, a fixed delay, a list of delays whose last one repeats, or a
            function that takes the number of the failed attempt (1 for the first) and returns a delay. Only the decorator
            takes a function, `with_options` does not.
        retry_on: an exception class or several, after which it is tried again, by default Exception; after others it is dead
            at once.
        keep: seconds for which its result or failure is kept, a day by default. None or 0: not at all.
        description: a text for people; by default the call itself.
        attempt: the number of its first attempt; more than 1 if earlier attempts, made elsewhere, count.
        headers: at most 16 headers, as for `leaseq.Item`.
        fork: run it in a separate process, which is killed 5 s after `timeout` if it has not ended.
        on_success: one function or several, called with a `JobEvent` in the worker when the server has recorded the success.
        on_failure: one function or several, called likewise when the job is dead: it has failed for the last time.

    Raises BadTypeError, BadArgumentError.
    """

    id: str | None = None
    unique: bool = False
    throttle: float | None = None
    queue: str = "default"
    priority: int = 0
    delay: float = 0.0
    at: Time | None = None
    expires: float | None = DAY
    dead_on_expiry: bool = True
    timeout: float | None = 300.0
    retries: int | None = 4
    backoff: Policy = Backoff()  # noqa: RUF009 (frozen)
    retry_on: Any = Exception
    keep: float | None = DAY
    description: str | None = None
    attempt: int = 1
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    fork: bool = False
    on_success: Any = None
    on_failure: Any = None
    of_item: commands.additions.Options = dataclasses.field(init=False, compare=False, repr=False)
    """As options of the item, but for what depends on the server's time."""
    needs_server_time: bool = dataclasses.field(init=False, compare=False, repr=False)
    """True if some option depends on the server's time: `counted_from` has them all."""
    once: bool = dataclasses.field(init=False, compare=False, repr=False)
    """True if the id is made of the arguments: it is unique or throttled."""

    def __post_init__(self) -> None:
        if self.at is not None and self.delay:
            raise BadArgumentError("a job has a delay or a time at which it is due, not both")
        _positive(self.expires, "expires", "None: never")
        _positive(self.timeout, "timeout", "None: without limit")
        for seconds, what in ((self.delay, "delay"), (self.keep or 0, "keep")):
            if commands.milliseconds(seconds, what) < 0:
                raise BadArgumentError(f"{what} must not be negative")
        _check_flag(self.dead_on_expiry, "dead_on_expiry")
        self._check_id()
        self._check_attempts()
        if self.description is not None and not isinstance(self.description, str):
            raise BadTypeError(f"a description is a str, not {type(self.description).__name__}")
        exceptions(self.retry_on)
        listed_receivers(self.on_success)
        listed_receivers(self.on_failure)
        object.__setattr__(self, "needs_server_time", self.at is not None and self.expires is not None)
        object.__setattr__(self, "once", self.unique or self.throttle is not None)
        object.__setattr__(self, "of_item", self._counted(None))

    def _check_id(self) -> None:
        _positive(self.throttle, "throttle", "None: as often as it is enqueued")
        _check_flag(self.unique, "unique")
        if self.unique and self.throttle is not None:
            raise BadArgumentError(
                "a job is unique or throttled, not both: give throttle=None to a unique job, unique=False to a throttled one"
            )
        if self.id is not None and (self.unique or self.throttle is not None):
            raise BadArgumentError(
                "the id of a job that is unique or throttled is made of its arguments: leave out id, or give unique=False and"
                " throttle=None with it"
            )

    def _check_attempts(self) -> None:
        if self.retries is not None and not 0 <= commands.whole(self.retries, "retries") < MAX_ATTEMPTS:
            raise BadArgumentError(f"retries must be 0 to {MAX_ATTEMPTS - 1}; None is without limit")
        first = commands.whole(self.attempt, "attempt")
        if first < 1 or (self.retries is not None and first > self.retries + 1):
            most = (
                ""
                if self.retries is None
                else f", and at most {self.retries + 1} with {self.retries} retries"
            )
            raise BadArgumentError(f"the number of the first attempt is at least 1{most}; not {first}")

    def due(self) -> float | None:
        """The time of `at`, in seconds since 1970. Raises BadTypeError, BadArgumentError."""
        return None if self.at is None else since_1970(self.at, "at")

    def with_(self, given: Mapping[str, Any], known: Any) -> "Options":
        """These, with what is given; `known` are the names that may be. Raises BadArgumentError."""
        if unknown := set(given) - set(known.__annotations__):
            raise BadArgumentError(
                f"there is no option {min(unknown)!r}; there are {', '.join(sorted(known.__annotations__))}"
            )
        given = {
            name: seconds_of(value, name) if name in DURATIONS and value is not None else value
            for name, value in given.items()
        }
        if "backoff" in given:
            given["backoff"] = as_policy(given["backoff"])
            if known is CallOptions and isinstance(given["backoff"], DelayFunction):
                raise BadArgumentError(
                    "a function as backoff cannot be sent with a call: give it to the decorator, @app.job(backoff=...), or"
                    " give the call a list of delays"
                )
        if given.get("at") is not None and "delay" not in given:
            given = {**given, "delay": 0.0}
        elif given.get("delay") and "at" not in given:
            given = {**given, "at": None}
        return dataclasses.replace(self, **given)

    def counted_from(self, now: float | None, ahead: float = 0.0) -> commands.additions.Options:
        """As options of the item; `now` is the server's time, for what is due at a time and expires.

        `ahead` are the seconds by which the clock that `at` means is ahead of the server's.
        """
        return self.of_item if now is None else self._counted(now, ahead)

    def _counted(self, now: float | None, ahead: float = 0.0) -> commands.additions.Options:
        due = self.due()
        if due is not None and ahead:
            due = max(0.0, due - ahead)
        wait = self.delay if due is None or now is None else max(0.0, due - now)
        return commands.add_options(
            delay=self.delay,
            not_before=due,
            priority=self.priority,
            max_attempts=0 if self.retries is None else self.retries + 2 - self.attempt,
            expires_in=None if self.expires is None else wait + self.expires,
            dead_on_expiry=self.dead_on_expiry and self.expires is not None,
            keep=self.keep,
        )


def _positive(seconds: float | None, what: str, otherwise: str) -> None:
    if seconds is not None and commands.milliseconds(seconds, what) <= 0:
        raise BadArgumentError(f"{what} must be above 0; {otherwise}")


def _check_flag(value: bool, what: str) -> None:
    if not isinstance(value, bool):
        raise BadTypeError(f"{what} is true or false, not {type(value).__name__}")


def exceptions(kinds: Any) -> tuple[type[BaseException], ...]:
    """Return classes of exceptions as a tuple. Raises BadTypeError."""
    listed = tuple(kinds) if isinstance(kinds, Iterable) else (kinds,)
    for kind in listed:
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise BadTypeError(f"retry_on takes classes of exceptions, not {kind!r}")
    return listed
