import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Redis } from "ioredis";
import { ClusterConnection, SlotTable } from "../src/cluster.js";
import { BadArgumentError, Client, type LeasedItem, type WorkerInfo } from "../src/index.js";
import { listWorkers } from "../src/presence.js";
import { Server, until } from "./server.js";

const INDEX = "leaseq:workers";
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

/** A handler that returns when `end` is called, and the ids of the items that it has. */
function blockingHandler(): {
  handler: (lease: LeasedItem) => Promise<void>;
  held: string[];
  end: () => void;
} {
  const held: string[] = [];
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const handler = async (lease: LeasedItem) => {
    held.push(lease.id.toString());
    await ended;
  };
  return { handler, held, end: () => end() };
}

/** The report of the only live worker, and its id. */
async function readReport(): Promise<{ id: string; report: Record<string, unknown> }> {
  const [id, ...others] = await raw.zrange(INDEX, "0", "-1");
  assert.deepEqual(others, []);
  return { id: String(id), report: JSON.parse((await raw.get(`leaseq:worker:${id}`)) ?? "{}") };
}

describe("a worker", { concurrency: false }, () => {
  test("completes an item when its handler returns, and keeps the result", async () => {
    const queue = client.queue("q");
    await queue.add([
      { id: "a", data: "1", keep: 60_000 },
      { id: "b", data: "2" },
    ]);
    const worker = client.worker(queue, (lease) => {
      if (lease.id.toString() === "b") worker.stop();
      return `did ${lease.data}`;
    });
    assert.equal(await worker.run(), 2);
    const [a, b] = await queue.outcome(["a", "b"]);
    assert.deepEqual([a?.state, a?.content.toString()], ["result", "did 1"]);
    assert.equal(b?.state, "absent");
    await assert.rejects(worker.run(), BadArgumentError);
  });

  test("releases an item when its handler throws, reports the error, and goes on", async () => {
    const queue = client.queue("q");
    await queue.add({ id: "a", data: "" });
    const reported: unknown[] = [];
    const worker = client.worker(
      queue,
      (lease) => {
        if (lease.attempt === 1) throw new Error("not yet");
        worker.stop();
      },
      {
        backoff: 0,
        hooks: { ended: (lease, _ms, error) => error && reported.push(String(error), lease.attempt) },
      },
    );
    assert.equal(await worker.run(), 1);
    assert.deepEqual(reported, ["Error: not yet", 1]);
  });

  test("delays an item that failed by its backoff", async () => {
    const queue = client.queue("q");
    await queue.add({ id: "a", data: "" });
    const worker = client.worker(
      queue,
      () => {
        worker.stop();
        throw new Error("no");
      },
      { backoff: 3_600_000 },
    );
    assert.equal(await worker.run(), 0);
    assert.equal((await queue.stats()).get("delayed"), 1);
    assert.equal(String((await queue.inspect("a")).error), "Error: no");
  });

  test("works on `concurrency` items at a time, and leases no more than that", async () => {
    const queue = client.queue("q");
    await queue.add(["a", "b", "c"].map((id) => ({ id, data: "" })));
    const { handler, held, end } = blockingHandler();
    const worker = client.worker(queue, handler, { concurrency: 2 });
    const ran = worker.run();
    await until(async () => held.length === 2);
    assert.deepEqual(held, ["a", "b"]);
    assert.equal((await queue.stats()).get("ready"), 1);
    worker.stop();
    end();
    assert.equal(await ran, 2);
    assert.equal((await queue.stats()).get("ready"), 1);
  });

  test("leases from its queues in their order, and ends when the client is closed", async () => {
    const first = client.queue("first");
    const second = client.queue("second");
    await second.add({ id: "b", data: "" });
    await first.add({ id: "a", data: "" });
    const seen: string[] = [];
    const worker = client.worker([first, second], (lease) => void seen.push(lease.queue.keys.name));
    const ran = worker.run();
    await until(
      async () => (await first.stats()).get("items") === 0 && (await second.stats()).get("items") === 0,
    );
    assert.deepEqual(seen, ["first", "second"]);
    await client.close();
    assert.equal(await ran, 2);
  });

  test("waits for a server that cannot be reached", async () => {
    const ownServer = await Server.start();
    const itsClient = new Client({ path: ownServer.path });
    const worker = itsClient.worker(itsClient.queue("q"), () => worker.stop());
    const ran = worker.run();
    await ownServer.stop();
    await ownServer.start();
    await itsClient.queue("q").add({ id: "a", data: "" });
    assert.equal(await ran, 1);
    await itsClient.close();
    await ownServer.end();
  });

  test("refuses what is no number", () => {
    for (const concurrency of [0, -1, 1.5, Number.NaN]) {
      assert.throws(() => client.worker(client.queue("q"), () => {}, { concurrency }), BadArgumentError);
    }
    assert.throws(() => client.worker([], () => {}), BadArgumentError);
  });
});

