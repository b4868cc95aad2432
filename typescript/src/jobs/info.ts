// What is known of a job, from its stored parts (spec/jobs.md, Status). Nothing here sends.
import type { ItemInfo, Outcome } from "../codecs.generated.js";
import { textOf } from "../handler.js";
import { argumentsOf, type Envelope, readEnvelope, readResult } from "./envelope.js";
import { BadEnvelopeError, JobCancelled, JobFailed, ResultNotKept, ResultTimeout } from "./errors.js";
import { type Failure, readFailure } from "./failure.js";
import type { RunningNote } from "./job-state.js";
import { WAITING } from "./result-waits.js";
import type { Notes } from "./store.js";

/** The status of a job. "retrying": it waits for another attempt. "unknown": there is none, or nothing is kept of it. */
export type Status =
  | "delayed"
  | "ready"
  | "running"
  | "retrying"
  | "succeeded"
  | "failed"
  | "cancelled"
  | "unknown";

/** The statuses of jobs that no worker will run. */
export const ENDS: ReadonlySet<Status> = new Set(["succeeded", "failed", "cancelled", "unknown"]);

const STATUS: Readonly<Record<string, Status>> = {
  delayed: "delayed",
  ready: "ready",
  leased: "running",
  result: "succeeded",
  failure: "failed",
  dead: "failed",
};

/** A job as it is now. Times are milliseconds since 1970, undefined if they are not known. */
export interface JobInfo {
  readonly id: string;
  readonly queue: string;
  readonly status: Status;
  /** The name of the function; empty if the job cannot be read. */
  readonly function: string;
  readonly args: readonly unknown[];
  readonly kwargs: Readonly<Record<string, unknown>>;
  /** The description of the call; by default the call itself. */
  readonly description: string;
  /** When it was enqueued, by the server's clock. */
  readonly enqueued: number | undefined;
  /** When it was to run, by the clock of the program that enqueued it. */
  readonly due: number | undefined;
  /** When the last attempt started, by the worker's clock. */
  readonly started: number | undefined;
  /** When it ended, by the server's clock. */
  readonly ended: number | undefined;
  /** The number of its last attempt, 0 before the first. */
  readonly attempt: number;
  /** How many attempts it has after the first; Infinity: without limit; undefined if it is gone from its queue. */
  readonly retries: number | undefined;
  /** The id of the worker that runs it, or ran it last. */
  readonly worker: string;
  /** The last failure, such as "TypeError: no such order". */
  readonly error: string;
  readonly traceback: string;
  /** What the function returned; undefined before, and if none is kept. */
  readonly result: unknown;
  /** The progress that it reported: how much is done, and of how much. */
  readonly progress: { readonly done: number; readonly total: number | undefined } | undefined;
  /** The value of JSON that it reported in place of numbers, also in another language; undefined without one. */
  readonly report: unknown;
}

/** The replies about one job. */
export interface Snapshot {
  readonly outcome: Outcome;
  readonly item: ItemInfo;
  readonly data: Buffer | undefined;
  readonly notes: Notes;
}

/** The note of the worker that runs a job now; undefined without one (LQ-JOB-24). */
export function runningNote({ item, notes }: Pick<Snapshot, "item" | "notes">): RunningNote | undefined {
  return item.state === "leased" && notes.running?.token === item.token ? notes.running : undefined;
}

/** The status of a job. */
export function statusOf(outcome: Outcome, notes: Notes): Status {
  if (outcome.state === "absent") return notes.cancelled ? "cancelled" : "unknown";
  const waits = outcome.state === "ready" || outcome.state === "delayed";
  return waits && outcome.attempt > 0 ? "retrying" : (STATUS[outcome.state] ?? "unknown");
}

/** Of each job of a chain: each is created after the one before it, so what an earlier chain of these ids left does not count. */
export function statusesOfChain(stages: readonly (readonly [Outcome, Notes])[]): Status[] {
  let newest = 0;
  return stages.map(([outcome, notes]) => {
    const isOlder = outcome.created > 0 && outcome.created < newest;
    newest = Math.max(newest, outcome.created);
    return isOlder ? "unknown" : statusOf(outcome, notes);
  });
}

