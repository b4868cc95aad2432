// The jobs of the fleet of job-faults.test.ts: what its programs print, how each job must end, and what its end is called in all
// programs, so that two answers can be compared. python/tests/programs/faulted_jobs.py says the same in Python.
import { LeaseqError } from "../src/index.js";
import { type Handle, JobCancelled, JobFailed, ResultNotKept } from "../src/jobs/index.js";

/** Queues: that of a language has workers of that language, the last one those of both. */
export const QUEUES = ["node", "python", "both"] as const;
/** The stages of a chain run in these queues. */
export const CHAIN = ["node", "python", "both"] as const;
/** The schedule, which workers of both languages have, and its interval in ms. */
export const TICK = "tick";
export const TICK_MS = 1000;

/** The kinds of jobs; the id of a job starts with its kind. */
export const KINDS = ["work", "work", "work", "fail", "die", "sleep", "chain", "cancel"] as const;

/** A line that a program prints. `id` is that of a job, that of the last one for a chain. */
export type JobLine =
  | { began: true }
  /** Enqueue returned. */
  | { accepted: string; queue: string }
  /** `cancel` returned true. */
  | { cancelled: string }
  /** `result` gave the end of a job. */
  | { answer: string; of: string }
  /** The `complete` of a worker counted. */
  | { completed: string }
  /** A call took longer than it may. */
  | { late: string }
  /** What it has behind `close` that it had not before. */
  | { left: string[] }
  | { calls: number; longest: number }
  | { heap: number; resources: number };

/** The end of a job, as text; undefined if it is not known yet. Throws what is no named error. */
export async function endOf(handle: Pick<Handle, "result">, options: object): Promise<string | undefined> {
  try {
    return JSON.stringify(await handle.result(options));
  } catch (error) {
    if (error instanceof JobFailed) return `failed: ${error.type}: ${error.reason}`;
    if (error instanceof JobCancelled) return "cancelled";
    if (error instanceof ResultNotKept) return "not kept";
    if (error instanceof LeaseqError) return undefined;
    throw error;
  }
}

/** Whether a job may end so. `data` is what it was enqueued with: the number of its id. */
export function isRightEnd(id: string, end: string | undefined, wasCancelled: boolean): boolean {
  const [kind = "", , text] = id.split("-");
  if (end === undefined) return false;
  const value = end.startsWith("{") || end.startsWith("[") ? JSON.parse(end) : undefined;
  if (kind === "chain") return JSON.stringify(value?.slice(1)) === JSON.stringify(CHAIN);
  if (kind === "cancel" && (wasCancelled || end === "cancelled")) return end === "cancelled";
  if (kind === "work" || kind === "cancel") return String(value?.number) === text;
  return end.startsWith("failed: ");
}
