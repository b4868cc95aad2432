// What ends at once, and what is left behind: after an abort, a failed call, a close, on a server that answers or is silent.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, beforeEach, describe, test } from "node:test";
import { promisify } from "node:util";
import type { Redis } from "ioredis";
import { AbortError, Client, UnavailableError } from "../src/index.js";
import { ChainHandle } from "../src/jobs/chain.js";
import { App } from "../src/jobs/index.js";
import { FaultProxy, Server, until } from "./server.js";

/** What ends at once ends within this time: a call under way has a quarter of a second. */
const AT_ONCE_MS = 1500;
/** `close` ends within this time, whatever the server does. */
const CLOSED_MS = 4000;
const LONG_MS = 60_000;
let server: Server;
let raw: Redis;
let proxy: FaultProxy;
let client: Client;

before(async () => {
  server = await Server.start();
  raw = server.raw();
});
beforeEach(async () => {
  await client?.close();
  proxy?.close();
  await raw.flushall();
  proxy = await new FaultProxy(server.path).open();
  client = new Client({ path: proxy.path });
});
after(async () => {
  await client.close();
  proxy.close();
  raw.disconnect();
  await server.end();
});

async function elapsedMs(task: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await task();
  return performance.now() - start;
}

const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
const items = async () => (await client.queue("q").stats()).get("items");

describe("on a server that is silent, an abort", { concurrency: false }, () => {
  const waits: Record<string, (signal: AbortSignal) => Promise<unknown>> = {
    "of waitForOutcome": (signal) => client.queue("q").waitForOutcome("a", { signal }),
    "of the result of a job": async (signal) =>
      await Promise.all(
        Array.from({ length: 20 }, () => new App(client, { group: "q" }).handle("a", "q").result({ signal })),
      ),
    "of the result of a chain": async (signal) => {
      const stages = ["a", "b"].map((id) => new App(client, { group: "q" }).handle(id, "q"));
      await new ChainHandle(stages).result({ signal });
    },
    "of lease": (signal) => client.queue("q").lease({ duration: LONG_MS, timeout: LONG_MS, signal }),
    "of leaseAny over two groups": (signal) =>
      client.leaseAny([client.queue("q"), client.queue("p")], {
        duration: LONG_MS,
        timeout: LONG_MS,
        signal,
      }),
  };
  for (const [name, wait] of Object.entries(waits)) {
    for (const connected of [true, false]) {
      test(`${name} ends it at once, ${connected ? "on an open connection" : "while it connects"}`, async () => {
        await client.queue("q").add({ id: "a", data: "", delay: LONG_MS });
        await client.close();
        client = new Client({ path: proxy.path, ...(!connected && { password: "no reply" }) });
        proxy.sent = "";
        proxy.silent = true;
        const abort = new AbortController();
        const waiting = assert.rejects(wait(abort.signal), AbortError);
        await until(() => proxy.sent.length > 0);
        const took = await elapsedMs(async () => {
          abort.abort();
          await waiting;
        });
        assert.ok(took < AT_ONCE_MS, `${took} ms`);
      });
    }
  }

  test("gives back what was leased once the reply comes", async () => {
    const queue = client.queue("q");
    await queue.add({ id: "a", data: "" });
    assert.ok(await (await queue.lease({ duration: LONG_MS }))?.release({ uncounted: true }));
    proxy.hold();
    const abort = new AbortController();
    const waiting = queue.lease({ duration: LONG_MS, timeout: LONG_MS, signal: abort.signal });
    await until(async () => (await raw.zcard("leaseq:{q}:q:leased")) === 1);
    abort.abort();
    await assert.rejects(waiting, AbortError);
    proxy.passOn();
    await until(async () => (await raw.zcard("leaseq:{q}:q:ready")) === 1);
    assert.equal((await queue.inspect("a")).attempt, 0);
  });

  test("of a worker is its stop: run ends at once", async () => {
    const worker = client.worker(client.queue("q"), () => {}, { announce: false });
    const ran = worker.run();
    await until(() => proxy.sent.includes("BLPOP"));
    proxy.silent = true;
    const took = await elapsedMs(async () => {
      worker.stop();
      await ran;
    });
    assert.ok(took < AT_ONCE_MS, `${took} ms`);
  });
});

describe("on a server that is silent, the stop of a worker", { concurrency: false }, () => {
  test("limits the calls that give its items back", async () => {
    await client.queue("q").add({ id: "a", data: "" });
    let start = () => {};
    const started = new Promise<void>((resolve) => {
      start = resolve;
    });
    const handle = () => {
      start();
      return new Promise(() => {});
    };
    const worker = client.worker(client.queue("q"), handle, { announce: false });
    const ran = worker.run();
    await started;
    proxy.sent = "";
    proxy.silent = true;
    const took = await elapsedMs(() => worker.close({ force: true }));
    assert.ok(proxy.sent.includes("EVALSHA"), "it tried to give the item back");
    assert.ok(took < CLOSED_MS, `${took} ms`);
    await ran;
  });
});

describe("close", { concurrency: false }, () => {
  test("ends on a server that is silent, and calls under way fail", async () => {
    await client.queue("q").add({ id: "a", data: "" });
    proxy.silent = true;
    const waiting = assert.rejects(client.queue("q").waitForOutcome("a"), AbortError);
    const call = assert.rejects(client.queue("q").stats(), { code: "CONNECTION" });
    const took = await elapsedMs(() => client.close());
    assert.ok(took < CLOSED_MS, `${took} ms`);
    await Promise.all([waiting, call]);
  });

  test("ends while it connects", async () => {
    proxy.silent = true;
    const silentClient = new Client({ path: proxy.path, username: "u", password: "p" });
    const call = assert.rejects(silentClient.queue("q").stats(), UnavailableError);
    await until(() => proxy.sent.includes("u"));
    assert.ok((await elapsedMs(() => silentClient.close())) < AT_ONCE_MS);
    await call;
  });

  test("stops heartbeats, and those that are started afterwards", async () => {
    await client.queue("q").add(["a", "b"].map((id) => ({ id, data: "" })));
    const [a, b] = await client.queue("q").leaseItems({ duration: LONG_MS, count: 2 });
    const before = timers();
    a?.heartbeat();
    await client.close();
    b?.heartbeat();
    await until(() => timers() <= before, 5000);
  });
});

