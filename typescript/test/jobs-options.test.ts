// What is passed on: the options of an App, of its functions and calls, what a function gets, and what is known of a job.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { App, Arguments, ResultNotKept, SerializationError } from "../src/jobs/index.js";
import { JobFixture } from "./job-fixture.js";
import { until } from "./server.js";

const LONG_MS = 60_000;
const HOUR = 3_600_000;
const jobs = JobFixture.inThisFile();

describe("the options", { concurrency: false }, () => {
  test("of an App are its group and its queue, and a handle can be of another queue", async () => {
    const app = new App(jobs.client, { group: "shop", queue: "orders" });
    const echo = app.define("echo", (input: number) => input);
    const handles = [await echo.enqueue(1), await echo.enqueue(2, { queue: "others" })];
    assert.deepEqual(
      handles.map(({ queue }) => queue),
      ["orders", "others"],
    );
    assert.equal(await jobs.raw.hexists("leaseq:{shop}:orders:items", handles[0]?.id ?? ""), 1);
    assert.equal(await jobs.raw.hexists("leaseq:{shop}:others:items", handles[1]?.id ?? ""), 1);
    jobs.work(app, { queues: ["orders", "others"] });
    assert.equal(await app.handle(handles[0]?.id ?? "").result(), 1);
    assert.equal(await app.handle(handles[1]?.id ?? "", "others").result(), 2);
    await assert.rejects(app.handle(handles[1]?.id ?? "").result(), ResultNotKept);
    assert.equal((await app.queue("others").stats()).get("completed"), 1);
  });

  test("of an App: it closes the client that it opened, and no other", async () => {
    const own = new App({ path: jobs.server.path });
    await own.enqueue("f");
    await own.close();
    await assert.rejects(own.enqueue("f"));
    await jobs.app.close();
    await jobs.app.enqueue("f");
  });

  test("of a worker have defaults, for those too that are undefined", async () => {
    jobs.app.define("f", { queue: "p" }, () => 1);
    const worker = jobs.work(jobs.app, { concurrency: undefined, queues: undefined });
    await until(async () => (await jobs.client.liveWorkers()).length === 1);
    const [info] = await jobs.client.liveWorkers();
    assert.deepEqual([info?.id, info?.concurrency, info?.queues], [worker.id, 8, ["jobs:default", "jobs:p"]]);
  });

  test("of a call go before those of its function, which go before the defaults", async () => {
    const f = jobs.app.define(
      "f",
      { priority: 2, retries: 7, keep: 5000, expires: HOUR, delay: LONG_MS, queue: "p", headers: { a: "f" } },
      () => 1,
    );
    const day = 86_400_000;
    const item = async (...[input, options]: Parameters<typeof f.enqueue>) => {
      const { id, queue } = await f.enqueue(input, options);
      const found = await jobs.app.queue(queue).inspect(id);
      const { state, priority, maxAttempts, keep } = found;
      const life = found.expires && Math.round((found.expires / 1000 - Date.now()) / 60_000) * 60_000;
      return [queue, state, priority, maxAttempts, keep, life];
    };
    assert.deepEqual(await item(), ["p", "delayed", 2, 8, 5000, HOUR + LONG_MS]);
    assert.deepEqual(
      await item(undefined, { delay: 0, priority: -7, retries: 0, expires: day, queue: "q" }),
      ["q", "ready", -7, 1, 5000, day],
    );
    const infinite = { retries: Number.POSITIVE_INFINITY, expires: Number.POSITIVE_INFINITY, keep: 0 };
    assert.deepEqual((await item(undefined, infinite)).slice(3), [0, 0, 0]);
    // a time replaces the delay of the function
    const at = Date.now() + 2 * HOUR;
    const { id } = await f.enqueue(undefined, { at });
    const { time, expires } = await jobs.app.queue("p").inspect(id);
    assert.equal(time, at * 1000);
    assert.ok(Math.abs(expires / 1000 - at - HOUR) < 5000);
    const past = await f.enqueue(undefined, { at: 5 });
    assert.equal((await jobs.app.queue("p").inspect(past.id)).state, "ready");
    assert.deepEqual(jobs.app.queues, ["default", "p"]);
  });

  test("of a call are those of each job that it becomes", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    const call = echo.call(7, { delay: LONG_MS });
    const handles = await jobs.app.enqueueMany([call, call]);
    assert.equal(new Set(handles.map(({ id }) => id)).size, 2);
    assert.equal((await jobs.app.queue().stats()).get("delayed"), 2);
  });
});

