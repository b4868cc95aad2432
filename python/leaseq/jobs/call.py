"""A call of a function, ready to be enqueued."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from leaseq.item import Item
from leaseq.jobs import envelope
from leaseq.jobs.envelope import Envelope
from leaseq.jobs.options import Options
from leaseq.jobs.serializer import Format, Serializer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A function's name, its arguments, and what is said of the job. Enqueue it with `app.enqueue_many`.

    `given` are the options that this call gave itself: of `timeout` and `backoff` the worker knows the function's own.
    """

    function: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    options: Options
    given: frozenset[str]
    convert: Callable[[Any], T]

    def item(self, form: Format, serializer: Serializer | None) -> Item:
        """The item that carries it. Raises SerializationError, BadIdError, BadTypeError, BadArgumentError."""
        options = self.options
        now = time.time()
        due = options.due() or now + options.delay
        content = Envelope(
            v=envelope.VERSION,
            function=self.function,
            args=list(self.args),
            kwargs=dict(self.kwargs),
            enqueued=round(now * 1000),
            due=round(due * 1000) if due > now else None,
            attempt=options.attempt,
            timeout=round((options.timeout or 0) * 1000) if "timeout" in self.given else None,
            backoff=_milliseconds(options) if "backoff" in self.given else None,
            description=options.description,
        )
        data = envelope.write(content, form, serializer)
        return Item(data, uuid.uuid4().hex if options.id is None else options.id, headers=options.headers)


def _milliseconds(options: Options) -> tuple[int, int]:
    return round(options.backoff.first * 1000), round(options.backoff.last * 1000)
