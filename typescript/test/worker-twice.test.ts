// What happens to a worker twice: the second outage, stop, lost lease, attempt or report is treated as the first was.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "../src/index.js";
import { FaultProxy, until } from "./server.js";
import { WorkerFixture, whyAborted } from "./worker-fixture.js";

const LONG_MS = 60_000;
const fixture = WorkerFixture.inThisFile();
const { add, called, hooks, logger, worker } = fixture;

describe("of a worker", { concurrency: false }, () => {
  test("the second outage is reported as the first, with its own length", async () => {
    const proxy = await new FaultProxy(fixture.server.path).open();
    const itsClient = new Client({ path: proxy.path }, { logger });
    const ours = itsClient.worker(itsClient.queue("q"), () => {}, { announce: false, hooks });
    const ran = ours.run();
    for (const count of [1, 2]) {
      await until(() => proxy.sent.includes("BLPOP"));
      proxy.sent = "";
      await fixture.raw.config("SET", "min-replicas-to-write", "1");
      proxy.cut();
      await until(() => called.filter((line) => line === "serverAway").length === count);
      await fixture.raw.config("SET", "min-replicas-to-write", "0");
      await until(() => called.filter((line) => line === "serverBack soon").length === count);
    }
    await ours.close();
    await ran;
    await itsClient.close();
    proxy.close();
    assert.deepEqual(called, ["serverAway", "serverBack soon", "serverAway", "serverBack soon"]);
  });

  test("a second stop leaves the grace time of the first, a second close sets another", async () => {
    await add("a");
    const ours = worker(() => new Promise(() => {}), { grace: 200 });
    const ran = ours.run();
    await until(() => called.includes("started a"));
    ours.stop();
    const again = setInterval(() => ours.stop(), 20); // would put the end off again and again
    assert.equal(await ran, 0);
    clearInterval(again);
    await ours.close();

    const other = worker(() => new Promise(() => {}), { grace: LONG_MS });
    const ends = other.run();
    await until(() => called.filter((line) => line === "started a").length === 2);
    const long = other.close();
    await other.close({ timeout: 20 });
    await long;
    assert.equal(await ends, 0);
    const { state, attempt } = await fixture.queue.inspect("a");
    assert.deepEqual([state, attempt], ["ready", 0]);
  });

  test("a second close can leave handlers more time", async () => {
    await add("a");
    let end = () => {};
    const ours = worker(() => new Promise<void>((resolve) => (end = resolve)), { grace: LONG_MS });
    const ran = ours.run();
    await until(() => called.includes("started a"));
    const first = ours.close({ timeout: 100 });
    const second = ours.close({ timeout: LONG_MS });
    await sleep(200);
    end();
    await Promise.all([first, second]);
    assert.equal(await ran, 1);
    assert.deepEqual(fixture.calls("started", "completed"), ["started a", "completed a"]);
  });

  test("a worker runs once", async () => {
    const ours = worker(() => {});
    const ran = ours.run();
    await assert.rejects(ours.run(), /runs once/);
    ours.stop();
    assert.equal(await ran, 0);
    await assert.rejects(ours.run(), /runs once/);
  });

  test("each item has its time limit, and each attempt", async () => {
    await add("a", "b");
    const reasons: string[] = [];
    const ours = worker(
      async ({ id, attempt }, { signal }) => {
        if (id.toString() === "a" && attempt < 3) reasons.push(`a ${await whyAborted(signal)}`);
        else {
          await sleep(30); // over the limit of "a", within its own
          reasons.push(`${id} ${signal.aborted}`);
        }
        if (reasons.length === 4) ours.stop();
      },
      { timeLimit: 100, backoff: 0, concurrency: 1 },
    );
    assert.equal(await ours.run(), 2);
    assert.deepEqual(reasons.sort(), ["a false", "a late", "a late", "b false"]);
  });

  test("one lost lease ends one handler, and another later one as well", async () => {
    await add("a", "b", "c");
    const reasons: string[] = [];
    let end = () => {};
    const held = new Promise<void>((resolve) => (end = resolve));
    const ours = worker(
      async ({ id }, { signal }) => {
        await Promise.race([held, whyAborted(signal).then((why) => reasons.push(`${id} ${why}`))]);
      },
      { concurrency: 3, duration: 300 },
    );
    const ran = ours.run();
    await until(() => fixture.calls("started").length === 3);
    await fixture.queue.remove(["a"]);
    await until(() => reasons.length === 1);
    await fixture.queue.remove(["c"]);
    await until(() => reasons.length === 2);
    await sleep(400); // longer than a lease: "b" is held on
    end();
    await until(() => called.includes("completed b"));
    await ours.close();
    assert.equal(await ran, 1);
    assert.deepEqual(reasons, ["a lost", "c lost"]);
    assert.deepEqual(fixture.calls("lost", "completed"), ["lost a", "lost c", "completed b"]);
  });

  test("progress is reported each time", async () => {
    await add("a", "b");
    const ours = worker(async ({ id }, { progress }) => {
      progress(1);
      progress(2);
      if (id.toString() === "b") ours.stop();
    });
    await ours.run();
    assert.deepEqual(fixture.calls("progress"), [
      "progress a 1",
      "progress a 2",
      "progress b 1",
      "progress b 2",
    ]);
  });

  test("the second attempt has the backoff of a second one, and the last is the last", async () => {
    await add("a");
    const asked: number[] = [];
    const ours = worker(
      ({ attempt }) => {
        if (attempt === 3) ours.stop();
        throw new Error(`at ${attempt}`);
      },
      { backoff: (attempt) => asked.push(attempt) && 5 * attempt, maxAttempts: 3 },
    );
    assert.equal(await ours.run(), 0);
    assert.deepEqual(asked, [1, 2]);
    assert.deepEqual(fixture.calls("released", "deadLettered"), [
      "released a 5 Error: at 1",
      "released a 10 Error: at 2",
      "deadLettered a Error: at 3",
    ]);
  });

  test("items that end together are each completed in their queue, twice", async () => {
    const queues = [fixture.client.queue("p"), fixture.client.queue("q")];
    const ids = ["1", "2", "3"];
    let running = 0;
    let next = () => {};
    let all = new Promise<void>((resolve) => (next = resolve));
    const ours = fixture.client.worker(
      queues,
      async () => {
        const turn = all;
        running += 1;
        if (running % 6 === 0) next();
        await turn;
      },
      { announce: false, hooks, concurrency: 6 },
    );
    const ran = ours.run();
    for (const round of [1, 2]) {
      if (round === 2) all = new Promise<void>((resolve) => (next = resolve));
      for (const each of queues) await each.add(ids.map((id) => ({ id, data: "" })));
      await until(() => called.filter((line) => line.startsWith("completed")).length === 6 * round);
      for (const each of queues) assert.equal((await each.stats()).get("leased"), 0);
    }
    await ours.close();
    assert.equal(await ran, 12);
  });

  test("fair turns go on through all queues", async () => {
    const queues = ["p", "q", "r"].map((name) => fixture.client.queue(name));
    for (const each of queues) await each.add(["1", "2", "3"].map((id) => ({ id, data: "" })));
    const order: string[] = [];
    const ours = fixture.client.worker(
      queues,
      ({ queue: { name } }) => {
        if (order.push(name) === 9) ours.stop();
      },
      { announce: false, fair: true },
    );
    await ours.run();
    assert.equal(order.join(""), "pqrpqrpqr");
  });

  test("each report of a live worker says what is so by then", async () => {
    await add("a", "b");
    const ends: (() => void)[] = [];
    const ours = fixture.client.worker(
      fixture.queue,
      () => new Promise<void>((resolve) => ends.push(resolve)),
      {
        concurrency: 1,
      },
    );
    const other = fixture.client.worker(fixture.client.queue("other"), () => {});
    const rans = [ours.run(), other.run()];
    await until(() => ends.length === 1);
    await until(async () => (await fixture.client.liveWorkers()).length === 2);
    ends[0]?.();
    await until(() => ends.length === 2);
    ours.stop();
    await until(async () => (await fixture.client.liveWorkers()).some(({ stopping }) => stopping));
    const found = (await fixture.client.liveWorkers()).find(({ id }) => id === ours.id);
    assert.deepEqual([found?.completed, found?.held, found?.items[0]?.id.toString()], [1, 1, "b"]);
    ends[1]?.();
    assert.equal(await rans[0], 2);
    assert.deepEqual(
      (await fixture.client.liveWorkers()).map(({ id }) => id),
      [other.id],
    );
    await other.close();
    assert.deepEqual(await fixture.client.liveWorkers(), []);
  });
});
