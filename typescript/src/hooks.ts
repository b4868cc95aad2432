// What a worker reports: hooks for programs, a log for people. worker.ts and item-run.ts call them.
import type { LeasedItem } from "./queue.js";

/**
 * Called as a worker goes on; all are optional. Keep them short. What a hook throws or rejects with is logged and changes nothing.
 */
export interface Hooks {
  /** These items were leased, by one call. */
  leased?(items: readonly LeasedItem[]): unknown;
  /** The handler of an item starts. */
  started?(item: LeasedItem): unknown;
  /** It returned, or failed with `error`, after `ms`. */
  ended?(item: LeasedItem, ms: number, error: unknown): unknown;
  /** The item is completed. */
  completed?(item: LeasedItem): unknown;
  /** It went back, to be leased again after `delay` ms. `error` is undefined if its handler did not fail. */
  released?(item: LeasedItem, delay: number, error: string | undefined): unknown;
  /** It died: by a verdict of the worker, or because its own attempts are used up. */
  deadLettered?(item: LeasedItem, error: string | undefined): unknown;
  /** Another worker has it, or it was removed or finished by another. Called while the handler runs if it is known then. */
  lost?(item: LeasedItem): unknown;
  /** Its handler reported how far it is. */
  progress?(item: LeasedItem, value: unknown): unknown;
  /** Calls to the server fail from now on; the worker goes on trying. */
  serverAway?(error: unknown): unknown;
  /** Calls work again, after `ms`. */
  serverBack?(ms: number): unknown;
}

/** Where a worker writes its few lines. `console` is one. */
export interface Logger {
  info(text: string): unknown;
  warn(text: string, error?: unknown): unknown;
  error(text: string, error?: unknown): unknown;
}

/** Lines on stderr. */
export const STDERR: Logger = {
  info: (text) => console.error(text),
  warn: (text, ...error) => console.error(text, ...error),
  error: (text, ...error) => console.error(text, ...error),
};

/** Hooks and a logger whose failures do not reach the worker. */
export class Reporter {
  readonly #hooks: Hooks;
  readonly #logger: Logger;

  constructor(hooks: Hooks, logger: Logger) {
    this.#hooks = hooks;
    this.#logger = logger;
  }

  /** Whether that hook is there. */
  wants(name: keyof Hooks): boolean {
    return this.#hooks[name] !== undefined;
  }

  /** Calls one hook. */
  emit<Name extends keyof Hooks>(name: Name, ...args: Parameters<NonNullable<Hooks[Name]>>): void {
    const hook = this.#hooks[name] as ((...args: unknown[]) => unknown) | undefined;
    if (hook) this.#safely(() => hook.apply(this.#hooks, args), `the hook ${name} failed`);
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
