// How a worker works, checked. worker.ts uses it.
import { encodeMilliseconds } from "./encoding.js";
import { BadArgumentError } from "./errors.js";
import { HOOK_NAMES, type Hooks } from "./hooks.js";
import { refuseUnknown } from "./option-names.js";
import { type Backoff, checkDelay, exponentialBackoff, RetryPolicy } from "./retry-policy.js";
import { MAX_LEASE_MS } from "./scripts.generated.js";

/** Node fires a timer with a longer delay at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The options of a worker. Times are milliseconds. */
export interface WorkerOptions {
  /** The time of each lease. It is extended while the handler runs. Default: 30000. */
  duration?: number | undefined;
  /** The most items to work on at a time, of all queues together. Default: 1. */
  concurrency?: number | undefined;
  /** Each lease starts with another queue, so that a queue that is never empty does not block the others. Default: false. */
  fair?: boolean | undefined;
  /** The time that a handler may run. Then its `signal` is aborted and the attempt has failed. Default: without limit. */
  timeLimit?: number | undefined;
  /** An item whose handler failed at this attempt becomes a dead letter; 0 is no limit. Default: 25. */
  maxAttempts?: number | undefined;
  /**
   * The delay before the next attempt, as a constant or a function of the attempt that failed. Default: `exponentialBackoff()`, from 1 s, doubled up
   * to 5 min.
   */
  backoff?: Backoff | number | undefined;
  /** Errors that make an item a dead letter at once, as `DeadLetter` does. */
  deadLetterOn?: readonly (new (...args: never[]) => unknown)[] | undefined;
  /**
   * The time that handlers may run on after `stop`; Infinity: without limit. Then their `signal` is aborted and their items are released,
   * uncounted. Default: 25000.
   */
  grace?: number | undefined;
  /** Functions that the worker calls as the work goes on. */
  hooks?: Hooks | undefined;
  /** Whether it reports its presence and the items it holds to the server (page 02.9). Default: true. */
  announce?: boolean | undefined;
}

const OPTION_NAMES: Readonly<Record<keyof WorkerOptions, true>> = {
  duration: true,
  concurrency: true,
  fair: true,
  timeLimit: true,
  maxAttempts: true,
  backoff: true,
  deadLetterOn: true,
  grace: true,
  hooks: true,
  announce: true,
};

/** The options of a worker, with the defaults. */
export interface Settings {
  readonly duration: number;
  readonly concurrency: number;
  readonly fair: boolean;
  readonly timeLimit: number | undefined;
  readonly grace: number;
  readonly policy: RetryPolicy;
  readonly hooks: Hooks;
  readonly announce: boolean;
  /** How many of its first queues stay the first ones if it is fair. Default: 0. */
  readonly urgentQueues?: number;
  /** Default: a new one. */
  readonly id?: string;
  /** Called before the first lease; again if the server is away. */
  readonly prepare?: () => Promise<void>;
}

/** Checks options. Throws BadArgumentError. */
export function toSettings(options: WorkerOptions): Settings {
  refuseUnknown(options, OPTION_NAMES, "a worker has no option");
  const { duration = 30_000, concurrency = 1, timeLimit, grace = 25_000, maxAttempts = 25 } = options;
  const { backoff = exponentialBackoff(), deadLetterOn = [], hooks = {} } = options;
  checkHooks(hooks);
  if (!(Number(encodeMilliseconds(duration, "duration")) >= 1 && duration <= MAX_LEASE_MS)) {
    throw new BadArgumentError(`duration is 1 to ${MAX_LEASE_MS} ms, not ${duration}`);
  }
  if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
    throw new BadArgumentError(`concurrency is a number from 1 on, not ${concurrency}`);
  }
  if (timeLimit !== undefined && !(timeLimit > 0 && timeLimit <= MAX_TIMER_MS)) {
    throw new BadArgumentError(
      `timeLimit is a number of milliseconds from 1 to ${MAX_TIMER_MS}, not ${timeLimit}`,
    );
  }
  if (!Number.isSafeInteger(maxAttempts) || maxAttempts < 0) {
    throw new BadArgumentError(`maxAttempts is a number from 0 on, 0 is no limit, not ${maxAttempts}`);
  }
  if (typeof backoff === "number") checkDelay(backoff, "backoff");
  else if (typeof backoff !== "function") throw new BadArgumentError("backoff is a number or a function");
  return {
    duration,
    concurrency,
    fair: options.fair ?? false,
    timeLimit,
    grace: checkGrace(grace, "grace"),
    policy: new RetryPolicy(maxAttempts, typeof backoff === "number" ? () => backoff : backoff, deadLetterOn),
    hooks,
    announce: options.announce ?? true,
  };
}

/** Refuses a function that no hook is named after. An object of a class may have other members. */
function checkHooks(hooks: Hooks): void {
  if (Object.getPrototypeOf(hooks) !== Object.prototype) return;
  const functions = Object.entries(hooks).filter(([, value]) => typeof value === "function");
  refuseUnknown(Object.fromEntries(functions), HOOK_NAMES, "a worker has no hook");
}

/** A time for handlers to end in; Infinity if it is too long for a timer. Throws BadArgumentError. */
export function checkGrace(grace: number, label: string): number {
  if (typeof grace === "number" && grace >= 0)
    return grace <= MAX_TIMER_MS ? grace : Number.POSITIVE_INFINITY;
  throw new BadArgumentError(`${label} is a number of milliseconds from 0 on, not ${String(grace)}`);
}
