// The life of an item in a worker, and how a worker ends: signals, time limits, retries, dead letters, hooks, the log.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import {
  BadArgumentError,
  Cancellation,
  Client,
  DeadLetter,
  exponentialBackoff,
  type Handler,
  type Hooks,
  type Logger,
  type Queue,
  Release,
  type WorkerOptions,
} from "../src/index.js";
import { FaultProxy, Server, until } from "./server.js";

const LONG_MS = 60_000;
let server: Server;
let raw: Redis;
let client: Client;
let queue: Queue;
/** Hooks that were called, with the item's id. */
let called: string[];
/** What was logged. */
let lines: string[];
const logger: Logger = {
  info: (text) => lines.push(`info ${text}`),
  warn: (text) => lines.push(`warn ${text}`),
  error: (text) => lines.push(`error ${text}`),
};
const hooks: Hooks = {
  leased: (items) => called.push(`leased ${items.length}`),
  started: ({ id }) => called.push(`started ${id}`),
  ended: ({ id }, _ms, error) => called.push(`ended ${id}${error ? " with an error" : ""}`),
  completed: ({ id }) => called.push(`completed ${id}`),
  released: ({ id }, delay, error) => called.push(`released ${id} ${delay} ${error}`),
  deadLettered: ({ id }, error) => called.push(`deadLettered ${id} ${error}`),
  lost: ({ id }) => called.push(`lost ${id}`),
  progress: ({ id }, value) => called.push(`progress ${id} ${value}`),
  serverAway: () => called.push("serverAway"),
  serverBack: () => called.push("serverBack"),
};

before(async () => {
  server = await Server.start();
  raw = server.raw();
});
beforeEach(async () => {
  await client?.close();
  await raw.flushall();
  client = new Client({ path: server.path }, { logger });
  queue = client.queue("q");
  called = [];
  lines = [];
});
after(async () => {
  await client.close();
  raw.disconnect();
  await server.end();
});

const add = (...ids: string[]) => queue.add(ids.map((id) => ({ id, data: "" })));
const worker = (handler: Handler, options: WorkerOptions = {}) =>
  client.worker(queue, handler, { announce: false, hooks, ...options });

/** Resolves with why the signal of a handler was aborted. */
const whyAborted = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => {
    signal.addEventListener("abort", () => {
      assert.ok(signal.reason instanceof Cancellation);
      resolve(signal.reason.why);
    });
  });

describe("a handler's signal", { concurrency: false }, () => {
  test("is aborted when its lease is lost; what it returns is sent, what it throws is not", async () => {
    await add("a");
    const reasons: string[] = [];
    const ours = worker(
      async (_item, { signal }) => {
        const aborted = whyAborted(signal);
        await queue.remove(["a"]);
        reasons.push(await aborted);
      },
      { duration: 150 },
    );
    const ran = ours.run();
    await until(() => called.includes("ended a"));
    await ours.close();
    assert.equal(await ran, 0);
    assert.deepEqual(reasons, ["lost"]);
    assert.deepEqual(called, ["leased 1", "started a", "lost a", "ended a"]);
  });

  test("is aborted when its time limit is over, and the attempt has failed whatever it returns", async () => {
    await add("a");
    const reasons: string[] = [];
    const ours = worker(
      async (_item, { signal }) => {
        ours.stop();
        reasons.push(await whyAborted(signal));
        return "done";
      },
      { timeLimit: 50, backoff: LONG_MS },
    );
    assert.equal(await ours.run(), 0);
    assert.deepEqual(reasons, ["late"]);
    const { state, attempt, error } = await queue.inspect("a");
    assert.deepEqual([state, attempt], ["delayed", 1]);
    assert.match(error.toString(), /longer than 50 ms/);
  });

  test("is aborted at the end of the grace time; stopping is at the stop", async () => {
    await add("a");
    const reasons: string[] = [];
    const ours = worker(
      async (_item, { signal, stopping }) => {
        await new Promise((resolve) => {
          stopping.addEventListener("abort", resolve);
          ours.stop();
        });
        reasons.push(signal.aborted ? "too early" : "stopping");
        reasons.push(await whyAborted(signal));
      },
      { grace: 50 },
    );
    assert.equal(await ours.run(), 0);
    await until(() => reasons.length === 2);
    assert.deepEqual(reasons, ["stopping", "stop"]);
    assert.deepEqual([(await queue.inspect("a")).state, (await queue.inspect("a")).attempt], ["ready", 0]);
  });

  test("stopping may have many listeners without a warning", async () => {
    await add(...Array.from({ length: 15 }, (_, number) => `${number}`));
    const warnings: Error[] = [];
    const listen = (warning: Error) => void warnings.push(warning);
    process.on("warning", listen);
    let inside = 0;
    const ours = worker(
      (_item, { stopping }) => {
        inside += 1;
        return new Promise<void>((resolve) => stopping.addEventListener("abort", () => resolve()));
      },
      { concurrency: 15 },
    );
    const ran = ours.run();
    await until(() => inside === 15);
    await ours.close();
    assert.equal(await ran, 15);
    process.off("warning", listen);
    assert.deepEqual(warnings, []);
  });
});

