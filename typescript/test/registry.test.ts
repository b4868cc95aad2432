import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Redis } from "ioredis";
import { Client } from "../src/index.js";
import { Server, until } from "./server.js";

const KEY = "leaseq:queues";
let server: Server;
let raw: Redis;
let client: Client;

before(async () => {
  server = await Server.start();
  raw = server.raw();
});
beforeEach(async () => {
  await client?.close();
  await raw.flushall();
  client = new Client({ path: server.path });
});
after(async () => {
  await client.close();
  raw.disconnect();
  await server.end();
});

/** The registered queues, once everything under way has ended. */
async function entries(): Promise<string[]> {
  await client.close();
  return (await raw.smembers(KEY)).sort();
}

describe("the registry of queues", { concurrency: false }, () => {
  test("adding and leasing register a queue, once (LQ-REGISTRY-1, LQ-REGISTRY-2)", async () => {
    await client.queue("alone").add({ id: "a", data: "" });
    const shop = client.queue("orders", { group: "shop" });
    await shop.add([{ id: "a", data: "" }]);
    await until(async () => (await raw.scard(KEY)) === 2);
    await raw.del(KEY);
    await raw.config("RESETSTAT");
    await shop.add({ id: "b", data: "" });
    const other = new Client({ path: server.path });
    assert.ok(await other.queue("orders", { group: "shop" }).lease({ duration: 60_000 }));
    await other.close();
    assert.deepEqual(await entries(), ["shop:orders"]);
    assert.match((await raw.info("commandstats")) ?? "", /cmdstat_sadd:calls=1,/);
  });

  test("reading and refused calls register nothing", async () => {
    const queue = client.queue("typo");
    await queue.stats();
    await queue.lightClean();
    assert.equal(await queue.lease({ duration: 60_000 }), undefined);
    await assert.rejects(queue.add({ id: "\0", data: "" }));
    assert.deepEqual(await entries(), []);
  });

  test("no call fails by it (LQ-REGISTRY-3)", async () => {
    await raw.set(KEY, "mine");
    const queue = client.queue("q");
    assert.ok((await queue.add({ id: "a", data: "" })) > 0);
    const lease = await queue.lease({ duration: 60_000 });
    assert.equal(await lease?.complete(), true);
    await client.close();
    assert.equal(await raw.get(KEY), "mine");
  });
});
