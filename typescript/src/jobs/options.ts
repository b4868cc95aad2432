// The options of a job: of the App, of its function, and of each call. Durations are milliseconds.
import { encodeMilliseconds } from "../encoding.js";
import { BadArgumentError } from "../errors.js";
import { QueueKeys } from "../keys.js";
import { refuseUnknown } from "../option-names.js";
import type { NewItem } from "../requests.js";
import type { Backoff } from "../retry-policy.js";
import { type CallBackoff, DEFAULT_BACKOFF, type Policy, toPolicy } from "./backoff.js";

const DAY_MS = 86_400_000;
const MAX_ATTEMPTS = 65_534;
/** Node fires a timer with a longer delay at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The options of a call; a function can set them for all its calls. */
export interface CallOptions {
  /** While a job with this id is in its queue, a second one is not enqueued. Default: a random id. */
  id?: string | undefined;
  /**
   * Makes the id of the function and its arguments, as JSON: while a job with the same ones is in its queue, or its result is kept, a
   * second one is not enqueued. Default: false. Not with `id` or `throttle`.
   */
  unique?: boolean | undefined;
  /**
   * The length of a slot: of jobs with the same function and arguments, one is enqueued in each slot, by the server's clock. Default:
   * 0, as often as it is enqueued. Not with `id` or `unique`.
   */
  throttle?: number | undefined;
  /** The queue in which it waits. Default: that of the App. */
  queue?: string | undefined;
  /** -7 to 7, higher first. Default: 0. */
  priority?: number | undefined;
  /** The time before it can run. Default: 0. */
  delay?: number | undefined;
  /** The time from which it can run, in place of `delay`: a Date, or milliseconds since 1970. */
  at?: Date | number | undefined;
  /** The time after it was due in which a worker must start it; otherwise it is dead; Infinity: never. Default: a day. */
  expires?: number | undefined;
  /** Whether a job that expires is dead. If false, it is deleted, and its id is free. Default: true. */
  deadOnExpiry?: boolean | undefined;
  /** The time that one attempt may take; Infinity: without limit. Default: 300000. */
  timeLimit?: number | undefined;
  /** The number of attempts after the first; Infinity: without limit. Default: 4. */
  retries?: number | undefined;
  /**
   * The delay between attempts: a number, an array with one for each (the last one repeats), or `{ first, last }`, doubled each time,
   * less up to half at random. Default: `{ first: 1000, last: 300000 }`.
   */
  backoff?: CallBackoff | undefined;
  /** The time for which the result or the failure is kept; 0: not at all. Default: a day. */
  keep?: number | undefined;
  /** A text for people. Default: the call. */
  description?: string | undefined;
  /** Headers for other programs, at most 16. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** The number of the first attempt; more than 1 if earlier attempts, made elsewhere, count. Default: 1. */
  attempt?: number | undefined;
}

/** The options of a job, with the defaults. */
export interface Options {
  readonly id: string | undefined;
  readonly unique: boolean;
  readonly throttle: number;
  readonly queue: string;
  readonly priority: number;
  readonly delay: number;
  readonly at: number | undefined;
  readonly expires: number;
  readonly deadOnExpiry: boolean;
  readonly timeLimit: number;
  readonly retries: number;
  readonly backoff: Policy;
  readonly keep: number;
  readonly description: string | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly attempt: number;
}

/** The options of an App for which nothing is set. */
export const DEFAULTS: Options = {
  id: undefined,
  unique: false,
  throttle: 0,
  queue: "default",
  priority: 0,
  delay: 0,
  at: undefined,
  expires: DAY_MS,
  deadOnExpiry: true,
  timeLimit: 300_000,
  retries: 4,
  backoff: DEFAULT_BACKOFF,
  keep: DAY_MS,
  description: undefined,
  headers: undefined,
  attempt: 1,
};

/** The defaults with what is given. Throws BadArgumentError. */
export function withOptions(
  defaults: Options,
  given: Omit<CallOptions, "backoff"> & { backoff?: CallBackoff | Backoff | undefined },
): Options {
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  if (set.length === 0) return defaults;
  refuseUnknown(Object.fromEntries(set), DEFAULTS, "a job has no option");
  if (given.at !== undefined && given.delay) {
    throw new BadArgumentError("a job has a delay or a time at which it is due, not both");
  }
  const { at, backoff, ...plain } = Object.fromEntries(set) as typeof given;
  const options: Options = {
    ...defaults,
    ...(plain as Partial<Options>),
    ...(at === undefined ? {} : { at: Number(at), delay: 0 }),
    ...(at === undefined && given.delay ? { at: undefined } : {}),
    backoff: backoff === undefined ? defaults.backoff : toPolicy(backoff),
  };
  check(options);
  return options;
}

