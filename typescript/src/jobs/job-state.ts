// The notes beside a job (spec/jobs.md, Notes): who runs it and how far it is, and that it was cancelled.
import type { QueueKeys } from "../keys.js";
import { isMap } from "./format.js";

/** How long a note of a running job stays after its worker last wrote it (LQ-JOB-10). */
export const NOTE_LIFE_MS = 600_000;

/** A note about a running job. */
export interface RunningNote {
  readonly token: number;
  readonly worker: string;
  readonly started: number;
  /** How often it was rewritten in this attempt. */
  readonly n?: number | undefined;
  readonly done?: number | undefined;
  readonly total?: number | undefined;
  readonly progress?: unknown;
}

/** A note about a cancelled job. `job`: the data of its item. */
export interface CancelledNote {
  readonly cancelled: number;
  readonly job?: Buffer | undefined;
}

export const runningKey = (keys: QueueKeys, id: string): string => keys.key(`job:${id}`);
export const cancelledKey = (keys: QueueKeys, id: string): string => keys.key(`cancelled:${id}`);
/** A list that has an element for a few seconds once a job has changed (LQ-JOB-63). `attempt`: of the item. */
export const changedKey = (keys: QueueKeys, id: string, attempt: number, n: number): string =>
  keys.key(`changed:${id}:${attempt}.${n}`);
/** Says that the slot of a throttled job is taken: the slot is a part of the id. */
export const slotKey = (keys: QueueKeys, id: string): string => keys.key(`slot:${id}`);
/** A temporary list, renamed to `result:<id>` to wake waiting clients. */
export const wokenKey = (keys: QueueKeys, id: string): string => keys.key(`woken:${id}`);

/** An outcome that does not count, since its id is not in `kept`: version, kind, and zeros (02.5). */
export const NO_OUTCOME = Buffer.concat([Buffer.from([1, 2]), Buffer.alloc(28), Buffer.from("cancelled")]);

export const writeRunning = (note: RunningNote): string => JSON.stringify({ v: 1, ...note });

export function writeCancelled(note: CancelledNote): string {
  return JSON.stringify({ v: 1, cancelled: note.cancelled, job: note.job?.toString("base64") });
}

/** Reads a note; undefined if there is none, or none that can be read. */
export function readRunning(data: Buffer | null): RunningNote | undefined {
  const note = readNote(data);
  if (typeof note?.token !== "number") return undefined;
  const { token, worker = "", started = 0, n = 0, done, total, progress } = note as unknown as RunningNote;
  return { token, worker, started, n, done, total, progress };
}

/** As `readRunning`. */
export function readCancelled(data: Buffer | null): CancelledNote | undefined {
  const note = readNote(data);
  if (typeof note?.cancelled !== "number") return undefined;
  const job = typeof note.job === "string" ? Buffer.from(note.job, "base64") : undefined;
  return { cancelled: note.cancelled, job };
}

/** Earlier releases of the Python client wrote no version into notes and schedules. */
export const isKnownVersion = (version: unknown): boolean => version === 1 || version === undefined;

function readNote(data: Buffer | null): Record<string, unknown> | undefined {
  try {
    const note: unknown = data && JSON.parse(data.toString());
    return isMap(note) && isKnownVersion(note.v) ? note : undefined;
  } catch {
    return undefined;
  }
}