describe("a heartbeat in place of an earlier one", { concurrency: false }, () => {
  /** A third of it passes between two extensions: the item is completed before the second. */
  const LEASE_MS = 900;

  test("ends with its item, also if the earlier one is stopped afterwards", async () => {
    await client.queue("q").add({ id: "a", data: "" });
    const item = await client.queue("q").lease({ duration: LEASE_MS });
    const earlier = item?.heartbeat();
    item?.heartbeat();
    earlier?.stop();
    const held = item?.deadline ?? 0;
    await until(() => (item?.deadline ?? 0) > held);
    assert.equal(await item?.complete(), true);
    proxy.sent = "";
    await new Promise((resolve) => setTimeout(resolve, LEASE_MS));
    assert.deepEqual([proxy.sent, item?.lostSignal.aborted], ["", false]);
  });
});

describe("nothing is left", { concurrency: false }, () => {
  test("of failed calls: no timer for each", async () => {
    await items();
    const before = timers();
    proxy.silent = true;
    const calls = Array.from({ length: 50 }, () => assert.rejects(items()));
    await until(() => proxy.sent.split("EVALSHA").length > 50);
    proxy.cut();
    await Promise.all(calls);
    assert.ok(timers() <= before + 5, `${timers() - before} more timers`);
    proxy.silent = false;
  });

  test("of many waits on one signal: no warning, no listener", async () => {
    const warnings: Error[] = [];
    const listen = (warning: Error) => void warnings.push(warning);
    process.on("warning", listen);
    const abort = new AbortController();
    const { signal } = abort;
    let listeners = 0;
    signal.addEventListener = new Proxy(signal.addEventListener, {
      apply: (add, self, args) => {
        listeners += 1;
        return Reflect.apply(add, self, args);
      },
    });
    const waits = Array.from({ length: 30 }, (_, number) =>
      client.queue(`q${number}`).lease({ duration: 1000, timeout: LONG_MS, signal }),
    );
    await until(() => proxy.sent.split("BLPOP").length > 30);
    assert.ok(listeners < 10, `${listeners} listeners`);
    abort.abort();
    await Promise.all(waits.map((wait) => assert.rejects(wait, AbortError)));
    await new Promise(setImmediate);
    process.off("warning", listen);
    assert.deepEqual(warnings, []);
  });

  test("of items that ended beside a handler that goes on: no memory for each", async () => {
    const text =
      `import { Client } from "${new URL("../src/index.js", import.meta.url)}";` +
      `const client = new Client({ path: "${server.path}" }); const queue = client.queue("q");` +
      "const add = (count) => queue.add(Array.from({ length: count }, (_, number) => ({ id: String(number), data: '' })));" +
      "let [ended, go] = [0, () => {}];" +
      "const handle = (item) => item.id.toString() === 'long' ? new Promise((resolve) => { go = resolve }) : void (ended += 1);" +
      "await queue.add({ id: 'long', data: '' });" +
      "const worker = client.worker(queue, handle, { concurrency: 2, duration: 600_000, announce: false }); worker.run();" +
      "const heapAfter = async (count) => { const all = ended + count; await add(count);" +
      "  while (ended < all) await new Promise((resolve) => setTimeout(resolve, 5)); gc(); return process.memoryUsage().heapUsed };" +
      "await heapAfter(2000); const before = await heapAfter(1000); console.log(await heapAfter(6000) - before);" +
      "go(); await worker.close(); await client.close();";
    const args = ["--expose-gc", "--input-type=module", "-e", text];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname });
    assert.ok(Number(stdout) < 6000 * 100, `the heap grew by ${stdout} bytes`);
  });

  const programs: Record<string, string> = {
    "a worker that was stopped before it ran": "client.worker(queue, () => {}).stop();",
    "a worker that ran after its stop": "const w = client.worker(queue, () => {}); w.stop(); await w.run();",
    "a worker that was never run": "client.worker(queue, () => {});",
    "a heartbeat":
      "await queue.add({ id: 'a', data: '' }); (await queue.lease({ duration: 60_000 })).heartbeat();",
    "a heartbeat of a worker whose handler goes on":
      "await queue.add({ id: 'a', data: '' });" +
      "await new Promise((inside) => void client.worker(queue, () => { inside(); return new Promise(() => {}) }, { duration: 60_000 }).run());",
    "a failed call":
      "await raw.call('CLIENT', 'KILL', 'TYPE', 'normal').catch(() => {}); await queue.stats().catch(() => {});",
  };
  for (const [what, body] of Object.entries(programs)) {
    test(`in a process, of ${what}: it exits when the client is closed`, async () => {
      const text =
        `import { Client } from "${new URL("../src/index.js", import.meta.url)}"; import { Redis } from "ioredis";` +
        `const client = new Client({ path: "${server.path}" }); const queue = client.queue("q");` +
        `const raw = new Redis("${server.path}"); await queue.stats(); ${body} raw.disconnect(); await client.close();`;
      const args = ["--input-type=module", "-e", text];
      await new Promise<void>((resolve, reject) => {
        execFile(process.execPath, args, { timeout: 5000, cwd: import.meta.dirname }, (error) =>
          error ? reject(error) : resolve(),
        );
      });
    });
  }
});
