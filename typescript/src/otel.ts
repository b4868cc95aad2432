// `leaseq/otel`: spans of OpenTelemetry. The only module that needs @opentelemetry/api; no other one imports it.
import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  trace,
} from "@opentelemetry/api";
import { textOf } from "./handler.js";
import type { TracedItem, Tracing } from "./tracing.js";
import { VERSION } from "./version.js";

const GETTER: TextMapGetter<TracedItem["headers"]> = {
  keys: (headers) => [...headers.keys()],
  get: (headers, name) => headers.get(name)?.toString(),
};

/**
 * For `new Client(url, { tracing })`. What the client adds inside a span carries it in its headers, `traceparent` by default. Each
 * handler of its workers runs in a span `process QUEUE` of kind consumer, whose parent is the span that the headers carry. What the
 * handler throws is recorded in it. Provider, propagator and context manager are the global ones.
 */
export const tracing: Tracing = {
  headers() {
    const carrier: Record<string, string> = {};
    propagation.inject(context.active(), carrier);
    return carrier;
  },

  start(item) {
    // The span in which the worker was started is not the parent of its handlers.
    const parent = propagation.extract(ROOT_CONTEXT, item.headers, GETTER);
    const attributes = {
      "messaging.system": "leaseq",
      "messaging.operation.type": "process",
      "messaging.destination.name": item.queue.name,
      "messaging.message.id": item.id.toString(),
      "messaging.message.body.size": item.data.length,
      "leaseq.attempt": item.attempt,
    };
    const options = { kind: SpanKind.CONSUMER, attributes };
    const span = trace.getTracer("leaseq", VERSION).startSpan(`process ${item.queue.name}`, options, parent);
    const within = trace.setSpan(parent, span);
    return {
      run: (call) => context.with(within, call),
      end(failure) {
        if (failure) {
          const { error } = failure;
          span.recordException(error instanceof Error ? error : textOf(error));
          span.setStatus({ code: SpanStatusCode.ERROR, message: textOf(error) });
        }
        span.end();
      },
    };
  },
};