describe("a handler that never ends", { concurrency: false }, () => {
  test("frees its slot behind its time limit, and its item is not held", async () => {
    await add("a", "b");
    const seen: string[] = [];
    const ours = worker(
      ({ id }) => {
        seen.push(id.toString());
        if (seen.length === 1) return new Promise(() => {});
        ours.stop();
      },
      { timeLimit: 50, backoff: LONG_MS },
    );
    assert.equal(await ours.run(), 1);
    assert.deepEqual(seen, ["a", "b"]);
    assert.equal((await queue.inspect("a")).state, "delayed");
  });

  test("does not keep a worker that is closed with force, which leaves no timer", async () => {
    await add("a");
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    const before = timers();
    const ours = worker(() => new Promise(() => {}), { timeLimit: LONG_MS, grace: Number.POSITIVE_INFINITY });
    const ran = ours.run();
    await until(() => called.includes("started a"));
    const waiting = ours.close();
    await ours.close({ force: true });
    await waiting;
    assert.equal(await ran, 0);
    assert.deepEqual([(await queue.inspect("a")).state, (await queue.inspect("a")).attempt], ["ready", 0]);
    await until(() => timers() <= before, 3000);
  });
});

describe("a handler that fails", { concurrency: false }, () => {
  const results: Record<string, [unknown, WorkerOptions, [string, string]]> = {
    "by DeadLetter is dead": [new DeadLetter("no such card"), {}, ["dead", "no such card"]],
    "by an error of deadLetterOn is dead": [
      new RangeError("no"),
      { deadLetterOn: [RangeError] },
      ["dead", "RangeError: no"],
    ],
    "at its last attempt is dead": [new Error("no"), { maxAttempts: 1 }, ["dead", "Error: no"]],
    "by Release waits as that says": [new Release("closed", { delay: LONG_MS }), {}, ["delayed", "closed"]],
    "by Release at its last attempt is dead": [new Release("closed"), { maxAttempts: 1 }, ["dead", "closed"]],
    "with a backoff that throws waits": [
      new Error("no"),
      {
        backoff: () => {
          throw new Error("of the backoff");
        },
      },
      ["delayed", "Error: no"],
    ],
    "with a backoff that is no number waits": [
      new Error("no"),
      { backoff: () => Number.NaN },
      ["delayed", "Error: no"],
    ],
    "with a backoff above 10 years waits": [
      new Error("no"),
      { backoff: () => 1e12 },
      ["delayed", "Error: no"],
    ],
  };
  for (const [name, [error, options, [state, text]]] of Object.entries(results)) {
    test(name, async () => {
      await add("a");
      const ours = worker(() => {
        ours.stop();
        throw error;
      }, options);
      assert.equal(await ours.run(), 0);
      const info = await queue.inspect("a");
      assert.deepEqual([info.state, info.error.toString()], [state, text]);
      assert.equal(lines.filter((line) => line.includes('"a" of q, attempt 1,')).length, lines.length);
    });
  }

  test("by an uncounted Release loses no attempt", async () => {
    await add("a");
    const ours = worker(() => {
      ours.stop();
      throw new Release("", { uncounted: true });
    });
    await ours.run();
    assert.deepEqual([(await queue.inspect("a")).state, (await queue.inspect("a")).attempt], ["ready", 0]);
  });

  test("waits longer from attempt to attempt, by default", async () => {
    const backoff = exponentialBackoff({ first: 100, last: 1000 });
    for (const [attempt, maxDelay] of [
      [1, 100],
      [2, 200],
      [4, 800],
      [5, 1000],
      [5000, 1000],
    ] as const) {
      const delay = backoff(attempt);
      assert.ok(delay >= maxDelay / 2 && delay <= maxDelay, `${delay} ms at attempt ${attempt}`);
    }
    await add("a");
    const ours = worker(() => {
      ours.stop();
      throw new Error("no");
    });
    await ours.run();
    assert.match(called.at(-1) ?? "", /^released a (5|6|7|8|9)\d\d(\.\d+)? Error: no$/);
  });

  test("too often before, without an end, is dead and not run", async () => {
    await add("a");
    await queue.lease({ duration: 1 });
    await until(async () => (await queue.stats()).get("overdue") === 1);
    const ours = worker(() => assert.fail("it was run"), { maxAttempts: 1 });
    const ran = ours.run();
    await until(() => called.some((call) => call.startsWith("deadLettered a leased 2 times")));
    await ours.close();
    assert.equal(await ran, 0);
  });
});

