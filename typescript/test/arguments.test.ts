// What is refused before anything is sent, and how durations are sent. There is no server at the given address.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { errorFromReply } from "../src/errors.js";
import { BadArgumentError, Client, commands, type LeaseqError, ServerError } from "../src/index.js";

const NOWHERE = { path: "/nonexistent/leaseq" };
const client = new Client(NOWHERE);
const queue = client.queue("q");
const item = { id: "a", data: "" };
const held = { id: "a", token: 1 };

describe("the URL of the server", () => {
  for (const url of [
    "redis://:hunter2@host:99999",
    "redis://user:hunter2@",
    "redis://user:hunter2#@host",
    "redis://user:hunter2/@host",
    "redis://user:%zzhunter2@host",
    "redis//:hunter2@host",
    "http://user:hunter2@host",
    "redis+sentinel://user:hunter2@host",
    "//user:hunter2@host",
    "hunter2",
    "",
  ]) {
    test(`${url || "nothing"} is refused without being shown (LQ-SAFE-3)`, () => {
      assert.throws(
        () => new Client(url),
        (error: LeaseqError) => {
          assert.ok(error instanceof BadArgumentError && error.definite);
          assert.ok(!inspect(error, { depth: 9, showHidden: true }).includes("hunter2"));
          return true;
        },
      );
    });
  }

  test("of a server that is not there is not shown", async () => {
    const client = new Client("redis://user:hunter2@127.0.0.1:1/0");
    const error = await client
      .queue("q")
      .stats()
      .catch((e: unknown) => e);
    assert.ok(!inspect(error, { depth: 9, showHidden: true }).includes("hunter2"));
    await client.close();
  });

  test("is a string, or options", () => {
    assert.throws(() => new Client(undefined as unknown as string), BadArgumentError);
    assert.throws(() => new Client(NOWHERE, { replyTimeout: Number.NaN }), BadArgumentError);
    assert.throws(() => new Client(NOWHERE, { replyTimeout: 0 }), BadArgumentError);
  });
});

describe("what is no number", () => {
  const wrong: Record<string, () => unknown> = {
    delay: () => queue.add({ ...item, delay: Number.NaN }),
    notBefore: () => queue.add({ ...item, notBefore: new Date("never") }),
    priority: () => queue.add({ ...item, priority: Number.NaN }),
    "half a priority": () => queue.add({ ...item, priority: 0.5 }),
    maxAttempts: () => queue.add({ ...item, maxAttempts: Number.NaN }),
    expiresIn: () => queue.add({ ...item, expiresIn: Number.POSITIVE_INFINITY }),
    keep: () => queue.add({ ...item, keep: Number.NaN }),
    "the timeout of an add": () => queue.add(item, { timeout: Number.NaN }),
    "the timeout of a lease": () => queue.lease({ duration: 1000, timeout: Number.NaN }),
    "the timeout of several queues": () => client.leaseAny([queue], { duration: 1000, timeout: Number.NaN }),
    "the timeout of an outcome": () => queue.waitForOutcome("a", { timeout: Number.NaN }),
    "the duration of a lease": () => queue.lease({ duration: Number.NaN }),
    "the count of a lease": () => queue.leaseItems({ duration: 1000, count: Number.NaN }),
    "the duration of an extension": () => queue.extend({ ...held, duration: Number.NaN }),
    "the delay of a release": () => queue.release({ ...held, delay: Number.NaN }),
    "the keep of a completion": () => queue.complete({ ...held, keep: Number.NaN }),
    olderThan: () => queue.purge(["a"], { olderThan: Number.NaN }),
    backoff: () => client.worker(queue, () => {}, { backoff: Number.NaN }),
    timeLimit: () => client.worker(queue, () => {}, { timeLimit: Number.NaN }),
    "maxAttempts of a worker": () => client.worker(queue, () => {}, { maxAttempts: 0.5 }),
    "the timeout of close": () => client.worker(queue, () => {}).close({ timeout: Number.NaN }),
  };
  for (const [what, call] of Object.entries(wrong)) {
    test(`${what} is refused before anything is sent`, async () => {
      await assert.rejects(async () => await call(), BadArgumentError);
    });
  }
});

describe("durations", () => {
  const delay = (value: number) => commands.add(queue.keys, [{ ...item, delay: value }]).args.slice(3);

  test("are sent as the nearest whole millisecond (LQ-CALL-12)", () => {
    assert.deepEqual(delay(1.4), ["1", "delay", "1"]);
    assert.deepEqual(delay(1.6), ["1", "delay", "2"]);
    assert.deepEqual(delay(0.4), ["1", "delay", "0"]);
    assert.deepEqual(delay(0), ["0"]);
    assert.deepEqual(commands.lease(queue.keys, 1, 29_999.6).args, ["1", "30000"]);
  });

  test("do not become 0 if 0 has a special meaning", async () => {
    await assert.rejects(queue.complete({ ...held, keep: 0.4 }), BadArgumentError);
    await assert.rejects(queue.release({ ...held, keep: 0.4 }), BadArgumentError);
    await assert.rejects(queue.add({ ...item, keep: 0.4 }), BadArgumentError);
    assert.deepEqual(commands.completeWith(queue.keys, [{ ...held, keep: 0 }]).args.slice(4, 7), [
      "1",
      "keep",
      "0",
    ]);
  });
});

test("too many clients: nothing has run", () => {
  for (const more of ["", " + cluster connections"]) {
    const error = errorFromReply(`ERR max number of clients${more} reached`);
    assert.ok(error instanceof ServerError && error.definite);
  }
  assert.equal(errorFromReply("ERR something new").definite, false);
});
