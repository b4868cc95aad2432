// What a worker reports: hooks, the log, and its presence.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, DeadLetter, type Hooks, Release, type WorkerOptions } from "../src/index.js";
import { FaultProxy, until } from "./server.js";
import { WorkerFixture, whyAborted } from "./worker-fixture.js";

const LONG_MS = 60_000;
const fixture = WorkerFixture.inThisFile();
const { add, called, hooks, lines, logger, worker } = fixture;

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
    await fixture.queue.add({ id: "a", data: "", maxAttempts: 1 });
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
      { path: fixture.server.path },
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
    await add("c");
    const ours = worker(() => ours.stop(), { hooks: failing });
    assert.equal(await ours.run(), 1);
    const failed = ["leased", "completed"].map((name) => `error leaseq worker: the hook ${name} failed`);
    assert.deepEqual(lines, failed);
  });

  const ends: Record<string, [unknown, WorkerOptions, string, string]> = {
    "a verdict with a reason": [
      new DeadLetter("no such card"),
      {},
      "error was ended by its handler and is dead: no such card",
      "deadLettered a no such card",
    ],
    "a verdict without one": [
      new DeadLetter(),
      {},
      "error was ended by its handler and is dead",
      "deadLettered a undefined",
    ],
    "a release": [
      new Release("closed", { delay: LONG_MS }),
      {},
      "info was ended by its handler and goes back for 60000 ms: closed",
      "released a 60000 closed",
    ],
    "a release that does not count": [
      new Release("closed", { delay: LONG_MS, uncounted: true }),
      { maxAttempts: 1 },
      "info was ended by its handler and goes back uncounted for 60000 ms: closed",
      "released a 60000 closed",
    ],
    "a failure": [
      new RangeError("no"),
      { backoff: 60_000.4 },
      "warn failed and goes back for 60000 ms:",
      "released a 60000.4 RangeError: no",
    ],
    "an error that is final": [
      new RangeError("no"),
      { deadLetterOn: [TypeError, RangeError] },
      "error failed and is dead:",
      "deadLettered a RangeError: no",
    ],
  };
  for (const [what, [error, options, line, hook]] of Object.entries(ends)) {
    test(`say what became of an item after ${what}`, async () => {
      await add("a");
      const ours = worker(() => {
        ours.stop();
        throw error;
      }, options);
      assert.equal(await ours.run(), 0);
      const [level, ...text] = line.split(" ");
      assert.deepEqual(lines, [`${level} leaseq worker: item "a" of q, attempt 1, ${text.join(" ")}`]);
      assert.deepEqual(called, ["leased 1", "started a", "ended a with an error", hook]);
    });
  }

  test("say that an item was late, and no more: it is not lost", async () => {
    await add("a");
    const ours = worker(
      async (_item, { signal }) => {
        ours.stop();
        await whyAborted(signal);
      },
      { timeLimit: 30, backoff: LONG_MS },
    );
    await ours.run();
    assert.deepEqual(lines, [
      'warn leaseq worker: item "a" of q, attempt 1, failed and goes back for 60000 ms:',
    ]);
    assert.deepEqual(called, [
      "leased 1",
      "started a",
      "ended a with an error",
      "released a 60000 Cancellation: the handler ran longer than 30 ms",
    ]);
  });

  test("say that an item was given back when the grace time was over, which is no failure", async () => {
    await add("a", "b");
    const ours = worker(() => new Promise(() => {}), { concurrency: 2, grace: Number.POSITIVE_INFINITY });
    const ran = ours.run();
    await until(() => called.includes("started b"));
    await ours.close({ timeout: 0 });
    await ran;
    assert.deepEqual(called.slice(3).sort(), ["released a 0 undefined", "released b 0 undefined"]);
    assert.deepEqual(lines, []);
  });

  test("say once that an item was lost, also if its handler throws then", async () => {
    await add("a");
    const ours = worker(
      async (_item, { signal }) => {
        const aborted = whyAborted(signal);
        await fixture.queue.remove(["a"]);
        await aborted;
        throw new Error("too late");
      },
      { duration: 150 },
    );
    const ran = ours.run();
    await until(() => lines.length === 2);
    await ours.close();
    await ran;
    assert.deepEqual(lines, [
      'warn leaseq worker: item "a" of q, attempt 1, is no longer this worker\'s',
      'warn leaseq worker: item "a" of q, attempt 1, failed and is left to another:',
    ]);
    assert.deepEqual(called, ["leased 1", "started a", "lost a", "ended a with an error"]);
  });

  test("say that an item had too many attempts before", async () => {
    await add("a");
    await fixture.queue.lease({ duration: 1 });
    await until(async () => (await fixture.queue.stats()).get("overdue") === 1);
    const ours = worker(() => assert.fail("it was run"), { maxAttempts: 1 });
    const ran = ours.run();
    await until(() => called.length === 2);
    await ours.close();
    await ran;
    const why = "leased 2 times, which is more than the 1 attempts of this worker";
    assert.deepEqual(called, ["leased 1", `deadLettered a ${why}`]);
    assert.deepEqual(lines, [`error leaseq worker: item "a" of q, attempt 2, is dead: ${why}`]);
  });

  test("get how long a handler ran and an outage took, in ms", async () => {
    await add("a");
    const times: number[] = [];
    const ours = worker(
      async () => {
        await sleep(40);
        ours.stop();
      },
      { hooks: { ended: (_item, ms) => times.push(ms) } },
    );
    await ours.run();
    assert.ok(times.length === 1 && (times[0] as number) >= 39 && (times[0] as number) < 10_000, `${times}`);
  });

  test("are called as methods of their object, and with the error itself", async () => {
    await add("a");
    class Counter {
      readonly errors: unknown[] = [];
      ended(_item: unknown, _ms: number, error: unknown) {
        this.errors.push(error);
      }
    }
    const counter = new Counter();
    const error = new Error("no");
    const ours = worker(
      () => {
        ours.stop();
        throw error;
      },
      { hooks: counter },
    );
    await ours.run();
    assert.equal(counter.errors[0], error);
  });

  test("go to stderr without a logger, with the error", async (t) => {
    const written = t.mock.method(console, "error", () => {});
    const quiet = t.mock.method(console, "log", () => {});
    const itsClient = new Client({ path: fixture.server.path });
    await add("a");
    const error = new Error("no");
    const ours = itsClient.worker(
      itsClient.queue("q"),
      () => {
        ours.stop();
        throw error;
      },
      { announce: false, backoff: 0 },
    );
    await ours.run();
    await itsClient.close();
    const line = 'leaseq worker: item "a" of q, attempt 1, failed and goes back for 0 ms:';
    assert.deepEqual(
      written.mock.calls.map((call) => call.arguments),
      [[line, error]],
    );
    assert.equal(quiet.mock.callCount(), 0);
  });

  test("report an outage once, and its end", async () => {
    const proxy = await new FaultProxy(fixture.server.path).open();
    const itsClient = new Client({ path: proxy.path }, { logger });
    const itsWorker = itsClient.worker(itsClient.queue("q"), () => {}, { announce: false, hooks });
    const ran = itsWorker.run();
    await until(() => proxy.sent.includes("BLPOP"));
    await fixture.raw.config("SET", "min-replicas-to-write", "1");
    proxy.cut();
    await until(() => called.includes("serverAway"));
    await fixture.raw.config("SET", "min-replicas-to-write", "0");
    await until(() => called.includes("serverBack soon"));
    await itsWorker.close();
    await ran;
    await itsClient.close();
    proxy.close();
    assert.deepEqual(called, ["serverAway", "serverBack soon"]);
    assert.equal(lines.length, 2);
  });
});

describe("the presence of a worker", { concurrency: false }, () => {
  test("ends when an error ends the worker", async () => {
    await fixture.raw.call(
      "ACL",
      "SETUSER",
      "u",
      "reset",
      "on",
      ">pw",
      "~*",
      "&*",
      "+@all",
      "-eval",
      "-evalsha",
    );
    const itsClient = new Client({ path: fixture.server.path, username: "u", password: "pw" }, { logger });
    const ours = itsClient.worker(itsClient.queue("q"), () => {}, { hooks });
    await assert.rejects(ours.run(), /NOPERM/);
    await sleep(100); // a report that is under way
    assert.deepEqual(await fixture.raw.keys("leaseq:worker*"), []);
    await itsClient.close();
  });
});
