import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { AbortError, BadArgumentError } from "../src/index.js";
import {
  type Handle,
  type JobContext,
  type JobInfo,
  Release,
  ResultNotKept,
  ResultTimeout,
} from "../src/jobs/index.js";
import { JobFixture } from "./job-fixture.js";
import { until } from "./server.js";

const jobs = JobFixture.inThisFile();

/** A watch that sees a change within this time was woken. Without a wake-up it looks again after the cap, 4 s. */
const WOKEN_MS = 3500;
const HOUR_MS = 3_600_000;

/** A loop over a watch, and what it has seen. */
class Watcher {
  readonly seen: JobInfo[] = [];
  readonly ended: Promise<void>;

  constructor(handle: Handle, options?: Parameters<Handle["watch"]>[0]) {
    this.ended = this.#run(handle, options);
    this.ended.catch(() => {});
  }

  async #run(handle: Handle, options?: Parameters<Handle["watch"]>[0]): Promise<void> {
    for await (const info of handle.watch(options)) this.seen.push(info);
  }

  get statuses(): string[] {
    return this.seen.map(({ status }) => status);
  }

  /** Does something, and waits until the watch is woken by it and sees what is expected. */
  async sees(expected: Partial<JobInfo>, after: () => unknown = () => {}): Promise<void> {
    const start = performance.now();
    await after();
    await until(() => this.#hasLast(expected));
    const took = performance.now() - start;
    assert.ok(took < WOKEN_MS, `${took} ms`);
  }

  #hasLast(expected: Partial<JobInfo>): boolean {
    const last = this.seen.at(-1);
    if (!last) return false;
    const { progress, report } = last;
    const { status, ...reported } = { progress: undefined, report: undefined, ...expected };
    return last.status === status && JSON.stringify({ progress, report }) === JSON.stringify(reported);
  }
}

/** How many connections watches block on. */
async function blocked(): Promise<number> {
  const clients = String(await jobs.raw.call("CLIENT", "LIST")).split("\n");
  return clients.filter((line) => /\bflags=\w*b/.test(line) && line.includes("cmd=blmove")).length;
}

const untilBlocked = (count: number) => until(async () => (await blocked()) === count);

/** Waits until no watch blocks; fails if that takes as long as the cap. */
async function connectionsAreFree(): Promise<void> {
  const start = performance.now();
  await untilBlocked(0);
  const took = performance.now() - start;
  assert.ok(took < WOKEN_MS, `${took} ms`);
}

/** How often watches have looked: they read the notes each time. */
async function checks(): Promise<number> {
  return Number(/cmdstat_mget:calls=(\d+)/.exec(await jobs.raw.info("commandstats"))?.[1] ?? 0);
}

/** A job that nothing runs. */
const waiting = (options = {}) => jobs.app.enqueue("none", undefined, options);

/** Leases a job, as a worker that publishes nothing does. Writes its note and returns the lease. */
async function lease(handle: Handle) {
  const item = await jobs.app.queue().lease({ duration: 60_000 });
  assert.ok(item);
  const note = { v: 1, token: item.token, worker: "w", started: 1, n: 0 };
  await jobs.raw.set(jobs.key(`job:${handle.id}`), JSON.stringify(note));
  return item;
}

