// Jobs whose ids are made of their arguments: `unique` and `throttle`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { BadArgumentError, QueueFullError } from "../src/index.js";
import { App, Arguments, type CallOptions, type Handle, SerializationError } from "../src/jobs/index.js";
import { canonical, digestOf, slotId, uniqueId } from "../src/jobs/job-ids.js";
import { JobFixture } from "./job-fixture.js";
import { until } from "./server.js";

const YEARS = 3650 * 86_400_000;
const jobs = JobFixture.inThisFile();

type Enqueue = (input: number, options: CallOptions) => Promise<Handle>;

/** Each way in which jobs are enqueued. */
const ways: Record<string, Enqueue> = {
  "by a function": (input, options) => jobs.app.function("f").enqueue(input, options),
  "with others": async (input, options) => {
    const f = jobs.app.function("f");
    const calls = [f.call("other"), f.call(input, options), f.call("other")];
    return (await jobs.app.enqueueMany(calls))[1] as Handle;
  },
  "in a chain": async (input, options) => {
    const chain = jobs.app.chain(jobs.app.function("f").call(input, options)).next(jobs.app.function("g"));
    return (await chain.enqueue()).stages[0] as Handle;
  },
};

describe("the id of a job that is unique or throttled", { concurrency: false }, () => {
  test("is that of the specification", async () => {
    const text = readFileSync(fileURLToPath(new URL("../../../spec/jobs.md", import.meta.url)), "utf8");
    const called = new Arguments([[10, 20.0]], { tax: 0.1, place: "Zürich" });
    const digest = digestOf("shop.total", called);
    assert.ok(text.includes(`\`${uniqueId(digest)}\``));
    assert.ok(text.includes(`\`${slotId(digest, 60_000, 1_764_327_725_000)}\``));
    const { id } = await jobs.app.function("shop.total").enqueue(called, { unique: true });
    assert.equal(id, uniqueId(digest));
  });

  test("is made of JSON as RFC 8785 writes it", () => {
    const written: [unknown, string][] = [
      [1.0, "1"],
      [-0, "0"],
      [0.1, "0.1"],
      [1e21, "1e+21"],
      [1.2345678901234567e20, "123456789012345670000"],
      [1e-6, "0.000001"],
      [1e-7, "1e-7"],
      [2n ** 70n, "1180591620717411303424"],
      ['é"\n\u2028\u007f', '"é\\"\\n\u2028\u007f"'],
      // U+FB33 is behind the first half of U+1F600 in UTF-16
      [{ "\ufb33": 1, "\u{1f600}": 2 }, '{"\u{1f600}":2,"\ufb33":1}'],
      [
        { b: true, a: [{ d: 2.5, c: [] }], é: null, none: undefined },
        '{"a":[{"c":[],"d":2.5}],"b":true,"é":null}',
      ],
    ];
    for (const [value, text] of written) assert.equal(canonical(value, "f"), text);
  });

  test("is refused if JSON does not have an argument", async () => {
    const app = new App(jobs.client, { format: "msgpack" });
    for (const value of [Number.NaN, new Date(0), new Uint8Array(1), { at: new Date(0) }]) {
      for (const options of [{ unique: true }, { throttle: 1000 }]) {
        await assert.rejects(app.enqueue("f", value, options), (error: Error) => {
          return error instanceof SerializationError && /choose an id yourself/.test(error.message);
        });
      }
    }
    const circle: unknown[] = [];
    circle.push(circle);
    for (const enqueue of Object.values(ways)) {
      await assert.rejects(enqueue(circle as unknown as number, { unique: true }), SerializationError);
    }
    assert.equal(await jobs.raw.exists(jobs.key("items")), 0);
  });

  test("is made of the input as it was when it was enqueued", async () => {
    const f = jobs.app.function<unknown, unknown>("f");
    const g = jobs.app.function<unknown, unknown>("g");
    for (const options of [{ unique: true }, { throttle: YEARS }]) {
      const input = { values: [1] };
      const later = { values: [1] };
      const enqueued = [
        f.enqueue(input, options),
        jobs.app
          .chain(f.call(input, { ...options, queue: "p" }))
          .next(g, undefined, new Arguments([later]))
          .enqueue()
          .then(({ stages }) => stages[0] as Handle),
      ];
      input.values[0] = later.values[0] = 2;
      for (const handle of await Promise.all(enqueued)) {
        const data = await jobs.raw.hget(jobs.key("items", handle.queue), handle.id);
        assert.deepEqual(JSON.parse(data as string).args, [{ values: [1] }]);
        assert.ok(!data?.includes("[2]"));
        assert.equal((await f.enqueue({ values: [1] }, { ...options, queue: handle.queue })).added, false);
      }
    }
  });
});

