import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BadArgumentError } from "../src/index.js";
import {
  App,
  Arguments,
  BadInputError,
  DeadLetter,
  JobFailed,
  Release,
  ResultNotKept,
  ResultTimeout,
  type Schema,
  SerializationError,
} from "../src/jobs/index.js";
import { JobFixture } from "./job-fixture.js";
import { until } from "./server.js";

const jobs = JobFixture.inThisFile();

/** A schema by hand: an object whose `to` is text; `count` is made a number. */
const mail: Schema<{ to: string; count?: string }, { to: string; count: number }> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: async (value) => {
      const { to, count = "1" } = (value ?? {}) as { to?: unknown; count?: string };
      if (typeof to !== "string") return { issues: [{ message: "no text", path: [{ key: "to" }] }] };
      return { value: { to, count: Number(count) } };
    },
  },
};

describe("a job", { concurrency: false }, () => {
  test("is enqueued, runs, and its result is read", async () => {
    const double = jobs.app.define("double", (n: number, { attempt }) => ({ twice: 2 * n, attempt }));
    jobs.work();
    const handle = await double.enqueue(21);
    assert.equal(handle.added, true);
    const result: { twice: number; attempt: number } = await handle.result();
    assert.deepEqual(result, { twice: 42, attempt: 1 });
    assert.equal(await handle.status(), "succeeded");
  });

  test("gets one argument, or those by name as one object", async () => {
    const given = jobs.app.define("given", (input: unknown) => input ?? "nothing");
    jobs.work();
    const inputs = [undefined, { a: 1 }, [1, 2], new Arguments([[1, 2]]), new Arguments([], { tax: 1 })];
    const handles = await jobs.app.enqueueMany(inputs.map((input) => given.call(input)));
    const results = await Promise.all(handles.map((handle) => handle.result()));
    assert.deepEqual(results, ["nothing", { a: 1 }, [1, 2], [1, 2], { tax: 1 }]);
    const other = new App(jobs.client).function("given"); // a program that does not know better
    for (const args of [new Arguments([1, 2]), new Arguments([1], { tax: 1 })]) {
      await assert.rejects(given.enqueue(args), BadInputError);
      await assert.rejects((await other.enqueue(args)).result(), { type: "BadInputError", attempt: 1 });
    }
  });

  test("with named parameters gets one object, however it is called", async () => {
    const total = jobs.app.define(
      "total",
      { parameters: ["price", "tax?"] },
      ({ price, tax = 0 }: { price: number; tax?: number }) => price + tax,
    );
    jobs.work();
    const named = await total.enqueue({ price: 1, tax: 2 }, { id: "named", delay: 1 });
    assert.equal(await named.result(), 3);
    assert.deepEqual((await named.info()).kwargs, { price: 1, tax: 2 });
    for (const [args, sum] of [
      [new Arguments([1]), 1],
      [new Arguments([1, 2]), 3],
      [new Arguments([1], { tax: 3 }), 4],
      [new Arguments([], { price: 5 }), 5],
    ] as const) {
      assert.equal(await (await total.enqueue(args)).result(), sum);
    }
    const other = new App(jobs.client).function("total");
    for (const args of [
      new Arguments(),
      new Arguments([1, 2, 3]),
      new Arguments([1], { price: 1 }),
      new Arguments([1], { colour: 1 }),
      new Arguments([], { tax: 1 }),
    ]) {
      await assert.rejects(total.enqueue(args), BadInputError);
      await assert.rejects((await other.enqueue(args)).result(), { type: "BadInputError", attempt: 1 });
    }
    assert.throws(() => jobs.app.define("twice", { parameters: ["a", "a?"] }, () => 1), BadArgumentError);
    assert.throws(() => new Arguments([], [] as unknown as Record<string, unknown>), BadArgumentError);
  });

  test("is written as the specification says", async () => {
    const send = jobs.app.define("mail.send", { timeLimit: 7, parameters: ["to", "urgent"] }, () => null);
    const at = Date.now() + 3_600_000;
    const { id } = await send.enqueue(new Arguments(["a"], { urgent: true }), {
      at: new Date(at),
      backoff: { first: 5 },
      retries: 2,
      attempt: 2,
      priority: 3,
      keep: 5000,
      headers: { trace: "x" },
    });
    const { enqueued, ...job } = JSON.parse((await jobs.raw.hget(jobs.key("items"), id)) ?? "");
    assert.ok(Math.abs(enqueued - Date.now()) < 60_000);
    assert.deepEqual(job, {
      v: 1,
      function: "mail.send",
      args: ["a"],
      kwargs: { urgent: true },
      due: at,
      attempt: 2,
      backoff: [5, 300_000],
    });
    const item = await jobs.app.queue().inspect(id);
    assert.deepEqual(
      [item.state, item.priority, item.maxAttempts, item.keep, item.time],
      ["delayed", 3, 2, 5000, at * 1000],
    );
    // due in an hour, and then it has a day
    assert.ok(Math.abs(item.expires / 1000 - at - 86_400_000) < 1000);
  });

  test("in MessagePack holds bytes, dates, NaN and 64-bit integers, and its result is in MessagePack too", async () => {
    const packed = new App(jobs.client, { format: "msgpack" });
    const echo = packed.define("echo", (input: unknown) => input);
    jobs.work(packed);
    const value = {
      bytes: new Uint8Array([1, 2]),
      at: new Date(5),
      none: Number.NaN,
      big: 2n ** 60n,
      ms: 2 ** 41,
    };
    assert.deepEqual(await (await echo.enqueue(value)).result(), value);
    const { id } = await echo.enqueue(-(2 ** 40), { delay: 60_000 });
    const data = (await jobs.raw.hgetBuffer(jobs.key("items"), id)) ?? Buffer.alloc(0);
    assert.ok(data.includes(Buffer.from("d3ffffff0000000000", "hex")), "an integer is written as one");
  });

  test("is refused if its format would write another value", async () => {
    const echo = jobs.app.define("echo", (input: unknown) => input);
    const circle: unknown[] = [];
    circle.push(circle);
    const bad: unknown[] = [
      Number.NaN,
      1n,
      new Date(),
      new Map(),
      [undefined],
      new Array(1),
      "\ud800",
      { "\ud800": 1 },
      2 ** 60,
      () => 1,
      Symbol("s"),
      { nested: [{ toJSON: () => 1 }] },
      circle,
      new Uint8Array(1),
    ];
    for (const value of bad) await assert.rejects(echo.enqueue(value), SerializationError);
    await assert.rejects(
      echo.enqueue({ a: [1, new Set()] }),
      /argument 1 of echo\.a\[1\] is an object of class Set/,
    );
    await assert.rejects(echo.enqueue(new Arguments([], { x: Number.NaN })), /argument x of echo is NaN/);
    assert.equal(await jobs.raw.hlen(jobs.key("items")), 0);
  });

  test("with a schema is checked by the producer and the worker, and gets its output", async () => {
    const send = jobs.app.define("send", { input: mail }, ({ to, count }) => `${to} ${count + 1}`);
    await assert.rejects(send.enqueue({} as { to: string }), (error: Error) => {
      assert.ok(error instanceof BadInputError);
      assert.equal(error.message, "the input of send does not fit: input.to: no text");
      return true;
    });
    jobs.work();
    assert.equal(await (await send.enqueue({ to: "a", count: "2" })).result(), "a 3");
    const other = new App(jobs.client); // it does not know the schema
    const lost = await other.function("send").enqueue({ to: 1 });
    await assert.rejects(lost.result(), { type: "BadInputError", attempt: 1 });
    assert.equal((await jobs.app.queue().inspect(lost.id)).state, "dead");
  });

  test("with an id is enqueued once", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    const first = await echo.enqueue(1, { id: "only" });
    const second = await echo.enqueue(2, { id: "only" });
    assert.deepEqual([first.added, second.added, second.id], [true, false, "only"]);
    jobs.work();
    assert.equal(await second.result(), 1);
  });

  test("under an id that was used forgets the notes of the earlier one", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    const notes = [jobs.key("job:only"), jobs.key("cancelled:only")];
    for (const note of notes) await jobs.raw.set(note, "{}");
    await echo.enqueue(1, { id: "only" });
    assert.equal(await jobs.raw.exists(...notes), 0);
    for (const note of notes) await jobs.raw.set(note, "{}");
    await echo.enqueue(1, { id: "only" });
    assert.equal(await jobs.raw.exists(...notes), 2);
  });

  test("without keep leaves nothing, and its result is refused", async () => {
    let ran = 0;
    const count = jobs.app.define("count", { keep: 0 }, () => ++ran);
    const handle = await count.enqueue();
    await assert.rejects(handle.result(), ResultNotKept);
    jobs.work();
    await until(async () => ran === 1 && (await jobs.raw.hlen(jobs.key("items"))) === 0);
    assert.equal(await jobs.raw.exists(jobs.key(`result:${handle.id}`)), 0);
    await assert.rejects(handle.result(), /there is no job/);
  });

  test("that has not ended in time throws ResultTimeout", async () => {
    const wait = jobs.app.define("wait", () => 1);
    const handle = await wait.enqueue();
    await assert.rejects(handle.result({ timeout: 10 }), ResultTimeout);
    await assert.rejects(handle.result({ timeout: 0 }), /has not ended: it is ready/);
  });

  test("has results for many that wait, over few connections", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    const inputs = [...Array(100).keys()];
    for (let wave = 0; wave < 2; wave += 1) {
      const handles = await jobs.app.enqueueMany(inputs.map((n) => echo.call(n)));
      const results = Promise.all(handles.map((handle) => handle.result({ timeout: 60_000 })));
      await until(
        async () => ((await jobs.raw.info("clients")).match(/blocked_clients:(\d+)/)?.[1] ?? "") === "16",
      );
      const worker = jobs.work(jobs.app, { concurrency: 50 });
      assert.deepEqual(await results, inputs);
      await worker.close();
      await assert.rejects(handles[0]?.result({ signal: AbortSignal.abort() }) ?? Promise.resolve());
    }
  });

  test("options that make no sense are refused", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    for (const options of [
      { delay: 5, at: 7 },
      { delay: -1 },
      { timeLimit: 0 },
      { retries: -1 },
      { retries: 1, attempt: 3 },
      { nope: 1 },
      { expires: Number.NaN },
      { at: new Date("no") },
      { backoff: { first: -1 } },
      { backoff: -1 },
      { backoff: [] },
      { backoff: [1, Number.NaN] },
      { backoff: () => 1 },
      { backoff: 11 * 365 * 86_400_000 },
      { queue: "no name" },
    ]) {
      await assert.rejects(echo.enqueue(1, options as object), BadArgumentError, JSON.stringify(options));
    }
    assert.throws(() => jobs.app.define("echo", () => 1), /already/);
    assert.throws(() => jobs.app.define("", () => 1), BadArgumentError);
    assert.throws(() => jobs.app.define("x".repeat(201), () => 1), BadArgumentError);
    assert.throws(() => jobs.app.worker({ nope: 1 } as object), /no option "nope"/);
    assert.throws(() => jobs.app.worker({ timeLimit: 1 } as object), /no option "timeLimit"/);
    assert.throws(() => new App(jobs.client, { format: "xml" as "json" }), BadArgumentError);
  });

  test("refuses options of other libraries, and names those that it has", async () => {
    const { app, client } = jobs;
    const backoff = { type: "exponential", delay: 100 } as object;
    assert.throws(() => app.define("b", { backoff }, () => 1), /no member "type"; it has first, last/);
    assert.throws(() => app.worker({ lockDuration: 1 } as object), /it has duration, concurrency/);
    assert.throws(() => app.worker({ hooks: { failed() {} } as object }), /no hook "failed"; it has leased/);
    assert.throws(() => new App(client, { prefix: "x" } as object), /no option "prefix"; it has group/);
    assert.throws(() => new App(client, { logger: console } as object), /new Client\(server, \{ logger \}\)/);
    const define = app.define.bind(app) as (...args: unknown[]) => unknown;
    assert.throws(() => define("b", () => 1, { retries: 1 }), /options come before the function/);
    const cron = app.cron.bind(app) as (...args: unknown[]) => unknown;
    assert.throws(() => cron("b", "0 3 * * *"), /what app.define or app.function\(name\) returned/);
    await assert.rejects(app.enqueue("b", new Date()), /send it as text.*"msgpack"/);
  });

  test("needs the input of a function in its schedule, by its type", () => {
    const app = new App(jobs.client);
    const report = app.define("report", (month: string) => month);
    // @ts-expect-error the function takes a month
    app.every(report, 1000);
    app.cron(report, "@daily", { input: "May", name: "daily" });
  });

  test("takes an object of a class as hooks, which may have other members", () => {
    class Counter {
      count = 0;
      add = () => (this.count += 1);
      completed() {
        this.add();
      }
    }
    jobs.app.worker({ hooks: new Counter() });
  });
});

