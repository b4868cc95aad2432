import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import {
  BadArgumentError,
  BadIdError,
  Client,
  CrossGroupError,
  type LeasedItem,
  OutOfMemoryError,
  PartialError,
  QueueFullError,
  ReplyLostError,
  SCRIPTS,
  TooLargeError,
  WrongKeyTypeError,
} from "../src/index.js";
import { FaultProxy, Server, until } from "./server.js";

let server: Server;
let client: Client;
let count = 0;
const newQueue = (group?: string) => client.queue(`q${++count}`, group === undefined ? {} : { group });

before(async () => {
  server = await Server.start();
  client = new Client({ path: server.path });
});
after(async () => {
  await client.close();
  await server.end();
});

describe("add, lease, complete", () => {
  test("bytes come back as they went in", async () => {
    const queue = newQueue();
    const data = Buffer.from([0, 255, 13, 10, 128]);
    const created = await queue.add({ id: "{é}\r\n:'\"", data });
    assert.ok(created > 1.7e15);
    assert.equal(await queue.add({ id: Buffer.from("{é}\r\n:'\""), data: "x" }), 0);
    const lease = await queue.lease({ duration: 30_000 });
    assert.ok(lease);
    assert.equal(lease.id.toString(), "{é}\r\n:'\"");
    assert.deepEqual(lease.data, data);
    assert.equal(lease.attempt, 1);
    assert.ok(lease.token > created && lease.held && lease.keep === undefined);
    assert.equal(lease.deadline, lease.token + 30_000_000);
    assert.equal(await lease.complete(), true);
    assert.equal(await lease.complete(), false);
    assert.equal(await queue.lease({ duration: 1000 }), undefined);
  });

  test("calls of one turn of the event loop leave in few writes", async () => {
    const queue = newQueue();
    const raw = server.raw();
    const reads = async () => Number(/total_reads_processed:(\d+)/.exec(await raw.info("stats"))?.[1]);
    await queue.add({ id: "first", data: "" });
    const before = await reads();
    await Promise.all(Array.from({ length: 200 }, (_, index) => queue.add({ id: `${index}`, data: "x" })));
    const made = (await reads()) - before;
    raw.disconnect();
    assert.ok(made <= 10, `the server read ${made} times`);
  });

  test("text of any length comes back as it went in", async () => {
    const queue = newQueue();
    for (const length of [16_383, 16_384, 16_385, 300_000]) {
      const data = "é".repeat(length);
      await queue.add({ id: `${length}`, data });
      assert.equal((await queue.lease({ duration: 30_000 }))?.data.toString(), data);
    }
  });

  test("options when adding", async () => {
    const queue = newQueue();
    const headers = { trace: "7f", __proto__x: Buffer.from([1]) };
    const answers = await queue.add([
      { id: "low", data: "", priority: -3, contentType: "text/plain", headers },
      { id: "high", data: "", priority: 7, maxAttempts: 2 },
      { id: "later", data: "", delay: 60_000.5 },
      { id: "date", data: "", notBefore: new Date(Date.now() + 60_000) },
      { id: "past", data: "", notBefore: 0, expiresIn: 60_000, expiresTo: "dead" },
    ]);
    assert.equal(answers.length, 5);
    const leases = await queue.leaseItems({ duration: 1000, count: 9 });
    assert.deepEqual(
      leases.map((lease) => lease.id.toString()),
      ["high", "past", "low"],
    );
    assert.equal(leases[2]?.contentType?.toString(), "text/plain");
    assert.deepEqual([...(leases[2]?.headers ?? [])].sort(), [
      ["__proto__x", Buffer.from([1])],
      ["trace", Buffer.from("7f")],
    ]);
    const [high, later] = await queue.inspect(["high", "later", "none"]);
    assert.equal(high?.maxAttempts, 2);
    assert.equal(high?.priority, 7);
    assert.equal(later?.state, "delayed");
    await assert.rejects(queue.add({ id: "x", data: "", delay: 1, notBefore: 1 }), BadArgumentError);
  });

  test("more than 256 entries", async () => {
    const queue = newQueue();
    const items = Array.from({ length: 513 }, (_, index) => ({ id: `i${index}`, data: "d" }));
    assert.equal((await queue.add(items)).filter((created) => created > 0).length, 513);
    const first = await queue.leaseItems({ duration: 60_000, count: 256 });
    const second = await queue.leaseItems({ duration: 60_000, count: 256 });
    const third = await queue.leaseItems({ duration: 60_000, count: 256 });
    const all = [...first, ...second, ...third];
    assert.equal(all.length, 513);
    assert.ok((await queue.extend(all)).every((deadline) => deadline > 0));
    assert.deepEqual(new Set(await queue.complete(all)), new Set([true]));
    assert.deepEqual(await queue.add([]), []);
  });

  test("one part of a long input fails", async () => {
    const queue = newQueue();
    const items = Array.from({ length: 300 }, (_, index) => ({ id: `i${index}`, data: "d" }));
    items[299] = { id: "", data: "" };
    await assert.rejects(queue.add(items), (error) => {
      assert.ok(error instanceof PartialError);
      assert.equal(error.code, "LEASEQ_BAD_ID");
      assert.equal(error.answers.length, 256);
      assert.equal(error.inDoubt, 0);
      assert.equal(error.definite, true);
      return true;
    });
  });
});

