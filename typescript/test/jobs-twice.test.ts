// What happens to jobs twice: the second wait, cancel, failure, progress, pause or trigger is treated as the first was.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { JobCancelled, JobFailed, ResultTimeout, type ScheduleInfo } from "../src/jobs/index.js";
import { JobFixture } from "./job-fixture.js";
import { until } from "./server.js";

const LONG_MS = 60_000;
const jobs = JobFixture.inThisFile();

describe("of jobs", { concurrency: false }, () => {
  const aborted = (signal: AbortSignal) =>
    new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve(signal.reason.why)));

  test("a result is there for each that waits, and for who asks again", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    const handle = await echo.enqueue(7);
    await assert.rejects(handle.result({ timeout: 20 }), ResultTimeout);
    const waits = [handle.result(), jobs.app.handle(handle.id).result(), handle.result({ timeout: LONG_MS })];
    jobs.work();
    assert.deepEqual(await Promise.all(waits), [7, 7, 7]);
    assert.equal(await handle.result(), 7);
    assert.equal(await handle.result({ timeout: 0 }), 7);
  });

  test("waits that are aborted or over leave room for others, again and again", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    const handles = await jobs.app.enqueueMany(
      Array.from({ length: 40 }, (_, index) => echo.call(index, { delay: LONG_MS })),
    );
    for (const round of [1, 2, 3]) {
      const abort = new AbortController();
      const waits = handles.map((handle, index) =>
        handle.result(index % 2 ? { timeout: 30 * round } : { signal: abort.signal }),
      );
      setTimeout(() => abort.abort(), 60);
      const ends = await Promise.allSettled(waits);
      const names = ends.map((end) => end.status === "rejected" && end.reason.name);
      assert.deepEqual(
        names,
        handles.map((_, index) => (index % 2 ? "ResultTimeout" : "AbortError")),
      );
    }
    const waits = Promise.allSettled(handles.map((handle) => handle.result()));
    for (const handle of handles) await handle.cancel();
    const ends = await waits;
    assert.ok(ends.every((end) => end.status === "rejected" && end.reason instanceof JobCancelled));
  });

  test("a job can be cancelled again under its id, which wakes who waits again", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    for (const input of [1, 2, 3]) {
      const handle = await echo.enqueue(input, { id: "same", delay: LONG_MS });
      assert.deepEqual([handle.added, await handle.status()], [true, "delayed"]);
      const waiting = [handle.result(), handle.result()].map((wait) => assert.rejects(wait, JobCancelled));
      await until(async () => /blocked_clients:2/.test(await jobs.raw.info("clients")));
      const startedAt = Date.now();
      assert.equal(await handle.cancel(), true);
      await Promise.all(waiting);
      assert.ok(Date.now() - startedAt < 2000, "woken before the wait cap");
      assert.deepEqual([await handle.status(), (await handle.info()).args], ["cancelled", [input]]);
    }
    jobs.work();
    const handle = await echo.enqueue(4, { id: "same" });
    assert.equal(await handle.result(), 4);
    assert.equal(await handle.status(), "succeeded");
    assert.equal(await handle.cancel(), false);
    assert.equal(await handle.status(), "succeeded");
  });

  test("a job that runs again after a cancel is not the cancelled one", async () => {
    const ends: string[] = [];
    let started = 0;
    const wait = jobs.app.define("wait", async (how: string, { signal }) => {
      if (how === "ends") return "ended";
      started += 1;
      ends.push(await aborted(signal));
    });
    jobs.work(jobs.app, { duration: 300 });
    for (const count of [1, 2]) {
      const handle = await wait.enqueue("waits", { id: "same" });
      await until(() => started === count);
      assert.equal(await handle.cancel(), true);
      await until(() => ends.length === count);
    }
    assert.deepEqual(ends, ["lost", "lost"]);
    assert.equal(await (await wait.enqueue("ends", { id: "same" })).result(), "ended");
  });

  test("each failure is reported as it was, before and after a revival", async () => {
    let runs = 0;
    const fail = jobs.app.define("fail", { retries: 1, backoff: 0 }, () => {
      runs += 1;
      if (runs === 5) return "at last";
      throw new RangeError(`run ${runs}`);
    });
    jobs.work();
    const handle = await fail.enqueue();
    for (const last of [2, 4]) {
      await assert.rejects(handle.result(), { type: "RangeError", reason: `run ${last}`, attempt: 2 });
      const info = await handle.info();
      assert.deepEqual([info.status, info.error, info.attempt], ["failed", `RangeError: run ${last}`, 2]);
      if (last === 2) {
        assert.equal(await handle.revive(), true);
        await until(() => runs === 4);
        await until(async () => (await handle.status()) === "failed");
      }
    }
    assert.equal(await handle.revive(), true);
    assert.equal(await handle.revive(), false);
    assert.equal(await handle.result(), "at last");
    assert.deepEqual([(await handle.info()).attempt, (await handle.info()).result], [1, "at last"]);
  });

  test("a dead job can be purged once, and enqueued again", async () => {
    const fail = jobs.app.define("fail", { retries: 0 }, (input: number) => {
      if (input === 1) throw new Error("no");
      return input;
    });
    jobs.work();
    const first = await fail.enqueue(1, { id: "same" });
    await assert.rejects(first.result(), JobFailed);
    assert.equal((await fail.enqueue(2, { id: "same" })).added, false);
    assert.deepEqual([await first.purge(), await first.purge(), await first.revive()], [true, false, false]);
    const second = await fail.enqueue(2, { id: "same" });
    assert.equal(second.added, true);
    assert.equal(await second.result(), 2);
  });

  test("many jobs are each their own: handles in the order of the calls, ids once", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    const call = (input: number, queue: string) => echo.call(input, { id: `n${input}`, queue });
    const queues = ["p", "q", "p", "r", "q", "p"];
    const calls = queues.map((queue, index) => call(index, queue));
    const handles = await jobs.app.enqueueMany(calls);
    assert.deepEqual(
      handles.map(({ id, queue, added }) => [id, queue, added]),
      queues.map((queue, index) => [`n${index}`, queue, true]),
    );
    const again = await jobs.app.enqueueMany([...calls, call(6, "q")]);
    assert.deepEqual(
      again.map(({ added }) => added),
      [...queues.map(() => false), true],
    );
    jobs.work(jobs.app, { queues: ["p", "q", "r"] });
    const results = await Promise.all(again.map((handle) => handle.result()));
    assert.deepEqual(results, [0, 1, 2, 3, 4, 5, 6]);
  });

  test("progress is reported again behind a time without jobs", async () => {
    const ends: (() => void)[] = [];
    const wait = jobs.app.define("wait", async (input: number, { progress }) => {
      progress(input);
      await new Promise<void>((resolve) => ends.push(resolve));
    });
    const worker = jobs.work();
    for (const input of [1, 2, 3]) {
      const handle = await wait.enqueue(input);
      await until(async () => (await handle.info()).progress?.done === input);
      assert.equal((await handle.info()).worker, worker.id);
      ends.at(-1)?.();
      await handle.result();
    }
  });

  test("jobs of one call may be due now and at a time", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    jobs.work();
    const at = new Date(Date.now() + 50);
    const handles = await jobs.app.enqueueMany([echo.call(1), echo.call(2, { at }), echo.call(3)]);
    assert.deepEqual(await Promise.all(handles.map((handle) => handle.result())), [1, 2, 3]);
  });

  test("progress is that of the running attempt, of each job", async () => {
    const steps = new Map<string, (value: unknown) => void>();
    const wait = jobs.app.define("wait", { retries: 1, backoff: 0 }, async (_: undefined, context) => {
      const { id, attempt, progress } = context;
      for (const done of [1, 2]) {
        progress(done + 10 * attempt, 100);
        await new Promise((resolve) => steps.set(id, resolve));
      }
      if (id === "a" && attempt === 1) throw new Error("again");
    });
    jobs.work();
    const [a, b] = [await wait.enqueue(undefined, { id: "a" }), await wait.enqueue(undefined, { id: "b" })];
    const done = async (handle: typeof a) => (await handle.info()).progress?.done;
    const step = (id: string) => {
      const resolve = steps.get(id);
      steps.delete(id);
      resolve?.(undefined);
    };
    await until(async () => (await done(a)) === 11 && (await done(b)) === 11);
    const { started } = await a.info();
    step("a");
    await until(async () => (await done(a)) === 12);
    assert.equal(await done(b), 11);
    await sleep(5);
    step("a");
    await until(async () => (await done(a)) === 21);
    const second = await a.info();
    assert.deepEqual([second.attempt, second.error], [2, "Error: again"]);
    assert.ok((second.started ?? 0) > (started ?? 0));
    for (const id of ["a", "b"]) step(id);
    await until(async () => (await done(a)) === 22 && (await done(b)) === 12);
    for (const id of ["a", "b"]) step(id);
    await Promise.all([a.result(), b.result()]);
    assert.deepEqual([await done(a), await done(b)], [undefined, undefined]);
    await until(async () => (await jobs.raw.keys("*:job:*")).length === 0);
  });

  test("a chain of three says whose turn it is, fails at any stage, and is cancelled at any", async () => {
    const ends: ((value: number) => void)[] = [];
    const fails: ((error: Error) => void)[] = [];
    const step = jobs.app.define("step", { retries: 0 }, (input: number) => {
      return new Promise<number>((resolve, reject) => {
        ends.push((value) => resolve(input + value));
        fails.push(reject);
      });
    });
    jobs.work(jobs.app, { duration: 300 });
    const three = () => jobs.app.chain(step.call(1)).next(step).next(step).enqueue();
    const first = await three();
    for (const count of [1, 2, 3]) {
      await until(async () => ends.length === count && (await first.status()) === "running");
      const statuses = await Promise.all(first.stages.map((stage) => stage.status()));
      assert.deepEqual(
        statuses,
        [1, 2, 3].map((stage) => (stage < count ? "succeeded" : stage === count ? "running" : "unknown")),
      );
      ends.at(-1)?.(10 * count);
    }
    assert.equal(await first.result(), 61);
    assert.equal(await first.result(), 61);
    assert.equal(await first.cancel(), false);

    const failing = await three();
    const result = assert.rejects(failing.result(), { type: "RangeError", reason: "in the second" });
    await until(() => ends.length === 4);
    ends.at(-1)?.(1);
    await until(() => ends.length === 5);
    fails.at(-1)?.(new RangeError("in the second"));
    await result;
    assert.equal(await failing.status(), "failed");

    const cancelled = await three();
    await until(() => ends.length === 6);
    ends.at(-1)?.(1);
    await until(() => ends.length === 7);
    const waiting = assert.rejects(cancelled.result(), JobCancelled);
    assert.equal(await cancelled.cancel(), true);
    await waiting;
    assert.deepEqual([await cancelled.status(), await cancelled.cancel()], ["cancelled", false]);
  });

  test("functions that no worker has are warned of, each once", async () => {
    jobs.app.define("known", () => 1);
    jobs.work();
    for (const name of ["one", "two", "one", "two"]) {
      const handle = await jobs.app.enqueue(name);
      await until(async () => (await jobs.app.queue().inspect(handle.id)).error.length > 0);
    }
    const warned = jobs.logged.filter((line) => line.includes("put off"));
    assert.deepEqual(
      warned.map((line) => /"(\w+)"/.exec(line)?.[1]),
      ["one", "two"],
    );
  });

  test("a schedule is paused and resumed again, and each trigger is a job", async () => {
    const slots: number[] = [];
    const poll = jobs.app.define("poll", (_: undefined, { due, id }) => {
      if (id.startsWith("cron:")) slots.push(due);
      return "ran";
    });
    jobs.app.every(poll, 40);
    jobs.work();
    /** The schedule. A list takes four calls: on a slow machine two turns may pass between them, and the schedule with them. */
    const listed = async () => {
      let found: ScheduleInfo | undefined;
      await until(async () => {
        [found] = await jobs.app.schedules.list();
        return found !== undefined;
      });
      return found as ScheduleInfo;
    };
    for (let round = 0; round < 2; round += 1) {
      const count = slots.length;
      await until(() => slots.length >= count + 2);
      await jobs.app.schedules.pause("poll");
      assert.equal((await listed()).paused, true);
      // a turn that started before the pause may add one more slot
      await until(async () => {
        const before = (await listed()).last;
        await sleep(200);
        return (await listed()).last === before;
      });
      const handles = [await jobs.app.schedules.trigger("poll"), await jobs.app.schedules.trigger("poll")];
      assert.notEqual(handles[0]?.id, handles[1]?.id);
      assert.deepEqual(await Promise.all(handles.map((handle) => handle.result())), ["ran", "ran"]);
      await jobs.app.schedules.resume("poll");
      assert.equal((await listed()).paused, false);
    }
    const count = slots.length;
    await until(() => slots.length > count);
    const { next, last } = await listed();
    assert.ok((next ?? 0) > (last ?? 0));
    assert.deepEqual(
      slots,
      [...new Set(slots)].sort((a, b) => a - b),
    );
  });
});
