import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import {
  AbortError,
  BadArgumentError,
  Client,
  ConnectionError,
  type LeasedItem,
  PartialError,
  type Queue,
  QueueFullError,
  ServerError,
} from "../src/index.js";
import { FaultProxy, Server, until } from "./server.js";

let server: Server;
let client: Client;
let raw: Redis;
let count = 0;
const newQueue = (group?: string, owner = client) =>
  owner.queue(`q${++count}`, group === undefined ? {} : { group });
const blocked = async () => Number(/blocked_clients:(\d+)/.exec(await raw.info("clients"))?.[1]);
/** A waiter that returns within this time was woken. Without a wake-up it checks again after the cap, 4 s. */
const WOKEN_MS = 3500;
/** A timeout that no wait of a test reaches, however slow the machine is. */
const LONG_MS = 100_000;
const elapsedMs = async (task: () => Promise<unknown>) => {
  const start = performance.now();
  await task();
  return performance.now() - start;
};

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

describe("waiting for an item", () => {
  test("is woken by add", async () => {
    const queue = newQueue();
    const waiting = queue.lease({ duration: 5000, timeout: LONG_MS });
    await until(async () => (await blocked()) === 1);
    const took = await elapsedMs(async () => {
      await queue.add({ id: "a", data: "" });
      assert.ok(await waiting);
    });
    assert.ok(took < WOKEN_MS, `${took} ms`);
  });

  test("is on time for a deadline", async () => {
    const queue = newQueue();
    await queue.add({ id: "a", data: "" });
    await queue.lease({ duration: 330 });
    const took = await elapsedMs(async () =>
      assert.ok(await queue.lease({ duration: 5000, timeout: LONG_MS })),
    );
    assert.ok(took > 300 && took < WOKEN_MS, `${took} ms`);
  });

  test("ends when its time is up, and settles", async () => {
    const queue = newQueue();
    const took = await elapsedMs(async () =>
      assert.equal(await queue.lease({ duration: 5000, timeout: 150 }), undefined),
    );
    assert.ok(took >= 150 && took < WOKEN_MS, `${took} ms`);
  });

  test("checks again after the cap", async () => {
    const queue = newQueue();
    const waiting = queue.lease({ duration: 5000, timeout: LONG_MS });
    await until(async () => (await blocked()) === 1);
    await queue.configure({ paused: true });
    await queue.add({ id: "a", data: "" });
    const other = server.raw();
    // Resumed without the script: no waiter is woken.
    const state = await other.getBuffer(queue.keys.key("state"));
    assert.ok(state);
    state[1] = 0;
    await other.set(queue.keys.key("state"), state);
    other.disconnect();
    assert.ok(await waiting);
  });

  test("abort ends it at once, and the wake-up is passed on", async () => {
    const queue = newQueue();
    const abort = new AbortController();
    const waiting = queue.lease({ duration: 5000, timeout: LONG_MS, signal: abort.signal });
    await until(async () => (await blocked()) === 1);
    abort.abort();
    const took = await elapsedMs(async () => await assert.rejects(waiting, AbortError));
    assert.ok(took < WOKEN_MS, `${took} ms`);
    // The aborted block is first in the queue of BLPOP: it takes the wake-up, and its settle passes it on.
    const next = queue.lease({ duration: 5000, timeout: LONG_MS });
    await until(async () => (await blocked()) === 2);
    assert.ok((await elapsedMs(async () => await queue.add({ id: "a", data: "" }))) < WOKEN_MS);
    assert.ok((await elapsedMs(async () => assert.ok(await next))) < WOKEN_MS);
    await assert.rejects(queue.lease({ duration: 1, signal: AbortSignal.abort() }), AbortError);
  });

  test("abort ends it in the same turn, before the server ends the block", async () => {
    const abort = new AbortController();
    const waiting = newQueue().lease({ duration: 5000, timeout: LONG_MS, signal: abort.signal });
    await until(async () => (await blocked()) === 1);
    let ended = false;
    const rejected = assert.rejects(waiting, AbortError).then(() => {
      ended = true;
    });
    abort.abort();
    await new Promise(setImmediate);
    assert.ok(ended);
    await rejected;
  });

  test("several queues of one group", async () => {
    const queues = [newQueue("g"), newQueue("g"), newQueue("g")];
    const waiting = client.leaseAny(queues, { duration: 5000, timeout: LONG_MS });
    await until(async () => (await blocked()) >= 1);
    await queues[2]?.add({ id: "a", data: "" });
    const [lease] = await waiting;
    assert.equal(lease?.queue, queues[2]);
    assert.equal(await lease?.complete(), true);
  });

  test("queues of several groups", async () => {
    const queues = [newQueue("g1"), newQueue("g2")];
    await queues[1]?.add({ id: "b", data: "" });
    const [first] = await client.leaseAny(queues, { duration: 5000 });
    assert.equal(first?.queue, queues[1]);
    const waiting = client.leaseAny(queues, { duration: 5000, timeout: LONG_MS });
    await until(async () => (await blocked()) === 2);
    await queues[0]?.add({ id: "a", data: "" });
    const took = await elapsedMs(async () => assert.equal((await waiting)[0]?.queue, queues[0]));
    assert.ok(took < WOKEN_MS, `${took} ms`);
    assert.deepEqual(await client.leaseAny(queues, { duration: 5000, timeout: 30 }), []);
  });

  test("queues of several groups: an abort during the first lease gives back what that leased", async () => {
    const proxy = await new FaultProxy(server.path).open();
    const slow = new Client({ path: proxy.path });
    const queues = ["g1", "g2"].map((group) => slow.queue(`abort-${group}`, { group }));
    await queues[0]?.add({ id: "a", data: "" });
    await slow.leaseAny(queues, { duration: 1 }); // it is connected, and the scripts are known
    await until(async () => (await queues[0]?.stats())?.get("overdue") === 1);
    proxy.hold();
    const abort = new AbortController();
    proxy.sent = "";
    const waiting = assert.rejects(
      slow.leaseAny(queues, { duration: LONG_MS, signal: abort.signal }),
      AbortError,
    );
    await until(() => proxy.sent.includes("EVALSHA"));
    await until(async () => (await client.queue("abort-g1", { group: "g1" }).stats()).get("leased") === 1);
    abort.abort();
    proxy.passOn();
    await waiting;
    await until(async () => (await client.queue("abort-g1", { group: "g1" }).stats()).get("leased") === 0);
    await slow.close();
    proxy.close();
  });

  test("a waiter whose lease finds a dead item publishes its outcome", async () => {
    const queues = [newQueue("g"), newQueue("g")];
    await queues[1]?.add({ id: "a", data: "", keep: 60_000, maxAttempts: 1 });
    await queues[1]?.lease({ duration: 50 });
    await client.leaseAny(queues, { duration: 5000, timeout: 120 });
    await until(async () => (await raw.exists(`${queues[1]?.keys.key("result:")}a`)) === 1);
  });
});

