// Running jobs (spec/jobs.md) on this client: what a worker does with a leased item.
import type { FollowUp, LeasedItem, Queue } from "leaseq";
import { encodeJson, type Json } from "./jobs.js";

/** A function that jobs call. An error it throws is a failure; the job is tried again if attempts are left. */
export type Run = (args: Json[], kwargs: Record<string, Json>, signal: AbortSignal) => Json | Promise<Json>;

interface Envelope {
  v: number;
  function: string;
  args?: Json[];
  kwargs?: Record<string, Json>;
  timeout?: number;
  backoff?: [number, number];
  codec?: string;
  then?: Stage[];
}

interface Stage {
  id: string;
  queue: string;
  job: Envelope;
  add?: Record<string, number>;
  headers?: Record<string, string>;
}

const VERSION = 1;
const OPENING_BRACE = 0x7b;
const MAX_COPY_BYTES = 4096;
const MAX_ERROR_BYTES = 8192;
const DEFAULT_TIMEOUT_MS = 300_000;
const UNKNOWN_DELAY_MS = 10_000;
const DEFAULT_BACKOFF_MS: readonly [number, number] = [1000, 300_000];

/** No worker with these functions can run the job, now or later: it becomes a dead letter (LQ-JOB-7). */
class NotRunnableError extends Error {
  override readonly name = "NotRunnableError";
}

/** This worker has no such function. Another one may have it, so the job waits for that one (LQ-JOB-42). */
class UnknownFunctionError extends Error {
  override readonly name = "UnknownFunction";
}

/** Runs the job of an item, then completes or releases the item. `queueOf` returns queues of the same group, for chains. */
export async function work(
  lease: LeasedItem,
  functions: ReadonlyMap<string, Run>,
  queueOf: (name: string) => Queue,
): Promise<void> {
  lease.heartbeat();
  const started = Date.now();
  let job: Envelope | undefined;
  let value: Json;
  try {
    job = decodeEnvelope(lease.data);
    const run = functions.get(job.function);
    if (run === undefined) throw new UnknownFunctionError(`this worker has no function '${job.function}'`);
    value = checked(await runAttempt(job, run, lease.lostSignal));
  } catch (error) {
    await lease.release({ error: errorText(error, started), ...endOf(error, job, lease.attempt) });
    return;
  }
  const stored = { v: VERSION, result: value, started, ended: Date.now(), ...envelopeCopy(lease.data) };
  const options = lease.keep === undefined ? {} : { result: JSON.stringify(stored) }; // LQ-JOB-8
  const [next, ...others] = job.then ?? [];
  if (next === undefined) await lease.complete(options);
  else await lease.handOff([nextFollowUp(next, others, value, queueOf)], options);
}

/** A result. Throws if JSON does not have it: no other attempt would do better (LQ-JOB-61). */
function checked(value: Json): Json {
  try {
    encodeJson(value);
  } catch (error) {
    throw new NotRunnableError(`the result cannot be written: ${error}`);
  }
  return value;
}

/** What becomes of a job that failed (LQ-JOB-5, LQ-JOB-7, LQ-JOB-42). */
function endOf(error: unknown, job: Envelope | undefined, attempt: number) {
  if (error instanceof NotRunnableError) return { dead: true };
  if (error instanceof UnknownFunctionError) return { uncounted: true, delay: UNKNOWN_DELAY_MS };
  return { delay: retryDelay(job, attempt) };
}

/** The envelope (LQ-JOB-1, LQ-JOB-2). */
function decodeEnvelope(data: Buffer): Envelope {
  if (data[0] !== OPENING_BRACE) throw new NotRunnableError("this worker reads no jobs but those in JSON");
  let job: Envelope;
  try {
    job = JSON.parse(data.toString()) as Envelope;
  } catch (error) {
    throw new NotRunnableError(`this is no job that can be read: ${error}`);
  }
  if (job.v !== VERSION)
    throw new NotRunnableError(`this job is of version ${job.v}, and this worker knows ${VERSION}`);
  if (typeof job.function !== "string") throw new NotRunnableError("this job names no function");
  if (job.codec !== undefined) throw new NotRunnableError(`this worker has no serializer '${job.codec}'`);
  return job;
}

/** An attempt, which ends when its time is over or its lease is lost (LQ-JOB-4). */
async function runAttempt(
  { args = [], kwargs = {}, timeout = DEFAULT_TIMEOUT_MS }: Envelope,
  run: Run,
  lost: AbortSignal,
): Promise<Json> {
  const signal = timeout > 0 ? AbortSignal.any([lost, AbortSignal.timeout(timeout)]) : lost;
  return await new Promise<Json>((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    Promise.resolve(run(args, kwargs, signal)).then(resolve, reject);
  });
}

/** Twice as long after each attempt (LQ-JOB-5). */
function retryDelay(job: Envelope | undefined, attempt: number): number {
  const [first, max] = job?.backoff ?? DEFAULT_BACKOFF_MS;
  return Math.min(max, first * 2 ** (attempt - 1));
}

/** The text of a failure (LQ-JOB-9). */
function errorText(error: unknown, started: number): string {
  const { name, message, stack = "" } = error instanceof Error ? error : new Error(String(error));
  const text = `${name}: ${message.replaceAll(/\s+/g, " ")}\nstarted: ${new Date(started).toISOString()}\n\n${stack}`;
  return Buffer.from(text)
    .subarray(0, MAX_ERROR_BYTES)
    .toString()
    .replace(/\uFFFD$/, "");
}

/** The envelope once more, so that people see what the job was. */
function envelopeCopy(data: Buffer): { job?: Json } {
  return data.length <= MAX_COPY_BYTES ? { job: JSON.parse(data.toString()) as Json } : {};
}

/** The next job of a chain: what this one returned comes before its arguments (LQ-JOB-16). */
function nextFollowUp(
  stage: Stage,
  others: Stage[],
  value: Json,
  queueOf: (name: string) => Queue,
): FollowUp {
  const { id, queue, job, add = {}, headers = {} } = stage;
  const { delay = 0, priority = 0, max_attempts: maxAttempts, expires_in: expiresIn, keep } = add;
  const enqueued = Date.now();
  const due = delay > 0 ? enqueued + delay : undefined;
  // biome-ignore lint/suspicious/noThenProperty: the name of the member
  const data = JSON.stringify({ ...job, args: [value, ...(job.args ?? [])], enqueued, due, then: others });
  return {
    ...{ queue: queueOf(queue), id, data, delay, priority, headers },
    ...(maxAttempts !== undefined && { maxAttempts }),
    ...(expiresIn !== undefined && { expiresIn }),
    ...(keep !== undefined && { keep }),
  };
}
