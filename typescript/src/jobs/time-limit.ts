// The time limit of one attempt (LQ-JOB-4, LQ-JOB-20).
import { onAbort } from "../aborts.js";
import { UNWIND_MS } from "../item-run.js";
import { Cancellation } from "../leased-item.js";
import { JobTimeout } from "./errors.js";

/**
 * Calls a function with a signal that is aborted at the limit, or with `outer`. A function that returns past the limit has returned;
 * if it throws then, or does not end within a second, this throws JobTimeout. `isVerdict`: errors that are thrown as they are.
 */
export async function withinLimit<Result>(
  limitMs: number | undefined,
  outer: AbortSignal,
  run: (signal: AbortSignal) => Promise<Result>,
  isVerdict: (error: unknown) => boolean,
): Promise<Result> {
  if (limitMs === undefined) return await run(outer);
  const inner = new AbortController();
  const leave = onAbort([outer], () => inner.abort(outer.reason));
  let timer: NodeJS.Timeout | undefined;
  let late: JobTimeout | undefined;
  // The timers do not keep the process: a worker that is closed may leave a function that goes on.
  const abandoned = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      late = new JobTimeout(`the function ran longer than ${limitMs} ms`);
      inner.abort(new Cancellation("late", late.message));
      timer = setTimeout(reject, UNWIND_MS, late).unref();
    }, limitMs).unref();
  });
  const started = performance.now();
  try {
    return await Promise.race([run(inner.signal), abandoned]);
  } catch (error) {
    // A function that blocked the loop let no timer fire.
    if (performance.now() - started >= limitMs)
      late ??= new JobTimeout(`the function ran longer than ${limitMs} ms`);
    if (late && !isVerdict(error)) throw late;
    throw error;
  } finally {
    clearTimeout(timer);
    leave();
  }
}
