// The job worker program: node dist/adapter/job-worker.js CONFIG. Its functions and schedules are those of conformance-tests/ADAPTER.md.
import { appendFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { App, DeadLetter, type JobContext } from "leaseq/jobs";

interface Config {
  url: string;
  group: string;
  queues: string[];
  concurrency: number;
  lease_ms: number;
  schedules: boolean;
}

const GRACE_MS = 500;
const MARK_MS = 20;
const HOUR_MS = 3_600_000;
const BERLIN = "Europe/Berlin";
const SCHEDULES = {
  hourly: ["0 * * * *", "UTC"],
  skipped: ["30 2 30 3 *", BERLIN],
  "skipped-several": ["*/15 2 30 3 *", BERLIN],
  twice: ["30 2 26 10 *", BERLIN],
  "skipped-each-hour": ["*/30 * 30 3 *", BERLIN],
  "twice-several": ["*/30 2,3 26 10 *", BERLIN],
  "twice-each-hour": ["*/30 * 26 10 *", BERLIN],
} as const;

class FinalError extends Error {
  override readonly name = "FinalError";
}

const { url, group, queues, concurrency, lease_ms, schedules } = JSON.parse(process.argv[2] ?? "") as Config;
const app = new App(url, { group, queue: queues[0] });

/** Defines a function with these parameters. */
const define = <Input>(
  name: string,
  parameters: readonly string[],
  run: (input: Input, context: JobContext) => unknown,
  timeLimit?: number,
) => app.define(name, { parameters, deadLetterOn: [FinalError], timeLimit }, run);

const sleepFor = async ({ ms }: { ms: number }, { signal }: JobContext) => {
  await sleep(ms, undefined, { signal });
  return ms;
};

define("echo", ["value"], ({ value }: { value: unknown }) => value);
define("add", ["a", "b?"], ({ a, b = 0 }: { a: number; b?: number }) => a + b);
define("fail", ["message"], ({ message }: { message: string }) => {
  throw new Error(message);
});
define("fail_for_good", ["message"], ({ message }: { message: string }) => {
  throw new FinalError(message);
});
define("never_again", ["message"], ({ message }: { message: string }) => {
  throw new DeadLetter(message);
});
define("fail_times", ["times"], ({ times }: { times: number }, { attempt }) => {
  if (attempt <= times) throw new Error(`attempt ${attempt}`);
  return attempt;
});
define("not_a_number", [], () => Number.NaN);
define("sleep", ["ms"], sleepFor);
define("limited", ["ms"], sleepFor, 300);
define("mark", ["path"], async ({ path }: { path: string }, { signal }) => {
  for (;;) {
    await appendFile(path, "x");
    await sleep(MARK_MS, undefined, { signal });
  }
});
define("fail_late", ["ms", "how"], async (input: { ms: number; how: string }, context) => {
  try {
    await sleepFor(input, context);
  } catch {
    throw input.how === "never_again" ? new DeadLetter("late") : new FinalError("late");
  }
});
define("progress", ["done", "total", "ms"], async (
  input: { done: number; total: number; ms: number },
  context,
) => {
  context.progress(input.done, input.total);
  await sleepFor(input, context);
});
const tick = app.define("tick", () => "tick");
for (const [name, [line, timeZone]] of schedules ? Object.entries(SCHEDULES) : []) {
  app.cron(tick, line, { name, timeZone, missed: "all", keep: HOUR_MS });
}

const worker = app.worker({ queues, concurrency, duration: lease_ms, grace: GRACE_MS });
process.once("SIGTERM", () => worker.stop());
await worker.run();
await app.close();
process.exit(0);
