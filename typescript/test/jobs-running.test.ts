import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BadArgumentError, Cancellation } from "../src/index.js";
import {
  App,
  Arguments,
  DeadLetter,
  JobCancelled,
  JobFailed,
  Release,
  ResultNotKept,
  ResultTimeout,
} from "../src/jobs/index.js";
import { JobFixture } from "./job-fixture.js";
import { until } from "./server.js";

const jobs = JobFixture.inThisFile();

/** Resolves when the signal is aborted, with its reason. */
const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(signal.reason), { once: true }));

describe("the time limit of a job", { concurrency: false }, () => {
  const once = { retries: 0, timeLimit: 30 };

  test("aborts its signal, and the attempt has failed whatever it throws", async () => {
    const reasons: unknown[] = [];
    const slow = jobs.app.define(
      "slow",
      { ...once, deadLetterOn: [TypeError] },
      async (_: undefined, { signal }) => {
        reasons.push(await aborted(signal));
        throw new TypeError("another");
      },
    );
    jobs.work();
    await assert.rejects((await slow.enqueue()).result(), {
      type: "JobTimeout",
      reason: "the function ran longer than 30 ms",
      attempt: 1,
    });
    assert.deepEqual(
      reasons.map((reason) => reason instanceof Cancellation && reason.why),
      ["late"],
    );
  });

  test("of the call replaces that of the function; 0 in the envelope is none", async () => {
    const quick = jobs.app.define("quick", once, async (_: undefined, { signal }) => {
      await Promise.race([aborted(signal), until(async () => (await jobs.raw.exists("go")) === 1)]);
      signal.throwIfAborted();
      return "done";
    });
    jobs.work();
    const handle = await quick.enqueue(undefined, { timeLimit: Number.POSITIVE_INFINITY });
    assert.equal(JSON.parse((await jobs.raw.hget(jobs.key("items"), handle.id)) ?? "{}").timeout ?? 0, 0);
    const limited = await quick.enqueue(undefined, { timeLimit: 10 });
    await assert.rejects(limited.result(), { reason: "the function ran longer than 10 ms" });
    await jobs.raw.set("go", 1);
    assert.equal(await handle.result(), "done");
  });

  test("leaves another attempt although the errors of the function are final", async () => {
    const slow = jobs.app.define(
      "slow",
      { retries: 1, timeLimit: 30, backoff: { first: 0, last: 0 }, deadLetterOn: [Error] },
      async (_: undefined, { signal, attempt }) => {
        if (attempt === 1) throw await aborted(signal);
        return attempt;
      },
    );
    jobs.work();
    assert.equal(await (await slow.enqueue()).result(), 2);
  });

  test("waits as the envelope says: each delay once, the last one again", async () => {
    const hour = 3_600_000;
    jobs.app.define(
      "often",
      { retries: 3, backoff: { first: hour, last: hour } },
      (_: unknown, { attempt }) => {
        if (attempt <= 3) throw new Error("not yet");
        return attempt;
      },
    );
    const data = JSON.stringify({ v: 1, function: "often", delays: [1, 2] });
    await jobs.app.queue().add({ id: "listed", data, keep: hour, maxAttempts: 5 });
    jobs.work();
    assert.equal(await jobs.app.handle("listed").result(), 4);
  });

  test("does not take back what the function returned, nor its verdict", async () => {
    const late = jobs.app.define("late", { timeLimit: 20 }, async (how: string, { signal, attempt }) => {
      if (attempt === 2) return "again";
      if (how === "blocks") for (const end = Date.now() + 40; Date.now() < end; );
      else await aborted(signal);
      if (how === "dead") throw new DeadLetter("no");
      if (how === "release") throw new Release("later", { delay: 1 });
      return "returned";
    });
    jobs.work();
    assert.equal(await (await late.enqueue("returns")).result(), "returned");
    assert.equal(await (await late.enqueue("blocks")).result(), "returned");
    assert.equal(await (await late.enqueue("release")).result(), "again");
    await assert.rejects((await late.enqueue("dead")).result(), { type: "DeadLetter" });
  });

  test("frees the slot of a function that does not end", async () => {
    jobs.app.define("stuck", once, () => new Promise(() => {}));
    const quick = jobs.app.define("quick", () => "done");
    jobs.work(jobs.app, { concurrency: 1 });
    const stuck = await jobs.app.enqueue("stuck");
    await until(async () => (await stuck.status()) === "running");
    assert.equal(await (await quick.enqueue()).result(), "done");
    await assert.rejects(stuck.result(), { type: "JobTimeout" });
  });
});

