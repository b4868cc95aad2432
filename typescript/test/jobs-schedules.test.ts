import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BadArgumentError } from "../src/index.js";
import { App, type Missed } from "../src/jobs/index.js";
import type { ScheduleState } from "../src/jobs/schedule.js";
import { JobFixture } from "./job-fixture.js";
import { until } from "./server.js";

const jobs = JobFixture.inThisFile();
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const serverTime = async (): Promise<number> =>
  Math.floor(((await jobs.app.queue().stats()).get("now") ?? 0) / 1000);
const ofSchedules = () => jobs.app.queue("default.cron");

async function state(name: string, queue = "default.cron"): Promise<ScheduleState> {
  return JSON.parse((await jobs.raw.hget(jobs.key("items", queue), name)) ?? "null");
}

/** Adds the item of a schedule as an earlier worker left it, due now. */
async function leave(name: string, data: Partial<ScheduleState>, queue = "default"): Promise<void> {
  await jobs.app
    .queue(`${queue}.cron`)
    .add({ id: name, data: JSON.stringify({ v: 1, ...data }), maxAttempts: 0 });
}

/** Resolves when the schedule has had a turn after `before`. */
async function turned(name: string, before: number): Promise<ScheduleState> {
  await until(async () => ((await state(name))?.until ?? 0) > before);
  return await state(name);
}

