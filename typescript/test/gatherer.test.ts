// Callers that add at once: what waits while calls are under way goes along in the next one.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Redis } from "ioredis";
import { Gatherer } from "../src/gatherer.js";
import {
  BadIdError,
  Client,
  ConnectionError,
  type NewItem,
  type Queue,
  QueueFullError,
  TooLargeError,
  UnavailableError,
} from "../src/index.js";
import { FaultProxy, Server } from "./server.js";

/** How many calls are under way at a time. */
const AT_ONCE = 4;
let server: Server;
let raw: Redis;
let proxy: FaultProxy;
let client: Client;
let queue: Queue;

before(async () => {
  server = await Server.start();
  raw = server.raw();
  proxy = await new FaultProxy(server.path).open();
});
beforeEach(async () => {
  await client?.close();
  await raw.flushall();
  client = new Client({ path: proxy.path });
  queue = client.queue("q");
  await queue.stats();
});
after(async () => {
  await client.close();
  proxy.close();
  raw.disconnect();
  await server.end();
});

/** How many calls of `add` the server has had. */
const sent = () => proxy.sent.split("EVALSHA").length + proxy.sent.split("EVAL\r").length - 2;

/** Adds, in one turn of the event loop, for as many callers as calls can be under way, and then for these; returns the ends of these. */
async function crowd(
  items: readonly NewItem[],
): Promise<{ ends: PromiseSettledResult<number>[]; calls: number }> {
  await queue.add({ id: "known", data: "" });
  const earlier = sent();
  const first = Array.from({ length: AT_ONCE }, (_, at) => queue.add({ id: `first-${at}`, data: "" }));
  const others = items.map((item) => queue.add(item));
  const ends = await Promise.allSettled(others);
  assert.ok((await Promise.all(first)).every((created) => created > 0));
  return { ends, calls: sent() - earlier };
}

const numbered = (count: number, data: string) =>
  Array.from({ length: count }, (_, at) => ({ id: String(at), data }));

function assertAdded(end: PromiseSettledResult<number> | undefined): void {
  assert.ok(end?.status === "fulfilled" && end.value > 0, JSON.stringify(end));
}

function reasonOf(end: PromiseSettledResult<number> | undefined): unknown {
  assert.ok(end?.status === "rejected", JSON.stringify(end));
  return end.reason;
}

describe("callers that add at once", { concurrency: false }, () => {
  test("share calls", async () => {
    const { ends, calls } = await crowd(numbered(300, "abc"));
    ends.forEach(assertAdded);
    assert.equal(calls, AT_ONCE + 2, "300 entries are two calls");
    assert.equal((await queue.inspect("299")).size, 3);
  });

  test("share no call that is too long", async () => {
    const { ends, calls } = await crowd(numbered(6, "x".repeat(1 << 20)));
    ends.forEach(assertAdded);
    assert.equal(calls, AT_ONCE + 2, "4 MiB are one call");
  });

  test("get the error of the item that each passed", async () => {
    await queue.configure({ maxData: 3 });
    const { ends, calls } = await crowd(
      numbered(64, "abc").map((item) => (item.id === "5" ? { ...item, data: "long" } : item)),
    );
    assert.ok(reasonOf(ends.splice(5, 1)[0]) instanceof TooLargeError);
    ends.forEach(assertAdded);
    assert.equal(calls, AT_ONCE + 1 + 2 * 6, "64 are halved six times");
  });

  test("add an id once", async () => {
    const { ends } = await crowd(["one", "other"].map((data) => ({ id: "same", data })));
    assertAdded(ends[0]);
    assert.deepEqual(ends[1], { status: "fulfilled", value: 0 });
  });

  test("find a queue full, each for itself", async () => {
    await queue.configure({ maxItems: AT_ONCE + 2 });
    const { ends } = await crowd(numbered(2, ""));
    assertAdded(ends[0]);
    const error = reasonOf(ends[1]);
    assert.ok(error instanceof QueueFullError);
    assert.deepEqual(error.answers, [-1]);
  });

  test("send what was passed, whatever is changed meanwhile", async () => {
    await queue.add({ id: "known", data: "" });
    const first = numbered(AT_ONCE, "").map((item) => queue.add(item));
    const data = Buffer.from("abc");
    const last = queue.add({ id: "last", data });
    data.fill("x");
    await Promise.all([...first, last]);
    const items = await queue.leaseItems({ duration: 60_000, count: AT_ONCE + 2 });
    assert.equal(items.find(({ id }) => id.toString() === "last")?.data.toString(), "abc");
  });

  test("are sent on a new connection if they waited when the earlier one broke", async () => {
    await queue.add({ id: "known", data: "" });
    proxy.hold();
    const [first, waiting] = [AT_ONCE, 3].map((count) =>
      numbered(count, "").map(({ id, data }) => queue.add({ id: `${id} of ${count}`, data })),
    );
    proxy.cut();
    for (const end of await Promise.allSettled(first ?? [])) {
      assert.ok(reasonOf(end) instanceof ConnectionError);
    }
    proxy.passOn();
    (await Promise.allSettled(waiting ?? [])).forEach(assertAdded);
  });

  test("are refused before they wait if the item is none", async () => {
    await assert.rejects(queue.add({ id: "", data: "" }), BadIdError);
  });

  test("are refused, and not sent, once they have waited longer than a reply may take", async () => {
    const calls: number[][] = [];
    let reply = () => {};
    const replied = new Promise<void>((resolve) => {
      reply = resolve;
    });
    const gathering = {
      atOnce: 1,
      limit: 60_000,
      defer: (start: () => void) => start(),
      length: () => 1,
      call: async (entries: readonly number[]) => {
        calls.push([...entries]);
        await replied;
        return entries;
      },
    };
    const gatherer = new Gatherer<number, number>(gathering);
    const first = gatherer.run(1);
    gathering.limit = -1;
    const late = gatherer.run(2);
    gathering.limit = 60_000;
    const timely = gatherer.run(3);
    reply();
    await assert.rejects(late, UnavailableError);
    assert.deepEqual(await Promise.all([first, timely]), [1, 3]);
    assert.deepEqual(calls, [[1], [3]]);
  });
});