describe("data", () => {
  test("may be a view of a part of a larger buffer", async () => {
    const queue = newQueue();
    const whole = new TextEncoder().encode("abcdef");
    await queue.add({ id: whole.subarray(0, 1), data: whole.subarray(2, 4) });
    const item = await queue.lease({ duration: 60_000 });
    assert.equal(item?.id.toString(), "a");
    assert.equal(item?.data.toString(), "cd");
  });
});

describe("errors", () => {
  test("have a name, and whether they are definite", async () => {
    const queue = newQueue();
    assert.throws(() => client.queue("a b"), BadArgumentError);
    assert.throws(() => client.queue("a\n"), BadArgumentError);
    await assert.rejects(queue.add({ id: "\ud800", data: "" }), BadIdError);
    await assert.rejects(queue.add({ id: Buffer.from([255]), data: "" }), {
      code: "LEASEQ_BAD_ID",
      definite: true,
    });
    await assert.rejects(queue.lease({ duration: 0 }), BadArgumentError);
    await assert.rejects(queue.lease({ duration: Number.NaN }), BadArgumentError);
    await assert.rejects(queue.lease({ duration: 1e30 }), BadArgumentError);
    await queue.configure({ maxData: 3 });
    await assert.rejects(queue.add({ id: "a", data: "four" }), TooLargeError);
    const raw = server.raw();
    const damaged = newQueue();
    await raw.set(damaged.keys.key("ready"), "x");
    await assert.rejects(damaged.lease({ duration: 1 }), WrongKeyTypeError);
    raw.disconnect();
  });

  test("no data in an error", async () => {
    const queue = newQueue();
    const error = await queue.add({ id: "a\0", data: "my secret" }).catch((e: unknown) => e);
    assert.ok(!inspect(error, { depth: 9, showHidden: true }).includes("secret"));
  });

  test("no room", async () => {
    const queue = newQueue();
    await queue.configure({ maxItems: 2 });
    await queue.add({ id: "a", data: "" });
    await assert.rejects(queue.add(["a", "b", "c"].map((id) => ({ id, data: "" }))), (error) => {
      assert.ok(error instanceof QueueFullError);
      assert.equal(error.code, "LEASEQ_FULL");
      assert.deepEqual(error.answers.map(Math.sign), [0, 1, -1]);
      return true;
    });
  });

  test("memory", async () => {
    const raw = server.raw();
    await raw.config("SET", "maxmemory", "1");
    try {
      await assert.rejects(newQueue().add({ id: "a", data: "" }), OutOfMemoryError);
      await newQueue().configure({ maxItems: 1 });
    } finally {
      await raw.config("SET", "maxmemory", "0");
      raw.disconnect();
    }
  });

  test("scripts that the server has dropped", async () => {
    const queue = newQueue();
    const raw = server.raw();
    await raw.script("FLUSH");
    assert.ok((await queue.add({ id: "a", data: "" })) > 0);
    raw.disconnect();
  });
});