/** All that is known of a job. */
export function infoOf(id: string, queue: string, { outcome, item, data, notes }: Snapshot): JobInfo {
  const result = unlessBad(() => readResult(outcome.content), outcome.state === "result");
  const copy = data ?? notes.cancelled?.job;
  const job = copy ? unlessBad(() => readEnvelope(copy)) : result?.job;
  const failed = readFailure(errorOf(outcome) || String(item.error ?? ""));
  const running = runningNote({ item, notes });
  const { args, kwargs } = (job && unlessBad(() => argumentsOf(job))) ?? { args: [], kwargs: {} };
  return {
    id,
    queue,
    status: statusOf(outcome, notes),
    function: job?.function ?? "",
    args,
    kwargs,
    description: job?.description ?? describe(job, args, kwargs),
    enqueued: milliseconds(outcome.created) ?? job?.enqueued,
    due: job?.due ?? job?.enqueued,
    started: running?.started ?? result?.started ?? failed.started,
    ended: milliseconds(outcome.ended) ?? notes.cancelled?.cancelled,
    attempt: attemptOf(outcome, job),
    retries: retriesOf(item, job),
    worker: running?.worker ?? result?.worker ?? failed.worker,
    error: failed.type ? `${failed.type}: ${failed.message}` : failed.message,
    traceback: failed.traceback,
    result: result && (result.result ?? null),
    progress: running?.done === undefined ? undefined : { done: running.done, total: running.total },
    report: running?.progress,
  };
}

/** The number of the last attempt as people see it: the envelope has that of the first. 0 if there was none. */
const attemptOf = (outcome: Outcome, job: Envelope | undefined): number =>
  outcome.attempt && outcome.attempt + (job?.attempt ?? 1) - 1;

/** Returns the error for a job without a result. `lastError` and `data`: of its item, if that is there. */
export function unsuccessful(
  id: string,
  queue: string,
  [outcome, notes]: readonly [Outcome, Notes],
  lastError: string,
  data?: Buffer,
): Error {
  const name = JSON.stringify(id);
  if (outcome.state === "failure" || outcome.state === "dead") {
    const failed: Failure = readFailure(errorOf(outcome) || lastError);
    const attempt = attemptOf(outcome, data && unlessBad(() => readEnvelope(data)));
    return new JobFailed(id, failed.type, failed.message, failed.traceback, attempt);
  }
  if (WAITING.has(outcome.state) && outcome.keep === 0) {
    return new ResultNotKept(`job ${name} was enqueued without keep: no result is kept of it`);
  }
  if (WAITING.has(outcome.state)) {
    const why = lastError ? `, after ${lastError.split("\n", 1)[0]}` : "";
    return new ResultTimeout(`job ${name} has not ended: it is ${statusOf(outcome, notes)}${why}`);
  }
  if (notes.cancelled) return new JobCancelled(`job ${name} was cancelled`);
  return new ResultNotKept(
    `there is no job ${name} in queue ${JSON.stringify(queue)} and no result of it: it expired, its result was not kept or its ` +
      "time is over, or it never was",
  );
}

const errorOf = (outcome: Outcome): string => (outcome.state === "failure" ? outcome.content.toString() : "");

const milliseconds = (microseconds: number): number | undefined =>
  microseconds > 0 ? Math.round(microseconds / 1000) : undefined;

function retriesOf(item: ItemInfo, job: Envelope | undefined): number | undefined {
  if (item.state === "absent") return undefined;
  return item.maxAttempts > 0 ? item.maxAttempts + (job?.attempt ?? 1) - 2 : Number.POSITIVE_INFINITY;
}

/** The call, for people. */
function describe(job: Envelope | undefined, args: readonly unknown[], kwargs: object): string {
  if (!job) return "";
  const named = Object.entries(kwargs).map(([name, value]) => `${name}=${inJson(value)}`);
  return `${job.function}(${[...args.map(inJson), ...named].join(", ")})`;
}

function inJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return textOf(value); // a bigint
  }
}

function unlessBad<Value>(read: () => Value, isThere = true): Value | undefined {
  try {
    return isThere ? read() : undefined;
  } catch (error) {
    if (error instanceof BadEnvelopeError) return undefined;
    throw error;
  }
}
