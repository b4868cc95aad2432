// Calls that wait for replicas or for disks: the option `durable`.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import {
  BadArgumentError,
  Client,
  type Durable,
  NoDurabilityError,
  NotDurableError,
  QueueFullError,
  SCRIPTS,
  ServerError,
  TooLargeError,
} from "../src/index.js";
import { FaultProxy, freePort, Server, until } from "./server.js";

const LONG: Durable = { replicas: 1, timeout: 60_000 };
const SHORT: Durable = { replicas: 1, timeout: 50 };
const ITEM = { id: "a", data: "x" };

let primary: Server;
let replica: Server;
let replicaPid: number;
let client: Client;
let count = 0;
const newQueue = () => client.queue(`q${++count}`);

before(async () => {
  const port = await freePort();
  primary = await Server.start("--port", `${port}`, "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0");
  replica = await Server.start("--port", "0", "--replicaof", "127.0.0.1", `${port}`);
  const raw = replica.raw();
  await until(async () => (await raw.info("replication")).includes("master_link_status:up"));
  replicaPid = Number(/process_id:(\d+)/.exec(await raw.info("server"))?.[1]);
  raw.disconnect();
  client = new Client({ path: primary.path });
});
after(async () => {
  await client.close();
  await primary.end();
  await replica.end();
});
beforeEach(async () => {
  const raw = primary.raw();
  for (const { source } of Object.values(SCRIPTS)) await raw.script("LOAD", source);
  raw.disconnect();
});

/** Runs while the replica stands still. */
async function whilePaused(run: () => Promise<void>): Promise<void> {
  process.kill(replicaPid, "SIGSTOP");
  try {
    await run();
  } finally {
    process.kill(replicaPid, "SIGCONT");
  }
}