describe("the end of an attempt", { concurrency: false }, () => {
  const hour = 3_600_000;

  test("is late though the function let no timer fire, whatever it throws then", async () => {
    const busy = jobs.app.define("busy", { retries: 0, timeLimit: 10, deadLetterOn: [TypeError] }, () => {
      for (const end = performance.now() + 30; performance.now() < end; );
      throw new TypeError("another");
    });
    jobs.work();
    await assert.rejects((await busy.enqueue()).result(), { type: "JobTimeout" });
  });

  test("in time aborts no signal afterwards", async () => {
    const signals: AbortSignal[] = [];
    const quick = jobs.app.define("quick", { retries: 0, timeLimit: 20 }, (fails: boolean, { signal }) => {
      signals.push(signal);
      if (fails) throw new Error("no");
    });
    const worker = jobs.work();
    await (await quick.enqueue(false)).result();
    await assert.rejects((await quick.enqueue(true)).result(), JobFailed);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await worker.close({ force: true });
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [false, false],
    );
  });

  test("is what the function asks for, whatever class that is of and however long its backoff", async () => {
    const options = { backoff: hour, deadLetterOn: [Error] };
    const ask = jobs.app.define("ask", options, (delay: number | null, { attempt }) => {
      if (attempt === 1) throw new Release("later", delay === null ? {} : { delay });
      return attempt;
    });
    jobs.work();
    assert.equal(await (await ask.enqueue(0)).result(), 2);
    const [own, long] = await jobs.app.enqueueMany([ask.call(null), ask.call(2 * hour)]);
    for (const [handle, hours] of [
      [own, 1],
      [long, 2],
    ] as const) {
      await until(async () => (await handle?.status()) === "retrying");
      const { time } = await jobs.app.queue().inspect(handle?.id ?? "");
      assert.equal(Math.round((time / 1000 - Date.now()) / hour), hours);
    }
  });

  test("waits for the first delay also if that is longer than the longest", async () => {
    const fail = jobs.app.define("fail", { backoff: { first: 4 * hour } }, () => {
      throw new Error("no");
    });
    jobs.work();
    const handles = await jobs.app.enqueueMany([
      fail.call(),
      fail.call(undefined, { backoff: { first: 4 * hour } }),
    ]);
    for (const handle of handles) {
      await until(async () => (await handle.status()) === "retrying");
      const delay = (await jobs.app.queue().inspect(handle.id)).time / 1000 - Date.now();
      assert.ok(delay > 1.9 * hour && delay <= 4 * hour, `${delay}`);
    }
  });

  test("is reported to hooks and the log with the error of the function", async () => {
    const error = new RangeError("no");
    const fail = jobs.app.define("fail", { retries: 1, backoff: [0] }, () => {
      throw error;
    });
    const seen: unknown[] = [];
    jobs.work(jobs.app, {
      hooks: {
        ended: (item, _ms, thrown) => seen.push(`ended ${item.attempt}`, thrown === error),
        released: (item, delay, text) =>
          seen.push(`released ${item.attempt} ${delay} ${text?.split("\n", 1)}`),
        deadLettered: (item, text) => seen.push(`dead ${item.attempt} ${text?.split("\n", 1)}`),
      },
    });
    await assert.rejects((await fail.enqueue(undefined, { id: "a" })).result(), JobFailed);
    await until(() => jobs.logged.length === 2);
    const text = "RangeError: no";
    assert.deepEqual(seen, ["ended 1", true, `released 1 0 ${text}`, "ended 2", true, `dead 2 ${text}`]);
    const item = 'leaseq worker: item "a" of default, attempt';
    assert.deepEqual(jobs.logged, [
      `${item} 1, failed and goes back for 0 ms: ${text}`,
      `${item} 2, failed and is dead: ${text}`,
    ]);
  });

  test("of a job that keeps no result is known while it is dead, and takes any result", async () => {
    const free = jobs.app.define("free", { keep: 0, retries: 0 }, (fails: boolean) => {
      if (fails) throw new RangeError("no");
      return new Map(); // JSON cannot hold it
    });
    jobs.work();
    const [dead, done] = await jobs.app.enqueueMany([free.call(true), free.call(false)]);
    await until(async () => (await dead?.status()) === "failed");
    await assert.rejects(dead?.result() ?? Promise.resolve(), {
      type: "RangeError",
      reason: "no",
      attempt: 1,
    });
    await until(async () => (await done?.status()) === "unknown");
    assert.equal((await jobs.app.queue().stats()).get("dead"), 1);
  });

  test("of a job in place of another ends the wait for that one, of many that wait", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    const calls = Array.from({ length: 17 }, (_, index) =>
      echo.call(index, { id: `n${index}`, delay: hour }),
    );
    const handles = await jobs.app.enqueueMany(calls);
    const last = handles.pop();
    const blocked = handles.map((handle) => assert.rejects(handle.result(), JobCancelled));
    await until(async () => /blocked_clients:16/.test(await jobs.raw.info("clients")));
    const polled = assert.rejects(last?.result({ timeout: 10_000 }) ?? Promise.resolve(), ResultNotKept);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const data = (await jobs.raw.hgetBuffer(jobs.key("items"), "n16")) ?? "";
    await Promise.all([
      jobs.app.queue().remove(["n16"]),
      jobs.app.queue().add({ id: "n16", data, keep: hour, delay: hour }),
    ]);
    await polled;
    for (const handle of handles) await handle.cancel();
    await Promise.all(blocked);
  });
});