describe("a result", { concurrency: false }, () => {
  const results: [unknown, string][] = [
    ["text", "text"],
    [Buffer.from("bytes"), "bytes"],
    [{ a: [1, null] }, '{"a":[1,null]}'],
    [7, "7"],
    [false, "false"],
    [null, "null"],
  ];
  for (const [returned, content] of results) {
    test(`${content} of an item that keeps it is kept`, async () => {
      await queue.add({ id: "a", data: "", keep: LONG_MS });
      const ours = worker(() => {
        ours.stop();
        return returned;
      });
      assert.equal(await ours.run(), 1);
      assert.equal((await queue.outcome("a")).content.toString(), content);
    });
  }

  test("that cannot be written is a failure, unless nothing is kept", async () => {
    await queue.add([
      { id: "a", data: "", keep: LONG_MS },
      { id: "b", data: "" },
    ]);
    const ours = worker(({ id }) => {
      if (id.toString() === "b") ours.stop();
      return 1n;
    });
    assert.equal(await ours.run(), 1);
    assert.match((await queue.inspect("a")).error.toString(), /BigInt/);
  });

  test("that the queue refuses fails its item, and none that ended in the same moment", async () => {
    await queue.configure({ maxData: 10 });
    await queue.add(["a", "b", "c"].map((id) => ({ id, data: "", keep: LONG_MS })));
    let running = 0;
    let release = () => {};
    const all = new Promise<void>((resolve) => {
      release = resolve;
    });
    const handler: Handler = async ({ id }) => {
      running += 1;
      if (running === 3) release();
      await all;
      return id.toString() === "b" ? "more than ten bytes" : "short";
    };
    const ours = worker(handler, { concurrency: 3, maxAttempts: 1 });
    const ran = ours.run();
    await until(() => called.filter((line) => /^(completed|deadLettered)/.test(line)).length === 3);
    await ours.close();
    assert.equal(await ran, 2);
    const states = (await queue.outcome(["a", "b", "c"])).map(({ state }) => state);
    assert.deepEqual(states, ["result", "failure", "result"]);
  });
});

