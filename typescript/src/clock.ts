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

/** Ends as the task does, or rejects with `late()` after `timeMs`. */
export function orLate<Result>(task: Promise<Result>, timeMs: number, late: () => Error): Promise<Result> {
  return new Promise((resolve, reject) => {
    // In a busy program timers fire before sockets are read: a task that can end now ends first.
    const timer = setTimeout(() => setImmediate(() => reject(late())), timeMs);
    task.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}
