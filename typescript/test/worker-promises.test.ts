// What a worker promises whatever its handlers, the server and its user do (page 13).
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { after, before, beforeEach, describe, test } from "node:test";
import type { Redis } from "ioredis";
import { BadArgumentError, Client, type Hooks, type Logger } from "../src/index.js";
import { FaultProxy, Server, until } from "./server.js";

let server: Server;
let raw: Redis;
let client: Client;
/** What workers reported: the error's text, and the item's id. */
let reported: [string, string | undefined][];
const report = (error: unknown, id?: string) =>
  void reported.push([error instanceof Error ? error.message : typeof error, id]);
const hooks: Hooks = {
  ended: (item, _ms, error) => error !== undefined && report(error, item.id.toString()),
  serverAway: (error) => report(error),
};
/** Reports items that are held until their lease is over, which no hook does. */
const logger: Logger = {
  info: () => {},
  warn: () => {},
  error: (text, error) => text.includes("held") && report(error, /"(.*?)"/.exec(text)?.[1]),
};

before(async () => {
  server = await Server.start();
  raw = server.raw();
});
beforeEach(async () => {
  await client?.close();
  await raw.flushall();
  client = new Client({ path: server.path }, { logger });
  reported = [];
});
after(async () => {
  await client.close();
  raw.disconnect();
  await server.end();
});

