// A worker of the fleet of faults.test.ts, as a program: fleet-worker.js PATH NAME. It prints a line of JSON for each event, and
// ends after SIGTERM.
import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "../src/index.js";
import { DURATION_MS, GRACE_MS, type Line, runUntilStopped } from "./fleet.js";

const [path = "", queueName = ""] = process.argv.slice(2);
const say = (line: Line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const client = new Client(
  { path, connectTimeout: 2000 },
  { replyTimeout: 3000, logger: { info() {}, warn() {}, error() {} } },
);
const queue = client.queue(queueName);
const worker = client.worker(
  queue,
  async (item, { signal }) => {
    say({ started: item.id.toString() });
    const what = randomInt(100);
    if (what < 3) throw new Error("a handler that fails");
    if (what < 6) {
      const until = Date.now() + randomInt(20, 400);
      while (Date.now() < until); // the loop is blocked
    } else if (what < 20) await sleep(randomInt(10, 300), undefined, { signal });
    else if (what < 21) await sleep(60_000, undefined, { signal }); // until its time limit
    return `result of ${item.id}`;
  },
  {
    concurrency: 8,
    duration: DURATION_MS,
    timeLimit: 2000,
    maxAttempts: 0,
    backoff: 100,
    grace: GRACE_MS,
    hooks: {
      completed: (item) => say({ completed: item.id.toString() }),
      lost: (item) => say({ lost: item.id.toString() }),
    },
  },
);
await runUntilStopped(worker, say);
await client.close();
say({ ended: true });