describe("a failed attempt", { concurrency: false }, () => {
  test("goes back after the backoff of the call, and is reported as the specification says", async () => {
    const fail = jobs.app.define("fail", { backoff: { first: 3_600_000, last: 3_600_000 } }, () => {
      throw new RangeError("no\nsuch order");
    });
    const worker = jobs.work();
    const handle = await fail.enqueue(undefined, { backoff: { first: 7_200_000, last: 7_200_000 } });
    await until(async () => (await handle.status()) === "retrying");
    const { error, time, attempt } = await jobs.app.queue().inspect(handle.id);
    const [first, second, third, fourth, ...rest] = String(error).split("\n");
    assert.equal(first, "RangeError: no such order");
    assert.equal(second, `worker: ${worker.id}`);
    assert.match(third ?? "", /^started: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/);
    assert.equal(fourth, "");
    assert.match(rest.join("\n"), /at .*jobs\.test/);
    const wait = time / 1000 - Date.now();
    assert.ok(wait > 3_500_000 && wait < 7_200_000, String(wait));
    assert.equal(attempt, 1);
    const info = await handle.info();
    assert.deepEqual([info.error, info.worker, info.attempt], ["RangeError: no such order", worker.id, 1]);
  });

  test("is repeated until the attempts are used up", async () => {
    const attempts: number[] = [];
    const fail = jobs.app.define(
      "fail",
      { retries: 2, backoff: { first: 0, last: 0 } },
      (_: undefined, { attempt }) => {
        attempts.push(attempt);
        throw new TypeError(`at ${attempt}`);
      },
    );
    jobs.work();
    const handle = await fail.enqueue();
    await assert.rejects(handle.result(), (error: unknown) => {
      assert.ok(error instanceof JobFailed);
      assert.deepEqual(
        [error.type, error.reason, error.attempt, error.jobId],
        ["TypeError", "at 3", 3, handle.id],
      );
      assert.match(error.traceback, /jobs\.test/);
      return true;
    });
    assert.deepEqual(attempts, [1, 2, 3]);
    assert.equal(await handle.status(), "failed");
    assert.equal(await handle.revive(), true);
    await until(() => attempts.length === 6);
  });

  test("waits for a fixed delay, one of a list, or what a function of the App says", async () => {
    const hours = async (handle: { id: string; status(): Promise<string> }, attempt: number) => {
      await until(async () => (await jobs.app.queue().inspect(handle.id)).attempt === attempt);
      await until(async () => (await handle.status()) === "retrying");
      return Math.round(((await jobs.app.queue().inspect(handle.id)).time / 1000 - Date.now()) / 3_600_000);
    };
    const hour = 3_600_000;
    const fail = jobs.app.define("fail", { backoff: (attempt) => (attempt + 1) * hour }, () => {
      throw new Error("no");
    });
    jobs.app.define("broken", { backoff: () => Number.NaN }, () => {
      throw new Error("no");
    });
    jobs.work();
    assert.equal(await hours(await fail.enqueue(), 1), 2);
    assert.equal(await hours(await fail.enqueue(undefined, { backoff: 5 * hour }), 1), 5);
    const listed = await fail.enqueue(undefined, { backoff: [0, 7 * hour] });
    assert.equal(await hours(listed, 2), 7);
    assert.deepEqual(JSON.parse((await jobs.raw.hget(jobs.key("items"), listed.id)) ?? "").delays, [
      0,
      7 * hour,
    ]);
    assert.equal(await hours(await fail.enqueue(undefined, { backoff: [9 * hour], attempt: 3 }), 1), 9);
    assert.equal(await hours(await jobs.app.enqueue("broken"), 1), 0);
  });

  test("counts the attempts before it", async () => {
    const seen: number[] = [];
    const fail = jobs.app.define(
      "fail",
      { retries: 2, backoff: { first: 0, last: 0 } },
      (_: undefined, { attempt }) => {
        seen.push(attempt);
        throw new Error("no");
      },
    );
    jobs.work();
    for (const keep of [0, 60_000]) {
      const handle = await fail.enqueue(undefined, { attempt: 2, keep });
      await until(async () => (await handle.status()) === "failed");
      await assert.rejects(handle.result(), { name: "JobFailed", attempt: 3 });
      assert.equal((await handle.info()).attempt, 3);
    }
    assert.deepEqual(seen, [2, 3, 2, 3]);
  });

  test("is final after DeadLetter and the errors of deadLetterOn", async () => {
    const fail = jobs.app.define("fail", { deadLetterOn: [RangeError] }, (kind: string) => {
      throw kind === "range" ? new RangeError("never") : new DeadLetter("never");
    });
    jobs.work();
    await assert.rejects((await fail.enqueue("range")).result(), { type: "RangeError", attempt: 1 });
    await assert.rejects((await fail.enqueue("dead")).result(), {
      type: "DeadLetter",
      reason: "never",
      attempt: 1,
    });
  });

  test("goes back as Release says", async () => {
    const fail = jobs.app.define("fail", (uncounted: boolean) => {
      throw new Release("later", { delay: 3_600_000, uncounted });
    });
    jobs.work();
    const [counted, uncounted] = await jobs.app.enqueueMany([fail.call(false), fail.call(true)]);
    await until(async () => (await counted?.info())?.error === "Release: later");
    await until(async () => (await uncounted?.info())?.error === "Release: later");
    const items = await jobs.app.queue().inspect([counted?.id ?? "", uncounted?.id ?? ""]);
    assert.deepEqual(
      items.map(({ state, attempt }) => [state, attempt]),
      [
        ["delayed", 1],
        ["delayed", 0],
      ],
    );
  });

  test("by anything that is thrown has a text of at most 8192 bytes", async () => {
    const thrown: unknown[] = [
      undefined,
      Object.create(null),
      "text",
      new Error("ä".repeat(20_000)),
      Object.assign(new Error("x"), { name: "no kind" }),
    ];
    const fail = jobs.app.define("fail", { retries: 0 }, (index: number) => {
      throw thrown[index];
    });
    jobs.work();
    for (const [index] of thrown.entries()) {
      const handle = await fail.enqueue(index);
      await assert.rejects(handle.result(), JobFailed);
      const error = (await jobs.app.queue().inspect(handle.id)).error;
      assert.ok(error.length <= 8192);
      assert.match(String(error), /^Error: .+\nworker: .+\nstarted: .+\n\n/);
      assert.ok(!String(error).includes("\ufffd"));
    }
  });

  test("by promises that were never awaited", async () => {
    const fail = jobs.app.define("fail", { retries: 0, keep: 0 }, () => [Promise.resolve(1)]);
    jobs.work();
    const handle = await fail.enqueue();
    await until(async () => (await jobs.app.queue().inspect(handle.id)).state === "dead");
  });
});

