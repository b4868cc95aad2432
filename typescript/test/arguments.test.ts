// What is refused before anything is sent, and how durations are sent. There is no server at the given address.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { errorFromReply } from "../src/errors.js";
import {
  AbortError,
  BadArgumentError,
  Client,
  commands,
  type LeaseqError,
  NoScriptsError,
  PartialError,
  QueueFullError,
  ReplyLostError,
  ServerError,
  UnavailableError,
} from "../src/index.js";

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
    assert.throws(() => new Client([]), BadArgumentError);
    // a timer of 2^31 ms fires at once
    for (const replyTimeout of [0, -1, 2 ** 31, Number.POSITIVE_INFINITY, "1" as never, null as never]) {
      assert.throws(() => new Client(NOWHERE, { replyTimeout }), BadArgumentError, `${replyTimeout}`);
    }
    for (const replyTimeout of [undefined, 0.5, 2 ** 31 - 1]) new Client(NOWHERE, { replyTimeout });
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

describe("what is of another type", () => {
  const wrong: Record<string, (value: never) => unknown> = {
    data: (data) => queue.add({ id: "a", data }),
    "an id": (id) => queue.add({ id, data: "" }),
    "an id that is looked for": (id) => queue.inspect([id]),
    "the id of an outcome": (id) => queue.waitForOutcome(id),
    contentType: (contentType) => queue.add({ ...item, contentType: contentType ?? 1 }),
    "a header": (value) => queue.add({ ...item, headers: { name: value } }),
    "a result": (result) => queue.complete({ ...held, result: result ?? 1 }),
    "an error": (error) => queue.release({ ...held, error: error ?? 1 }),
  };
  for (const [what, call] of Object.entries(wrong)) {
    test(`${what} is refused before anything is sent`, async () => {
      for (const value of [5, null, undefined, true, {}, ["a"], new ArrayBuffer(1), new Date()]) {
        await assert.rejects(async () => await call(value as never), BadArgumentError, `${value}`);
      }
    });
  }

  test("a number as text is refused, and no number is rounded to another", async () => {
    for (const duration of ["1000", null, {}, 1n] as never[]) {
      await assert.rejects(queue.lease({ duration }), BadArgumentError);
      await assert.rejects(queue.extend({ ...held, duration }), BadArgumentError);
    }
    for (const timeout of ["1000", {}] as never[]) {
      await assert.rejects(queue.lease({ duration: 1000, timeout }), BadArgumentError);
      assert.throws(() => queue.items({ duration: 1000, timeout }), BadArgumentError);
    }
    for (const token of ["1", null, 1.5] as never[]) {
      await assert.rejects(async () => queue.complete({ id: "a", token }), BadArgumentError);
    }
  });

  test("no queues, no servers, and names that are none", async () => {
    await assert.rejects(client.leaseAny([], { duration: 1000 }), BadArgumentError);
    for (const name of ["", "a b", "é", "a:b", "a{b}", "a".repeat(101)]) {
      assert.throws(() => client.queue(name), BadArgumentError, name);
      assert.throws(() => client.queue("q", { group: name }), BadArgumentError, name);
    }
    const { group, name, keys } = client.queue("orders", { group: "shop" });
    assert.deepEqual([group, name, keys.key("items")], ["shop", "orders", "leaseq:{shop}:orders:items"]);
    assert.equal(client.queue("a".repeat(100)).group, "a".repeat(100));
  });
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

describe("an error", () => {
  const refused = new BadArgumentError("refused");
  const lost = new ReplyLostError("lost");

  test("has the name of its class", () => {
    const errors = [
      refused,
      lost,
      new UnavailableError("away"),
      new NoScriptsError(),
      new ServerError("ERR x"),
    ];
    assert.deepEqual(
      errors.map(({ name }) => name),
      ["BadArgumentError", "ReplyLostError", "UnavailableError", "NoScriptsError", "ServerError"],
    );
    assert.ok(errors.every((error) => error instanceof Error && error.stack?.startsWith(error.name)));
    assert.equal(errorFromReply("LEASEQ_CLOCK the year is 1970").name, "ClockError");
  });

  test("of a part has code and definite of its cause; what was refused leaves nothing in doubt", () => {
    for (const [cause, inDoubt] of [
      [refused, 0],
      [lost, 5],
    ] as const) {
      const error = new PartialError([true], 5, cause);
      assert.deepEqual(
        [error.code, error.definite, error.inDoubt, error.answers, error.cause],
        [cause.code, cause.definite, inDoubt, [true], cause],
      );
      assert.equal(error.name, "PartialError");
    }
  });

  test("of a full queue counts those without room", () => {
    const error = new QueueFullError([5, 0, -1, -1]);
    assert.match(error.message, /no room for 2 of 4/);
    assert.equal("cause" in error, false);
    assert.equal(new QueueFullError([-1], new AbortError("why")).cause instanceof AbortError, true);
  });
});

test("too many clients: nothing has run", () => {
  for (const more of ["", " + cluster connections"]) {
    const error = errorFromReply(`ERR max number of clients${more} reached`);
    assert.ok(error instanceof ServerError && error.definite);
  }
  assert.equal(errorFromReply("ERR something new").definite, false);
});
