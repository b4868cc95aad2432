// How long a job waits between two attempts. options.ts checks it, call.ts writes it, job-run.ts asks it.
import { BadArgumentError } from "../errors.js";
import { refuseUnknown } from "../option-names.js";
import { type Backoff, checkDelay, exponentialBackoff } from "../retry-policy.js";
import type { Envelope } from "./envelope.js";

/** The first and the longest delay, doubled each time, less up to half at random. */
export interface GrowingDelay {
  readonly first?: number | undefined;
  readonly last?: number | undefined;
}

/** A growing delay, a fixed one, or one for each failed attempt: the last one repeats. Milliseconds. */
export type CallBackoff = GrowingDelay | number | readonly number[];

/** A backoff that was checked: first and longest delay, delays, or a function of the attempt that failed. */
export type Policy = readonly number[] | { readonly first: number; readonly last: number } | Backoff;

export const DEFAULT_BACKOFF = { first: 1000, last: 300_000 };

/** Throws BadArgumentError. */
export function toPolicy(given: CallBackoff | Backoff): Policy {
  if (typeof given === "function") return given;
  if (typeof given === "number") return [checkDelay(given, "backoff")];
  if (Array.isArray(given)) {
    if (given.length === 0)
      throw new BadArgumentError("backoff has no delay: the last one repeats, and there is none");
    return given.map((delay: number) => checkDelay(delay, "a delay of backoff"));
  }
  refuseUnknown(given, DEFAULT_BACKOFF, "backoff has no member");
  const { first = DEFAULT_BACKOFF.first, last = DEFAULT_BACKOFF.last } = given as GrowingDelay;
  return { first: checkDelay(first, "backoff.first"), last: checkDelay(last, "backoff.last") };
}

/** The members of an envelope. Throws BadArgumentError for a function: it cannot be sent. */
export function backoffMembers(policy: Policy): Pick<Envelope, "backoff" | "delays"> {
  if (typeof policy === "function") {
    throw new BadArgumentError(
      "a function as backoff cannot be sent with a call: set it in define, or give a list of delays",
    );
  }
  if (isList(policy)) return { delays: policy.map(Math.round) };
  return { backoff: [Math.round(policy.first), Math.round(policy.last)] };
}

/** The delay after an attempt that failed: by the envelope, else by the function (LQ-JOB-5). */
export function delayAfter(attempt: number, job: Envelope, ofFunction: Policy): number {
  const { backoff, delays } = job;
  return delayOf(delays ?? (backoff ? { first: backoff[0], last: backoff[1] } : ofFunction), attempt);
}

function delayOf(policy: Policy, attempt: number): number {
  if (isList(policy)) return policy[Math.min(attempt, policy.length) - 1] ?? 0;
  if (typeof policy !== "function") {
    const { first, last } = policy;
    return exponentialBackoff({ first, last: Math.max(first, last) })(attempt);
  }
  try {
    return checkDelay(policy(attempt), "the delay of backoff");
  } catch {
    return exponentialBackoff()(attempt); // it cannot say
  }
}

const isList = (policy: Policy): policy is readonly number[] => Array.isArray(policy);
