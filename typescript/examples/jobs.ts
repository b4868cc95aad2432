// Jobs (spec/jobs.md) on this client: enqueues jobs for a worker in another language, and waits for their results.
import { randomUUID } from "node:crypto";
import type { Queue } from "leaseq";

/** Arguments of a call, and what a function returns. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A call of a function, by its name among those of the worker. */
export interface JobCall {
  function: string;
  args?: readonly Json[];
  kwargs?: Readonly<Record<string, Json>>;
}

/** Options of a job. Times are milliseconds. */
export interface JobOptions {
  delay?: number;
  /** How long one attempt may take; 0 is without limit. Default: as the function is declared. */
  timeout?: number;
  /** Default: 5. */
  maxAttempts?: number;
  priority?: number;
  headers?: Readonly<Record<string, string>>;
  /** For people. Default: the call itself. */
  description?: string;
}

/** The job failed, for good. */
export class JobFailedError extends Error {
  override readonly name = "JobFailedError";

  constructor(
    /** The kind of failure, as its worker calls it; empty if it is unknown. */
    readonly type: string,
    message: string,
    readonly traceback: string,
  ) {
    super(message);
  }
}

const VERSION = 1;
const DAY_MS = 86_400_000;
const OPENING_BRACE = 0x7b;

/**
 * Enqueues a call and returns the id of its job. The defaults are those of the Python producer: the job is dropped if no worker
 * has started it a day after it was due, and its outcome is kept for a day. Throws as `Queue.add`.
 */
export async function enqueue(queue: Queue, call: JobCall, options: JobOptions = {}): Promise<string> {
  const { timeout, description, delay = 0, maxAttempts = 5, ...others } = options;
  // A producer that chooses the id itself also has to delete the progress of an earlier job (LQ-JOB-11).
  const id = randomUUID();
  const enqueued = Date.now();
  const due = delay > 0 ? enqueued + delay : undefined;
  // Members that are undefined are not written (LQ-JOB-2); what the scripts decide is not in there (LQ-JOB-3).
  const envelope = { v: VERSION, ...call, enqueued, due, timeout, description };
  const data = encodeJson(envelope);
  await queue.add({ id, data, delay, maxAttempts, expiresIn: delay + DAY_MS, keep: DAY_MS, ...others });
  return id;
}

/** JSON. Throws a RangeError for NaN and infinite numbers, for which JSON.stringify writes null (LQ-JOB-60). */
export function encodeJson(value: unknown): string {
  return JSON.stringify(value, (name, each) => {
    if (typeof each === "number" && !Number.isFinite(each))
      throw new RangeError(`'${name}' is ${each}, which JSON does not have`);
    return each;
  });
}

/**
 * What the function returned; waits for it. Throws JobFailedError, and an Error where there is nothing to wait for or it
 * does not come within `timeout` ms; otherwise as `Queue.waitForOutcome`.
 */
export async function result(queue: Queue, id: string, timeout: number): Promise<Json> {
  const { state, content } = await queue.waitForOutcome(id, { timeout });
  switch (state) {
    case "result":
      return decodeResult(content);
    case "failure":
      throw decodeFailure(content.toString());
    case "dead": // no outcome is kept of it
      throw decodeFailure((await queue.inspect(id)).error.toString());
    case "absent":
      throw new Error(`there is no job ${id}, and nothing is kept of it`);
    default:
      throw new Error(`job ${id} has not ended: it is ${state}`);
  }
}

/** A result (LQ-JOB-8), in JSON as its envelope was (LQ-JOB-1). */
function decodeResult(content: Buffer): Json {
  if (content[0] !== OPENING_BRACE) throw new Error("this result is not written in JSON");
  const { v, result = null } = JSON.parse(content.toString()) as { v: number; result?: Json };
  if (v !== VERSION) throw new Error(`this result is of version ${v}, and this program knows ${VERSION}`);
  return result;
}

/** The text of a failure (LQ-JOB-9); one of another form is a message. */
function decodeFailure(text: string): JobFailedError {
  const form = /^(?<type>\S+): (?<message>.*)\n(?:[a-z]+: .*\n)*\n(?<rest>[\s\S]*)$/.exec(text)?.groups;
  return new JobFailedError(form?.type ?? "", form?.message ?? text, form?.rest ?? "");
}