/** Writes are refused while `work` runs (NOREPLICAS). */
async function whileRefusing(work: () => Promise<unknown>): Promise<void> {
  await raw.config("SET", "min-replicas-to-write", "1");
  try {
    await work();
  } finally {
    await raw.config("SET", "min-replicas-to-write", "0");
  }
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/** Two steps of a test: the handler is inside, and it may go on. */
function gate(): { reach(): void; reached: Promise<void>; open(): void; opened: Promise<void> } {
  const [inside, outside] = [deferred(), deferred()];
  return { reach: inside.resolve, reached: inside.promise, open: outside.resolve, opened: outside.promise };
}

describe("a handler that ends", { concurrency: false }, () => {
  const ways: Record<string, () => unknown> = {
    "by an Error": () => {
      throw new Error("no");
    },
    "by what has no text": () => {
      throw Object.create(null);
    },
    "by an empty text": () => Promise.reject(""),
    "by a separate abort": () => Promise.reject(AbortSignal.abort().reason),
    "by a text with half a surrogate pair": () => Promise.reject(new Error("\ud83d")),
    "with a generator that was never run": () => (async function* () {})(),
    "with promises that were never awaited": () => [Promise.resolve()],
    "with a promise inside an object": () => ({ done: Promise.resolve() }),
    "with promises in a map": () => new Map([[1, Promise.resolve()]]),
    "with promises in lists of a list": () => [[Promise.resolve()]],
  };
  for (const [name, end] of Object.entries(ways)) {
    test(`${name} has failed, and the worker goes on (LQ-WORK-1, 2, 3)`, async () => {
      const queue = client.queue("q");
      await queue.add(["a", "b"].map((id) => ({ id, data: "" })));
      const worker = client.worker(
        queue,
        (item) => {
          if (item.id.toString() === "a") return end();
          worker.stop();
        },
        { backoff: 3_600_000, hooks },
      );
      assert.equal(await worker.run(), 1);
      const { state, attempt, error } = await queue.inspect("a");
      assert.deepEqual([state, attempt], ["delayed", 1]);
      assert.notEqual(error.toString(), "");
      assert.deepEqual(
        reported.map(([, id]) => id),
        ["a"],
      );
    });
  }

  test("leaves nothing of its async context to the next (LQ-WORK-4)", async () => {
    const queue = client.queue("q");
    await queue.add(["a", "b", "c"].map((id) => ({ id, data: "" })));
    const context = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const worker = client.worker(
      queue,
      (item) => {
        seen.push(context.getStore());
        context.enterWith(item.id.toString());
        if (seen.length === 3) worker.stop();
      },
      { concurrency: 2 },
    );
    await worker.run();
    assert.deepEqual(seen, [undefined, undefined, undefined]);
  });

  test("with a hook that rejects does not end the process", async () => {
    const queue = client.queue("q");
    await queue.add({ id: "a", data: "" });
    const worker = client.worker(
      queue,
      () => {
        worker.stop();
        throw new Error("no");
      },
      { hooks: { ended: () => Promise.reject(new Error("of the listener")) } },
    );
    assert.equal(await worker.run(), 0);
  });
});

describe("finished work", { concurrency: false }, () => {
  test("is completed again while the lease is held (LQ-WORK-6)", async () => {
    const queue = client.queue("q");
    await queue.add({ id: "a", data: "" });
    const { reach, reached, open, opened } = gate();
    const worker = client.worker(
      queue,
      async () => {
        reach();
        await opened;
      },
      { hooks },
    );
    const ran = worker.run();
    await reached;
    await whileRefusing(async () => {
      open();
      await until(() => reported.length > 0);
    });
    await until(async () => (await queue.stats()).get("items") === 0);
    worker.stop();
    assert.equal(await ran, 1);
    assert.deepEqual(
      reported.map(([, id]) => id),
      [undefined],
    );
  });

  test("is not held when its lease is over: no heartbeat outlives a handler (LQ-WORK-5, 6)", async () => {
    const queue = client.queue("q");
    await queue.add({ id: "a", data: "" });
    const { reach, reached, open, opened } = gate();
    const attempts: number[] = [];
    const worker = client.worker(
      queue,
      async ({ attempt }) => {
        attempts.push(attempt);
        if (attempt > 1) return worker.stop();
        reach();
        await opened;
      },
      { duration: 400, hooks },
    );
    const ran = worker.run();
    await reached;
    await whileRefusing(async () => {
      open();
      await until(async () => (await queue.stats()).get("overdue") === 1);
      await until(() => reported.some(([, id]) => id === "a"));
    });
    assert.equal(await ran, 1);
    assert.deepEqual(attempts, [1, 2]);
  });

  test("that failed is not held either, whatever the release is answered (LQ-WORK-5)", async () => {
    assert.throws(() => client.worker(client.queue("q"), () => {}, { backoff: 1e12 }), BadArgumentError);
    assert.throws(() => client.worker(client.queue("q"), () => {}, { backoff: -1 }), BadArgumentError);
    const queue = client.queue("q");
    await queue.add({ id: "a", data: "" });
    const worker = client.worker(
      queue,
      async () => {
        // the record is damaged: it can be neither completed nor released
        await raw.hset("leaseq:{q}:q:meta", "a", "damaged");
        worker.stop();
        throw new Error("no");
      },
      { duration: 400, hooks },
    );
    assert.equal(await worker.run(), 0);
    await until(async () => (await queue.stats()).get("overdue") === 1);
  });
});

describe("an outage", { concurrency: false }, () => {
  const outages: Record<string, [() => Promise<unknown>, () => Promise<unknown>]> = {
    NOREPLICAS: [
      () => raw.config("SET", "min-replicas-to-write", "1"),
      () => raw.config("SET", "min-replicas-to-write", "0"),
    ],
    READONLY: [() => raw.replicaof("127.0.0.1", 1), () => raw.replicaof("NO", "ONE")],
    MASTERDOWN: [
      async () => {
        await raw.config("SET", "replica-serve-stale-data", "no");
        await raw.replicaof("127.0.0.1", 1);
      },
      () => raw.replicaof("NO", "ONE"),
    ],
    "max number of clients": [
      async () => {
        await raw.config("SET", "maxclients", "1");
        await raw.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      },
      () => raw.config("SET", "maxclients", "10000"),
    ],
  };
  for (const [name, [begin, end]] of Object.entries(outages)) {
    test(`${name} is waited for, in growing pauses, and takes no attempt (LQ-WORK-7, 8)`, async () => {
      const proxy = await new FaultProxy(server.path).open();
      const itsClient = new Client({ path: proxy.path }, { logger });
      const queue = itsClient.queue("q");
      const attempts: number[] = [];
      const worker = itsClient.worker(
        queue,
        ({ attempt }) => {
          attempts.push(attempt);
          worker.stop();
        },
        { announce: false, hooks },
      );
      await begin();
      const ran = worker.run();
      try {
        await until(() => reported.length > 0);
        const startedAt = Date.now();
        await until(() => Date.now() - startedAt > 700);
      } finally {
        await end();
      }
      const calls = proxy.sent.split("EVALSHA").length - 1;
      assert.ok(calls <= 9, `${calls} calls`);
      await client.queue("q").add({ id: "a", data: "" });
      assert.equal(await ran, 1);
      assert.deepEqual(attempts, [1]);
      assert.equal(reported.length, 1);
      await itsClient.close();
      proxy.close();
    });
  }
});

describe("a queue with a damaged record", { concurrency: false }, () => {
  for (const [what, damage] of Object.entries({
    "another version": (id: string) => raw.hset("leaseq:{q}:q:meta", id, "damaged"),
    "a key of another type": () => raw.set("leaseq:{q}:q:leased", "mine"),
  })) {
    test(`does not end the worker: ${what}`, async () => {
      const queue = client.queue("q");
      await queue.add({ id: "a", data: "", headers: { name: "value" } });
      await damage("a");
      const worker = client.worker(queue, () => worker.stop(), { announce: false, hooks });
      const ran = worker.run();
      await until(() => reported.length > 0);
      await raw.del("leaseq:{q}:q:meta", "leaseq:{q}:q:leased");
      assert.equal(await ran, 1);
      assert.equal(reported.length, 1);
    });
  }
});

describe("a server that refuses the first calls (LQ-WORK-14)", { concurrency: false }, () => {
  const users: Record<string, () => ConstructorParameters<typeof Client>[0]> = {
    "because of the password": () => ({ path: server.path, username: "u", password: "wrong" }),
    "because of a right to lease": () => ({ path: server.path, username: "u", password: "pw" }),
    "because of the database": () => ({ path: server.path, db: 99 }),
  };
  for (const [what, given] of Object.entries(users)) {
    test(`${what} ends the worker with that error`, async () => {
      await raw.call("ACL", "SETUSER", "u", "reset", "on", ">pw", "~*", "&*", "+@all", "-eval", "-evalsha");
      const itsClient = new Client(given(), { logger });
      const worker = itsClient.worker(itsClient.queue("q"), () => {}, { announce: false, hooks });
      await assert.rejects(worker.run(), /NOPERM|WRONGPASS|out of range/);
      await itsClient.close();
    });
  }

  test("because it is busy does not end the worker (LQ-WORK-7)", async () => {
    const proxy = await new FaultProxy(server.path).open();
    proxy.refusal = { command: "SELECT", reply: "BUSY Redis is busy running a script." };
    const itsClient = new Client({ path: proxy.path, db: 3 }, { logger });
    const queue = itsClient.queue("q");
    await assert.rejects(queue.stats(), { code: "CONNECTION", definite: true, message: /BUSY/ });
    const worker = itsClient.worker(queue, () => worker.stop(), { announce: false, hooks });
    const ran = worker.run();
    await until(() => reported.length > 0);
    proxy.refusal = undefined;
    const direct = new Client({ path: server.path, db: 3 });
    await direct.queue("q").add({ id: "a", data: "" });
    assert.equal(await ran, 1);
    await direct.close();
    await itsClient.close();
    proxy.close();
  });

  test("because it wants a password and got none ends the worker with that error", async () => {
    await raw.config("SET", "requirepass", "secret");
    const itsClient = new Client({ path: server.path }, { logger });
    try {
      await assert.rejects(itsClient.queue("q").add({ id: "a", data: "" }), {
        code: "NOAUTH",
        definite: true,
      });
      const worker = itsClient.worker(itsClient.queue("q"), () => {}, { announce: false, hooks });
      await assert.rejects(worker.run(), /NOAUTH/);
    } finally {
      await raw.config("SET", "requirepass", "");
      await itsClient.close();
    }
  });

  test("and not the first, does not end it", async () => {
    await raw.call("ACL", "SETUSER", "u", "reset", "on", ">pw", "~*", "&*", "+@all");
    const itsClient = new Client({ path: server.path, username: "u", password: "pw" }, { logger });
    const queue = client.queue("q");
    await queue.add({ id: "a", data: "" });
    const ids: string[] = [];
    const worker = itsClient.worker(
      itsClient.queue("q"),
      async (item) => {
        ids.push(item.id.toString());
        if (ids.length === 2) worker.stop();
      },
      { announce: false, hooks },
    );
    const ran = worker.run();
    await until(async () => (await queue.stats()).get("items") === 0);
    await raw.call("ACL", "SETUSER", "u", "-evalsha", "-eval");
    await queue.add({ id: "b", data: "" });
    await until(() => reported.length > 0);
    await raw.call("ACL", "SETUSER", "u", "+evalsha", "+eval");
    assert.equal(await ran, 2);
    await itsClient.close();
  });
});

describe("a worker that was idle", { concurrency: false }, () => {
  test("goes on when its right is taken away: its first call was answered (LQ-WORK-14)", async () => {
    await raw.call("ACL", "SETUSER", "u", "reset", "on", ">pw", "~*", "&*", "+@all");
    const proxy = await new FaultProxy(server.path).open();
    const itsClient = new Client({ path: proxy.path, username: "u", password: "pw" }, { logger });
    const queue = client.queue("q");
    const worker = itsClient.worker(itsClient.queue("q"), () => worker.stop(), { announce: false, hooks });
    const ran = worker.run();
    await until(() => proxy.sent.split("BLPOP").length > 2); // the first wait is short
    await raw.call("ACL", "SETUSER", "u", "-evalsha", "-eval");
    await queue.add({ id: "a", data: "" });
    await until(() => reported.length > 0);
    await raw.call("ACL", "SETUSER", "u", "+evalsha", "+eval");
    assert.equal(await ran, 1);
    await itsClient.close();
    proxy.close();
  });
});

describe("a worker that stops", { concurrency: false }, () => {
  test("gives back what was just leased from several groups, and starts no handler (LQ-WORK-9)", async () => {
    const queues = ["first", "second"].map((name) => client.queue(name));
    await queues[1]?.add({ id: "a", data: "" });
    const worker = client.worker(queues, () => assert.fail("a handler was started"), { concurrency: 2 });
    const ran = worker.run();
    worker.stop();
    assert.equal(await ran, 0);
    const { state, attempt } = (await queues[1]?.inspect("a")) ?? {};
    assert.deepEqual([state, attempt], ["ready", 0]);
  });

  test("by the handler of one item starts none for those that were leased with it (LQ-WORK-9)", async () => {
    const queue = client.queue("q");
    await queue.add(["a", "b", "c"].map((id) => ({ id, data: "" })));
    const seen: string[] = [];
    const worker = client.worker(
      queue,
      (item) => {
        seen.push(item.id.toString());
        worker.stop();
      },
      { concurrency: 3 },
    );
    assert.equal(await worker.run(), 1);
    assert.deepEqual(seen, ["a"]);
    const { state, attempt } = await queue.inspect("b");
    assert.deepEqual([state, attempt], ["ready", 0]);
  });

  test("gives back what its handlers hold at the end of the grace, and extends it no more (LQ-WORK-10)", async () => {
    const queue = client.queue("q");
    await queue.add({ id: "a", data: "" });
    const { reach, reached, open, opened } = gate();
    let lostSignal: AbortSignal | undefined;
    const worker = client.worker(
      queue,
      async (item) => {
        ({ lostSignal } = item);
        reach();
        await opened;
      },
      { grace: 100, hooks },
    );
    const ran = worker.run();
    await reached;
    worker.stop();
    assert.equal(await ran, 0);
    const { state, attempt } = await queue.inspect("a");
    assert.deepEqual([state, attempt, lostSignal?.aborted], ["ready", 0, true]);
    open();
    assert.equal((await queue.stats()).get("items"), 1);
    assert.throws(() => client.worker(queue, () => {}, { grace: Number.NaN }), BadArgumentError);
  });
});