describe("a watch of a job", { concurrency: false }, () => {
  for (const [keep, end] of [
    [60_000, "succeeded"],
    [0, "unknown"],
  ] as const) {
    test(`yields each change until the end, which is ${end} with keep ${keep}`, async () => {
      let step: (() => void) | undefined;
      const next = () => step?.();
      const gate = () => new Promise<void>((resolve) => (step = resolve));
      const wait = jobs.app.define("wait", { keep }, async (_: undefined, context: JobContext) => {
        await gate();
        context.progress(1, 3);
        await gate();
        context.report({ part: "second" });
        await gate();
        return "done";
      });
      const watcher = new Watcher(await wait.enqueue());
      await untilBlocked(2);
      await watcher.sees({ status: "running" }, () => jobs.work());
      await watcher.sees({ status: "running", progress: { done: 1, total: 3 } }, next);
      await watcher.sees({ status: "running", report: { part: "second" } }, next);
      await watcher.sees({ status: end }, next);
      await watcher.ended;
      assert.deepEqual(watcher.statuses, ["ready", "running", "running", "running", end]);
      assert.equal(watcher.seen.at(-1)?.result, keep ? "done" : undefined);
    });
  }

  test("sees that a short job succeeds", async () => {
    const short = jobs.app.define("short", () => 7);
    const watcher = new Watcher(await short.enqueue());
    await untilBlocked(2);
    await watcher.sees({ status: "succeeded" }, () => jobs.work());
    await watcher.ended;
    assert.equal(watcher.seen.at(-1)?.result, 7);
  });

  test("sees that a failed attempt waits long for another one, and the failure of that", async () => {
    const fail = jobs.app.define("fail", { retries: 1 }, (_: undefined, { attempt }) => {
      if (attempt === 1) throw new Release("later", { delay: HOUR_MS });
      throw new RangeError("again");
    });
    const handle = await fail.enqueue();
    const watcher = new Watcher(handle);
    await untilBlocked(2);
    await watcher.sees({ status: "retrying" }, () => jobs.work());
    await untilBlocked(2);
    await watcher.sees({ status: "failed" }, () => handle.promote());
    await watcher.ended;
    const { attempt, error } = watcher.seen.at(-1) as JobInfo;
    assert.deepEqual([attempt, error], [2, "RangeError: again"]);
  });

  test("ends with the cancellation of the job", async () => {
    const handle = await waiting();
    const watcher = new Watcher(handle);
    await untilBlocked(2);
    await watcher.sees({ status: "cancelled" }, () => handle.cancel());
    await watcher.ended;
    assert.deepEqual(watcher.statuses, ["ready", "cancelled"]);
    await connectionsAreFree();
  });

  test("of a job that has ended, or never was, yields that alone", async () => {
    const fail = jobs.app.define("fail", { retries: 0 }, () => {
      throw new Error("no");
    });
    jobs.work();
    const dead = await fail.enqueue();
    await assert.rejects(dead.result());
    for (const [handle, status] of [
      [dead, "failed"],
      [jobs.app.handle("none"), "unknown"],
    ] as const) {
      const watcher = new Watcher(handle);
      await watcher.ended;
      assert.deepEqual(watcher.statuses, [status]);
    }
  });

  test("throws what result throws when the time is over", async () => {
    for (const [keep, error] of [
      [60_000, ResultTimeout],
      [0, ResultNotKept],
    ] as const) {
      const handle = await waiting({ keep });
      const expected = await handle.result({ timeout: 0 }).catch((thrown: Error) => thrown);
      assert.ok(expected instanceof error);
      for (const timeout of [0, 1, 100]) {
        const watcher = new Watcher(handle, { timeout });
        await assert.rejects(watcher.ended, { name: expected.name, message: expected.message });
        assert.deepEqual(watcher.statuses, ["ready"]);
      }
    }
    await connectionsAreFree();
  });

  test("takes no timeout and no signal of another type", async () => {
    const handle = await waiting();
    assert.throws(() => handle.watch({ timeout: Number.NaN }), BadArgumentError);
    assert.throws(() => handle.watch({ signal: {} as AbortSignal }), BadArgumentError);
  });
});

