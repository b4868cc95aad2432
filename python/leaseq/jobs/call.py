"""A call of a function, ready to be enqueued."""

import dataclasses
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import msgspec

from leaseq.backoff import Backoff, Delays
from leaseq.callables import is_async, name_of_callable, refuse_generators, refuse_other_arguments
from leaseq.commands.additions import Options as ItemOptions
from leaseq.commands.completions import AddOptions
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.item import Item
from leaseq.jobs import envelope, job_ids
from leaseq.jobs.envelope import Envelope, Stage
from leaseq.jobs.options import Options
from leaseq.jobs.settings import Settings
from leaseq.jobs.signals import JobEvent

T = TypeVar("T")
_DURATIONS = {"delay", "expires_in", "keep"}
"""Options of a stage that are in milliseconds; `AddOptions` has them in seconds."""

R_contra = TypeVar("R_contra", contravariant=True)
S_co = TypeVar("S_co", covariant=True)


class Call(msgspec.Struct, Generic[T], frozen=True):
    """A call that can be enqueued, made by `fn.call(1, 2)`. Enqueue it with `app.enqueue_many` or `app.chain`.

    Attributes:
        function: the name of the function.
        args: the positional arguments.
        kwargs: the keyword arguments.
        options: the options of the job.
        template: the envelope, without arguments, times and later jobs.
        convert: makes what the function returned of what was kept of it; None where that is the same.
        then: the later jobs of a chain.
        derived: the id of a call that is unique or throttled, once it has one; else "".
    """

    function: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    options: Options
    template: Envelope
    convert: Callable[[Any], T] | None
    then: Sequence[Stage] = ()
    derived: str = ""

    @property
    def chosen_id(self) -> str:
        """The id, or "" for one by chance."""
        return self.derived or self.options.id or ""

    def identified(self, now: float) -> "Call[T]":
        """Return a call that is unique or throttled with its id; `now` is the time whose slot counts. Raises SerializationError."""
        length, called = self.options.throttle, (self.function, self.args, self.kwargs)
        if length is None:
            return msgspec.structs.replace(self, derived=job_ids.unique_id(*called))
        job_id = job_ids.slot_id(*called, round(length * 1000), int(now * 1000))
        return msgspec.structs.replace(self, derived=job_id)

    def item(self, settings: Settings) -> Item:
        """Return the item that carries the call. Raises SerializationError, BadIdError, BadTypeError, BadArgumentError."""
        options = self.options
        now = time.time() + settings.ahead
        due = now
        if options.delay or options.at is not None:
            due = options.due() or now + options.delay
        content = msgspec.structs.replace(
            self.template,
            args=list(self.args),
            kwargs=dict(self.kwargs),
            enqueued=round(now * 1000),
            due=round(due * 1000) if due > now else None,
            then=list(self.then),
        )
        data = envelope.write(content, settings.form, settings.serializer)
        job_id = self.derived or (os.urandom(16).hex() if options.id is None else options.id)
        return Item(data, job_id, headers=options.headers or None)

    def with_headers(self, sources: Sequence["HeaderSource"]) -> "Call[T]":
        """Return the call with the headers that these functions give it; those that it has already stay as they are."""
        given: dict[str, str] = {}
        for source in sources:
            headers: Any = source(self)
            if not isinstance(headers, Mapping):
                raise BadTypeError(
                    f"{name_of_callable(source)} gives headers to calls, and returned {type(headers).__name__} in place of a dict of strings"
                )
            given.update(headers)
        options = dataclasses.replace(self.options, headers={**given, **self.options.headers})
        return msgspec.structs.replace(self, options=options)

    def event(self, item: Item) -> JobEvent:
        """Return the signal that the call was enqueued as this item."""
        return JobEvent(
            signal="enqueued",
            id=item.id or "",
            queue=self.options.queue,
            function=self.function,
            args=tuple(self.args),
            kwargs=self.kwargs,
            headers=item.headers or {},
        )

    def stage(self, job_id: str = "") -> Stage:
        """The job for later: its time starts when it is enqueued."""
        job = msgspec.structs.replace(self.template, args=list(self.args), kwargs=dict(self.kwargs))
        return Stage(
            queue=self.options.queue,
            job=job,
            id=job_id,
            add=_named(self.options.of_item),
            headers=dict(self.options.headers),
        )