describe("a function", { concurrency: false }, () => {
  test("gets all that is known of its job", async () => {
    const tokens: number[] = [];
    const seen = jobs.app.define("seen", (_: undefined, context) => {
      const { signal, stopping, progress, report, headers, ...rest } = context;
      return {
        ...rest,
        aborted: [signal.aborted, stopping.aborted],
        headers: headers.size,
        progress: [typeof progress, typeof report],
      };
    });
    const worker = jobs.work(jobs.app, {
      queues: ["elsewhere"],
      hooks: { leased: ([item]) => tokens.push(item?.token ?? 0) },
    });
    const handle = await seen.enqueue(undefined, { queue: "elsewhere" });
    const { enqueued, ...result } = await handle.result();
    assert.ok(Math.abs(enqueued - Date.now()) < LONG_MS);
    assert.deepEqual(result, {
      id: handle.id,
      function: "seen",
      queue: "elsewhere",
      attempt: 1,
      due: enqueued,
      token: tokens[0],
      worker: worker.id,
      aborted: [false, false],
      headers: 0,
      progress: ["function", "function"],
    });
  });

  test("gets null as null, and nothing as undefined", async () => {
    const kind = jobs.app.define("kind", (input: unknown) => String(input));
    jobs.work();
    const handles = await jobs.app.enqueueMany([kind.call(null), kind.call(undefined), kind.call()]);
    const results = await Promise.all(handles.map((handle) => handle.result()));
    assert.deepEqual(results, ["null", "undefined", "undefined"]);
  });

  test("gets its input as it was when it was enqueued (LQ-CLIENT-26)", async () => {
    const echo = jobs.app.define("echo", (input: object, { headers }) => [
      input,
      headers.get("a")?.toString(),
    ]);
    const input = { values: [1] };
    const headers = { a: "1" };
    const enqueued = [
      echo.enqueue(input, { headers }),
      echo.enqueue(input, { headers, at: Date.now() + 1 }),
      jobs.app.enqueueMany([
        echo.call(input, { headers, queue: "p" }),
        echo.call(input, { headers, queue: "q" }),
      ]),
      jobs.app.chain(echo.call(input, { headers })).enqueue(),
    ];
    input.values[0] = 2;
    headers.a = "2";
    const handles = (await Promise.all(enqueued)).flat();
    jobs.work(jobs.app, { queues: ["default", "p", "q"] });
    for (const handle of handles) assert.deepEqual(await handle.result(), [{ values: [1] }, "1"]);
    assert.equal(handles.length, 5);
  });

  test("gets no member that is undefined, in both formats, and a value that is none is sent to no queue", async () => {
    const packed = new App(jobs.client, { format: "msgpack" });
    for (const app of [jobs.app, packed]) {
      const names = app.define("names", (input: object) => ({ names: Object.keys(input), none: undefined }));
      const worker = jobs.work(app);
      assert.deepEqual(await (await names.enqueue({ a: undefined, b: 1 })).result(), { names: ["b"] });
      await worker.close();
      for (const bad of [2n ** 64n, -(2n ** 63n) - 1n, new Map(), Symbol("s"), [undefined], "\ud800"]) {
        const calls = [names.call({}, { queue: "p" }), names.call([bad], { queue: "q" })];
        await assert.rejects(app.enqueueMany(calls), SerializationError);
      }
    }
    assert.equal(await jobs.raw.exists(jobs.key("items", "p")), 0);
    const echo = packed.define("echo", (input: unknown) => input);
    jobs.work(packed);
    const edges = [2n ** 64n - 1n, -(2n ** 63n), 2 ** 31, -(2 ** 31), 2 ** 53 - 1, -(2 ** 53) + 1, 0.5];
    assert.deepEqual(await (await echo.enqueue(edges)).result(), edges);
  });

  test("of JSON gets digits in text as they are", async () => {
    const echo = jobs.app.define("echo", (input: unknown) => input);
    jobs.work();
    const input = [
      'say "9007199254740993"',
      "\\",
      "9007199254740993\\",
      { "9007199254740993": 0.5 },
      2 ** 53 - 1,
    ];
    assert.deepEqual(await (await echo.enqueue(input)).result(), input);
  });
});