describe("cancelling a job", { concurrency: false }, () => {
  test("removes a job that waits, and wakes clients that wait for its result", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    const handle = await echo.enqueue(1, { delay: 60_000 });
    const waiting = assert.rejects(handle.result(), JobCancelled);
    await until(async () => /blocked_clients:1/.test(await jobs.raw.info("clients")));
    const startedAt = Date.now();
    assert.equal(await handle.cancel(), true);
    await waiting;
    assert.ok(Date.now() - startedAt < 2000, "woken before the wait cap");
    assert.deepEqual([await handle.status(), await handle.cancel()], ["cancelled", false]);
    const note = JSON.parse((await jobs.raw.get(jobs.key(`cancelled:${handle.id}`))) ?? "");
    assert.deepEqual(Object.keys(note), ["v", "cancelled", "job"]);
    assert.equal(JSON.parse(Buffer.from(note.job, "base64").toString()).function, "echo");
    const info = await handle.info();
    assert.deepEqual([info.function, info.args, info.ended], ["echo", [1], note.cancelled]);
    assert.equal(await jobs.raw.zscore(jobs.key("kept"), handle.id), null);
  });

  test("aborts the signal of a job that runs", async () => {
    let started = false;
    let reason: unknown;
    const wait = jobs.app.define("wait", async (_: undefined, { signal }) => {
      started = true;
      reason = await aborted(signal);
    });
    jobs.work(jobs.app, { duration: 300 });
    const handle = await wait.enqueue();
    await until(() => started);
    assert.equal(await handle.status(), "running");
    assert.equal(await handle.cancel(), true);
    await assert.rejects(handle.result(), JobCancelled);
    await until(() => reason instanceof Cancellation && reason.why === "lost");
    assert.equal(await handle.status(), "cancelled");
  });

  test("does nothing to a job that ended, is dead, or never was", async () => {
    const fail = jobs.app.define("fail", { retries: 0 }, (ok: boolean) => {
      if (!ok) throw new Error("no");
    });
    jobs.work();
    const [done, dead] = await jobs.app.enqueueMany([fail.call(true), fail.call(false)]);
    await done?.result();
    await assert.rejects(dead?.result() ?? Promise.resolve(), JobFailed);
    for (const handle of [done, dead, jobs.app.handle("absent")]) {
      assert.equal(await handle?.cancel(), false);
      assert.equal(await jobs.raw.exists(jobs.key(`cancelled:${handle?.id}`)), 0);
    }
    assert.equal(await dead?.purge(), true);
    assert.equal((await jobs.app.queue().inspect(dead?.id ?? "")).state, "absent");
  });
});

