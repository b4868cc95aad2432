"""A call of a function, ready to be enqueued."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from leaseq.item import Item
from leaseq.jobs import envelope
from leaseq.jobs.envelope import Envelope, Stage
from leaseq.jobs.options import Options
from leaseq.jobs.serializer import Format, Serializer
from leaseq.jobs.stage import named

T = TypeVar("T")


class Call(msgspec.Struct, Generic[T], frozen=True):
    """A function's name, its arguments, and what is said of the job. Enqueue it with `app.enqueue_many`.

    Attributes:
        function: its name among jobs.
        args: its arguments.
        kwargs: by name.
        options: what is said of the job.
        given: the options that this call gave itself: of `timeout` and `backoff` the worker knows the function's own.
        convert: makes what the function returned of what was kept of it; None where that is the same.
        then: the jobs behind it, in a chain.
    """

    function: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    options: Options
    given: frozenset[str]
    convert: Callable[[Any], T] | None
    then: Sequence[Stage] = ()

    def item(self, form: Format, serializer: Serializer | None) -> Item:
        """The item that carries it. Raises SerializationError, BadIdError, BadTypeError, BadArgumentError."""
        options = self.options
        now = time.time()
        content = self.envelope()
        content.enqueued = round(now * 1000)
        if options.delay or options.at is not None:
            due = options.due() or now + options.delay
            content.due = round(due * 1000) if due > now else None
        data = envelope.write(content, form, serializer)
        job_id = os.urandom(16).hex() if options.id is None else options.id
        return Item(data, job_id, headers=options.headers or None)

    def envelope(self) -> Envelope:
        """What the item says, but for the time."""
        options = self.options
        return Envelope(
            v=envelope.VERSION,
            function=self.function,
            args=list(self.args),
            kwargs=dict(self.kwargs),
            attempt=options.attempt,
            timeout=round((options.timeout or 0) * 1000) if "timeout" in self.given else None,
            backoff=_milliseconds(options) if "backoff" in self.given else None,
            description=options.description,
            then=list(self.then),
        )

    def stage(self, job_id: str = "") -> Stage:
        """The job for later: it begins, and its time runs, when it is enqueued."""
        return Stage(
            queue=self.options.queue,
            job=self.envelope(),
            id=job_id,
            add=named(self.options.of_item),
            headers=dict(self.options.headers),
        )


def _milliseconds(options: Options) -> tuple[int, int]:
    return round(options.backoff.first * 1000), round(options.backoff.last * 1000)