describe("what is known of a job", { concurrency: false }, () => {
  test("counts the attempts before it, and those that are left", async () => {
    const fail = jobs.app.define("fail", { backoff: HOUR }, () => {
      throw new RangeError("no");
    });
    const retries = async (options: object) =>
      (await (await fail.enqueue(undefined, { delay: HOUR, ...options })).info()).retries;
    assert.equal(await retries({}), 4);
    assert.equal(await retries({ retries: Number.POSITIVE_INFINITY }), Number.POSITIVE_INFINITY);
    assert.equal(await retries({ retries: 5, attempt: 3 }), 5);
    const handle = await fail.enqueue(undefined, { retries: 5, attempt: 3, delay: 1 });
    assert.equal((await handle.info()).attempt, 0);
    const before = Date.now();
    const worker = jobs.work();
    await until(async () => (await handle.status()) === "retrying");
    const info = await handle.info();
    assert.deepEqual(
      [info.attempt, info.error, info.worker, info.ended, info.progress],
      [3, "RangeError: no", worker.id, undefined, undefined],
    );
    assert.ok((info.started ?? 0) >= before - 1000 && (info.started ?? 0) <= Date.now() + 1000);
    assert.match(info.traceback, /RangeError: no\n +at /);
    await assert.rejects(
      handle.result({ timeout: 0 }),
      /has not ended: it is retrying, after RangeError: no$/,
    );
  });

  test("has its call, its result and its times", async () => {
    const echo = jobs.app.define("echo", { parameters: ["a", "b?"] }, (input: object) => input);
    const handle = await echo.enqueue(new Arguments([[1, "x"]], { b: null }));
    assert.equal((await handle.info()).description, 'echo([1,"x"], b=null)');
    jobs.work();
    await handle.result();
    const {
      status,
      args,
      kwargs,
      result,
      started = 0,
      ended = 0,
      enqueued = 0,
      retries,
    } = await handle.info();
    assert.deepEqual([status, args, kwargs], ["succeeded", [[1, "x"]], { b: null }]);
    assert.deepEqual([result, retries], [{ a: [1, "x"], b: null }, undefined]);
    assert.ok(enqueued <= ended && Math.abs(ended - started) < LONG_MS, `${enqueued} ${started} ${ended}`);
    const nothing = await jobs.app.enqueue("nothing");
    assert.equal((await nothing.info()).result, undefined);
    jobs.app.define("nothing", () => undefined);
    assert.equal(await nothing.result(), null);
    assert.equal((await nothing.info()).result, null);
  });

  test("is the job itself up to 4096 bytes, with its result and beside a cancel", async () => {
    jobs.app.define("size", () => 1);
    const worker = jobs.work();
    const empty = '{"v":1,"function":"size","args":[""]}';
    for (const [size, copied] of [
      [4096, true],
      [4097, false],
    ] as const) {
      const data = empty.replace('""', `"${"x".repeat(size - empty.length)}"`);
      await jobs.app.queue().add({ id: `ran-${size}`, data, keep: LONG_MS });
      await jobs.app.handle(`ran-${size}`).result();
      const { content } = await jobs.app.queue().outcome(`ran-${size}`);
      assert.equal("job" in JSON.parse(content.toString()), copied);
      assert.equal((await jobs.app.handle(`ran-${size}`).info()).function, copied ? "size" : "");
      const cancelled = `cancelled-${size}`;
      await jobs.app.queue().add({ id: cancelled, data, keep: LONG_MS, delay: LONG_MS });
      assert.equal(await jobs.app.handle(cancelled).cancel(), true);
      const note = jobs.key(`cancelled:${cancelled}`);
      assert.equal("job" in JSON.parse((await jobs.raw.get(note)) ?? ""), copied);
      const [life, woken] = [await jobs.raw.pttl(note), await jobs.raw.pttl(jobs.key(`result:${cancelled}`))];
      assert.ok(life > 86_000_000 && life <= 86_400_000, `${life}`);
      assert.ok(woken > 0 && woken <= 4000, `${woken}`);
      assert.equal(await jobs.raw.exists(jobs.key(`woken:${cancelled}`)), 0);
    }
    await worker.close();
  });
});
