// What a worker reports: hooks for programs, a log for people, spans. worker.ts and item-run.ts call them.
import type { Logger } from "./logger.js";
import type { LeasedItem } from "./queue.js";
import type { HandlerSpan, Tracing } from "./tracing.js";

/**
 * Functions that a worker calls, for metrics, traces and logs. All are optional. Keep them short. If a hook throws or rejects, that
 * is logged and changes nothing.
 */
export interface Hooks {
  /** Called when one call has leased these items. */
  leased?(items: readonly LeasedItem[]): unknown;
  /** Called when the handler of an item starts. */
  started?(item: LeasedItem): unknown;
  /** Called when the handler has returned, or failed with `error`, after `ms`. */
  ended?(item: LeasedItem, ms: number, error: unknown): unknown;
  /** Called when the item is completed. */
  completed?(item: LeasedItem): unknown;
  /** Called when the item was given back, to be leased again after `delay` ms. `error` is undefined if its handler did not fail. */
  released?(item: LeasedItem, delay: number, error: string | undefined): unknown;
  /** Called when the item became a dead letter: the worker decided it, or the item's attempts are used up. */
  deadLettered?(item: LeasedItem, error: string | undefined): unknown;
  /** Called when another worker has leased or finished the item, or it was removed; while the handler runs, if it is known then. */
  lost?(item: LeasedItem): unknown;
  /** Called when the handler reported its progress. */
  progress?(item: LeasedItem, value: unknown): unknown;
  /** Called when calls to the server start to fail. The worker goes on trying. */
  serverAway?(error: unknown): unknown;
  /** Called when calls work again, after `ms`. */
  serverBack?(ms: number): unknown;
}

/** The names of the hooks. */
export const HOOK_NAMES: Readonly<Record<keyof Hooks, true>> = {
  leased: true,
  started: true,
  ended: true,
  completed: true,
  released: true,
  deadLettered: true,
  lost: true,
  progress: true,
  serverAway: true,
  serverBack: true,
};

/** Hooks, a logger and spans whose failures do not reach the worker. */
export class Reporter {
  readonly #hooks: Hooks;
  readonly #logger: Logger;
  readonly #tracing: Tracing | undefined;

  constructor(hooks: Hooks, logger: Logger, tracing: Tracing | undefined) {
    this.#hooks = hooks;
    this.#logger = logger;
    this.#tracing = tracing;
  }

  /** Calls one hook. */
  emit<Name extends keyof Hooks>(name: Name, ...args: Parameters<NonNullable<Hooks[Name]>>): void {
    const hook = this.#hooks[name] as ((...args: unknown[]) => unknown) | undefined;
    if (hook) this.#safely(() => hook.apply(this.#hooks, args), `the hook ${name} failed`);
  }

  /** Starts the span of a handler. */
  startSpan(item: LeasedItem): HandlerSpan | undefined {
    let span: HandlerSpan | undefined;
    this.#safely(() => {
      span = this.#tracing?.start(item);
    }, "a span did not start");
    return span;
  }

  /** Ends it. */
  endSpan(span: HandlerSpan, failure: { readonly error: unknown } | undefined): void {
    this.#safely(() => span.end(failure), "a span did not end");
  }

  /** Writes a line. */
  log(level: keyof Logger, text: string, ...error: unknown[]): void {
    this.#safely(() => this.#logger[level](`leaseq worker: ${text}`, ...(error as [])));
  }

  #safely(call: () => unknown, whatFailed?: string): void {
    const report = (error: unknown) => {
      if (whatFailed) this.log("error", whatFailed, error);
    };
    try {
      const returned = call();
      if (returned instanceof Promise) returned.catch(report);
    } catch (error) {
      report(error);
    }
  }
}

/** The name of an item in a line. */
export const nameOf = (item: LeasedItem): string =>
  `item ${JSON.stringify(item.id.toString())} of ${item.queue.name}, attempt ${item.attempt},`;
