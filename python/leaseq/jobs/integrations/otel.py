"""OpenTelemetry: one trace from the call that enqueues a job to its end. Needs the extra `otel`."""

import contextlib
from collections.abc import Iterator, Mapping

try:
    from opentelemetry import propagate, trace
except ModuleNotFoundError as error:
    from leaseq import extras

    raise extras.missing("otel", "leaseq.jobs.integrations.otel", error) from error

from leaseq.jobs.aio import App as AsyncApp
from leaseq.jobs.app import App
from leaseq.jobs.call import Call
from leaseq.jobs.context import Context
from leaseq.worker.otel import trace_headers

__all__ = ["install"]

_FLUSH_MS = 2000


def install(app: App | AsyncApp, tracer_provider: trace.TracerProvider | None = None) -> None:
    """Make OpenTelemetry spans of the jobs of an App. Needs the extra `otel`.

    Enqueueing a job makes a span `create QUEUE` of kind producer, inside the current span. Each attempt runs in a span
    `process QUEUE` of kind consumer, a child of that span; an exception of the attempt is recorded in it. If the call has
    headers with a span of another program, that one is the parent. `tracer_provider` is the global one by default.
    """
    tracer = trace.get_tracer("leaseq.jobs", tracer_provider=tracer_provider)

    @app.headers
    def create(call: Call[object]) -> Mapping[str, str]:
        attributes = _attributes("create", call.options.queue, call.function, call.options.id)
        with tracer.start_as_current_span(
            f"create {call.options.queue}", kind=trace.SpanKind.PRODUCER, attributes=attributes
        ):
            return trace_headers()

    @app.middleware
    @contextlib.contextmanager
    def process(ctx: Context) -> Iterator[None]:
        attributes = _attributes("process", ctx.queue, ctx.function, ctx.id)
        with tracer.start_as_current_span(
            f"process {ctx.queue}",
            context=propagate.extract(ctx.headers),
            kind=trace.SpanKind.CONSUMER,
            attributes={**attributes, "leaseq.attempt": ctx.attempt},
        ):
            yield

    @app.on_fork_shutdown
    def flush() -> None:
        """Export the spans of a process that ends with its job."""
        force = getattr(tracer_provider or trace.get_tracer_provider(), "force_flush", None)
        if force is not None:
            force(_FLUSH_MS)


def _attributes(kind: str, queue: str, function: str, job_id: str | None) -> dict[str, str]:
    """Return the attributes of a span, named as OpenTelemetry names those of messaging systems."""
    given = {
        "messaging.system": "leaseq",
        "messaging.operation.type": kind,
        "messaging.destination.name": queue,
        "leaseq.function": function,
    }
    return given if job_id is None else {**given, "messaging.message.id": job_id}
