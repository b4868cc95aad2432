// How the handler of an item ended (LQ-WORK-1, LQ-WORK-2). item-run.ts calls it.
import type { FollowUp } from "./requests.js";
import { MAX_ERROR_BYTES } from "./scripts.generated.js";

/** How to end an item whose handler returned, or what it threw. */
export type Ending = Returned | { readonly error: unknown; readonly disposition?: Disposition | undefined };

interface Returned {
  readonly result?: string | Uint8Array;
  readonly followUps?: readonly FollowUp[];
}

/** How an item goes back: after a delay, or dead; with the text that is kept as its last error. */
export interface Disposition {
  readonly delay?: number;
  readonly dead?: true;
  readonly uncounted?: true;
  readonly error?: string;
}

/** Returned by a handler: complete the item with this result, and add these items in the same step (LQ-HANDOFF-2). */
export class CompleteWith {
  constructor(
    readonly followUps: readonly FollowUp[],
    readonly result?: string | Uint8Array,
  ) {}
}

/** Thrown by a handler that says what becomes of the item. The worker logs and reports `cause`. */
export class FailedAttempt extends Error {
  constructor(
    readonly disposition: Disposition,
    override readonly cause: unknown,
  ) {
    super();
  }
}

/** The second argument of a handler. */
export interface HandlerContext {
  /**
   * Aborted when the work is to end: pass it to `fetch` and the like. Its `reason` is a `Cancellation`: the lease is "lost", the time
   * limit is over ("late"), or the grace time behind a "stop" is.
   */
  readonly signal: AbortSignal;
  /** Aborted as soon as the worker is stopped: a long handler can save what it has, and throw `Release`. */
  readonly stopping: AbortSignal;
  /** Reports the progress of the handler to the hook `progress`. */
  progress(value: unknown): void;
}

/** Runs a handler. Never throws. `keepsResult`: what it returns is kept, and what is neither text nor bytes becomes JSON. */
export async function runHandler<Item>(
  handler: (item: Item, context: HandlerContext) => unknown,
  item: Item,
  context: HandlerContext,
  keepsResult: boolean,
): Promise<Ending> {
  try {
    const returned = await handler(item, context);
    if (returned instanceof CompleteWith) {
      const { followUps, result } = returned;
      return result === undefined ? { followUps } : { followUps, result };
    }
    if (isUnfinished(returned)) {
      return { error: new TypeError("the handler returned a generator or promises that were never awaited") };
    }
    return keepsResult && returned !== undefined ? { result: resultOf(returned) } : {};
  } catch (error) {
    return error instanceof FailedAttempt
      ? { error: error.cause, disposition: error.disposition }
      : { error };
  }
}

/** What is kept. Throws TypeError. */
function resultOf(returned: unknown): string | Uint8Array {
  if (typeof returned === "string" || returned instanceof Uint8Array) return returned;
  const json = JSON.stringify(returned);
  if (json === undefined) throw new TypeError(`a result is text, bytes or JSON, not ${typeof returned}`);
  return json;
}

/** Whether work is left in what a handler returned: a generator, which has not started, or promises in a collection. */
export function isUnfinished(returned: unknown): boolean {
  const parts = partsOf(returned);
  if (parts) return parts.some((part) => hasMethod(part, "then"));
  return hasMethod(returned, "next") && hasMethod(returned, "return");
}

/** What is in a list, a set, a map or a plain object; nothing of an object of a class. */
function partsOf(value: unknown): unknown[] | undefined {
  if (Array.isArray(value)) return value.flat();
  if (value instanceof Set || value instanceof Map) return [...value.values()];
  const isPlain =
    typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? Object.values(value) : undefined;
}

const hasMethod = (value: unknown, name: string): boolean =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as Record<string, unknown>)[name] === "function";

/** The text of anything that was thrown, for the item's last error: neither empty nor longer than is kept. */
export function textOf(error: unknown): string {
  try {
    const text = String(error).slice(0, MAX_ERROR_BYTES).toWellFormed();
    if (text) return text;
  } catch {
    // it has no text
  }
  return `the handler threw a value of type ${typeof error} without a text`;
}