function check(options: Options): void {
  new QueueKeys(options.queue);
  checkId(options);
  for (const name of ["delay", "keep"] as const) checkDuration(options[name], name, 0);
  for (const name of ["expires", "timeLimit"] as const) {
    if (options[name] !== Number.POSITIVE_INFINITY) checkDuration(options[name], name, 1);
  }
  if (options.at !== undefined) encodeMilliseconds(options.at, "at");
  const { retries, attempt } = options;
  const isLimited = retries !== Number.POSITIVE_INFINITY;
  if (isLimited && !(Number.isInteger(retries) && retries >= 0 && retries < MAX_ATTEMPTS)) {
    throw new BadArgumentError(`retries is 0 to ${MAX_ATTEMPTS - 1}, or Infinity, not ${retries}`);
  }
  if (!Number.isSafeInteger(attempt) || attempt < 1 || attempt > retries + 1) {
    throw new BadArgumentError(
      `attempt is the number of the first attempt, 1 to ${retries + 1}, not ${attempt}`,
    );
  }
  if (options.description !== undefined && typeof options.description !== "string") {
    throw new BadArgumentError(`a description is text, not ${typeof options.description}`);
  }
}

function checkId({ id, unique, throttle }: Options): void {
  if (typeof unique !== "boolean") {
    throw new BadArgumentError(`unique is true or false, not ${JSON.stringify(unique)}`);
  }
  checkDuration(throttle, "throttle", throttle === 0 ? 0 : 1);
  if (unique && throttle !== 0) {
    throw new BadArgumentError(
      "a job is unique or throttled, not both: give throttle: 0 to a unique job, unique: false to a throttled one",
    );
  }
  if (id !== undefined && (unique || throttle !== 0)) {
    throw new BadArgumentError(
      "the id of a job that is unique or throttled is made of its arguments: leave out id, or give unique: false and throttle: 0 with it",
    );
  }
}

function checkDuration(value: number, name: string, least: number): void {
  if (Number(encodeMilliseconds(value, name)) < least) {
    throw new BadArgumentError(`${name} is a number of milliseconds from ${least} on, not ${value}`);
  }
}

/** The limit of an attempt as a timer takes it: undefined is without limit. */
export const timerOf = (milliseconds: number): number | undefined =>
  milliseconds > 0 && milliseconds <= MAX_TIMER_MS ? milliseconds : undefined;

/** Options of `add`. `now`: the server's time in ms; needed if `needsServerTime`. */
export function itemOptions(options: Options, now = 0): Omit<NewItem, "id" | "data"> {
  const { at, delay, priority, expires, deadOnExpiry, keep, headers } = options;
  const wait = at === undefined ? delay : Math.max(0, at - now);
  const isLimited = expires !== Number.POSITIVE_INFINITY;
  return {
    delay: delay || undefined,
    notBefore: at,
    priority: priority || undefined,
    maxAttempts: maxAttempts(options),
    expiresIn: isLimited ? wait + expires : undefined,
    expiresTo: isLimited && deadOnExpiry ? "dead" : undefined,
    keep: keep || undefined,
    headers,
  };
}

/** Whether the expiry of the item depends on the server's time. */
export const needsServerTime = ({ at, expires }: Options): boolean =>
  at !== undefined && expires !== Number.POSITIVE_INFINITY;

/** Whether the id of the job is made of its arguments. */
export const isOnce = ({ unique, throttle }: Options): boolean => unique || throttle !== 0;

/** The attempts of the item: an attempt before it counts (spec/jobs.md, The item). */
const maxAttempts = ({ retries, attempt }: Options): number =>
  retries === Number.POSITIVE_INFINITY ? 0 : retries + 2 - attempt;

const STAGE_NAMES: Readonly<Record<string, Exclude<keyof NewItem, "id" | "data">>> = {
  delay: "delay",
  priority: "priority",
  max_attempts: "maxAttempts",
  expires_in: "expiresIn",
  expires_to: "expiresTo",
  keep: "keep",
  content_type: "contentType",
};

/** The options of a stage: by their names in the protocol. */
export function stageOptions(options: Options): Record<string, number | string> {
  const item = itemOptions(options);
  const found: Record<string, number | string> = {};
  for (const [name, option] of Object.entries(STAGE_NAMES)) {
    const value = item[option];
    if (value !== undefined) found[name] = typeof value === "number" ? Math.round(value) : String(value);
  }
  return found;
}

/** Options of `add`, by the options of a stage. Throws BadArgumentError for an option that this version does not know. */
export function optionsOfStage(add: Readonly<Record<string, number | string>>): Omit<NewItem, "id" | "data"> {
  return Object.fromEntries(
    Object.entries(add).map(([name, value]) => {
      const known = STAGE_NAMES[name];
      if (!known) throw new BadArgumentError(`an item has no option ${JSON.stringify(name)}`);
      return [known, value];
    }),
  );
}
