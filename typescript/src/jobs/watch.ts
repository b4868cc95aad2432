// A watch of one job: what is known of it, now and whenever that changes. handle.ts starts it.
import { isDeepStrictEqual } from "node:util";
import {
  type AbortSignals,
  checkSignal,
  checkTimeout,
  throwIfAborted,
  untilAborted,
  type WaitOptions,
} from "../blocking.js";
import { now } from "../clock.js";
import { AbortError } from "../errors.js";
import type { Queue } from "../queue.js";
import { WAIT_CAP_MS } from "../scripts.generated.js";
import type { Change, ChangeWaits } from "./change-waits.js";
import { ENDS, infoOf, type JobInfo, runningNote, type Snapshot, unsuccessful } from "./info.js";
import { WAITING } from "./result-waits.js";

/** A job to watch. */
interface WatchedJob {
  readonly id: string;
  readonly queue: Queue;
  snapshot(): Promise<Snapshot>;
}

/** See `Handle.watch`. A generator cannot be ended while it waits for something; this can. */
export function watchJob(
  job: WatchedJob,
  waits: ChangeWaits,
  options: WaitOptions,
): AsyncGenerator<JobInfo, void, void> {
  const left = new AbortController();
  const timeout = checkTimeout(options.timeout ?? Number.POSITIVE_INFINITY);
  const changes = changesOf(job, waits, timeout, [...checkSignal(options), left.signal]);
  const infos = untilLeft(changes, left.signal);
  const end = infos.return.bind(infos);
  infos.return = async () => {
    left.abort();
    return await end();
  };
  return infos;
}

/** Ends without an error when the loop is left. */
async function* untilLeft(
  changes: AsyncGenerator<JobInfo, void, void>,
  left: AbortSignal,
): AsyncGenerator<JobInfo, void, void> {
  try {
    yield* changes;
  } catch (error) {
    if (!(left.aborted && error instanceof AbortError)) throw error;
  }
}

/** Yields each change until the end of the job. Throws when the time is over, and AbortError. */
async function* changesOf(
  job: WatchedJob,
  waits: ChangeWaits,
  timeout: number,
  signals: AbortSignals,
): AsyncGenerator<JobInfo, void, void> {
  const timeoutAt = now() + timeout;
  let seen: unknown;
  let noted: number | undefined; // the token of the last lease that had a note
  for (;;) {
    throwIfAborted(signals);
    const lookedAt = now();
    const snapshot = await untilAborted(job.snapshot(), signals);
    if (isTorn(snapshot)) continue;
    const info = infoOf(job.id, job.queue.name, snapshot);
    noted = runningNote(snapshot)?.token ?? noted;
    const isEnding = endsNow(snapshot, noted);
    const state = [info.status, info.attempt, info.progress, info.report];
    const isNew = !isEnding && !isDeepStrictEqual(state, seen);
    if (isNew) {
      seen = state;
      yield info;
    }
    if (ENDS.has(info.status)) return;
    const left = timeoutAt - now();
    if (left <= 0) throw timeoutError(job, snapshot);
    // A slow consumer: the next change can be past, and what it leaves for the wait with it.
    if (now() - lookedAt > WAIT_CAP_MS / 2) continue;
    if (!isNew) await waits.pause(left, signals);
    if (isEnding) continue;
    await waits.wait(job.queue.keys, nextChange(job.id, snapshot), timeoutAt - now(), signals);
  }
}

/** Whether the attempt is about to end: the worker has deleted its note, and publishes nothing when it ends the lease. */
function endsNow(snapshot: Snapshot, noted: number | undefined): boolean {
  const { item } = snapshot;
  return item.state === "leased" && item.token === noted && !runningNote(snapshot);
}

/** Whether the job has changed between the calls of one look. */
function isTorn({ outcome, item }: Snapshot): boolean {
  return WAITING.has(outcome.state) && (outcome.state !== item.state || outcome.attempt !== item.attempt);
}

function timeoutError({ id, queue }: WatchedJob, { outcome, notes, item }: Snapshot): Error {
  return unsuccessful(id, queue.name, [outcome, notes], String(item.error));
}

/** The change that its worker publishes next: of this attempt or the next. */
function nextChange(id: string, snapshot: Snapshot): Change {
  const { item } = snapshot;
  if (item.state !== "leased") return { id, attempt: item.attempt + 1, n: 0 };
  const note = runningNote(snapshot);
  return { id, attempt: item.attempt, n: note ? (note.n ?? 0) + 1 : 0 };
}
