"""Spans of the worker: children of the producer's, through the headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support.background_worker import BackgroundWorker

from leaseq import Item
from leaseq.worker import Hooks
from leaseq.worker.otel import Tracing, trace_headers

if TYPE_CHECKING:
    from support.client_flavours import ClientFlavour


def test_a_handler_runs_in_a_child_of_the_producer_s_span(flavour: ClientFlavour, url: str) -> None:
    exported = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    tracer = provider.get_tracer("test")
    queue = flavour.queue("mails", url)
    with tracer.start_as_current_span("order") as order:
        headers = trace_headers({"tenant": "7"})
        queue.add_item(Item(b"12345", id="traced", headers=headers))
    assert set(headers) == {"tenant", "traceparent"}
    queue.add_item(Item(b"", id="alone"))
    seen: list[str] = []
    completed: list[str] = []

    def handle(item: Any) -> None:
        seen.append(format(trace.get_current_span().get_span_context().trace_id, "x"))
        if item.id == "alone":
            raise ValueError("no")

    class Counting(Hooks):
        def completed(self, item: Any) -> None:
            completed.append(item.id)

    hooks = [Tracing(provider), Counting()]
    BackgroundWorker(
        flavour, queue, handle, hooks=hooks, burst=True, concurrency=1, backoff=lambda _: 3600.0
    ).result()
    assert completed == ["traced"]
    traced, alone = [span for span in exported.get_finished_spans() if span.name == "process mails"]
    context = order.get_span_context()
    assert traced.parent is not None
    assert (traced.parent.span_id, traced.context.trace_id) == (context.span_id, context.trace_id)
    assert traced.kind is trace.SpanKind.CONSUMER
    assert dict(traced.attributes or {}) == {
        "messaging.system": "leaseq",
        "messaging.operation.type": "process",
        "messaging.destination.name": "mails",
        "messaging.message.id": "traced",
        "messaging.message.body.size": 5,
        "leaseq.attempt": 1,
    }
    assert seen == [format(span.context.trace_id, "x") for span in (traced, alone)]
    assert alone.parent is None
    assert alone.status.status_code is trace.StatusCode.ERROR
    assert [event.name for event in alone.events] == ["exception"]
    provider.shutdown()
