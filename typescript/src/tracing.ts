// Traces: what joins producers and workers by spans. otel.ts does it with OpenTelemetry; queue.ts and item-run.ts use it.
import type { AddOptions } from "./codecs.generated.js";
import { toPairs } from "./encoding.js";

/** Joins producers and workers by spans, through the headers of items. `leaseq/otel` has one. */
export interface Tracing {
  /** Returns the headers that carry the current span; none if there is none. */
  headers(): Readonly<Record<string, string>>;
  /** Starts the span of a handler. Its parent is the span that the headers of the item carry. */
  start(item: TracedItem): HandlerSpan;
}

/** What a span knows of an item. */
export interface TracedItem {
  readonly id: Buffer;
  readonly data: Buffer;
  readonly attempt: number;
  readonly headers: ReadonlyMap<string, Buffer>;
  readonly queue: { readonly name: string };
}

/** The span of a handler. */
export interface HandlerSpan {
  /** Calls a function with this span as the current one. */
  run<Result>(call: () => Result): Result;
  /** Ends it. `failure`: what the handler threw. */
  end(failure?: { readonly error: unknown }): void;
}

/** An item with the headers that carry the current span. Given headers are not replaced: an item that carries a span keeps it. */
export function withSpan<Item extends AddOptions>(item: Item, tracing: Tracing | undefined): Item {
  const carrying = Object.entries(tracing?.headers() ?? {});
  if (carrying.length === 0) return item;
  const own = toPairs(item.headers, "headers");
  const isCarried = carrying.some(([name]) => own.some(([known]) => known === name));
  return { ...item, headers: isCarried ? own : [...own, ...carrying] };
}
