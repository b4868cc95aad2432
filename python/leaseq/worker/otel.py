"""OpenTelemetry spans that join producer and worker through an item's headers. Needs the extra `otel`.

Where an item is added, inside a span: `Item(b"...", headers=trace_headers())`. Where it is worked on:
`Worker(queue, handle, hooks=Tracing())`; the handler runs in a child of that span.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager

try:
    from opentelemetry import propagate, trace
except ModuleNotFoundError as error:
    from leaseq import extras

    raise extras.missing("otel", "leaseq.worker.otel", error) from error

from leaseq.item import LeasedItemBase
from leaseq.worker.hooks import Hooks

__all__ = ["Tracing", "trace_headers"]


def trace_headers(headers: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return these headers plus those that carry the current span (`traceparent` by default), for `Item(headers=...)`."""
    carrier = dict(headers or {})
    propagate.inject(carrier)
    return carrier


class Tracing(Hooks):
    """Hooks that run each handler in a span `process QUEUE` of kind consumer, a child of the span that the headers carry.

    An exception of the handler is recorded in the span. `tracer_provider` is the global one by default. Needs the extra
    `otel`.
    """

    def __init__(self, tracer_provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("leaseq.worker", tracer_provider=tracer_provider)

    def around(self, item: LeasedItemBase) -> AbstractContextManager[trace.Span]:
        """Return the span in which the handler of an item runs."""
        queue = getattr(item, "queue", None)
        name = getattr(queue, "name", "")
        return self._tracer.start_as_current_span(
            f"process {name}",
            context=propagate.extract(item.headers),
            kind=trace.SpanKind.CONSUMER,
            attributes={
                "messaging.system": "leaseq",
                "messaging.operation.type": "process",
                "messaging.destination.name": name,
                "messaging.message.id": item.id,
                "messaging.message.body.size": len(item.data),
                "leaseq.attempt": item.attempt,
            },
        )