describe("a running job", { concurrency: false }, () => {
  test("reports any value of JSON in place of numbers", async () => {
    const wait = jobs.app.define("wait", async (_: undefined, { progress, report, signal }) => {
      progress(1, 4);
      const value = { step: "upload", files: [1] };
      report(value);
      value.step = "changed later";
      for (const wrong of [undefined, 1n, "x".repeat(4095)])
        assert.throws(() => report(wrong), BadArgumentError);
      await Promise.race([aborted(signal), until(async () => (await jobs.raw.exists("end")) === 1)]);
    });
    jobs.work(jobs.app);
    const handle = await wait.enqueue();
    await until(async () => (await handle.info()).report !== undefined);
    const info = await handle.info();
    assert.deepEqual([info.progress, info.report], [undefined, { step: "upload", files: [1] }]);
    await jobs.raw.set("end", 1);
    await handle.result();
    assert.equal((await handle.info()).report, undefined);
  });

  test("reports its worker, its start and its progress", async () => {
    const wait = jobs.app.define("wait", async (_: undefined, { progress, signal }) => {
      progress(1, 4);
      await Promise.race([aborted(signal), until(async () => (await jobs.raw.exists("go")) === 1)]);
      progress(3, 4);
      await Promise.race([aborted(signal), until(async () => (await jobs.raw.exists("end")) === 1)]);
      return "done";
    });
    const seen: unknown[] = [];
    const worker = jobs.work(jobs.app, { hooks: { progress: (_item, value) => seen.push(value) } });
    const handle = await wait.enqueue();
    await until(async () => (await handle.info()).progress !== undefined);
    const info = await handle.info();
    assert.deepEqual(
      [info.status, info.worker, info.progress],
      ["running", worker.id, { done: 1, total: 4 }],
    );
    assert.deepEqual(seen, [{ done: 1, total: 4 }]);
    const key = jobs.key(`job:${handle.id}`);
    const note = JSON.parse((await jobs.raw.get(key)) ?? "");
    assert.deepEqual([note.v, note.done, note.total, note.started], [1, 1, 4, info.started]);
    const life = await jobs.raw.pttl(key);
    assert.ok(life > 0 && life <= 3_600_000, String(life));

    // a note of another lease does not count
    await jobs.raw.set(key, JSON.stringify({ ...note, token: note.token - 1 }), "KEEPTTL");
    assert.deepEqual([(await handle.info()).progress, (await handle.info()).worker], [undefined, ""]);
    await jobs.raw.set("go", 1);
    await until(async () => (await handle.info()).progress?.done === 3);
    await jobs.raw.set("end", 1);
    assert.equal(await handle.result(), "done");
    await until(async () => (await jobs.raw.exists(key)) === 0);
    assert.deepEqual([(await handle.info()).result, (await handle.info()).worker], ["done", worker.id]);
  });

  test("is given back, uncounted, when the grace time is over", async () => {
    let why: unknown;
    let started = false;
    const wait = jobs.app.define("wait", async (_: undefined, { signal, stopping, attempt }) => {
      if (attempt > 1 || why) return "again";
      started = true;
      await aborted(stopping);
      why = ((await aborted(signal)) as Cancellation).why;
    });
    const worker = jobs.work();
    const handle = await wait.enqueue();
    await until(() => started);
    await worker.close({ timeout: 20 });
    await until(() => why === "stop");
    const { state, attempt } = await jobs.app.queue().inspect(handle.id);
    assert.deepEqual([state, attempt], ["ready", 0]);
    jobs.work();
    assert.equal(await handle.result(), "again");
  });

  test("is described, with times", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    const before = Date.now();
    const handle = await echo.enqueue(new Arguments([1]), { retries: 3, delay: 3_600_000 });
    const info = await handle.info();
    assert.equal(info.description, "echo(1)");
    assert.deepEqual([info.status, info.retries, info.attempt, info.result], ["delayed", 3, 0, undefined]);
    assert.ok((info.due ?? 0) >= before + 3_600_000 && (info.enqueued ?? 0) >= before - 60_000);
    const named = await echo.enqueue(1, { description: "for people" });
    assert.equal((await named.info()).description, "for people");
    assert.equal((await jobs.app.handle("absent").info()).status, "unknown");
  });
});

