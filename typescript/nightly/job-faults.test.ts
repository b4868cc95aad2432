// Jobs of workers and producers in TypeScript and Python, under the same faults as faults.test.ts. Each job that was accepted ends as it
// must, and has one end: all answers about its result are the same. A slot of a schedule gets one job. Every process ends.
//
//     FAULT_SECONDS=600 FAULT_SEED=1 node --test dist/nightly/job-faults.test.js
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Client } from "../src/index.js";
import { App } from "../src/jobs/index.js";
import { until } from "../test/server.js";
import { Campaign, type Start } from "./campaign.js";
import { SECONDS, SEED } from "./fleet.js";
import { endOf, isRightEnd, type JobLine, QUEUES, TICK, TICK_MS } from "./fleet-jobs.js";
import { Member } from "./member.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const BATCH = 200;

const inNode =
  (name: string): Start<JobLine> =>
  (path) =>
    new Member([process.execPath, "--expose-gc", fileURLToPath(new URL(name, import.meta.url)), path]);
const inPython =
  (role: string): Start<JobLine> =>
  (path) =>
    new Member([`${ROOT}.venv/bin/python`, "-m", "programs.faulted_jobs", role, path], {
      PYTHONPATH: `${ROOT}python/tests`,
    });
const worker = inNode("fleet-job-worker.js");
const PRODUCERS = [inNode("fleet-job-producer.js"), inPython("produce")];
const WORKERS = [worker, worker, inPython("work"), inPython("work")];

/** What programs said of the jobs. */
class Told {
  readonly accepted = new Map<string, string>();
  readonly cancelled = new Set<string>();
  readonly completed: string[] = [];
  readonly ends = new Map<string, Set<string>>();
  readonly wrong: string[] = [];
  calls = 0;

  constructor(lines: readonly JobLine[]) {
    for (const line of lines) {
      if ("accepted" in line) this.accepted.set(line.accepted, line.queue);
      else if ("cancelled" in line) this.cancelled.add(line.cancelled);
      else if ("completed" in line) this.completed.push(line.completed);
      else if ("answer" in line) this.note(line.of, line.answer);
      else if ("late" in line) this.wrong.push(line.late);
      else if ("left" in line) this.wrong.push(...line.left.map((one) => `${one} is left behind close()`));
      else if ("calls" in line) this.calls += line.calls;
    }
  }

  note(id: string, end: string): void {
    this.ends.set(id, (this.ends.get(id) ?? new Set()).add(end));
  }
}

/** Asks for the end of each job, and checks it. */
async function checkEnds(app: App, told: Told): Promise<void> {
  const jobs = [...told.accepted];
  for (let start = 0; start < jobs.length; start += BATCH) {
    const some = jobs.slice(start, start + BATCH);
    const asked = some.map(([id, queue]) => endOf(app.handle(id, queue), { timeout: 0 }));
    for (const [index, end] of (await Promise.all(asked)).entries()) {
      const [id, queue] = some[index] as [string, string];
      if (end !== undefined) told.note(id, end);
      if (!isRightEnd(id, end, told.cancelled.has(id))) told.wrong.push(`${id} in ${queue} ended as ${end}`);
    }
  }
  for (const [id, ends] of told.ends) {
    if (ends.size > 1) told.wrong.push(`${id} has several ends: ${[...ends].join(" and ")}`);
  }
}

/** Each slot from the first to the last has a job, which has ended. Returns how many there are. */
async function checkSlots(app: App, startedAt: number): Promise<number> {
  const [schedule] = await app.schedules.list("both");
  const last = schedule?.last ?? 0;
  const slots: number[] = [];
  for (let slot = Math.ceil(startedAt / TICK_MS) * TICK_MS; slot <= last; slot += TICK_MS) slots.push(slot);
  const outcomes = await app.queue("both").outcome(slots.map((slot) => `cron:${TICK}:${slot}`));
  const first = outcomes.findIndex(({ state }) => state !== "absent");
  const wrong = slots.filter((_, index) => index >= first && outcomes[index]?.state !== "result");
  assert.ok(first >= 0, "the schedule had no turn");
  assert.deepEqual(wrong, [], "slots without an ended job");
  return slots.length - first;
}

test(`jobs in two languages under faults, ${SECONDS} s, FAULT_SEED=${SEED}`, {
  timeout: (SECONDS + 300) * 1000,
}, async (context) => {
  const startedAt = Date.now();
  const campaign = await Campaign.start(SEED, worker, [...PRODUCERS, ...WORKERS]);
  const client = new Client({ path: campaign.pair.proxy.path });
  try {
    await campaign.run(SECONDS);
    await campaign.stop((index) => index < PRODUCERS.length);

    const app = new App(client);
    let waiting: unknown[] = [];
    await until(async () => {
      const stats = await Promise.all(QUEUES.map((name) => app.queue(name).stats()));
      waiting = stats.map((each) => [...each]);
      return stats.every(
        (each) => ["delayed", "leased"].every((state) => !each.get(state)) && (each.get("ready") ?? 0) < 2,
      );
    }, 120_000).catch(() => assert.fail(`the queues are not empty: ${JSON.stringify(waiting)}`));
    await campaign.stop((index) => index >= PRODUCERS.length);
    const known = await campaign.finish();

    const told = new Told(campaign.lines);
    await checkEnds(app, told);
    const twice = told.completed.filter((id, index) => told.completed.indexOf(id) !== index);
    told.wrong.push(...twice.map((id) => `${id} was completed twice`));
    assert.deepEqual(told.wrong, []);
    const slots = await checkSlots(app, startedAt);
    context.diagnostic(
      `${told.accepted.size} jobs, ${told.cancelled.size} cancelled, ${slots} slots, ${told.completed.length} completed by TypeScript,` +
        ` ${told.ends.size} ends, ${told.calls} calls; ${known}`,
    );
  } finally {
    await client.close();
    await campaign.end();
  }
});