describe("a worker of jobs", { concurrency: false }, () => {
  const add = async (id: string, data: string | Buffer, keep = 60_000) => {
    await jobs.app.queue().add({ id, data, keep, maxAttempts: 5 });
    return jobs.app.handle(id);
  };

  test("makes an item that is no job dead at once", async () => {
    jobs.app.define("echo", (input: unknown) => input);
    jobs.work();
    const bad = [
      "no job",
      "",
      "[1]",
      "{",
      "{}",
      '{"v":2,"function":"echo"}',
      '{"v":1}',
      '{"v":1,"function":""}',
      '{"v":1,"function":7}',
      `{"v":1,"function":"${"x".repeat(201)}"}`,
      '{"v":1,"function":"echo","args":{}}',
      '{"v":1,"function":"echo","kwargs":[]}',
      '{"v":1,"function":"echo","args":null}',
      '{"v":1,"function":"echo","timeout":-1}',
      '{"v":1,"function":"echo","timeout":1.5}',
      '{"v":1,"function":"echo","backoff":[1]}',
      '{"v":1,"function":"echo","delays":[]}',
      '{"v":1,"function":"echo","delays":[-1]}',
      '{"v":1,"function":"echo","backoff":[0,315360000001]}',
      '{"v":1,"function":"echo","description":1}',
      '{"v":1,"function":"echo","then":[{"queue":"q"}]}',
      '{"v":1,"function":"echo","codec":"pickle","body":"AAAA"}',
      '{"v":1,"function":"echo","args":[9007199254740993]}',
      '{"v":1,"function":"echo","args":[-9007199254740993]}',
      Buffer.from("82a1760182a866756e6374696f6e", "hex"),
      Buffer.concat([
        Buffer.from('{"v":1,"function":"echo","args":["'),
        Buffer.from([0xff]),
        Buffer.from('"]}'),
      ]),
    ];
    for (const [index, data] of bad.entries()) {
      const handle = await add(`bad-${index}`, data);
      await assert.rejects(handle.result(), { type: "BadEnvelopeError", attempt: 1 }, String(data));
    }
  });

  test("ignores members that it does not know, and null in arguments", async () => {
    jobs.app.define("echo", (input: unknown) => input);
    jobs.work();
    const handle = await add(
      "a",
      '{"v":1,"new":{},"function":"echo","args":[{"n":null,"s":"9007199254740993"}]}',
    );
    assert.deepEqual(await handle.result(), { n: null, s: "9007199254740993" });
    const result = JSON.parse((await jobs.app.queue().outcome("a")).content.toString());
    assert.deepEqual(result.job.new, {});
    assert.deepEqual(Object.keys(result).sort(), ["ended", "job", "result", "started", "v", "worker"]);
  });

  test("keeps no copy of a job above 4096 bytes", async () => {
    jobs.app.define("size", (input: string) => input.length);
    jobs.work();
    const handle = await jobs.app.enqueue("size", "x".repeat(5000));
    assert.equal(await handle.result(), 5000);
    assert.ok(!JSON.parse((await jobs.app.queue().outcome(handle.id)).content.toString()).job);
  });

  test("makes a job dead whose result cannot be written or is too large", async () => {
    jobs.app.define("date", () => new Date());
    jobs.app.define("large", () => "x".repeat(2000));
    await jobs.app.queue().configure({ maxData: 1000 });
    jobs.work();
    await assert.rejects((await jobs.app.enqueue("date")).result(), {
      type: "SerializationError",
      attempt: 1,
    });
    const large = await jobs.app.enqueue("large");
    await assert.rejects(large.result(), { type: "TooLargeError", attempt: 1 });
    assert.match(
      String((await jobs.app.queue().inspect(large.id)).error),
      /^TooLargeError: .*\nworker: .*\n\n/,
    );
  });

  test("puts a job of an unknown function off, uncounted, and makes it dead 10 minutes after the first refusal", async () => {
    jobs.app.define("other", () => 1);
    const worker = jobs.work();
    const handle = await jobs.app.enqueue("absent", 1);
    await until(async () => (await jobs.app.queue().inspect(handle.id)).error.length > 0);
    const item = await jobs.app.queue().inspect(handle.id);
    const refused = /\nrefused: (\S+)\n\n/.exec(String(item.error))?.[1] ?? "";
    assert.match(String(item.error), /^UnknownFunction: this App has no function "absent"; it has other\n/);
    assert.deepEqual([item.state, item.attempt], ["delayed", 0]);
    const delay = item.time / 1000 - Date.now();
    assert.ok(delay > 5_000 && delay <= 60_000, String(delay));
    assert.ok(Math.abs(Date.parse(refused) - Date.now()) < 30_000);
    assert.equal(jobs.logged.filter((line) => line.includes("put off")).length, 1);
    await worker.close();

    // as if it had been refused for the first time that many minutes ago, with a delay that is over
    const refuse = async (minutes: number, id: string) => {
      const text = new Date(Date.now() - minutes * 60_000).toISOString().replace("Z", "+00:00");
      await jobs.app.queue().add({ id, data: '{"v":1,"function":"absent"}', keep: 60_000, maxAttempts: 1 });
      const leased = await jobs.app.queue().lease({ duration: 60_000 });
      await leased?.release({ uncounted: true, error: `UnknownFunction: x\nrefused: ${text}\n\n` });
    };
    await refuse(9, "soon");
    const second = jobs.work();
    await until(async () => (await jobs.app.queue().inspect("soon")).state === "delayed");
    const soon = await jobs.app.queue().inspect("soon");
    assert.ok(soon.time / 1000 - Date.now() > 50_000, "it waits a minute");
    assert.match(String(soon.error), /\nrefused: /);
    await second.close();
    await refuse(11, "late");
    jobs.work();
    await until(async () => (await jobs.app.queue().inspect("late")).state === "dead");
    assert.doesNotMatch(String((await jobs.app.queue().inspect("late")).error), /refused/);
  });
});
