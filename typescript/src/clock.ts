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