describe("items as they come", () => {
  test("until none comes, and until the signal", async () => {
    const queue = newQueue();
    await queue.add(["a", "b", "c", "d"].map((id) => ({ id, data: "" })));
    const seen: string[] = [];
    for await (const lease of queue.items({ duration: 5000, timeout: 50 })) {
      seen.push(lease.id.toString());
      await lease.complete();
      if (seen.length === 2) break;
    }
    const abort = new AbortController();
    for await (const lease of queue.items({ duration: 5000, count: 9, signal: abort.signal })) {
      seen.push(lease.id.toString());
      await lease.complete();
      abort.abort();
    }
    assert.deepEqual(seen, ["a", "b", "c"]);
    const [d] = await queue.inspect(["d"]);
    assert.deepEqual([d?.state, d?.attempt], ["ready", 0], "what the loop did not reach went back");
  });
});

describe("waiting for room and for outcomes", () => {
  test("room", async () => {
    const queue = newQueue();
    await queue.configure({ maxItems: 1 });
    await queue.add({ id: "a", data: "" });
    await assert.rejects(queue.add({ id: "b", data: "" }, { timeout: 60 }), QueueFullError);
    const adding = queue.add({ id: "b", data: "" }, { timeout: LONG_MS });
    await until(async () => (await blocked()) === 1);
    const a = await queue.lease({ duration: 5000 });
    assert.ok(a);
    const took = await elapsedMs(async () => {
      await queue.completeAndLease([a], { duration: 5000 });
      assert.ok((await adding) > 0);
    });
    assert.ok(took < WOKEN_MS, `${took} ms`);
  });

  test("an abort after a part was added has the answers", async () => {
    const queue = newQueue();
    await queue.configure({ maxItems: 1 });
    const both = ["a", "b"].map((id) => ({ id, data: "" }));
    const abort = new AbortController();
    const adding = queue.add(both, { timeout: LONG_MS, signal: abort.signal });
    until(async () => (await blocked()) === 1).then(() => abort.abort());
    await assert.rejects(adding, (error) => {
      assert.ok(error instanceof QueueFullError && error.cause instanceof AbortError && error.definite);
      assert.deepEqual(error.answers.map(Math.sign), [1, -1]);
      return true;
    });
    const found = queue.add([...both, { id: "b", data: "" }], {
      timeout: LONG_MS,
      signal: AbortSignal.timeout(50),
    });
    await assert.rejects(found, (error) => {
      assert.ok(error instanceof QueueFullError && error.cause instanceof AbortError);
      assert.deepEqual(error.answers.map(Math.sign), [0, -1, -1], "one was there already");
      return true;
    });
    const again = AbortSignal.timeout(50);
    await assert.rejects(queue.add({ id: "c", data: "" }, { timeout: LONG_MS, signal: again }), AbortError);
  });

  test("an abort behind the first of several calls has the answers of all", async () => {
    const queue = newQueue();
    await queue.configure({ maxItems: 257 });
    const items = Array.from({ length: 260 }, (_, index) => ({ id: `i${index}`, data: "" }));
    const adding = queue.add(items, { timeout: LONG_MS, signal: AbortSignal.timeout(300) });
    await assert.rejects(adding, (error) => {
      assert.ok(error instanceof QueueFullError && error.cause instanceof AbortError);
      assert.equal(error.answers.length, 260);
      assert.deepEqual(error.answers.slice(255).map(Math.sign), [1, 1, -1, -1, -1]);
      return true;
    });
  });

  for (const [count, room] of [
    [3, 1],
    [260, 257],
  ] as const) {
    test(`an add of ${count} whose reply is lost while it waits has the answers, and how many entries are in doubt`, async () => {
      const proxy = await new FaultProxy(server.path).open();
      const other = new Client({ path: proxy.path }, { replyTimeout: 300 });
      const queue = newQueue(undefined, other);
      await queue.configure({ maxItems: room });
      const items = Array.from({ length: count }, (_, index) => ({ id: `i${index}`, data: "" }));
      const adding = queue.add(items, { timeout: 1000 });
      until(() => proxy.sent.includes("BLPOP")).then(() => {
        proxy.silent = true;
      });
      await assert.rejects(adding, (error) => {
        assert.ok(error instanceof PartialError && error.cause instanceof ConnectionError && !error.definite);
        assert.deepEqual(error.answers.map(Math.sign), Array(room).fill(1));
        assert.equal(error.inDoubt, count - room);
        return true;
      });
      proxy.close();
      await other.close();
    });
  }

  test("an add that is refused while it waits has the answers", async () => {
    const queue = newQueue();
    await queue.configure({ maxItems: 1 });
    const adding = queue.add(
      ["a", "b"].map((id) => ({ id, data: "four" })),
      { timeout: LONG_MS },
    );
    until(async () => (await raw.hlen(queue.keys.key("items"))) === 1).then(() =>
      queue.configure({ maxItems: 2, maxData: 3 }),
    );
    await assert.rejects(adding, (error) => {
      assert.ok(error instanceof PartialError && error.code === "LEASEQ_TOO_LARGE" && error.definite);
      assert.deepEqual(error.answers.map(Math.sign), [1, -1]);
      return true;
    });
  });

  test("outcomes", async () => {
    const queue = newQueue();
    await queue.add({ id: "a", data: "", keep: 60_000 });
    const both = [
      queue.waitForOutcome("a", { timeout: LONG_MS }),
      queue.waitForOutcome("a", { timeout: LONG_MS }),
    ];
    assert.equal((await queue.waitForOutcome("a", { timeout: 20 })).state, "ready");
    assert.equal((await queue.waitForOutcome("zz")).state, "absent");
    const lease = await queue.lease({ duration: 5000 });
    await lease?.complete({ result: "42" });
    const took = await elapsedMs(async () => {
      for (const outcome of await Promise.all(both)) assert.equal(outcome.content.toString(), "42");
    });
    assert.ok(took < WOKEN_MS, `${took} ms`);
  });

  test("outcomes on a server without memory", async () => {
    const queue = newQueue();
    await queue.add({ id: "a", data: "", keep: 60_000 });
    const lease = await queue.lease({ duration: 5000 });
    await raw.config("SET", "maxmemory", "1");
    try {
      const waiting = queue.waitForOutcome("a", { timeout: 300 });
      await sleep(50);
      await lease?.complete({ result: "x" });
      assert.equal((await waiting).state, "result");
    } finally {
      await raw.config("SET", "maxmemory", "0");
    }
  });
});

