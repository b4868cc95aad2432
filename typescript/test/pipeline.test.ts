import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Redis } from "ioredis";
import { appendTo, BadArgumentError, Client, commands } from "../src/index.js";
import { Server } from "./server.js";

let server: Server;
let client: Client;
let raw: Redis;

before(async () => {
  server = await Server.start();
  client = new Client({ path: server.path });
  raw = server.raw();
});
after(async () => {
  await client.close();
  raw.disconnect();
  await server.end();
});

describe("calls among the caller's own commands", () => {
  test("in a transaction, on a server that knows no script, bytes unharmed", async () => {
    const { keys } = client.queue("transaction");
    await raw.script("FLUSH");
    const data = Buffer.from([0, 255, 128]);
    const multi = raw.multi().set("paid", "yes");
    const readFirst = appendTo(multi, commands.add(keys, [{ id: "a", data }]));
    const readSecond = appendTo(multi, commands.add(keys, [{ id: "a", data: "" }]));
    const readLease = appendTo(multi, commands.lease(keys, 1, 5000));
    const results = (await multi.exec()) ?? [];
    assert.ok((readFirst(results[1])[0] ?? 0) > 0);
    assert.deepEqual(readSecond(results[2]), [0]);
    assert.deepEqual(readLease(results[3]).items[0]?.data, data);
    assert.equal(await raw.get("paid"), "yes");
  });

  test("in a transaction that a watched key stopped: nothing ran", async () => {
    const { keys } = client.queue("watched");
    const other = server.raw();
    await raw.watch("key");
    await other.set("key", "changed");
    other.disconnect();
    const multi = raw.multi();
    const readCreated = appendTo(multi, commands.add(keys, [{ id: "a", data: "" }]));
    const results = await multi.exec();
    assert.throws(() => readCreated(results?.[0]), { code: "ABORTED", definite: true });
  });

  test("in a pipeline, each with its own answer or error", async () => {
    const { keys } = client.queue("pipeline");
    const pipeline = raw.pipeline();
    const readRefused = appendTo(pipeline, commands.lease(keys, 0, 5000));
    const readStats = appendTo(pipeline, commands.stats(keys));
    const results = (await pipeline.exec()) ?? [];
    assert.throws(() => readRefused(results[0]), BadArgumentError);
    assert.equal(readStats(results[1]).get("ready"), 0);
  });
});