describe("the end of a loop over a watch", { concurrency: false }, () => {
  test("by break leaves nothing that blocks", async () => {
    const handle = await waiting();
    for await (const { status } of handle.watch()) {
      assert.equal(status, "ready");
      break;
    }
    for await (const { status } of handle.watch()) {
      if (status === "running") break;
      setImmediate(async () => {
        await untilBlocked(2);
        await lease(handle);
        await jobs.raw.rpush(jobs.key(`changed:${handle.id}:1.0`), "1");
      });
    }
    await connectionsAreFree();
  });

  test("by return ends a wait at once, without an error, and closes its connections", async () => {
    const infos = (await waiting()).watch();
    assert.equal((await infos.next()).value?.status, "ready");
    const next = infos.next();
    await untilBlocked(2);
    assert.deepEqual(await infos.return(), { done: true, value: undefined });
    assert.deepEqual(await next, { done: true, value: undefined });
    await connectionsAreFree();
    assert.deepEqual(await infos.next(), { done: true, value: undefined });
  });

  test("by an abort throws AbortError and closes its connections", async () => {
    const handle = await waiting();
    const abort = new AbortController();
    const watcher = new Watcher(handle, { signal: abort.signal });
    await untilBlocked(2);
    abort.abort();
    await assert.rejects(watcher.ended, AbortError);
    await connectionsAreFree();
    const aborted = new Watcher(handle, { signal: abort.signal });
    await assert.rejects(aborted.ended, AbortError);
    assert.deepEqual([watcher.statuses, aborted.statuses], [["ready"], []]);
  });

  test("comes with the end of the client", async () => {
    const watcher = new Watcher(await waiting());
    await untilBlocked(2);
    await jobs.client.close();
    await assert.rejects(watcher.ended, AbortError);
  });
});

describe("many watches", { concurrency: false }, () => {
  test("block on 32 connections, and see all the same how their jobs end", async () => {
    const echo = jobs.app.define("echo", (input: number) => input);
    const abort = new AbortController();
    const first = new Watcher(await echo.enqueue(0), { signal: abort.signal });
    const handles = await Promise.all(Array.from({ length: 18 }, (_, index) => echo.enqueue(index)));
    const watchers = handles.map((handle) => new Watcher(handle));
    await until(() => watchers.every(({ statuses }) => statuses.length === 1));
    await untilBlocked(32);
    abort.abort();
    await assert.rejects(first.ended, AbortError);
    await untilBlocked(32); // another one has its place
    jobs.work();
    await Promise.all(watchers.map(({ ended }) => ended));
    assert.deepEqual(
      watchers.map(({ seen }) => seen.at(-1)?.result),
      handles.map((_, index) => index),
    );
    await connectionsAreFree();
  });
});

describe("a watch looks again", { concurrency: false }, () => {
  test("a few times a second while wake-ups bring nothing new", async () => {
    const handle = await waiting();
    await jobs.raw.rpush(
      jobs.key(`changed:${handle.id}:1.0`),
      "of an attempt that was given back, uncounted",
    );
    const before = await checks();
    await assert.rejects(new Watcher(handle, { timeout: 700 }).ended, ResultTimeout);
    const count = (await checks()) - before;
    assert.ok(count >= 3 && count <= 6, `${count}`);
  });

  test("without a wait behind a slow consumer: the change is no longer published", async () => {
    const handle = await waiting();
    const infos = handle.watch();
    await infos.next();
    await lease(handle);
    const clock = performance.now.bind(performance);
    const start = clock();
    const slow = mock.method(performance, "now", () => clock() + 2500);
    try {
      assert.equal((await infos.next()).value?.status, "running");
    } finally {
      slow.mock.restore();
    }
    assert.ok(clock() - start < WOKEN_MS);
    await infos.return();
  });

  test("until the lease ends, when the worker has published the end of the attempt before", async () => {
    const handle = await waiting();
    const watcher = new Watcher(handle);
    await untilBlocked(2);
    const item = await lease(handle);
    const changed = (n: number) => jobs.key(`changed:${handle.id}:1.${n}`);
    await watcher.sees({ status: "running" }, () => jobs.raw.rpush(changed(0), "1"));
    await untilBlocked(2);
    const before = await checks();
    await jobs.raw.del(jobs.key(`job:${handle.id}`));
    await jobs.raw.rpush(changed(1), "1");
    await jobs.raw.del(changed(0), changed(1));
    await until(async () => (await checks()) > before);
    await watcher.sees({ status: "retrying" }, () => item.release({ delay: HOUR_MS }));
    await handle.cancel();
    await watcher.ended;
    assert.deepEqual(watcher.statuses, ["ready", "running", "retrying", "cancelled"]);
  });
});
