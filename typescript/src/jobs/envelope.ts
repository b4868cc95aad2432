// A job as the data of an item, and its result as the content of an outcome (spec/jobs.md).
import { MAX_DELAY_MS } from "../retry-policy.js";
import { BadEnvelopeError } from "./errors.js";
import { isMap, read } from "./format.js";

const VERSION = 1;
const MAX_FUNCTION_CHARS = 200;
/** The longest envelope that a result or a note about a cancellation repeats. */
export const MAX_COPY_BYTES = 4096;

/** The members of a job. Times are milliseconds since 1970, durations milliseconds. */
export interface Envelope {
  v: 1;
  function: string;
  args?: readonly unknown[] | undefined;
  kwargs?: Readonly<Record<string, unknown>> | undefined;
  enqueued?: number | undefined;
  due?: number | undefined;
  attempt?: number | undefined;
  timeout?: number | undefined;
  backoff?: readonly [number, number] | undefined;
  delays?: readonly number[] | undefined;
  description?: string | undefined;
  codec?: string | undefined;
  body?: unknown;
  then?: readonly Stage[] | undefined;
}

/** A job that a chain or a schedule enqueues later. `add`: options by their names in the protocol. */
export interface Stage {
  id?: string | undefined;
  queue: string;
  job: Envelope;
  add?: Readonly<Record<string, number | string>> | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
}

/** The members of a result. */
export interface JobResult {
  v: 1;
  result?: unknown;
  started?: number | undefined;
  ended?: number | undefined;
  worker?: string | undefined;
  job?: Envelope | undefined;
}

const isText = (value: unknown) => typeof value === "string";
const isInteger = (value: unknown) => Number.isSafeInteger(value);
const isNatural = (value: unknown) => isInteger(value) && (value as number) >= 0;
const isDelay = (value: unknown) => isNatural(value) && (value as number) <= MAX_DELAY_MS;
const isBase64 = (value: unknown) => isText(value) && /^[A-Za-z0-9+/]*={0,2}$/.test(value as string);

/** The types of the members that may be missing. */
const MEMBERS: Readonly<Record<string, (value: unknown) => boolean>> = {
  args: Array.isArray,
  kwargs: isMap,
  enqueued: isInteger,
  due: isInteger,
  attempt: isInteger,
  timeout: isNatural,
  backoff: (value) => Array.isArray(value) && value.length === 2 && value.every(isDelay),
  delays: (value) => Array.isArray(value) && value.length > 0 && value.every(isDelay),
  description: isText,
  codec: isText,
  body: (value) => value instanceof Uint8Array || isBase64(value),
  // biome-ignore lint/suspicious/noThenProperty: the name of the specification
  then: (value) => Array.isArray(value) && value.every(isStage),
};

const STAGE_MEMBERS: Readonly<Record<string, (value: unknown) => boolean>> = {
  id: isText,
  add: (value) => isMap(value) && Object.values(value).every((option) => isText(option) || isInteger(option)),
  headers: (value) => isMap(value) && Object.values(value).every(isText),
};

const RESULT_MEMBERS: Readonly<Record<string, (value: unknown) => boolean>> = {
  started: isInteger,
  ended: isInteger,
  worker: isText,
};

/** Reads a job. Throws BadEnvelopeError, whose text is fit for a dead letter. */
export function readEnvelope(data: Uint8Array): Envelope {
  const job = readMap(data, "job");
  const wrong = problemOf(job);
  if (wrong) throw new BadEnvelopeError(`this is no job that can be read: ${wrong}`);
  return job as unknown as Envelope;
}

/** Reads the arguments of a job. Throws BadEnvelopeError if a serializer wrote them: this client has none. */
export function argumentsOf(job: Envelope): { args: readonly unknown[]; kwargs: Record<string, unknown> } {
  if (job.codec !== undefined) {
    throw new BadEnvelopeError(
      `the arguments were written by serializer ${JSON.stringify(job.codec)}, which this client does not have`,
    );
  }
  return { args: job.args ?? [], kwargs: job.kwargs ?? {} };
}

/** Reads a result. Throws BadEnvelopeError. */
export function readResult(content: Uint8Array): JobResult {
  const result = readMap(content, "result");
  const wrong = wrongMember(result, RESULT_MEMBERS);
  if (wrong) throw new BadEnvelopeError(`this is no result that can be read: ${wrong}`);
  if (result.codec !== undefined) {
    throw new BadEnvelopeError(
      `the result was written by serializer ${JSON.stringify(result.codec)}, which this client does not have`,
    );
  }
  return result as unknown as JobResult;
}

/** A map of this version. Throws BadEnvelopeError. */
function readMap(data: Uint8Array, what: string): Record<string, unknown> {
  const value = read(data);
  if (!isMap(value)) throw new BadEnvelopeError(`this is no ${what}: it is no map`);
  if (value.v !== VERSION) {
    throw new BadEnvelopeError(
      `this ${what} is of version ${JSON.stringify(value.v) ?? "none"}, and this program knows ${VERSION}`,
    );
  }
  return value;
}

/** What breaks the table of the specification (LQ-JOB-19). */
function problemOf(job: Record<string, unknown>): string | undefined {
  const name = job.function;
  if (typeof name !== "string" || name === "" || [...name].length > MAX_FUNCTION_CHARS) {
    return `function is text of 1 to ${MAX_FUNCTION_CHARS} characters`;
  }
  return wrongMember(job, MEMBERS);
}

function isStage(value: unknown): boolean {
  if (!isMap(value) || !isText(value.queue) || !isMap(value.job) || value.job.v !== VERSION) return false;
  return problemOf(value.job) === undefined && wrongMember(value, STAGE_MEMBERS) === undefined;
}

function wrongMember(
  map: Record<string, unknown>,
  members: Readonly<Record<string, (value: unknown) => boolean>>,
): string | undefined {
  for (const [name, isRight] of Object.entries(members)) {
    if (map[name] !== undefined && !isRight(map[name])) return `${name} has another type or range`;
  }
  return undefined;
}