describe("a chain", { concurrency: false }, () => {
  const shop = () => ({
    fetch: jobs.app.define("fetch", (url: string) => [url.length, 20]),
    total: jobs.app.define(
      "total",
      { parameters: ["prices", "tax?"] },
      ({ prices, tax = 0 }: { prices: number[]; tax?: number }) =>
        prices.reduce((sum, price) => sum + price, 0) * (1 + tax),
    ),
    text: jobs.app.define("text", { queue: "texts" }, (sum: number) => `it is ${sum}`),
  });

  test("hands on what each job returns, over queues", async () => {
    const { fetch, total, text } = shop();
    const chain = await jobs.app
      .chain(fetch.call("0123456789", { id: "first" }))
      .next(total, { priority: 2 }, new Arguments([0.5]))
      .next(text, { keep: 5000, headers: { a: "b" }, delay: 1 })
      .enqueue();
    assert.deepEqual(
      chain.stages.map(({ id, queue }) => [id, queue]),
      [
        ["first", "default"],
        ["first/1", "default"],
        ["first/2", "texts"],
      ],
    );
    assert.equal(await chain.status(), "ready");
    const { then } = JSON.parse((await jobs.raw.hget(jobs.key("items"), "first")) ?? "");
    const day = 86_400_000;
    assert.deepEqual(then[0], {
      id: "first/1",
      queue: "default",
      job: { v: 1, function: "total", args: [0.5] },
      add: { priority: 2, max_attempts: 5, expires_in: day, expires_to: "dead", keep: day },
    });
    assert.deepEqual(then[1].add, {
      delay: 1,
      max_attempts: 5,
      expires_in: day + 1,
      expires_to: "dead",
      keep: 5000,
    });
    assert.deepEqual(then[1].headers, { a: "b" });
    jobs.work();
    const result: string = await chain.result({ timeout: 20_000 });
    assert.equal(result, "it is 45");
    assert.equal(await chain.status(), "succeeded");
    assert.deepEqual(
      await Promise.all(chain.stages.map((stage) => stage.status())),
      Array(3).fill("succeeded"),
    );
    const last = await chain.stages[2]?.info();
    assert.deepEqual([last?.args, last?.description], [[45], "text(45)"]);
  });

  test("stops at a job that fails, and goes on when it is revived", async () => {
    let isOpen = false;
    const { text } = shop();
    const gate = jobs.app.define("gate", { retries: 0 }, () => {
      if (!isOpen) throw new Error("closed");
      return 7;
    });
    jobs.work();
    const chain = await jobs.app.chain(gate.call()).next(text).enqueue();
    await assert.rejects(chain.result(), { type: "Error", reason: "closed" });
    assert.equal(await chain.status(), "failed");
    isOpen = true;
    await chain.stages[0]?.revive();
    assert.equal(await chain.result(), "it is 7");
  });

  test("is cancelled as a whole, and can be enqueued under the same id again", async () => {
    const { fetch, total } = shop();
    const chain = jobs.app.chain(fetch.call("x", { id: "a" })).next(total, {}, new Arguments());
    const first = await chain.enqueue();
    assert.equal((await chain.enqueue()).added, false);
    assert.equal(await first.cancel(), true);
    await assert.rejects(first.result(), JobCancelled);
    assert.equal(await first.cancel(), false);
    const notes = ["job:a", "cancelled:a", "job:a/1", "cancelled:a/1"].map((part) => jobs.key(part));
    for (const note of notes) await jobs.raw.set(note, "{}");
    const again = await chain.enqueue();
    assert.equal(again.added, true);
    assert.equal(await jobs.raw.exists(...notes), 0);
    const worker = jobs.work();
    assert.equal(await again.result(), 21);
    await worker.close();
    // what the first chain left does not count
    const next = await jobs.app
      .chain(fetch.call("xyz", { id: "a" }))
      .next(total, {}, new Arguments())
      .enqueue();
    await assert.rejects(next.result({ timeout: 100 }), ResultTimeout);
    jobs.work();
    assert.equal(await next.result(), 23);
  });

  test("keeps no results but the last, and then waits for it alone", async () => {
    const { fetch, total } = shop();
    const chain = await jobs.app
      .chain(fetch.call("x", { keep: 0 }))
      .next(total, {}, new Arguments())
      .enqueue();
    await assert.rejects(chain.result(), ResultNotKept);
    jobs.work();
    await until(async () => (await chain.status()) === "succeeded");
    assert.equal(await chain.result(), 21);
  });

  test("is over where nothing is kept of its last job", async () => {
    const { fetch, total } = shop();
    const chain = await jobs.app.chain(fetch.call("x")).next(total, { keep: 0 }, new Arguments()).enqueue();
    assert.equal(await chain.status(), "ready");
    jobs.work();
    // It was "ready" for as long as the result of the first job was kept.
    await until(async () => (await chain.status()) === "unknown");
    assert.equal(await chain.stages[0]?.status(), "succeeded");
  });

  test("makes a job dead whose next stage cannot be enqueued", async () => {
    jobs.app.define("one", () => 1);
    jobs.work();
    const stages = {
      id: { queue: "default", job: { v: 1, function: "one" } },
      option: { id: "x", queue: "default", job: { v: 1, function: "one" }, add: { nope: 1 } },
      queue: { id: "x", queue: "no name", job: { v: 1, function: "one" } },
      codec: { id: "x", queue: "default", job: { v: 1, function: "one", codec: "c", body: "AA==" } },
    };
    for (const [id, stage] of Object.entries(stages)) {
      const data = `{"v":1,"function":"one","then":[${JSON.stringify(stage)}]}`;
      await jobs.app.queue().add({ id, data, keep: 60_000, maxAttempts: 5 });
      await assert.rejects(jobs.app.handle(id).result(), { name: "JobFailed", attempt: 1 }, id);
    }
    assert.equal((await jobs.app.queue().outcome("x")).state, "absent");
  });

  test("takes no id and no time for a later job", () => {
    const { fetch, total } = shop();
    const chain = jobs.app.chain(fetch.call("x"));
    for (const options of [{ id: "a" }, { at: 5 }, { at: new Date() }] as object[]) {
      assert.throws(() => chain.next(total, options, new Arguments()), BadArgumentError);
    }
  });

  test("can be gone on with in two ways, and enqueued again, each time as another one", async () => {
    const { fetch, total, text } = shop();
    const start = jobs.app.chain(fetch.call("x")).next(total, {}, new Arguments());
    const chains = [start, start.next(text), start.next(total, {}, new Arguments([1])), start];
    const handles = [];
    for (const chain of chains) handles.push(await chain.enqueue());
    assert.deepEqual(
      handles.map(({ stages }) => stages.length),
      [2, 3, 3, 2],
    );
    assert.equal(new Set(handles.map(({ stages }) => stages[0]?.id)).size, 4);
  });

  test("has one timeout for all its jobs", async () => {
    const slow = jobs.app.define("slow", () => new Promise<number>((resolve) => setTimeout(resolve, 60, 1)));
    jobs.work();
    const chain = await jobs.app
      .chain(slow.call())
      .next(
        jobs.app.define("next", (input: number) => input),
        { delay: 3_600_000 },
      )
      .enqueue();
    const last = chain.stages[1];
    let left: number | undefined;
    if (last)
      last.result = async (options) => {
        left = options?.timeout;
        return "waited";
      };
    assert.equal(await chain.result({ timeout: 60_000 }), "waited");
    assert.ok(left !== undefined && left > 0 && left <= 59_950, `${left}`);
  });

  test("of an id that was used forgets the notes beside all its jobs, in their queues", async () => {
    const { fetch, total, text } = shop();
    const chain = jobs.app
      .chain(fetch.call("x", { id: "a" }))
      .next(total, {}, new Arguments())
      .next(text);
    const notes = ["job", "cancelled"].flatMap((note) => [
      jobs.key(`${note}:a`),
      jobs.key(`${note}:a/1`),
      jobs.key(`${note}:a/2`, "texts"),
    ]);
    for (const note of notes) await jobs.raw.set(note, "{}");
    await chain.enqueue();
    assert.equal(await jobs.raw.exists(...notes), 0);
    for (const note of notes) await jobs.raw.set(note, "{}");
    await chain.enqueue(); // it is there already
    assert.equal(await jobs.raw.exists(...notes), 6);
  });

  test("passes the options of each job on, and says when it was due", async () => {
    const times = jobs.app.define("times", { timeLimit: 5000 }, (_: unknown, context) => [
      context.due - context.enqueued,
      context.attempt,
    ]);
    const more = { delay: 30, timeLimit: 70, backoff: [1, 2], description: "for people", expires: 1000 };
    const chain = await jobs.app
      .chain(times.call(undefined, { delay: 20, retries: 9 }))
      .next(times, { ...more, retries: 2, attempt: 2 })
      .next(times)
      .enqueue();
    const id = chain.stages[0]?.id ?? "";
    assert.equal((await jobs.app.queue().inspect(id)).maxAttempts, 10);
    const { then } = JSON.parse((await jobs.raw.hget(jobs.key("items"), id)) ?? "");
    const job = {
      v: 1,
      function: "times",
      attempt: 2,
      timeout: 70,
      delays: [1, 2],
      description: "for people",
    };
    assert.deepEqual(then[0].job, job);
    const kept = { expires_to: "dead", keep: 86_400_000 };
    assert.deepEqual(then[0].add, { delay: 30, max_attempts: 2, expires_in: 1030, ...kept });
    assert.deepEqual(then[1].job, { v: 1, function: "times" });
    jobs.work();
    await chain.result();
    const results = await Promise.all(chain.stages.map((stage) => stage.result()));
    assert.deepEqual(results, [
      [20, 1],
      [30, 2],
      [0, 1],
    ]);
  });

  test("takes the result in MessagePack", async () => {
    const app = new App(jobs.client, { format: "msgpack" });
    const bytes = app.define("bytes", () => new Uint8Array([1, 2]));
    const size = app.define("size", (input: Uint8Array) => input.length);
    jobs.work(app);
    assert.equal(await (await app.chain(bytes.call()).next(size).enqueue()).result(), 2);
  });
});
