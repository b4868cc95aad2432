// The life of an item in a worker, and how a worker ends: signals, time limits, retries, dead letters, results.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  BadArgumentError,
  Client,
  DeadLetter,
  exponentialBackoff,
  type Handler,
  type Queue,
  Release,
  type WorkerOptions,
} from "../src/index.js";
import { toSettings } from "../src/worker-settings.js";
import { FaultProxy, until } from "./server.js";
import { WorkerFixture, whyAborted } from "./worker-fixture.js";

const LONG_MS = 60_000;
const fixture = WorkerFixture.inThisFile();
const { add, called, lines, worker } = fixture;

describe("a handler's signal", { concurrency: false }, () => {
  test("is aborted when its lease is lost; what it returns is sent, what it throws is not", async () => {
    await add("a");
    const reasons: string[] = [];
    const ours = worker(
      async (_item, { signal }) => {
        const aborted = whyAborted(signal);
        await fixture.queue.remove(["a"]);
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
    const { state, attempt, error } = await fixture.queue.inspect("a");
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
    assert.deepEqual(
      [(await fixture.queue.inspect("a")).state, (await fixture.queue.inspect("a")).attempt],
      ["ready", 0],
    );
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

describe("the time limit of a handler that ended", { concurrency: false }, () => {
  test("aborts nothing afterwards, and leaves no timer", async () => {
    await add("a", "b");
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    const before = timers();
    const signals: AbortSignal[] = [];
    const ours = worker(
      ({ id }, { signal }) => {
        signals.push(signal);
        if (id.toString() === "a") throw new Error("no");
        ours.stop();
      },
      { timeLimit: LONG_MS, backoff: LONG_MS },
    );
    assert.equal(await ours.run(), 1);
    await until(() => timers() <= before, 3000);
    const other = worker(
      (_item, { signal }) => {
        signals.push(signal);
        other.stop();
      },
      { timeLimit: 20 },
    );
    await add("c");
    await other.run();
    await sleep(40);
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [false, false, false],
    );
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
    assert.equal((await fixture.queue.inspect("a")).state, "delayed");
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
    assert.deepEqual(
      [(await fixture.queue.inspect("a")).state, (await fixture.queue.inspect("a")).attempt],
      ["ready", 0],
    );
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
      const info = await fixture.queue.inspect("a");
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
    assert.deepEqual(
      [(await fixture.queue.inspect("a")).state, (await fixture.queue.inspect("a")).attempt],
      ["ready", 0],
    );
  });

  test("by what it asks for goes back so, whatever class that is of and however long the backoff", async () => {
    await add("counted", "uncounted", "later");
    const verdicts: Record<string, Release> = {
      counted: new Release("", { delay: 0 }),
      uncounted: new Release("", { uncounted: true }),
      later: new Release("", { uncounted: true, delay: LONG_MS }),
    };
    const ours = worker(
      ({ id }) => {
        if (fixture.calls("started").length === 3) ours.stop();
        throw verdicts[id.toString()];
      },
      { backoff: LONG_MS, deadLetterOn: [Error], concurrency: 3 },
    );
    await ours.run();
    const found = await fixture.queue.inspect(Object.keys(verdicts));
    assert.deepEqual(
      found.map(({ state, attempt }) => [state, attempt]),
      [
        ["ready", 1],
        ["ready", 0],
        ["delayed", 0],
      ],
    );
  });

  test("at attempt 25 is dead, and with maxAttempts 0 never is", async () => {
    await add("a");
    const attempted = async (count: number) => {
      for (let attempt = 0; attempt < count; attempt += 1) {
        await (await fixture.queue.lease({ duration: LONG_MS }))?.release();
      }
    };
    await attempted(23);
    const once = async (options: WorkerOptions) => {
      const ours = worker(() => {
        ours.stop();
        throw new Error("no");
      }, options);
      await ours.run();
      return (await fixture.queue.inspect("a")).state;
    };
    assert.equal(await once({ backoff: 0 }), "ready"); // 24
    assert.equal(await once({ backoff: 0 }), "dead");
    await fixture.queue.remove(["a"]);
    await add("a");
    await attempted(25);
    assert.equal(await once({ backoff: 0, maxAttempts: 0 }), "ready");
    assert.equal(await once({ backoff: () => Number.NaN, maxAttempts: 0 }), "delayed"); // 27
    const [, delay] = /^released a (\d+)/.exec(called.at(-1) ?? "") ?? [];
    assert.ok(Number(delay) >= 150_000 && Number(delay) <= 300_000, called.at(-1));
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
    await fixture.queue.lease({ duration: 1 });
    await until(async () => (await fixture.queue.stats()).get("overdue") === 1);
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
      await fixture.queue.add({ id: "a", data: "", keep: LONG_MS });
      const ours = worker(() => {
        ours.stop();
        return returned;
      });
      assert.equal(await ours.run(), 1);
      assert.equal((await fixture.queue.outcome("a")).content.toString(), content);
    });
  }

  test("that cannot be written is a failure, unless nothing is kept", async () => {
    await fixture.queue.add([
      { id: "a", data: "", keep: LONG_MS },
      { id: "b", data: "" },
    ]);
    const ours = worker(({ id }) => {
      if (id.toString() === "b") ours.stop();
      return 1n;
    });
    assert.equal(await ours.run(), 1);
    assert.match((await fixture.queue.inspect("a")).error.toString(), /BigInt/);
  });

  test("that the queue refuses fails its item, and none that ended in the same moment", async () => {
    await fixture.queue.configure({ maxData: 10 });
    await fixture.queue.add(["a", "b", "c"].map((id) => ({ id, data: "", keep: LONG_MS })));
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
    const states = (await fixture.queue.outcome(["a", "b", "c"])).map(({ state }) => state);
    assert.deepEqual(states, ["result", "failure", "result"]);
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
    await fixture.client[Symbol.asyncDispose]();
    await assert.rejects(fixture.queue.stats());
  });

  test("that is closed with a timeout gives back what still runs", async () => {
    await add("a");
    const ours = worker(() => new Promise(() => {}), { grace: Number.POSITIVE_INFINITY });
    const ran = ours.run();
    await until(() => called.includes("started a"));
    await ours.close({ timeout: 50 });
    assert.equal(await ran, 0);
    assert.equal((await fixture.queue.inspect("a")).state, "ready");
    assert.throws(() => worker(() => {}, { grace: -1 }), BadArgumentError);
  });

  test("has the defaults of its page", () => {
    const { policy: _policy, ...settings } = toSettings({ duration: undefined, announce: undefined });
    assert.deepEqual(settings, {
      duration: 30_000,
      concurrency: 1,
      fair: false,
      timeLimit: undefined,
      grace: 25_000,
      hooks: {},
      announce: true,
    });
  });

  test("leaves handlers a grace time that is longer than a timer can be", async () => {
    for (const close of ["stop", "close"]) {
      await add(close);
      let end = () => {};
      const ours = worker(
        async (_item, { signal }) => {
          await new Promise<void>((resolve) => (end = resolve));
          assert.equal(signal.aborted, false);
        },
        { grace: 2 ** 31 },
      );
      const ran = ours.run();
      await until(() => called.includes(`started ${close}`));
      if (close === "stop") ours.stop();
      else void ours.close({ timeout: 2 ** 31 });
      await sleep(30);
      end();
      assert.equal(await ran, 1);
    }
  });

  test("gives back at once what still runs when its client is closed", async () => {
    await add("a");
    const why: string[] = [];
    const ours = worker(
      (_item, { signal }) => {
        whyAborted(signal).then((reason) => why.push(reason));
        return new Promise(() => {});
      },
      { grace: Number.POSITIVE_INFINITY },
    );
    const ran = ours.run();
    await until(() => called.includes("started a"));
    await fixture.client.close();
    assert.equal(await ran, 0);
    assert.deepEqual(why, ["stop"]);
    assert.equal(await fixture.raw.zcard("leaseq:{q}:q:ready"), 1);
  });

  test("that is closed with force waits for what is being completed, and does not give it back", async () => {
    const proxy = await new FaultProxy(fixture.server.path).open();
    const itsClient = new Client({ path: proxy.path }, { logger: fixture.logger });
    await add("a");
    const ours = itsClient.worker(itsClient.queue("q"), () => proxy.hold(), {
      announce: false,
      hooks: fixture.hooks,
    });
    const ran = ours.run();
    await until(async () => (await fixture.raw.hlen("leaseq:{q}:q:items")) === 0);
    const closed = ours.close({ force: true });
    await sleep(20);
    proxy.passOn();
    await closed;
    assert.equal(await ran, 1);
    assert.deepEqual(called, ["leased 1", "started a", "ended a", "completed a"]);
    await itsClient.close();
    proxy.close();
  });

  test("that is fair leases from the queues that have items", async () => {
    const [p, q, r] = ["p", "q", "r"].map((name) => fixture.client.queue(name));
    await p?.add(["1", "2", "3", "4"].map((id) => ({ id, data: "" })));
    const ours = fixture.client.worker(
      [p, q, r] as [Queue, Queue, Queue],
      ({ id }) => void (id.toString() === "4" && ours.stop()),
      { announce: false, fair: true },
    );
    assert.equal(await ours.run(), 4);
  });

  test("that was never run is closed at once", async () => {
    const ours = worker(() => {});
    await ours.close();
    assert.equal(await ours.run(), 0);
  });

  test("works on items of several queues at the same time, and in turns if it is fair", async () => {
    const [p, q] = [fixture.client.queue("p"), fixture.client.queue("q")];
    for (const each of [p, q]) await each.add(["1", "2"].map((id) => ({ id, data: "" })));
    const inside = new Set<string>();
    const both = fixture.client.worker(
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
    const fair = fixture.client.worker(
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
      assert.throws(
        () => fixture.client.worker(fixture.queue, () => {}, options as WorkerOptions),
        new RegExp(name),
      );
    }
    assert.throws(() => worker(() => {}, { duration: 1e12 }), BadArgumentError);
    assert.throws(() => worker(() => {}, { timeLimit: 0 }), BadArgumentError);
  });
});
