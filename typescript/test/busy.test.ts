import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Redis } from "ioredis";
import { Client } from "../src/index.js";
import { Server } from "./server.js";

const LIMIT_MS = 2000;
let server: Server;
let raw: Redis;

before(async () => {
  server = await Server.start();
  raw = server.raw();
});
after(async () => {
  raw.disconnect();
  await server.end();
});

/** Lets what was started be written, then keeps the event loop busy for longer than the reply timeout. */
async function standStill(): Promise<void> {
  await new Promise<void>((resolve) => process.nextTick(() => process.nextTick(resolve)));
  const endAt = performance.now() + 1.1 * LIMIT_MS;
  while (performance.now() < endAt);
}

const connections = async () => Number(/total_connections_received:(\d+)/.exec(await raw.info("stats"))?.[1]);

describe("an event loop that stands still is not the network (LQ-CLIENT-20)", () => {
  test("while it connects", async () => {
    for (const db of [0, 1]) {
      const client = new Client({ path: server.path, db }, { replyTimeout: LIMIT_MS });
      const calling = client.queue("q").stats();
      await standStill();
      assert.equal((await calling).get("items"), 0);
      await client.close();
    }
  });

  test("while a reply arrives, and the connection stays", async () => {
    const client = new Client({ path: server.path }, { replyTimeout: LIMIT_MS });
    const queue = client.queue("q");
    await queue.stats();
    const before = await connections();
    for (let call = 0; call < 3; call += 1) {
      const calling = queue.stats();
      await standStill();
      assert.equal((await calling).get("items"), 0);
      await queue.stats();
    }
    assert.equal(await connections(), before);
    await client.close();
  });
});