describe("a schedule", { concurrency: false }, () => {
  test("gets one job for each slot, with any number of workers", async () => {
    const slots = new Map<string, number>();
    const poll = jobs.app.define("poll", (_: undefined, { id, due }) => {
      assert.ok(!slots.has(id));
      slots.set(id, due);
    });
    jobs.app.every(poll, 50, { missed: "all" });
    const startedAt = await serverTime();
    for (let count = 0; count < 3; count += 1) jobs.work();
    await until(() => slots.size >= 5);
    const found = [...slots.values()].sort((a, b) => a - b);
    assert.deepEqual(
      found,
      found.map((_, index) => (found[0] as number) + 50 * index),
    );
    assert.ok((found[0] as number) > startedAt);
    for (const [id, due] of slots) assert.equal(id, `cron:poll:${due}`);
    const { rule, missed, job, v } = await state("poll");
    assert.deepEqual(
      [v, rule, missed, job?.queue, job?.job.function],
      [1, "every 0.05 s", "all", "default", "poll"],
    );
  });

  test("starts with the server's time, and stays as it is if it is there", async () => {
    const report = jobs.app.define("report", () => {});
    jobs.app.cron(report, "0 0 1 1 *", { name: "yearly" });
    const before = await serverTime();
    const worker = jobs.work();
    await until(async () => (await ofSchedules().inspect("yearly")).state === "delayed");
    const first = await state("yearly");
    assert.ok(first.until >= before);
    const { time, maxAttempts } = await ofSchedules().inspect("yearly");
    assert.equal(maxAttempts, 0);
    // due at a minute after its turn, as its next slot is later
    assert.ok(Math.abs(time / 1000 - first.until - 60_000) <= 1 || time / 1000 === first.next);
    assert.equal(new Date(first.next ?? 0).toISOString().slice(4), "-01-01T00:00:00.000Z");
    await worker.close();
    jobs.work();
    await (await report.enqueue()).result(); // a worker starts its schedules first
    assert.deepEqual(await state("yearly"), first);
  });

  for (const [missed, count] of [
    ["all", 3],
    ["last", 1],
    ["none", 0],
  ] as const satisfies readonly (readonly [Missed, number])[]) {
    test(`with missed "${missed}" runs ${count} of 3 slots that were missed`, async () => {
      const ran: number[] = [];
      const report = jobs.app.define("report", (text: string, { due }) => {
        assert.equal(text, "input");
        ran.push(due);
      });
      const now = await serverTime();
      // three slots since 1970, the last one half an hour ago
      const interval = Math.floor((now - HOUR / 2) / 3);
      jobs.app.every(report, interval, { missed, input: "input", expires: Number.POSITIVE_INFINITY });
      await leave("report", { until: 0, last: 5 });
      jobs.work();
      const after = await turned("report", 0);
      const slots = [interval, 2 * interval, 3 * interval].slice(3 - count);
      await until(() => ran.length === count);
      assert.deepEqual(
        ran.sort((a, b) => a - b),
        slots,
      );
      assert.deepEqual([after.last, after.next], [slots.at(-1) ?? 5, 4 * interval]);
      assert.ok(after.until >= now);
    });
  }

  test("adds 64 jobs in a turn, and the others in the next", async () => {
    const report = jobs.app.define("report", { queue: "idle" }, () => {});
    const now = await serverTime();
    const interval = Math.floor((now - HOUR) / 100);
    jobs.app.every(report, interval, { missed: "all", expires: Number.POSITIVE_INFINITY });
    await jobs.app.queue("idle.cron").add({ id: "report", data: '{"v":1,"until":0}', maxAttempts: 0 });
    await jobs.app.queue("idle").configure({ paused: true });
    jobs.work();
    await until(async () => (await jobs.app.queue("idle").stats()).get("ready") === 100);
    assert.equal((await jobs.app.queue("idle.cron").stats()).get("completed"), 2);
  });

  test("gives no job to a slot that is over, and does not set its time back", async () => {
    const report = jobs.app.define("report", () => assert.fail());
    const ahead = (await serverTime()) + HOUR;
    jobs.app.every(report, 1000);
    await leave("report", { until: ahead });
    jobs.work();
    await until(async () => (await ofSchedules().inspect("report")).state === "delayed");
    const after = await state("report");
    assert.equal(after.until, ahead);
    assert.equal(after.next, Math.floor(ahead / 1000) * 1000 + 1000);
    assert.equal((await ofSchedules().inspect("report")).time / 1000, after.next);
  });

  test("skips its slots while it is paused, and goes on when it is resumed", async () => {
    let ran = 0;
    const poll = jobs.app.define("poll", () => {
      ran += 1;
    });
    jobs.app.every(poll, 20);
    await jobs.raw.sadd(jobs.key("paused", "default.cron"), "poll");
    await leave("poll", { until: (await serverTime()) - HOUR });
    jobs.work();
    const first = await turned("poll", (await serverTime()) - HOUR / 2);
    await turned("poll", first.until);
    assert.equal(ran, 0);
    // a list takes four calls: on a slow machine two turns may pass between them, and the schedule with them
    await until(async () => (await jobs.app.schedules.list())[0]?.paused === true);
    await jobs.app.schedules.resume("poll");
    await until(() => ran > 0);
    await jobs.app.schedules.pause("poll");
    const paused = await jobs.raw.smembers(jobs.key("paused", "default.cron"));
    assert.deepEqual(paused, ["poll"]);
  });

  test("that no worker here knows is put off, and dropped after a day", async () => {
    jobs.app.every(
      jobs.app.define("poll", () => {}),
      HOUR,
    );
    const now = await serverTime();
    await leave("recent", { until: now - DAY + HOUR });
    await leave("old", { until: now - DAY - HOUR });
    await ofSchedules().add({ id: "rubbish", data: "no schedule", maxAttempts: 0 });
    jobs.work();
    await until(async () => (await ofSchedules().inspect("recent")).state === "delayed");
    await until(async () => (await ofSchedules().inspect("old")).state === "absent");
    await until(async () => (await ofSchedules().inspect("rubbish")).state === "dead");
    const { attempt, time } = await ofSchedules().inspect("recent");
    assert.equal(attempt, 0);
    assert.ok(time / 1000 - now > 30_000 && time / 1000 - now < 120_000);
  });

  test("is listed and triggered", async () => {
    const seen: unknown[] = [];
    const report = jobs.app.define("report", (input: { to: string }, { headers }) => {
      seen.push(input, headers.get("a")?.toString());
    });
    jobs.app.cron(report, "30 2 * * *", {
      timeZone: "Europe/Berlin",
      input: { to: "x" },
      headers: { a: "b" },
      keep: HOUR,
    });
    await assert.rejects(jobs.app.schedules.trigger("report"), /there is no schedule "report".* it has none/);
    jobs.work();
    await until(async () => (await ofSchedules().inspect("report")).state === "delayed");
    const [info, ...others] = await jobs.app.schedules.list();
    assert.deepEqual(others, []);
    const { next, ...fixed } = info ?? assert.fail();
    assert.deepEqual(fixed, {
      name: "report",
      queue: "default",
      rule: "30 2 * * * Europe/Berlin",
      missed: "last",
      function: "report",
      paused: false,
      last: undefined,
    });
    assert.ok((next ?? 0) > Date.now() - HOUR);
    const other = new App(jobs.client); // it has no schedules
    await (await other.schedules.trigger("report")).result();
    assert.deepEqual(seen, [{ to: "x" }, "b"]);
  });

  test("says for how long the result of a triggered job is kept", async () => {
    const count = jobs.app.define("count", () => 17);
    jobs.app.cron(count, "0 0 1 1 *", { keep: 7 * DAY });
    const worker = jobs.work();
    await until(async () => (await jobs.app.schedules.list()).length === 1);
    await worker.close();
    const { id } = await jobs.app.schedules.trigger("count");
    assert.equal((await jobs.app.queue().inspect(id)).keep, 7 * DAY);
  });

  test("that keeps no results keeps that of a job that was triggered", async () => {
    jobs.app.cron(
      jobs.app.define("count", () => 17),
      "30 2 * * *",
    );
    jobs.work();
    await until(async () => (await ofSchedules().inspect("count")).state === "delayed");
    assert.equal(await (await jobs.app.schedules.trigger("count")).result(), 17);
  });

  test("of one name in two queues are two, which are listed, paused and triggered by their queue", async () => {
    const seen: string[] = [];
    const report = jobs.app.define("report", (_: undefined, { id, queue }) => {
      seen.push(`${queue} ${id.split(":", 1)}`);
    });
    const queues = ["default", "p", "q"];
    for (const queue of ["p", "q"]) {
      jobs.app.every(report, HOUR, { queue });
      await leave("report", { until: (await serverTime()) - HOUR }, queue);
    }
    jobs.work(jobs.app, { queues });
    for (const queue of ["p", "q"]) await until(() => seen.includes(`${queue} cron`));
    const { schedules } = jobs.app;
    await assert.rejects(schedules.pause("report"), /no schedule "report" in queue default.cron/);
    await schedules.pause("report", "q");
    const paused = async (queue: string) =>
      (await schedules.list(queue)).map((each) => [each.name, each.queue, each.paused]);
    assert.deepEqual(await paused("p"), [["report", "p", false]]);
    assert.deepEqual(await paused("q"), [["report", "q", true]]);
    assert.deepEqual(await schedules.list(), []); // of the queues of the App and its functions
    const triggered = await schedules.trigger("report", "q");
    await triggered.result();
    assert.equal(seen.filter((line) => line === `q ${triggered.id}`).length, 1);
    await schedules.resume("report", "q");
    assert.deepEqual(await paused("q"), [["report", "q", false]]);
  });

  test("is found by its name in the queue of its function", async () => {
    const report = jobs.app.define("report", { queue: "reports" }, () => "ran");
    jobs.app.every(report, HOUR, { keep: undefined });
    jobs.work();
    await until(async () => (await jobs.app.schedules.list()).length === 1);
    assert.equal((await state("report", "reports.cron")).job?.add?.keep, undefined);
    await jobs.app.schedules.pause("report");
    assert.equal(await jobs.raw.sismember(jobs.key("paused", "reports.cron"), "report"), 1);
    const handle = await jobs.app.schedules.trigger("report");
    assert.deepEqual([handle.queue, await handle.result()], ["reports", "ran"]);
    await jobs.app.schedules.resume("report");
    assert.equal(await jobs.raw.scard(jobs.key("paused", "reports.cron")), 0);
  });

  test("has its turn before any job, also of a fair worker (LQ-JOB-62)", async () => {
    const leased: string[] = [];
    const report = jobs.app.define("report", () => {});
    for (const name of ["a", "b"]) {
      jobs.app.cron(report, "0 0 1 1 *", { name });
      await leave(name, { until: (await serverTime()) - HOUR });
    }
    const calls = ["default", "other", "default", "other"].map((queue) => report.call(undefined, { queue }));
    await jobs.app.enqueueMany(calls);
    jobs.work(jobs.app, {
      queues: ["default", "other"],
      concurrency: 1,
      fair: true,
      hooks: { leased: ([item]) => leased.push(item?.queue.name ?? "") },
    });
    await until(() => leased.length === 6);
    assert.deepEqual(leased.slice(0, 2), ["default.cron", "default.cron"]);
    assert.ok(
      ["default,other,default,other", "other,default,other,default"].includes(leased.slice(2).join()),
    );
  });

  test("starts when an outage ends in which its worker was started", async () => {
    let ticks = 0;
    const tick = jobs.app.define("tick", () => {
      ticks += 1;
    });
    jobs.app.every(tick, 50);
    await jobs.raw.config("SET", "min-replicas-to-write", "1");
    try {
      jobs.work();
      await until(() => jobs.logged.some((line) => line.includes("away")));
    } finally {
      await jobs.raw.config("SET", "min-replicas-to-write", "0");
    }
    await until(() => ticks > 1);
  });

  test("that makes no sense is refused", () => {
    const report = jobs.app.define("report", (_: unknown) => {});
    const far = jobs.app.define("far", { queue: "x".repeat(96) }, () => {});
    jobs.app.cron(report, "@daily");
    for (const schedule of [
      () => jobs.app.every(report, 0),
      () => jobs.app.every(report, 0.4),
      () => jobs.app.every(report, Number.NaN),
      () => jobs.app.every(report, 1000), // its name is taken
      () => jobs.app.every(report, 1000, { name: "" }),
      () => jobs.app.every(report, 1000, { name: "x".repeat(201) }),
      () => jobs.app.every(report, 1000, { name: "a", missed: "some" as Missed }),
      () => jobs.app.every(report, 1000, { name: "a", id: "x" } as object),
      () => jobs.app.every(report, 1000, { name: "a", at: 5 } as object),
      () => jobs.app.every(far, 1000),
      () => jobs.app.cron(report, "* * * *", { name: "a" }),
      () => jobs.app.cron(report, "* * * * * * *", { name: "a" }),
      () => jobs.app.cron(report, "60 * * * *", { name: "a" }),
      () => jobs.app.cron(report, "? * * * *", { name: "a" }),
      () => jobs.app.cron(report, "0 0 30 2 *", { name: "a" }),
      () => jobs.app.cron(report, "@sometimes", { name: "a" }),
      () => jobs.app.cron(report, 5 as unknown as string, { name: "a" }),
      () => jobs.app.cron(report, "@daily", { name: "a", timeZone: "Mars/Olympus" }),
    ]) {
      assert.throws(schedule, BadArgumentError, String(schedule));
    }
    assert.throws(() => jobs.app.every(report, 1000, { name: "a", input: new Date() }), /of class Date/);
  });
});
