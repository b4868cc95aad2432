// A producer of the jobs of job-faults.test.ts, as a program: fleet-job-producer.js PATH. It enqueues, waits, cancels and looks, and
// closes its client in the midst of it after SIGTERM.
import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, LeaseqError } from "../src/index.js";
import { App, type CallOptions, type Handle } from "../src/jobs/index.js";
import { CALL_MS, KEEP_MS, Random } from "./fleet.js";
import { CHAIN, endOf, type JobLine, KINDS, QUEUES } from "./fleet-jobs.js";

/** Tasks that enqueue and wait: more than block, so that some waits are polled. */
const TASKS = 32;
/** An abort ends a wait by then. */
const ABORT_MS = 1500;
const PROBE_MS = 100;

const [path = ""] = process.argv.slice(2);
const say = (line: JobLine) => process.stdout.write(`${JSON.stringify(line)}\n`);
void process.stdout; // opened here
const before = process.getActiveResourcesInfo();

const client = new Client(
  { path, connectTimeout: 2000 },
  { replyTimeout: 3000, logger: { info() {}, warn() {}, error() {} } },
);
const app = new App(client, { queue: "node" });
const random = new Random(randomInt(2 ** 32));
const stop = new AbortController();
let enqueued = 0;
let calls = 0;
let longest = 0;

/** A job or a chain. */
type Enqueued = Pick<Handle, "id" | "queue" | "result" | "status"> & Partial<Pick<Handle, "info" | "cancel">>;

/** Milliseconds in which this process stood still, being stopped or without a processor. */
let stoodStill = 0;
let probedAt = Date.now();
const stillMs = () => Math.max(0, Date.now() - probedAt - 2 * PROBE_MS);
setInterval(() => {
  stoodStill += stillMs();
  probedAt = Date.now();
}, PROBE_MS).unref();

/** Makes a call that may take `limit` ms. Returns undefined if it threw a named error. */
async function call<Value>(
  name: string,
  limit: number,
  work: () => Promise<Value>,
): Promise<Value | undefined> {
  const startedAt = Date.now() - stoodStill - stillMs();
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LeaseqError)) throw error;
    await sleep(50);
    return undefined;
  } finally {
    const ms = Date.now() - stoodStill - stillMs() - startedAt;
    calls += 1;
    longest = Math.max(longest, ms - limit);
    if (ms > limit) say({ late: `${name} took ${ms} ms, limit ${limit}` });
  }
}

const backoff = { first: 50, last: 200 };
const FOREVER: CallOptions = { retries: Number.POSITIVE_INFINITY, backoff, keep: KEEP_MS, timeLimit: 2000 };
const OPTIONS: Readonly<Record<string, CallOptions>> = {
  fail: { ...FOREVER, retries: 2 },
  sleep: { ...FOREVER, retries: 1, timeLimit: 300 },
};

/** Enqueues a job of this kind. Returns its handle; that of a chain has the id of its last job. */
async function enqueue(kind: string): Promise<Enqueued | undefined> {
  const number = enqueued++;
  const queue = random.pick(QUEUES);
  const id = `${kind}-${process.pid}-${number}`;
  const delay = kind === "cancel" ? random.below(1500) : random.below(3) === 0 ? random.below(500) : 0;
  const options = { ...FOREVER, ...OPTIONS[kind], queue, id, delay, priority: random.below(3) };
  const enqueueOnce = () =>
    call("enqueue", 2 * CALL_MS, async () => {
      if (kind === "chain") return await enqueueChain(id, number, delay);
      return await app.function(kind === "cancel" ? "work" : kind).enqueue(number, options);
    });
  const handle = await enqueueOnce();
  if (handle) say({ accepted: handle.id, queue: handle.queue });
  // Once more while it may be there; another run of it would end the same.
  if (handle && kind === "die" && random.below(2) === 0) await enqueueOnce();
  return handle;
}

async function enqueueChain(id: string, number: number, delay: number): Promise<Enqueued> {
  const [first, ...rest] = CHAIN.map((queue) => ({ ...FOREVER, queue }));
  let chain = app.chain(app.function("step").call([number], { ...first, id, delay }));
  for (const options of rest) chain = chain.next(app.function("step"), options);
  const handle = await chain.enqueue();
  const { id: last, queue } = handle.stages.at(-1) as Handle;
  return { id: last, queue, result: (wait) => handle.result(wait), status: () => handle.status() };
}

/** Waits for the end of a job, for a while. */
async function look(handle: Enqueued): Promise<void> {
  const timeout = random.below(4000);
  const isAborted = random.below(4) === 0;
  const signal = isAborted ? AbortSignal.timeout(random.below(1000)) : undefined;
  const limit = isAborted ? 1000 + ABORT_MS : timeout + 2 * CALL_MS;
  const end = await call("result", limit, () => endOf(handle, { timeout, signal }));
  if (end !== undefined) say({ answer: end, of: handle.id });
  if (random.below(4) === 0) await call("info", 2 * CALL_MS, async () => await handle.info?.());
  if (random.below(4) === 0) await call("status", CALL_MS, () => handle.status());
}

async function task(): Promise<void> {
  while (!stop.signal.aborted) {
    const kind = random.pick(KINDS);
    const handle = await enqueue(kind);
    if (handle && kind === "cancel") {
      await sleep(random.below(1500));
      if (await call("cancel", 2 * CALL_MS, async () => await handle.cancel?.()))
        say({ cancelled: handle.id });
    }
    for (let looks = random.below(4); handle && looks > 0; looks -= 1) await look(handle);
    await sleep(random.below(100));
  }
}

const tasks = Array.from({ length: TASKS }, task);
process.once("SIGTERM", async () => {
  stop.abort();
  await call("close", 4000, () => client.close());
  await Promise.all(tasks);
  await sleep(100);
  const left = process.getActiveResourcesInfo();
  for (const one of ["Timeout", ...before]) if (left.includes(one)) left.splice(left.indexOf(one), 1);
  say({ left });
  say({ calls, longest });
});
say({ began: true });
await Promise.all(tasks);