for (const [way, enqueue] of Object.entries(ways)) {
  describe(`a job that is enqueued ${way}`, { concurrency: false }, () => {
    test("is unique while it is ready, running, or its result is kept", async () => {
      let end = () => {};
      const ended = new Promise<void>((resolve) => {
        end = resolve;
      });
      jobs.app.define("g", () => {});
      jobs.app.define("f", async (input: unknown) => {
        if (input === 1) await ended;
        return input;
      });
      const options = { unique: true, keep: 2500 };
      const first = await enqueue(1, options);
      const again = await enqueue(1, options);
      const other = await enqueue(2, options);
      assert.deepEqual([first.added, again.added, other.added], [true, false, true]);
      assert.equal(again.id, first.id);
      const worker = jobs.work();
      await until(async () => (await first.status()) === "running");
      assert.equal((await enqueue(1, options)).added, false);
      end();
      await first.result();
      const kept = await enqueue(1, options);
      assert.deepEqual([kept.added, await kept.status(), await kept.result()], [false, "succeeded", 1]);
      await worker.close();
      await until(async () => (await enqueue(1, options)).added === true);
    });

    test("is unique while it is dead", async () => {
      jobs.app.define("f", (input: unknown) => {
        if (input === 1) throw new RangeError("no");
      });
      const options = { unique: true, retries: 0 };
      const first = await enqueue(1, options);
      jobs.work();
      await until(async () => (await first.status()) === "failed");
      assert.equal((await enqueue(1, options)).added, false);
      assert.ok(await first.purge());
      assert.equal((await enqueue(1, options)).added, true);
    });

    test("is throttled, whatever becomes of the first one", async () => {
      jobs.app.define("f", () => {});
      jobs.app.define("g", () => {});
      const options = { throttle: YEARS, keep: 0 };
      const first = await enqueue(1, options);
      const again = await enqueue(1, options);
      assert.deepEqual([first.added, again.added, again.id], [true, false, first.id]);
      assert.equal((await enqueue(2, options)).added, true);
      assert.equal((await enqueue(1, { ...options, throttle: YEARS + 1 })).added, true);
      const ttl = await jobs.raw.pttl(jobs.key(`slot:${first.id}`));
      assert.ok(ttl > YEARS - 60_000 && ttl <= YEARS);
      jobs.work();
      await until(async () => (await first.status()) === "unknown");
      assert.equal((await enqueue(1, options)).added, false);
    });

    test("is added once of many at a time", async () => {
      for (const options of [{ unique: true }, { throttle: YEARS }]) {
        const handles = await Promise.all(Array.from({ length: 20 }, () => enqueue(1, options)));
        assert.equal(handles.filter(({ added }) => added).length, 1);
      }
    });
  });
}

describe("a throttled job", { concurrency: false }, () => {
  test("leaves its slot free if it was not added for certain", async () => {
    const f = jobs.app.function("f");
    const call = (input: number) => f.call(input, { throttle: YEARS });
    const held = await f.enqueue(0, { throttle: YEARS });
    const queue = jobs.app.queue();
    await queue.configure({ maxItems: 2 });
    await assert.rejects(
      jobs.app.enqueueMany([call(0), call(1), call(2), call(0), call(3), call(1)]),
      (error) => {
        assert.ok(error instanceof QueueFullError);
        assert.deepEqual(
          error.answers.map((answer) => Math.sign(answer)),
          [0, 1, -1, 0, -1, 0],
        );
        return true;
      },
    );
    await assert.rejects(f.enqueue(4, { throttle: YEARS }), QueueFullError);
    await queue.configure({ maxItems: 0 });
    const handles = await jobs.app.enqueueMany([0, 1, 2, 3, 4].map(call));
    assert.deepEqual(
      handles.map(({ added }) => added),
      [false, false, true, true, true],
    );
    assert.equal(handles[0]?.id, held.id);
  });
});

describe("the options unique and throttle", { concurrency: false }, () => {
  test("go neither with an id nor with each other, and say what to do", () => {
    const refused: [CallOptions, RegExp][] = [
      [{ id: "a", unique: true }, /leave out id, or give unique: false and throttle: 0/],
      [{ id: "a", throttle: 1000 }, /leave out id, or give unique: false and throttle: 0/],
      [{ unique: true, throttle: 1000 }, /unique or throttled, not both: give throttle: 0/],
      [{ throttle: -1 }, /throttle is a number of milliseconds from 1 on/],
      [{ throttle: 0.1 }, /throttle is a number of milliseconds from 1 on/],
      [{ unique: 1 as unknown as boolean }, /unique is true or false/],
    ];
    for (const [options, message] of refused) {
      const check = (error: unknown) => error instanceof BadArgumentError && message.test(error.message);
      assert.throws(() => jobs.app.function("f").call(1, options), check);
    }
  });

  test("of a function can be undone", async () => {
    const f = jobs.app.define("f", { unique: true }, (input: number) => input);
    assert.throws(() => f.call(1, { id: "a" }), BadArgumentError);
    assert.equal((await f.enqueue(1, { id: "a", unique: false })).id, "a");
    assert.throws(() => f.call(1, { throttle: 1000 }), BadArgumentError);
    assert.match((await f.enqueue(1, { throttle: 1000, unique: false })).id, /^throttle-/);
  });

  test("are not for later jobs of a chain and for those of a schedule", () => {
    const neither = (error: unknown) =>
      error instanceof BadArgumentError && /neither unique nor throttled/.test(error.message);
    const f = jobs.app.function("f");
    for (const options of [{ unique: true }, { throttle: 1000 }]) {
      assert.throws(() => jobs.app.chain(f.call(1)).next(f, options), neither);
      assert.throws(() => jobs.app.every(f, 60_000, { input: 1, ...options }), neither);
    }
  });
});