describe("release and dead letters", () => {
  test("every way back", async () => {
    const queue = newQueue();
    await queue.add({ id: "a", data: "" });
    const lease = async () => {
      const [one] = await queue.leaseItems({ duration: 5000 });
      assert.ok(one);
      return one;
    };
    assert.equal(await (await lease()).release(), "ready");
    const second = await lease();
    assert.equal(second.attempt, 2);
    assert.equal(await second.release({ uncounted: true }), "ready");
    assert.equal(await second.release(), "lost");
    const third = await lease();
    assert.equal(third.attempt, 2);
    assert.equal(await third.extend(1), (await queue.inspect("a")).time);
    assert.equal(await third.release({ dead: true, error: "no such customer" }), "dead");
    assert.equal((await queue.inspect("a")).error.toString(), "no such customer");
    assert.deepEqual((await queue.listItems("dead")).items[0]?.id, Buffer.from("a"));
    assert.deepEqual(await queue.purge(["a"], { olderThan: 60_000 }), [false]);
    assert.deepEqual(await queue.revive(["a", "b"]), [true, false]);
    assert.equal(await (await lease()).release({ delay: 60_000 }), "delayed");
    assert.deepEqual(await queue.promote(["a", "b"]), [true, false]);
    assert.equal(await (await lease()).release({ delay: 60_000 }), "delayed");
    assert.deepEqual(await queue.remove(["a", "b"]), ["delayed", "absent"]);
  });
});