describe("a live worker", { concurrency: false }, () => {
  test("is reported while it works and stops, and is removed at the end (LQ-WORKER-1, 2, 4)", async () => {
    const queue = client.queue("orders", { group: "shop" });
    await raw.zadd(INDEX, 1, "long-gone");
    await queue.add({ id: "a", data: "secret", headers: { name: "secret" } });
    const { handler, end } = blockingHandler();
    const worker = client.worker(queue, handler, { concurrency: 3 });
    const ran = worker.run();
    await until(async () => (await raw.keys("leaseq:worker:*")).length === 1);
    await until(async () => (await raw.zcard(INDEX)) === 1);
    worker.stop();
    await until(async () => (await readReport()).report.stopping === true);
    const { id, report } = await readReport();
    assert.match(id, /^[A-Za-z0-9_.:-]{1,200}$/);
    const { started, reported, items, host: _host, client: name, ...rest } = report;
    const fixed = { version: 1, pid: process.pid, concurrency: 3, queues: ["shop:orders"] };
    assert.deepEqual(rest, { ...fixed, stopping: true, quiet: false, completed: 0, held: 1 });
    assert.ok(Number(reported) >= Number(started), `reported ${reported}, started ${started}`);
    assert.match(String(name), /^leaseq .*\d/);
    const [item] = items as WorkerInfo["items"];
    assert.deepEqual([item?.queue, item?.id, item?.attempt], ["shop:orders", "a", 1]);
    assert.ok(!JSON.stringify(report).includes("secret"));
    const life = await raw.pttl(`leaseq:worker:${id}`);
    assert.ok(life > 0 && life <= 30_000);
    const [seconds] = await raw.time();
    const ahead = Number(await raw.zscore(INDEX, id)) - Number(seconds) * 1000;
    assert.ok(ahead > 0 && ahead <= 601_000);
    const [seen] = await client.liveWorkers();
    assert.deepEqual([seen?.id, seen?.started, seen?.stopping], [id, Number(started) * 1000, true]);
    end();
    assert.equal(await ran, 1);
    assert.deepEqual(await raw.keys("leaseq:worker*"), []);
  });

  test("renews its time in the index every two minutes or sooner (LQ-WORKER-2)", async (t) => {
    let passed = 0;
    const { now } = performance;
    t.mock.method(performance, "now", () => now.call(performance) + passed);
    const setInterval = t.mock.method(globalThis, "setInterval");
    const queue = client.queue("orders");
    await queue.add({ id: "a", data: "" });
    const { handler, held, end } = blockingHandler();
    const worker = client.worker(queue, handler);
    const ran = worker.run();
    await until(async () => held.length === 1 && (await raw.zcard(INDEX)) === 1);
    await raw.zadd(INDEX, 1, worker.id);
    passed = 110_000;
    const [report] = setInterval.mock.calls.map((call) => call.arguments);
    assert.ok(Number(report?.[1]) <= 10_000);
    report?.[0]();
    await until(async () => Number(await raw.zscore(INDEX, worker.id)) > 1);
    end();
    worker.stop();
    assert.equal(await ran, 1);
  });

  test("that cannot be reported works all the same (LQ-WORKER-3)", async () => {
    await raw.set(INDEX, "mine");
    const queue = client.queue("q");
    await queue.add({ id: "a", data: "" });
    const worker = client.worker(queue, () => worker.stop());
    assert.equal(await worker.run(), 1);
    assert.equal(await raw.get(INDEX), "mine");
  });

  test("is not reported with announce: false", async () => {
    const queue = client.queue("q");
    await queue.add({ id: "a", data: "" });
    const worker = client.worker(
      queue,
      async () => {
        assert.deepEqual(await raw.keys("leaseq:worker*"), []);
        worker.stop();
      },
      { announce: false },
    );
    assert.equal(await worker.run(), 1);
  });

  test("is listed if it has a valid report, from all pages (LQ-WORKER-5)", async () => {
    const report = {
      version: 1,
      host: "h",
      pid: 1,
      client: "c 1",
      started: 1_795_227_027_266,
      stopping: false,
      quiet: false,
      concurrency: 2,
      completed: 7,
      queues: ["g:n"],
      held: 1,
      items: [{ queue: "g:n", id: "a", attempt: 3, ms: 12, new: 1 }],
      new: 1,
    };
    const wrong: Record<string, unknown> = {
      garbled: "{",
      list: [],
      later: { ...report, version: 2 },
      short: { version: 1, host: "h" },
      "no id!": report,
      text: { ...report, pid: "1" },
      queues: { ...report, queues: ["n"] },
      items: { ...report, items: [{ queue: "g:n" }] },
    };
    const names = Array.from({ length: 2500 }, (_, number) => [number, `gone:${number}`]).flat();
    await raw.zadd(INDEX, ...(names as [number, string]));
    await raw.zadd(INDEX, 1e15, "h:1:2", ...Object.keys(wrong).flatMap((name) => [1e15, name]));
    await raw.set("leaseq:worker:h:1:2", JSON.stringify(report));
    for (const [name, text] of Object.entries(wrong)) {
      await raw.set(`leaseq:worker:${name}`, typeof text === "string" ? text : JSON.stringify(text));
    }
    const { version: _version, new: _new, items: _items, started, ...same } = report;
    assert.deepEqual(await client.liveWorkers(), [
      {
        id: "h:1:2",
        started: started * 1000,
        ...same,
        items: [{ queue: "g:n", id: "a", attempt: 3, ms: 12 }],
      },
    ]);
  });

  test("is listed while others renew their places and shift its rank (LQ-WORKER-5)", async () => {
    const report = {
      version: 1,
      host: "h",
      pid: 1,
      client: "c",
      started: 1,
      stopping: false,
      concurrency: 1,
    };
    const rest = { completed: 0, queues: ["g:n"], held: 0, items: [] };
    // It is the first of the second page.
    await raw.set("leaseq:worker:w:1000", JSON.stringify({ ...report, ...rest }));
    const names = Array.from({ length: 1001 }, (_, number) => `w:${String(number).padStart(4, "0")}`);
    const connection = new ClusterConnection(new SlotTable([{ path: server.path }]), 1000);
    const send = connection.sendToSlot.bind(connection);
    // With the step 0 all have the same score.
    for (const step of [1, 0]) {
      await raw.zadd(INDEX, ...names.flatMap((name, number) => [2e12 + step * number, name]));
      connection.sendToSlot = async (name, ...others) => {
        const reply = await send(name, ...others);
        if (step > 0 && name === "ZRANGE") await raw.zadd(INDEX, 3e12, "w:0000");
        return reply;
      };
      const found = await listWorkers(connection, 1000);
      assert.deepEqual(
        found.map(({ id }) => id),
        ["w:1000"],
      );
    }
    connection.close();
  });
});
