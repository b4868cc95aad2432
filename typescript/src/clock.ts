import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds on the monotonic clock of this process. Not the time of day. */
export const now = (): number => performance.now();

/** Resolves when the task has ended, well or not, or after `timeMs`. */
export async function within(task: Promise<unknown>, timeMs: number): Promise<void> {
  const over = new AbortController();
  const ended = task.catch(() => {});
  await Promise.race([ended, sleep(timeMs, undefined, { signal: over.signal }).catch(() => {})]);
  over.abort();
}

/** The parts of a limit of time. */
const STEPS = 8;

/**
 * Calls `late` after `timeMs`, unless the returned function is called before. The time for which the event loop stands still does not
 * count: the limit passes in steps, and a step counts once, however long it took. Timers fire before sockets are read, and what has
 * arrived is read first (LQ-CLIENT-20).
 */
export function onLate(timeMs: number, late: () => void): () => void {
  let left = STEPS;
  let immediate: NodeJS.Immediate | undefined;
  let timer: NodeJS.Timeout;
  const step = () => {
    left -= 1;
    if (left > 0) timer = setTimeout(step, timeMs / STEPS);
    else immediate = setImmediate(late);
  };
  timer = setTimeout(step, timeMs / STEPS);
  return () => {
    clearTimeout(timer);
    clearImmediate(immediate);
  };
}

/** Ends as the task does, or rejects with `late()` after `timeMs`. */
export function orLate<Result>(task: Promise<Result>, timeMs: number, late: () => Error): Promise<Result> {
  return new Promise((resolve, reject) => {
    const end = onLate(timeMs, () => reject(late()));
    task.finally(end).then(resolve, reject);
  });
}