/** The error of a call, which is not durable. */
async function notDurable(call: Promise<unknown>): Promise<NotDurableError> {
  const error = await call.then(
    () => assert.fail("it was durable"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof NotDurableError, String(error));
  assert.equal(error.definite, true);
  return error;
}

/** How often the server has run scripts. */
async function evals(): Promise<number> {
  const raw = primary.raw();
  const stats = await raw.info("commandstats");
  raw.disconnect();
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce(
    (sum, [, each]) => sum + Number(each),
    0,
  );
}

describe("replicas", () => {
  test("they have what was answered", async () => {
    const queue = newQueue();
    const raw = replica.raw();
    const held = () => raw.hlen(`leaseq:{${queue.name}}:${queue.name}:items`);
    assert.ok((await queue.add(ITEM, { durable: LONG })) > 0);
    assert.equal(await held(), 1);
    const item = await queue.lease({ duration: 60_000 });
    assert.ok(item);
    const handOff = { id: item.id, token: item.token, followUps: [{ queue, id: "next", data: "" }] };
    assert.equal((await queue.completeWith(handOff, { durable: LONG })).completed, true);
    assert.equal(await held(), 1);
    const next = await queue.lease({ duration: 60_000 });
    assert.ok(next);
    assert.equal(await queue.complete(next, { durable: LONG }), true);
    assert.equal(await held(), 0);
    raw.disconnect();
  });

  test("too few: the error has the answers, and nothing is sent again", async () => {
    const queue = newQueue();
    await queue.add([ITEM, { id: "b", data: "x" }], { durable: LONG });
    const items = await queue.leaseItems({ duration: 60_000, count: 2 });
    await whilePaused(async () => {
      const before = await evals();
      const added = await notDurable(queue.add([ITEM, { id: "c", data: "x" }], { durable: SHORT }));
      assert.deepEqual(
        added.answers.map((created) => (created as number) > 0),
        [false, true],
      );
      assert.deepEqual([added.reached, added.wanted], [0, 1]);
      const completed = await notDurable(queue.complete(items, { durable: SHORT }));
      assert.deepEqual(completed.answers, [true, true]);
      assert.equal(await evals(), before + 2);
      const waited = await notDurable(queue.add({ id: "d", data: "" }, { durable: SHORT, timeout: 10_000 }));
      assert.ok((waited.answers[0] as number) > 0);
      assert.equal((await queue.stats()).get("items"), 2);
    });
  });

  test("the calls behind the first that is not durable are not sent", async () => {
    const queue = newQueue();
    const items = Array.from({ length: 600 }, (_, index) => ({ id: `${index}`, data: "" }));
    await whilePaused(async () => {
      const added = await notDurable(queue.add(items, { durable: SHORT }));
      assert.equal(added.answers.length, 256);
      const leased = await queue.leaseItems({ duration: 60_000, count: 256 });
      const completed = await notDurable(queue.complete([...leased, ...leased], { durable: SHORT }));
      assert.deepEqual(
        completed.answers,
        leased.map(() => true),
      );
    });
  });

  test("an add that added nothing is a full queue; a wait for room goes on", async () => {
    const queue = newQueue();
    await queue.configure({ maxItems: 1 });
    await whilePaused(async () => {
      await notDurable(queue.add(ITEM, { durable: SHORT }));
      await assert.rejects(queue.add({ id: "b", data: "" }, { durable: SHORT }), QueueFullError);
      const adding = queue.add({ id: "b", data: "" }, { durable: SHORT, timeout: 60_000 });
      const item = await queue.lease({ duration: 60_000 });
      await item?.complete();
      assert.ok(((await notDurable(adding)).answers[0] as number) > 0);
    });
  });

  test("other calls do not wait behind a wait", async () => {
    const queue = newQueue();
    await whilePaused(async () => {
      const adding = queue.add(ITEM, { durable: { replicas: 1, timeout: 2000 } });
      await until(async () => (await queue.stats()).get("items") === 1);
      const started = performance.now();
      await queue.stats();
      assert.ok(performance.now() - started < 1500);
      await notDurable(adding);
    });
  });

  test("an error of the call, and a script that the server does not know", async () => {
    const queue = newQueue();
    await queue.configure({ maxData: 10 });
    await queue.add(ITEM, { durable: LONG });
    await whilePaused(async () => {
      const large = { id: "large", data: "x".repeat(11) };
      await queue.add({ id: "b", data: "" });
      await assert.rejects(queue.add(large, { durable: LONG }), TooLargeError);
      const raw = primary.raw();
      await raw.script("FLUSH");
      raw.disconnect();
      await notDurable(queue.add({ id: "c", data: "" }, { durable: SHORT }));
      assert.equal((await queue.stats()).get("items"), 3);
    });
  });

  test("a connection that breaks during the wait keeps the answer", async () => {
    const proxy = await new FaultProxy(primary.path).open();
    const other = new Client({ path: proxy.path });
    const queue = other.queue(`q${++count}`);
    await whilePaused(async () => {
      const adding = notDurable(queue.add(ITEM, { durable: LONG }));
      await until(() => proxy.sent.includes("60000"));
      const raw = primary.raw();
      await until(async () => (await raw.info("clients")).includes("blocked_clients:1"));
      raw.disconnect();
      proxy.cut();
      const error = await adding;
      assert.equal(error.reached, undefined);
      assert.ok((error.answers[0] as number) > 0);
      assert.equal(await queue.add(ITEM), 0);
    });
    await other.close();
    proxy.close();
  });

  test("closing the client ends a wait, with the answer", async () => {
    const other = new Client({ path: primary.path });
    const queue = other.queue(`q${++count}`);
    await whilePaused(async () => {
      const adding = notDurable(queue.add(ITEM, { durable: LONG }));
      const raw = primary.raw();
      await until(async () => (await raw.info("clients")).includes("blocked_clients:1"));
      raw.disconnect();
      await other.close();
      assert.ok(((await adding).answers[0] as number) > 0);
    });
  });
});

describe("disks", () => {
  test("the primary's, or a refusal by name before anything is sent", async () => {
    const server = await Server.start("--port", "0", "--appendonly", "yes", "--appendfsync", "always");
    const other = new Client({ path: server.path });
    const queue = other.queue("q");
    const raw = server.raw();
    const disk: Durable = { disk: true, timeout: 60_000 };
    if (await raw.call("COMMAND", "INFO", "WAITAOF").then((found) => (found as unknown[])[0])) {
      assert.ok((await queue.add(ITEM, { durable: disk })) > 0);
      const error = await notDurable(queue.add(ITEM, { durable: { disk: true, replicas: 1, timeout: 50 } }));
      assert.deepEqual([error.reached, error.wanted, error.answers], [1, 2, [0]]);
      await assert.rejects(newQueue().add(ITEM, { durable: disk }), (refusal: unknown) => {
        return refusal instanceof NoDurabilityError && /set appendonly yes/.test(refusal.message);
      });
    } else {
      await assert.rejects(queue.add(ITEM, { durable: disk }), /no command WAITAOF, nothing was done/);
    }
    raw.disconnect();
    await other.close();
    await server.end();
  });
});

test("a user without the right", async () => {
  const raw = primary.raw();
  await raw.call("ACL", "SETUSER", "producer", "on", ">p", "~*", "+@all", "-wait");
  const other = new Client({ path: primary.path, username: "producer", password: "p" });
  await assert.rejects(other.queue("refused").add(ITEM, { durable: SHORT }), (error: unknown) => {
    return error instanceof ServerError && error.code === "NOPERM" && error.definite;
  });
  assert.equal(await raw.exists("leaseq:{refused}:refused:items"), 0);
  raw.disconnect();
  await other.close();
});

test("what is no wait is refused", async () => {
  const queue = newQueue();
  const wrong: unknown[] = [
    null,
    1,
    {},
    { replicas: 0, timeout: 1 },
    { replicas: 1.5, timeout: 1 },
    { replicas: 1 },
    { replicas: 1, timeout: 0.4 },
    { disk: true, timeout: Number.POSITIVE_INFINITY },
    { disk: true, replicas: -1, timeout: 1 },
  ];
  for (const durable of wrong as Durable[]) {
    await assert.rejects(queue.add(ITEM, { durable }), BadArgumentError);
    await assert.rejects(queue.complete({ id: "a", token: 1 }, { durable }), BadArgumentError);
    await assert.rejects(queue.completeWith({ id: "a", token: 1 }, { durable }), BadArgumentError);
  }
  assert.equal((await queue.stats()).get("items"), 0);
});