describe("hooks and the log", { concurrency: false }, () => {
  test("see the life of each item, in order", async () => {
    await add("a");
    const ours = worker(
      ({ attempt }, { progress }) => {
        progress(50);
        if (attempt === 1) throw new Error("not yet");
        ours.stop();
      },
      { backoff: 0 },
    );
    assert.equal(await ours.run(), 1);
    const once = ["leased 1", "started a", "progress a 50"];
    const failed = [...once, "ended a with an error", "released a 0 Error: not yet"];
    assert.deepEqual(called, [...failed, ...once, "ended a", "completed a"]);
    assert.deepEqual(lines, ['warn leaseq worker: item "a" of q, attempt 1, failed and goes back for 0 ms:']);
  });

  test("call an item dead after its last attempt", async () => {
    await queue.add({ id: "a", data: "", maxAttempts: 1 });
    const ours = worker(
      () => {
        ours.stop();
        throw new Error("not this time");
      },
      { backoff: 50 },
    );
    await ours.run();
    assert.deepEqual(lines, ['error leaseq worker: item "a" of q, attempt 1, failed and is dead:']);
  });

  test("that fail, in any way, change nothing and are logged; so is a logger that fails", async () => {
    await add("a", "b");
    const failing: Hooks = {
      leased: () => Promise.reject(new Error("of the hook")),
      completed: () => {
        throw new Error("of the hook");
      },
    };
    const failingLogger = () => {
      throw new Error("of the logger");
    };
    const itsClient = new Client(
      { path: server.path },
      { logger: { info: failingLogger, warn: failingLogger, error: () => Promise.reject(failingLogger) } },
    );
    let runs = 0;
    const options = { announce: false, hooks: failing };
    const itsWorker = itsClient.worker(
      itsClient.queue("q"),
      () => void (++runs === 2 && itsWorker.stop()),
      options,
    );
    assert.equal(await itsWorker.run(), 2);
    await itsClient.close();
  });

  test("report an outage once, and its end", async () => {
    const proxy = await new FaultProxy(server.path).open();
    const itsClient = new Client({ path: proxy.path }, { logger });
    const itsWorker = itsClient.worker(itsClient.queue("q"), () => {}, { announce: false, hooks });
    const ran = itsWorker.run();
    await until(() => proxy.sent.includes("BLPOP"));
    await raw.config("SET", "min-replicas-to-write", "1");
    proxy.cut();
    await until(() => called.includes("serverAway"));
    await raw.config("SET", "min-replicas-to-write", "0");
    await until(() => called.includes("serverBack"));
    await itsWorker.close();
    await ran;
    await itsClient.close();
    proxy.close();
    assert.deepEqual(called, ["serverAway", "serverBack"]);
    assert.equal(lines.length, 2);
  });
});

describe("a worker", { concurrency: false }, () => {
  test("is closed by await using, and by its client", async () => {
    await add("a", "b");
    const slow: Handler = () => sleep(20);
    const first = worker(slow);
    const ran = first.run();
    await until(() => called.includes("started a"));
    await first[Symbol.asyncDispose]();
    assert.equal(await ran, 1);
    await client[Symbol.asyncDispose]();
    await assert.rejects(queue.stats());
  });

  test("that is closed with a timeout gives back what still runs", async () => {
    await add("a");
    const ours = worker(() => new Promise(() => {}), { grace: Number.POSITIVE_INFINITY });
    const ran = ours.run();
    await until(() => called.includes("started a"));
    await ours.close({ timeout: 50 });
    assert.equal(await ran, 0);
    assert.equal((await queue.inspect("a")).state, "ready");
    assert.throws(() => worker(() => {}, { grace: -1 }), BadArgumentError);
  });

  test("that was never run is closed at once", async () => {
    const ours = worker(() => {});
    await ours.close();
    assert.equal(await ours.run(), 0);
  });

  test("works on items of several queues at the same time, and in turns if it is fair", async () => {
    const [p, q] = [client.queue("p"), client.queue("q")];
    for (const each of [p, q]) await each.add(["1", "2"].map((id) => ({ id, data: "" })));
    const inside = new Set<string>();
    const both = client.worker(
      [p, q],
      async (item, { stopping }) => {
        inside.add(`${item.queue.name}${item.id}`);
        await new Promise((resolve) => stopping.addEventListener("abort", resolve));
      },
      { announce: false, concurrency: 4 },
    );
    const ran = both.run();
    await until(() => inside.size === 4);
    await both.close();
    assert.equal(await ran, 4);
    for (const each of [p, q]) await each.add(["1", "2"].map((id) => ({ id, data: "" })));
    const order: string[] = [];
    const fair = client.worker(
      [p, q],
      (item) => {
        order.push(item.queue.name);
        if (order.length === 4) fair.stop();
      },
      { announce: false, fair: true },
    );
    await fair.run();
    assert.deepEqual(order, ["p", "q", "p", "q"]);
  });

  test("refuses options that it does not have, by name", () => {
    for (const options of [{ parallel: 2 }, { retryDelay: 1 }, { onError: () => {} }]) {
      const [name = ""] = Object.keys(options);
      assert.throws(() => client.worker(queue, () => {}, options as WorkerOptions), new RegExp(name));
    }
    assert.throws(() => worker(() => {}, { duration: 1e12 }), BadArgumentError);
    assert.throws(() => worker(() => {}, { timeLimit: 0 }), BadArgumentError);
  });
});
