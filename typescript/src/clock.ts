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

/**
 * Calls `late` after `timeMs`, unless the returned function is called before. The time for which the event loop stood still at the end
 * does not count: timers fire before sockets are read, and what has arrived is read first (LQ-CLIENT-20).
 */
export function onLate(timeMs: number, late: () => void): () => void {
  const dueAt = now() + timeMs;
  let immediate: NodeJS.Immediate | undefined;
  let timer = setTimeout(() => {
    timer = setTimeout(() => {
      immediate = setImmediate(late);
    }, now() - dueAt);
  }, timeMs);
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