HeaderSource = Callable[[Call[Any]], Mapping[str, str]]
"""Gives headers to a call that is about to be enqueued."""


def check_source(source: Any) -> None:
    """Raise BadTypeError for what cannot give headers to a call."""
    if not callable(source):
        raise BadTypeError(f"a source of headers takes a Call; {type(source).__name__} cannot be called")
    if is_async(source):
        raise BadTypeError(
            "a source of headers is called in the call that enqueues, which may be in a thread: make it a `def` function"
        )
    refuse_generators(source, "a source of headers")
    refuse_other_arguments(source, "a source of headers", "a Call")


@dataclass(frozen=True, slots=True)
class Partial(Generic[R_contra, S_co]):
    """A call whose first argument is the result of the job before it in a chain, made by `fn.partial(2, 3)`.

    Raises BadArgumentError for a call with the option `id`, `unique`, `throttle` or `at`.

    Attributes:
        call: the call without its first argument.
    """

    call: Call[Any]

    def __post_init__(self) -> None:
        options = self.call.options
        if options.once:
            raise BadArgumentError(
                "a partial call is neither unique nor throttled, as its first argument is not known yet: make it with"
                " with_options(unique=False, throttle=None); the first job of the chain can be"
            )
        if options.id is not None or options.at is not None:
            raise BadArgumentError(
                "a partial call has neither an id, which is that of the first job and a number, nor a time; a delay counts from"
                " the end of the job before it"
            )


def listed(calls: Iterable[Call[T]]) -> list[Call[T]]:
    """The calls. Raises BadTypeError."""
    given: Any = calls
    if isinstance(given, Call) or not isinstance(given, Iterable):
        raise BadTypeError(
            f"this takes several calls, as in [fn.call(1), fn.call(2)], not {type(given).__name__}"
        )
    found = list(given)
    for each in found:
        if not isinstance(each, Call):
            raise BadTypeError(f"this takes calls, as in fn.call(1), not {type(each).__name__}")
    return found


def template_with(template: Envelope, options: Options, given: Collection[str]) -> Envelope:
    """Return the template of calls that give these options: else the worker uses the function's own."""
    members: dict[str, Any] = {"attempt": options.attempt, "description": options.description}
    if "timeout" in given:
        members["timeout"] = round((options.timeout or 0) * 1000)
    if "backoff" in given:  # a function cannot be sent
        policy = options.backoff
        members["backoff"] = members["delays"] = None
        if isinstance(policy, Backoff):
            members["backoff"] = round(policy.first * 1000), round(policy.last * 1000)
        elif isinstance(policy, Delays):
            members["delays"] = [round(secs * 1000) for secs in policy.secs]
    return msgspec.structs.replace(template, **members)


def followed_with(stage: Stage) -> AddOptions:
    """Return the options of a stage as `WorkQueue.complete` takes them."""
    given: dict[str, Any] = {
        name: int(value) / 1000 if name in _DURATIONS else value for name, value in stage.add.items()
    }
    given.pop("content_type", None)  # the item has it
    if given.pop("expires_to", None) is not None:
        given["dead_on_expiry"] = True
    return cast("AddOptions", given)


def options_of(stage: Stage) -> ItemOptions:
    """Return the options of a stage as `add` takes them."""
    return tuple(str(word) for pair in stage.add.items() for word in pair)


def _named(options: ItemOptions) -> dict[str, int | str]:
    """Return options of an item by their names; in an envelope a number is a number."""
    words = [str(word) for word in options]
    return {name: _number(word) for name, word in zip(words[::2], words[1::2], strict=True)}


def _number(word: str) -> int | str:
    return int(word) if word.removeprefix("-").isdecimal() else word