describe("heartbeat", () => {
  test("extends a lease, and reports its loss", async () => {
    const queue = newQueue();
    await queue.add({ id: "a", data: "" });
    const lease = await queue.lease({ duration: 15_000 });
    assert.ok(lease);
    const deadline = async () => (await queue.inspect(["a"]))[0]?.time ?? 0;
    const first = await deadline();
    lease.heartbeat();
    await until(async () => (await deadline()) > first);
    assert.equal(lease.held, true);
    assert.equal(await queue.lease({ duration: 1000 }), undefined);
    await queue.remove(["a"]);
    await until(() => lease.lostSignal.aborted);
    assert.equal(lease.held, false);
  });

  test("ends with the item", async () => {
    const queue = newQueue();
    await queue.add({ id: "a", data: "" });
    const lease = await queue.lease({ duration: 60 });
    assert.ok(lease);
    lease.heartbeat();
    await sleep(30);
    assert.equal(await lease.complete(), true);
    await sleep(100);
    assert.equal(lease.lostSignal.aborted, false);
  });

  const ends: Record<string, (queue: Queue, lease: LeasedItem) => Promise<unknown>> = {
    complete: (_, lease) => lease.complete(),
    "complete in a list": (queue, lease) => queue.complete([lease]),
    "complete by its entry": (queue, lease) => queue.complete({ ...lease.entry }),
    completeAndLease: (queue, lease) => queue.completeAndLease([lease], { duration: 600 }),
    "release in a list": (queue, lease) => queue.release([lease]),
    handOff: (queue, lease) =>
      queue.completeWith([{ ...lease.entry, followUps: [{ queue, id: "f", data: "" }] }]),
  };
  for (const [name, end] of Object.entries(ends)) {
    test(`an item that its holder ends is no lost lease: ${name}`, async () => {
      const queue = newQueue();
      await queue.add({ id: "a", data: "" });
      const lease = await queue.lease({ duration: 600 });
      assert.ok(lease);
      lease.heartbeat();
      // The next extension is sent behind the call, before its reply. Its own reply is 0.
      await raw.client("PAUSE", 400);
      await end(queue, lease);
      await sleep(500);
      assert.equal(lease.lostSignal.aborted, false);
      assert.equal(await lease.extend(), 0);
      assert.equal(lease.lostSignal.aborted, false);
    });
  }

  test("goes on if the call that should finish the item is refused", async () => {
    const queue = newQueue();
    await queue.add({ id: "a", data: "" });
    const lease = await queue.lease({ duration: 600 });
    assert.ok(lease);
    lease.heartbeat();
    await assert.rejects(queue.completeAndLease([lease], { duration: 1e15 }), BadArgumentError);
    const before = lease.deadline;
    await until(() => lease.deadline > before);
    await queue.remove(["a"]);
    await until(() => lease.lostSignal.aborted);
  });
});

