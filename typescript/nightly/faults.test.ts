// A fleet of workers under random faults: processes are killed, stopped and frozen, servers restarted and replaced by their replicas,
// connections cut, calls aborted, loops blocked. Nothing is lost, nothing stays held, no item is completed twice, and every process ends.
//
//     FAULT_SECONDS=600 FAULT_SEED=1 node --test dist/nightly/faults.test.js
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client, LeaseqError } from "../src/index.js";
import { until } from "../test/server.js";
import { Campaign } from "./campaign.js";
import { CALL_MS, KEEP_MS, type Line, Random, SECONDS, SEED } from "./fleet.js";
import { Member } from "./member.js";

const WORKERS = 4;
const PROGRAM = fileURLToPath(new URL("fleet-worker.js", import.meta.url));
const QUEUE = "fleet";

/** Adds items one after the other; some calls are aborted, some break. Knows which were added. */
class Producer {
  readonly added = new Set<string>();
  readonly unknown = new Set<string>();
  longest = 0;
  #number = 0;
  readonly #client: Client;
  readonly #random: Random;

  constructor(path: string, random: Random) {
    this.#client = new Client({ path, connectTimeout: 2000 }, { replyTimeout: 3000 });
    this.#random = random;
  }

  async run(queueName: string, stop: AbortSignal): Promise<void> {
    const queue = this.#client.queue(queueName);
    while (!stop.aborted) {
      const ids = Array.from({ length: 1 + this.#random.below(8) }, () => `item-${this.#number++}`);
      const abort = this.#random.below(10) === 0 ? AbortSignal.timeout(this.#random.below(5)) : undefined;
      const startedAt = Date.now();
      try {
        await queue.add(
          ids.map((id) => ({ id, data: `data of ${id}`, keep: KEEP_MS })),
          { signal: abort },
        );
        for (const id of ids) this.added.add(id);
      } catch (error) {
        assert.ok(error instanceof LeaseqError, `an error without a name: ${error}`);
        if (!error.definite) for (const id of ids) this.unknown.add(id);
        await sleep(50);
      }
      this.longest = Math.max(this.longest, Date.now() - startedAt);
      await sleep(this.#random.below(20));
    }
  }

  async close(): Promise<void> {
    const startedAt = Date.now();
    await this.#client.close();
    assert.ok(Date.now() - startedAt < 4000, "close took too long");
  }
}

test(`a fleet of workers under faults, ${SECONDS} s, FAULT_SEED=${SEED}`, {
  timeout: (SECONDS + 300) * 1000,
}, async (context) => {
  const start = (path: string) => new Member<Line>([process.execPath, "--expose-gc", PROGRAM, path, QUEUE]);
  const campaign = await Campaign.start(SEED, start, Array(WORKERS).fill(start));
  const { path } = campaign.pair.proxy;
  const stopping = new AbortController();
  const producer = new Producer(path, new Random(SEED + 1));
  const producing = producer.run(QUEUE, stopping.signal);
  try {
    await campaign.run(SECONDS);
    stopping.abort();
    await producing;

    const client = new Client({ path });
    const queue = client.queue(QUEUE);
    let stats = await queue.stats();
    await until(async () => {
      stats = await queue.stats();
      return ["ready", "delayed", "leased"].every((state) => !stats.get(state));
    }, 120_000).catch(() => assert.fail(`the queue is not empty: ${JSON.stringify([...stats])}`));
    assert.equal(stats.get("dead"), 0);

    await campaign.stop();
    const told = await campaign.finish();

    const ids = [...producer.added, ...producer.unknown];
    const outcomes = await queue.outcome(ids);
    const lost = ids.filter((id, index) => producer.added.has(id) && outcomes[index]?.state !== "result");
    assert.deepEqual(lost, [], "items are lost");
    const completed = campaign.lines.flatMap((line) => ("completed" in line ? [line.completed] : []));
    assert.equal(new Set(completed).size, completed.length, "an item was completed twice");
    const done = outcomes.filter((outcome) => outcome.state === "result").length;
    assert.ok(completed.length <= done, `${completed.length} answers of ${done} outcomes`);

    assert.ok(producer.longest < CALL_MS, `a call took ${producer.longest} ms`);
    await producer.close();
    await client.close();
    context.diagnostic(
      `${producer.added.size} added, ${producer.unknown.size} perhaps, ${done} outcomes, ${completed.length} returned true;` +
        ` longest call ${producer.longest} ms; ${told}`,
    );
  } finally {
    stopping.abort();
    await campaign.end();
    await producing.catch(() => {});
  }
});
