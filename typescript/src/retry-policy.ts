// What becomes of an item whose handler failed. item-run.ts asks it.
import { encodeMilliseconds } from "./encoding.js";
import { BadArgumentError } from "./errors.js";
import { type Disposition, textOf } from "./handler.js";

/** The longest delay of an item: 10 years. */
export const MAX_DELAY_MS = 315_360_000_000;

/** Thrown by a handler: never again. The item becomes a dead letter for a person to look at. `reason` is kept as its last error. */
export class DeadLetter extends Error {
  override readonly name = "DeadLetter";

  constructor(readonly reason = "") {
    super(reason);
  }
}

/**
 * Thrown by a handler: give the item back, to be leased again after `delay` ms (default: as the worker's backoff says). `reason` is
 * kept as its last error. With `uncounted`, the attempt does not count.
 */
export class Release extends Error {
  override readonly name = "Release";
  readonly delay: number | undefined;
  readonly uncounted: boolean;

  constructor(
    readonly reason = "",
    options: { delay?: number | undefined; uncounted?: boolean | undefined } = {},
  ) {
    super(reason);
    this.delay = options.delay;
    this.uncounted = options.uncounted ?? false;
  }
}

/** As if it had never been leased. */
export const UNCOUNTED: Disposition = { uncounted: true };

/** Milliseconds until an item can be leased again, by the attempt that failed (1 for the first). */
export type Backoff = (attempt: number) => number;

/** A backoff of `first` ms, doubled with each attempt, at most `last` ms, less up to half at random. */
export function exponentialBackoff({ first = 1000, last = 300_000 } = {}): Backoff {
  return (attempt) => Math.min(last, first * 2 ** Math.min(attempt - 1, 30)) * (0.5 + Math.random() / 2);
}

/** Which failures end an item and which bring it back. */
export class RetryPolicy {
  readonly #maxAttempts: number;
  readonly #backoff: Backoff;
  readonly #deadLetterOn: readonly (new (
    ...args: never[]
  ) => unknown)[];

  constructor(
    maxAttempts: number,
    backoff: Backoff,
    deadLetterOn: readonly (new (...args: never[]) => unknown)[],
  ) {
    this.#maxAttempts = maxAttempts || Number.POSITIVE_INFINITY;
    this.#backoff = backoff;
    this.#deadLetterOn = deadLetterOn;
  }

  /** What becomes of an item whose handler threw this. Throws if the delay cannot be used. */
  judge(attempt: number, error: unknown): Disposition {
    const isVerdict = error instanceof DeadLetter || error instanceof Release;
    const text = isVerdict ? error.reason && textOf(error.reason) : textOf(error);
    const kept = text ? { error: text } : {};
    if (error instanceof Release && error.uncounted) {
      return { ...kept, ...UNCOUNTED, ...delayed(error.delay ?? 0) };
    }
    // What the handler asks for goes before a class that it is of.
    const isFinal =
      error instanceof DeadLetter || (!isVerdict && this.#deadLetterOn.some((kind) => error instanceof kind));
    if (isFinal || attempt >= this.#maxAttempts) return { ...kept, dead: true };
    const delay = error instanceof Release ? error.delay : undefined;
    return { ...kept, ...delayed(delay ?? this.#backoff(attempt)) };
  }

  /** What becomes of an item that has had all its attempts: its workers did not live to report a failure. */
  exhausted(attempt: number): Disposition | undefined {
    if (attempt <= this.#maxAttempts) return undefined;
    const error = `leased ${attempt} times, which is more than the ${this.#maxAttempts} attempts of this worker`;
    return { dead: true, error };
  }
}

/** A delay that a release takes. Throws BadArgumentError. */
export function checkDelay(delay: number, label: string): number {
  encodeMilliseconds(delay, label);
  if (delay >= 0 && delay <= MAX_DELAY_MS) return delay;
  throw new BadArgumentError(`${label} is 0 to ${MAX_DELAY_MS} ms (10 years), not ${delay}`);
}

const delayed = (delay: number): Disposition =>
  checkDelay(delay, "the delay of an item") > 0 ? { delay } : {};