describe("outcomes and hand-off", () => {
  test("an item leased with `keep` keeps its result", async () => {
    const queue = newQueue();
    await queue.add([
      { id: "{h}", data: "", keep: 60_000 },
      { id: "i", data: "", keep: 60_000 },
      { id: "j", data: "", keep: 60_000 },
    ]);
    const [h, i, j] = await queue.leaseItems({ duration: 5000, count: 3 });
    assert.ok(h && i && j);
    assert.equal(h.keep, 60_000);
    assert.equal((await queue.outcome("{h}")).state, "leased");
    assert.equal(await h.complete({ result: "done" }), true);
    assert.equal(await h.complete({ result: "done" }), true, "its own success is answered again");
    assert.deepEqual(await queue.complete([i, { id: "zz", token: 5 }]), [true, false]);
    assert.equal(await j.release({ dead: true, error: "why" }), "dead");
    const outcomes = await queue.outcome(["{h}", "i", "j", "zz"]);
    assert.deepEqual(
      outcomes.map(({ state, content }) => [state, content.toString()]),
      [
        ["result", "done"],
        ["result", ""],
        ["failure", "why"],
        ["absent", ""],
      ],
    );
    assert.equal((await queue.listItems("kept")).total, 3);
  });

  test("outcomes of more than 4 MiB", async () => {
    const queue = newQueue();
    const ids = ["a", "b", "c", "d", "e", "f"];
    await queue.add(ids.map((id) => ({ id, data: "" })));
    const leases = await queue.leaseItems({ duration: 5000, count: 9 });
    const result = Buffer.alloc(1_000_000);
    await queue.complete(leases.map(({ id, token }) => ({ id, token, keep: 60_000, result })));
    const outcomes = await queue.outcome(ids);
    assert.equal(outcomes.length, 6);
    assert.ok(outcomes.every((outcome) => outcome.content.length === 1_000_000));
  });

  test("follow-ups", async () => {
    const first = newQueue("flow");
    const second = newQueue("flow");
    await first.add([
      { id: "a", data: "" },
      { id: "b", data: "" },
    ]);
    const [a, b] = await first.leaseItems({ duration: 5000, count: 2 });
    assert.ok(a && b);
    const next = { id: "a/next", data: "more", priority: 2 };
    const answer = await a.handOff([
      { queue: second, ...next },
      { queue: first, ...next },
      { queue: second, ...next },
    ]);
    assert.equal(answer.completed, true);
    assert.deepEqual(answer.followUps.map(Math.sign), [1, 1, 0]);
    assert.deepEqual(await a.handOff([{ queue: second, ...next }]), { completed: false, followUps: [-1] });
    await assert.rejects(b.handOff([{ queue: newQueue("other"), ...next }]), CrossGroupError);
    const elsewhere = new Client({ path: server.path }).queue("second", { group: "flow" });
    await assert.rejects(b.handOff([{ queue: elsewhere, ...next }]), BadArgumentError);
    await assert.rejects(client.leaseAny([first, elsewhere], { duration: 5000 }), BadArgumentError);
    assert.equal((await second.lease({ duration: 5000 }))?.data.toString(), "more");
  });

  test("an option that is undefined is none: what dies by a release keeps its outcome for the time of its add", async () => {
    const queue = newQueue();
    await queue.add({ id: "a", data: "", keep: 60_000, maxAttempts: 1 });
    const item = await queue.lease({ duration: 5000 });
    assert.equal(await item?.release({ keep: undefined, error: "no" }), "dead");
    assert.equal((await queue.stats()).get("kept"), 1);
  });

  test("an option that is undefined is none: what is completed keeps its outcome", async () => {
    const queue = newQueue();
    await queue.add({ id: "a", data: "", keep: 60_000 });
    const item = await queue.lease({ duration: 5000 });
    assert.equal(await item?.complete({ keep: undefined, result: undefined }), true);
    assert.equal((await queue.outcome("a")).state, "result");
  });

  test("follow-ups to two objects of one queue, of an item that keeps its outcome", async () => {
    const first = newQueue("flow");
    await first.add({ id: "a", data: "", keep: 60_000 });
    const lease = await first.lease({ duration: 5000 });
    const [one, two] = [1, 2].map(() => client.queue("shared", { group: "flow" }));
    assert.ok(lease && one && two);
    const { followUps } = await lease.handOff([
      { queue: one, id: "x", data: "" },
      { queue: two, id: "y", data: "" },
    ]);
    assert.deepEqual(followUps.map(Math.sign), [1, 1]);
    assert.equal((await first.outcome("a")).state, "result");
  });

  test("more hand-offs than one call takes", async () => {
    const first = newQueue("flow");
    const targets = Array.from({ length: 20 }, () => newQueue("flow"));
    await first.add(targets.map((_, index) => ({ id: `i${index}`, data: "" })));
    const leases = await first.leaseItems({ duration: 5000, count: 20 });
    const answers = await first.completeWith(
      leases.map(({ id, token }, index) => ({
        id,
        token,
        followUps: Array.from({ length: 20 }, (_, n) => {
          const queue = targets[index];
          assert.ok(queue);
          return { queue, id: `n${n}`, data: "" };
        }),
      })),
    );
    assert.ok(
      answers.every(({ completed, followUps }) => completed && followUps.every((created) => created > 0)),
    );
  });

  test("complete and lease", async () => {
    const queue = newQueue();
    await queue.add([
      { id: "a", data: "" },
      { id: "b", data: "", keep: 1000, headers: { x: "y" } },
    ]);
    const a = await queue.lease({ duration: 5000 });
    assert.ok(a);
    const one = await queue.completeAndLease([a, { id: "zz", token: 1 }], { duration: 5000 });
    assert.deepEqual(one.completed, [true, false]);
    const [b] = one.items;
    assert.equal(b?.headers.get("x")?.toString(), "y");
    assert.equal(b.keep, 1000);
    const two = await queue.completeAndLease([b], { duration: 5000 });
    assert.deepEqual([two.completed, two.items], [[true], []]);
    assert.equal((await queue.outcome("b")).state, "result");
  });

  test("complete and lease: as many as were asked for, by one call or by two, behind no completion too", async () => {
    const queue = newQueue();
    const lease = async (entries: Parameters<typeof queue.completeAndLease>[0]) => {
      const { completed, items } = await queue.completeAndLease(entries, { duration: 60_000, count: 2 });
      assert.deepEqual(completed, Array(entries.length).fill(true));
      assert.ok(items.every((item) => item.queue === queue && item.duration === 60_000 && item.held));
      return items;
    };
    const ids = Array.from({ length: 300 }, (_, index) => `i${index}`);
    await queue.add(ids.map((id) => ({ id, data: "" })));
    const first = await lease([]);
    assert.equal(first.length, 2);
    const second = await lease(first);
    assert.equal(second.length, 2);
    assert.ok(first.every((item) => !item.held));
    const third = await lease(
      second.map(({ id, token }, index) => ({ id, token, ...(index === 1 && { keep: 60_000 }) })),
    );
    assert.equal((await queue.outcome(second[1]?.id as Buffer)).state, "result");
    assert.equal(third.length, 2);
    const many = [...third, ...(await queue.leaseItems({ duration: 60_000, count: 256 }))];
    assert.equal(many.length, 258);
    assert.equal((await lease(many)).length, 2);
    assert.ok(many.every((item) => !item.held));
    const [one] = (await queue.completeAndLease([], { duration: 60_000 })).items;
    assert.deepEqual(
      (await queue.completeAndLease([one as LeasedItem], { duration: 60_000 })).items.length,
      1,
    );
  });

  test("complete and lease: an error of the lease has the completions, and leaves none in doubt", async () => {
    const proxy = await new FaultProxy(server.path).open();
    const slow = new Client({ path: proxy.path }, { replyTimeout: 300 });
    const queue = slow.queue("fails");
    await queue.add(["a", "b"].map((id) => ({ id, data: "", keep: 60_000 })));
    const [a, b] = await queue.leaseItems({ duration: 60_000, count: 2 });
    assert.ok(a && b);
    await assert.rejects(queue.completeAndLease([a], { duration: 60_000, count: 0 }), (error) => {
      assert.ok(error instanceof PartialError && error.cause instanceof BadArgumentError);
      assert.deepEqual([error.answers, error.inDoubt, error.definite], [[true], 0, true]);
      return true;
    });
    assert.equal(a.held, false);
    proxy.silentFrom = SCRIPTS.lease.sha1;
    await assert.rejects(queue.completeAndLease([b], { duration: 60_000 }), (error) => {
      assert.ok(error instanceof PartialError && error.cause instanceof ReplyLostError);
      assert.deepEqual([error.answers, error.inDoubt, error.definite], [[true], 0, false]);
      return true;
    });
    proxy.close();
    await slow.close();
  });

  test("completions of a long list: only a call with an outcome in it takes the costly script (LQ-CLIENT-23)", async () => {
    const proxy = await new FaultProxy(server.path).open();
    const watched = new Client({ path: proxy.path });
    const queue = watched.queue("split");
    const ids = Array.from({ length: 600 }, (_, index) => `i${index}`);
    await queue.add(ids.map((id) => ({ id, data: "", ...(id === "i300" && { keep: 60_000 }) })));
    const items: LeasedItem[] = [];
    while (items.length < 600) items.push(...(await queue.leaseItems({ duration: 60_000, count: 256 })));
    const scripts = () =>
      [...proxy.sent.matchAll(/[0-9a-f]{40}/g)].map(
        ([sha1]) => Object.entries(SCRIPTS).find(([, script]) => script.sha1 === sha1)?.[0],
      );
    proxy.sent = "";
    assert.deepEqual([...new Set(await queue.complete(items))], [true]);
    assert.deepEqual(scripts(), ["complete", "complete_with", "complete"]);
    assert.equal((await queue.outcome("i300")).state, "result");
    await watched.close();
    proxy.close();
  });

  test("a completion, a release and a hand-off of one item return one result, of a list a list", async () => {
    const queue = newQueue();
    await queue.add(["a", "b", "c", "d"].map((id) => ({ id, data: "", keep: 60_000 })));
    const [a, b, c, d] = await queue.leaseItems({ duration: 60_000, count: 4 });
    assert.ok(a && b && c && d);
    assert.equal(await queue.complete(a), true);
    assert.deepEqual(await queue.completeWith(b), { completed: true, followUps: [] });
    assert.deepEqual(await queue.completeWith([c]), [{ completed: true, followUps: [] }]);
    assert.ok((await queue.extend(d)) > d.deadline);
    assert.deepEqual(await queue.release([d]), ["ready"]);
    assert.deepEqual(
      (await queue.outcome(["a", "b", "c"])).map(({ state }) => state),
      ["result", "result", "result"],
    );
    assert.equal((await queue.inspect(["d"]))[0]?.state, (await queue.inspect("d")).state);
    for (const empty of [queue.complete([]), queue.completeWith([]), queue.extend([]), queue.release([])]) {
      assert.deepEqual(await empty, []);
    }
    for (const empty of [queue.inspect([]), queue.outcome([]), queue.remove([]), queue.revive([])]) {
      assert.deepEqual(await empty, []);
    }
  });

  test("light cleans in steps: as many of each as the limit says, and all that died have their outcome", async () => {
    const queue = newQueue();
    const ids = Array.from({ length: 300 }, (_, index) => `i${index}`);
    await queue.add(ids.map((id) => ({ id, data: "", keep: 60_000, maxAttempts: 1 })));
    const items: LeasedItem[] = [];
    for (const count of [256, 44]) items.push(...(await queue.leaseItems({ duration: 60_000, count })));
    await queue.extend(items.map(({ id, token }) => ({ id, token, duration: 1 })));
    await until(async () => (await queue.stats()).get("overdue") === 300);
    const step = await queue.lightCleanStep({ limit: 2 });
    assert.deepEqual([step.died, step.wait, step.deadWithOutcome.length], [2, 0, 2]);
    const whole = await queue.lightClean();
    assert.deepEqual([whole.died, whole.deadWithOutcome.length], [298, 298]);
    assert.notEqual(whole.wait, 0);
    const raw = server.raw();
    await until(async () => (await raw.keys(`${queue.keys.key("result:")}*`)).length === 300);
    raw.disconnect();
  });

  test("what dies where no handler ran is logged, a line for each reason", async () => {
    const lines: string[] = [];
    const log = (line: string) => lines.push(line);
    const logging = new Client({ path: server.path }, { logger: { info: log, warn: log, error: log } });
    const queue = logging.queue("deaths");
    const short = { data: "", expiresIn: 1, expiresTo: "dead", keep: 60_000 } as const;
    await queue.add([
      { id: "a", ...short },
      { id: "b", ...short },
      { id: "c", data: "", maxAttempts: 1, keep: 60_000 },
    ]);
    await sleep(5);
    // a lease of c finds that the others have expired, and a clean that the lease of c is over
    assert.ok(await queue.lease({ duration: 1, timeout: 60_000 }));
    await until(() => lines.length > 0);
    await until(async () => (await queue.lightClean()).died > 0);
    await until(() => lines.at(-1)?.includes("used up") === true);
    const queueIs = 'leaseq: queue "deaths": ';
    assert.deepEqual(lines, [
      `${queueIs}item "a" is a dead letter: expired`,
      `${queueIs}item "b" is a dead letter: expired`,
      `${queueIs}item "c" is a dead letter: its attempts are used up`,
    ]);
    await logging.close();
  });

  test("a light clean that finds a dead item publishes its outcome", async () => {
    const queue = newQueue();
    await queue.add({ id: "a", data: "", keep: 60_000, maxAttempts: 1 });
    await queue.lease({ duration: 1 });
    await sleep(5);
    const cleaning = await queue.lightClean();
    assert.equal(cleaning.died, 1);
    const raw = server.raw();
    await until(async () => (await raw.exists(`${queue.keys.key("result:")}a`)) === 1);
    raw.disconnect();
  });
});