describe("connections that fail", () => {
  test("a lost reply is indefinite, and nothing is sent again", async () => {
    const proxy = await new FaultProxy(server.path).open();
    const ownClient = new Client({ path: proxy.path });
    const queue = newQueue(undefined, ownClient);
    await queue.stats();
    proxy.silent = true;
    proxy.sent = "";
    const adding = queue.add({ id: "a", data: "" });
    await until(async () => (await raw.hlen(queue.keys.key("items"))) === 1).catch(() => {});
    proxy.cut();
    proxy.silent = false;
    await assert.rejects(adding, (error) => error instanceof ConnectionError && !error.definite);
    assert.equal(proxy.sent.match(/EVAL/gi)?.length, 1);
    assert.equal((await queue.stats()).get("items") ?? 0, await raw.hlen(queue.keys.key("items")));
    await ownClient.close();
    proxy.close();
  });

  test("no server is definite", async () => {
    const ownClient = new Client({ path: "/tmp/leaseq-nobody.sock" });
    await assert.rejects(newQueue(undefined, ownClient).stats(), { code: "CONNECTION", definite: true });
    await ownClient.close();
  });

  test("a wrong database is definite", async () => {
    const ownClient = new Client({ path: server.path, db: 99 });
    await assert.rejects(newQueue(undefined, ownClient).stats(), { definite: true });
    await ownClient.close();
  });

  test("a silent server fails the call after the reply timeout", async () => {
    const proxy = await new FaultProxy(server.path).open();
    const ownClient = new Client({ path: proxy.path }, { replyTimeout: 100 });
    const queue = newQueue(undefined, ownClient);
    await queue.stats();
    proxy.silent = true;
    await assert.rejects(queue.stats(), { code: "CONNECTION", definite: false });
    proxy.silent = false;
    await queue.stats();
    await ownClient.close();
    proxy.close();
  });

  test("a block that breaks is followed by a lease", async () => {
    const proxy = await new FaultProxy(server.path).open();
    const ownClient = new Client({ path: proxy.path });
    const queue = newQueue(undefined, ownClient);
    const before = await blocked();
    const waiting = queue.lease({ duration: 5000, timeout: LONG_MS });
    await until(async () => (await blocked()) > before);
    proxy.cut();
    await until(async () => (await blocked()) > before);
    await client.queue(queue.keys.name).add({ id: "a", data: "" });
    const took = await elapsedMs(async () => assert.ok(await waiting));
    assert.ok(took < WOKEN_MS, `${took} ms`);
    await ownClient.close();
    proxy.close();
  });

  test("an element taken by a connection that broke is not lost", async () => {
    const proxy = await new FaultProxy(server.path).open();
    const ownClient = new Client({ path: proxy.path });
    const queue = newQueue(undefined, ownClient);
    const waiting = queue.lease({ duration: 5000, timeout: LONG_MS });
    await sleep(80);
    proxy.silent = true;
    await client.queue(queue.keys.name).add({ id: "a", data: "" });
    await until(async () => (await raw.llen(queue.keys.key("wake"))) === 0);
    proxy.silent = false;
    proxy.cut();
    assert.ok((await elapsedMs(async () => assert.ok(await waiting))) < WOKEN_MS);
    await ownClient.close();
    proxy.close();
  });

  test("an error of BLPOP ends the wait", async () => {
    await raw.call("ACL", "SETUSER", "nopop", "on", ">pw", "~*", "+@all", "-blpop");
    const ownClient = new Client({ path: server.path, username: "nopop", password: "pw" });
    const took = await elapsedMs(() =>
      assert.rejects(
        newQueue(undefined, ownClient).lease({ duration: 1000, timeout: LONG_MS }),
        (error) => error instanceof ServerError && error.code === "NOPERM" && error.definite,
      ),
    );
    assert.ok(took < WOKEN_MS, `${took} ms`);
    await ownClient.close();
  });

  test("close ends a wait and passes its wake-up on", async () => {
    const ownClient = new Client({ path: server.path });
    const queue = newQueue(undefined, ownClient);
    const waiting = queue.lease({ duration: 1000 * 60, timeout: 60_000 });
    const rejected = assert.rejects(waiting, AbortError);
    await sleep(50);
    const took = await elapsedMs(() => ownClient.close());
    await rejected;
    assert.ok(took < WOKEN_MS, `${took} ms`);
    await assert.rejects(queue.stats(), { definite: true });
  });

  test("a restart", async () => {
    const queue = newQueue();
    const waiting = queue.lease({ duration: 5000, timeout: 2000 });
    await sleep(50);
    const reported = assert.rejects(waiting, ConnectionError, "a server that stays away is reported");
    await server.stop();
    await reported;
    await server.start();
    assert.ok((await queue.add({ id: "a", data: "" })) > 0);
  });
});
