// A worker of the jobs of job-faults.test.ts, as a program: fleet-job-worker.js PATH. It ends after SIGTERM.
import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, LeaseqError } from "../src/index.js";
import { App, DeadLetter, type JobContext } from "../src/jobs/index.js";
import { DURATION_MS, GRACE_MS, KEEP_MS, runUntilStopped } from "./fleet.js";
import { type JobLine, TICK, TICK_MS } from "./fleet-jobs.js";

const [path = ""] = process.argv.slice(2);
const say = (line: JobLine) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** What the functions below throw. */
class PlannedError extends Error {}
/** Tells of errors that have no name, and are not those of the functions. */
const refuse = (text: string, error?: unknown) => {
  const isPlanned = error instanceof PlannedError || error instanceof DeadLetter;
  const isAborted = error instanceof Error && error.name === "AbortError";
  if (error && !(error instanceof LeaseqError || isPlanned || isAborted)) console.error(text, error);
};

const client = new Client(
  { path, connectTimeout: 2000 },
  { replyTimeout: 3000, logger: { info() {}, warn: refuse, error: refuse } },
);
const app = new App(client, { queue: "node" });

app.define("work", async (number: number, { token, signal, progress }: JobContext) => {
  const what = randomInt(100);
  if (what < 5) throw new PlannedError("a function that fails");
  if (what < 8) {
    const until = Date.now() + randomInt(20, 400);
    while (Date.now() < until); // the loop is blocked
  } else if (what < 25) {
    progress(1, 2);
    await sleep(randomInt(10, 300), undefined, { signal });
  } else if (what < 26) await sleep(60_000, undefined, { signal }); // until its time limit
  return { number, token };
});
app.define("fail", (number: number) => {
  throw new PlannedError(`${number} fails`);
});
app.define("die", (number: number) => {
  throw new DeadLetter(`${number} dies`);
});
app.define("sleep", async (_: number, { signal }: JobContext) => {
  await sleep(60_000, undefined, { signal });
});
app.define("step", (values: unknown[], { queue }: JobContext) => [...values, queue]);
const tick = app.define(TICK, { queue: "both" }, (_: unknown, { due, token }: JobContext) => ({
  number: due,
  token,
}));
app.every(tick, TICK_MS, { missed: "all", keep: KEEP_MS, retries: Number.POSITIVE_INFINITY });

const worker = app.worker({
  queues: ["node", "both"],
  duration: DURATION_MS,
  grace: GRACE_MS,
  fair: true,
  hooks: {
    completed: (item) => {
      if (!item.queue.name.endsWith(".cron")) say({ completed: item.id.toString() });
    },
  },
});
await runUntilStopped(worker, say);
await client.close();