describe("inspecting and cleaning", () => {
  test("stats, list, deep clean, pause", async () => {
    const queue = newQueue();
    await queue.add(Array.from({ length: 5 }, (_, index) => ({ id: `i${index}`, data: "ab" })));
    const stats = await queue.stats();
    assert.equal(stats.get("ready"), 5);
    assert.equal(stats.get("paused"), 0);
    const page = await queue.listItems("ready", { offset: 1, limit: 2, order: "backward" });
    assert.equal(page.total, 5);
    assert.deepEqual(
      page.items.map((item) => item.id.toString()),
      ["i3", "i2"],
    );
    assert.ok([...(await queue.deepClean({ limit: 2 })).values()].every((found) => found === 0));
    const raw = server.raw();
    await raw.zrem(queue.keys.key("ready"), "i0");
    assert.equal((await queue.deepClean({ dryRun: true })).get("unplaced"), 1);
    assert.equal((await queue.deepClean()).get("unplaced"), 1);
    // more than one page: what is damaged behind the first stays in a dry run, and is repaired in the end
    const data = "x".repeat(100);
    await queue.add(Array.from({ length: 300 }, (_, index) => ({ id: `more${index}`, data })));
    const damaged = Array.from({ length: 100 }, (_, index) => `more${3 * index}`);
    await raw.zrem(queue.keys.key("ready"), ...damaged);
    for (const dryRun of [true, true, undefined]) {
      assert.equal((await queue.deepClean({ limit: 10, dryRun })).get("unplaced"), 100);
    }
    assert.equal((await queue.deepClean({ limit: undefined })).get("unplaced") ?? 0, 0);
    let pages = 0;
    for (let cursor = ""; cursor !== "0"; pages += 1) {
      cursor = (await queue.deepCleanPage(cursor || "0", { limit: 10 })).cursor;
    }
    assert.ok(pages > 10, `${pages} pages`);
    await queue.remove(Array.from({ length: 300 }, (_, index) => `more${index}`));
    raw.disconnect();
    assert.deepEqual((await queue.listItems("ready", { offset: undefined, limit: 2 })).items.length, 2);
    await queue.configure({ paused: true });
    assert.equal(await queue.lease({ duration: 1000 }), undefined);
    await queue.configure({ paused: false });
    assert.ok(await queue.lease({ duration: 1000 }));
    assert.equal(typeof (await queue.settle()), "boolean");
  });
});
