// The loop over `queue.items`: how it ends, and what it hands out.
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Redis } from "ioredis";
import { Client, type Queue } from "../src/index.js";
import { Server, until } from "./server.js";

const LONG_MS = 60_000;
let server: Server;
let raw: Redis;
let client: Client;
let queue: Queue;

before(async () => {
  server = await Server.start();
  raw = server.raw();
});
beforeEach(async () => {
  await client?.close();
  await raw.flushall();
  client = new Client({ path: server.path });
  queue = client.queue("q");
});
after(async () => {
  await client.close();
  raw.disconnect();
  await server.end();
});

const add = (...ids: string[]) => queue.add(ids.map((id) => ({ id, data: "" })));
const blocked = async () => /cmd=blpop/.test(String(await raw.client("LIST")));
const DONE = { done: true, value: undefined };

describe("a loop over items", { concurrency: false }, () => {
  const ends: Record<string, (items: ReturnType<Queue["items"]>) => Promise<unknown>> = {
    return: (items) => items.return(),
    throw: (items) => assert.rejects(items.throw(new Error("of the caller")), /of the caller/),
    "Symbol.asyncDispose": (items) => Promise.resolve(items[Symbol.asyncDispose]()),
  };
  for (const [name, end] of Object.entries(ends)) {
    test(`is ended by ${name} while it waits, and leases nothing more`, async () => {
      const items = queue.items({ duration: LONG_MS });
      const waiting = [items.next(), items.next()];
      await until(blocked);
      await end(items);
      assert.deepEqual(await Promise.all(waiting), [DONE, DONE]);
      await add("a");
      assert.deepEqual(await items.next(), DONE);
      assert.equal((await queue.inspect("a")).state, "ready");
    });
  }

  test("is ended by a stream that is destroyed", async () => {
    const stream = Readable.from(queue.items({ duration: LONG_MS }));
    stream.on("data", () => {});
    await until(blocked);
    const closed = new Promise((resolve) => stream.once("close", resolve));
    stream.destroy();
    await closed;
    await add("a");
    await until(async () => !(await blocked()));
    assert.deepEqual([(await queue.inspect("a")).state, (await queue.inspect("a")).attempt], ["ready", 0]);
  });

  test("gives back what it did not reach, by break and by its signal", async () => {
    await add("a", "b", "c");
    for await (const item of queue.items({ duration: LONG_MS, count: 3 })) {
      await item.complete();
      break;
    }
    assert.deepEqual([(await queue.inspect("b")).state, (await queue.inspect("b")).attempt], ["ready", 0]);
    const abort = new AbortController();
    for await (const item of queue.items({ duration: LONG_MS, count: 2, signal: abort.signal })) {
      await item.complete();
      abort.abort();
    }
    assert.deepEqual([(await queue.inspect("c")).state, (await queue.inspect("c")).attempt], ["ready", 0]);
  });

  test("hands out no item whose lease is over", async () => {
    await add("a", "b");
    const seen: [string, boolean][] = [];
    for await (const item of queue.items({ duration: 100, count: 2, timeout: 0 })) {
      seen.push([item.id.toString(), item.held]);
      await item.complete();
      if (seen.length === 1) await until(async () => (await queue.stats()).get("overdue") === 1);
    }
    assert.deepEqual(seen, [
      ["a", true],
      ["b", true],
    ]);
  });

  test("ends after an error, which is thrown once", async () => {
    const items = queue.items({ duration: Number.NaN });
    await assert.rejects(items.next(), /duration/);
    assert.deepEqual(await items.next(), DONE);
  });

  test("serves several readers in turn", async () => {
    await add("a", "b");
    const items = queue.items({ duration: LONG_MS, timeout: 0 });
    const results = await Promise.all([items.next(), items.next(), items.next()]);
    assert.deepEqual(
      results.map(({ value }) => value?.id.toString()),
      ["a", "b", undefined],
    );
  });
});
