// What a caller hands over is what is sent, whatever becomes of it afterwards; and what is no option, signal or handler.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Redis } from "ioredis";
import { AbortError, BadArgumentError, Client, type Handler, type Queue } from "../src/index.js";
import { VERSION } from "../src/version.js";
import { Server, until } from "./server.js";

const LONG_MS = 60_000;
let server: Server;
let raw: Redis;
let client: Client;

before(async () => {
  server = await Server.start();
  raw = server.raw();
});
beforeEach(async () => {
  await client?.close();
  await raw.flushall();
  await raw.call("SCRIPT", "FLUSH");
  client = new Client({ path: server.path });
});
after(async () => {
  await client.close();
  raw.disconnect();
  await server.end();
});

const read = async (id: string) => (await raw.hgetBuffer("leaseq:{q}:q:items", id))?.toString();

describe("what is changed after the call is sent as it was (LQ-CLIENT-26)", { concurrency: false }, () => {
  test("bytes, while it connects and loads the script", async () => {
    const [id, data, header] = ["a", "before", "h"].map((text) => Buffer.from(text)) as [
      Buffer,
      Buffer,
      Buffer,
    ];
    const adding = client.queue("q").add({ id, data, headers: { name: header } });
    for (const bytes of [id, data, header]) bytes.fill("x");
    await adding;
    assert.equal(await read("a"), "before");
    const item = await client.queue("q").lease({ duration: LONG_MS });
    assert.equal(item?.headers.get("name")?.toString(), "h");
    const result = Buffer.from("before");
    const completing = item?.complete({ result, keep: LONG_MS });
    result.fill("x");
    await completing;
    assert.equal((await client.queue("q").outcome("a")).content.toString(), "before");
  });

  test("items of later calls, and the list itself", async () => {
    const items = Array.from({ length: 300 }, (_, number) => ({
      id: `${number}`,
      data: Buffer.from("before"),
    }));
    const last = items.at(-1);
    const adding = client.queue("q").add(items);
    last?.data.fill("x");
    items.splice(0, 300, { id: "other", data: Buffer.from("") });
    assert.equal((await adding).length, 300);
    assert.deepEqual([await read("299"), await read("other")], ["before", undefined]);
  });

  test("an item that waits for room", async () => {
    const queue = client.queue("q");
    await queue.configure({ maxItems: 1 });
    await queue.add({ id: "first", data: "" });
    const item = { id: "a", data: Buffer.from("before"), priority: 1 };
    const adding = queue.add(item, { timeout: LONG_MS });
    await until(async () => /cmd=blpop/.test(String(await raw.client("LIST"))));
    item.data.fill("x");
    item.priority = 99;
    await queue.remove(["first"]);
    await adding;
    assert.equal(await read("a"), "before");
  });

  test("entries of completions, releases and hand-offs behind the first call", async () => {
    const queue = client.queue("q");
    const ids = Array.from({ length: 300 }, (_, number) => `${number}`);
    await queue.add(ids.map((id) => ({ id, data: "" })));
    const leased = [
      ...(await queue.leaseItems({ duration: LONG_MS, count: 256 })),
      ...(await queue.leaseItems({ duration: LONG_MS, count: 256 })),
    ];
    const errors = leased.map(({ id, token }) => ({ id, token, error: Buffer.from("before") }));
    const releasing = queue.release(errors);
    for (const { error } of errors) error.fill("x");
    await releasing;
    assert.equal((await queue.inspect("299")).error.toString(), "before");
  });

  const last = 299;
  const many = () => Array.from({ length: last + 1 }, (_, number) => Buffer.from(`${number}`));
  /** What a call on 300 items does, and what shows that it was about the last as it was. */
  const calls: Record<string, (queue: Queue, ids: Buffer[]) => [Promise<unknown>, () => Promise<unknown>]> = {
    remove: (queue, ids) => [queue.remove(ids), async () => (await read("299")) === undefined],
    inspect: (queue, ids) => {
      const call = queue.inspect(ids);
      return [call, async () => (await call)[last]?.state === "ready"];
    },
    outcome: (queue, ids) => {
      const call = queue.outcome(ids);
      return [call, async () => (await call)[last]?.state === "ready"];
    },
  };
  for (const [name, call] of Object.entries(calls)) {
    test(`ids of ${name} behind the first call`, async () => {
      const queue = client.queue("q");
      const ids = many();
      await queue.add(ids.map((id) => ({ id, data: "" })));
      const [calling, shown] = call(queue, ids);
      for (const id of ids.splice(0)) id.fill("x");
      await calling;
      assert.equal(await shown(), true);
    });
  }

  test("ids of dead items behind the first call, to revive and to purge", async () => {
    const queue = client.queue("q");
    for (const call of ["revive", "purge"] as const) {
      await queue.add(many().map((id) => ({ id, data: "" })));
      for (const count of [256, 44]) {
        const items = await queue.leaseItems({ duration: LONG_MS, count });
        await queue.release(items.map(({ id, token }) => ({ id, token, dead: true })));
      }
      const ids = many();
      const calling = queue[call](ids);
      for (const id of ids.splice(0)) id.fill("x");
      assert.deepEqual([...new Set(await calling)], [true], call);
    }
  });

  test("the durations of extensions, the options of completions and the follow-ups of hand-offs behind the first call", async () => {
    const queue = client.queue("q");
    await queue.add(many().map((id) => ({ id, data: "" })));
    const items = [
      ...(await queue.leaseItems({ duration: LONG_MS, count: 256 })),
      ...(await queue.leaseItems({ duration: LONG_MS, count: 256 })),
    ];
    const extensions = items.map(({ id, token }) => ({ id, token, duration: 2 * LONG_MS }));
    const extending = queue.extend(extensions);
    for (const extension of extensions) extension.duration = 0;
    assert.ok(((await extending)[last] ?? 0) > (items[last]?.deadline ?? 0));

    const handOffs = items.map(({ id, token }, index) => ({
      id,
      token,
      keep: LONG_MS,
      result: Buffer.from("before"),
      followUps: index === last ? [{ queue, id: "next", data: Buffer.from("before") }] : [],
    }));
    const completing = queue.completeWith(handOffs);
    for (const handOff of handOffs) {
      handOff.keep = -1;
      handOff.result.fill("x");
      for (const followUp of handOff.followUps.splice(0)) followUp.data.fill("x");
    }
    assert.deepEqual((await completing)[last]?.completed, true);
    assert.equal((await queue.outcome(items[last]?.id as Buffer)).content.toString(), "before");
    assert.equal(await read("next"), "before");
  });

  test("the results of completions behind the first call", async () => {
    const queue = client.queue("q");
    await queue.add(many().map((id) => ({ id, data: "", keep: LONG_MS })));
    const items = [
      ...(await queue.leaseItems({ duration: LONG_MS, count: 256 })),
      ...(await queue.leaseItems({ duration: LONG_MS, count: 256 })),
    ];
    const completions = items.map(({ entry }) => ({ ...entry, result: Buffer.from("before") }));
    const completing = queue.complete(completions);
    for (const completion of completions) completion.result.fill("x");
    assert.deepEqual([...new Set(await completing)], [true]);
    assert.equal((await queue.outcome(items[last]?.id as Buffer)).content.toString(), "before");
  });

  test("the id, the options and the queues of a wait", async () => {
    const queue = client.queue("q");
    await queue.add({ id: "a", data: "", keep: LONG_MS });
    const [id, end] = [Buffer.from("a"), new AbortController()];
    const options = { timeout: LONG_MS, signal: end.signal, duration: LONG_MS, count: 2 };
    const queues = [client.queue("one", { group: "g" }), client.queue("two", { group: "g" })];
    const [first, second] = queues;
    const outcome = queue.waitForOutcome(id, options);
    const leasing = client.leaseAny(queues, options);
    const items = client.queue("three").items(options);
    Object.assign(options, { timeout: 0, signal: AbortSignal.abort(), duration: 1, count: 1 });
    id.fill("x");
    queues.reverse().pop();
    const next = items.next();
    await until(async () => String(await raw.client("LIST")).split(/cmd=bl(?:pop|move)/).length === 4);
    await second?.add(["b", "c"].map((of) => ({ id: of, data: "" })));
    const leased = await leasing;
    assert.deepEqual(
      leased.map((item) => [item.id.toString(), item.queue === second, item.duration]),
      [
        ["b", true, LONG_MS],
        ["c", true, LONG_MS],
      ],
    );
    assert.equal(first?.name, "one");
    await (await queue.lease({ duration: LONG_MS }))?.complete({ result: "done" });
    assert.equal((await outcome).content.toString(), "done");
    end.abort();
    assert.deepEqual(await next, { done: true, value: undefined });
  });
});

describe("an option", { concurrency: false }, () => {
  test("that is undefined is not given, and null is no signal", async () => {
    const queue = client.queue("q", { group: undefined });
    await queue.add({ id: "a", data: "", keep: LONG_MS }, { timeout: undefined, signal: undefined });
    const item = await queue.lease({ duration: LONG_MS, timeout: undefined, signal: null });
    assert.equal(await item?.complete({ keep: undefined, result: "kept", onlyCurrent: undefined }), true);
    assert.equal((await queue.outcome("a")).state, "result");
    await queue.add({ id: "b", data: "", keep: LONG_MS, maxAttempts: 1 });
    const second = await queue.leaseItems({ duration: LONG_MS, count: undefined });
    assert.equal(await second[0]?.release({ keep: undefined, error: "no" }), "dead");
    assert.equal((await queue.outcome("b")).state, "failure");
    await queue.add({ id: "c", data: "", keep: LONG_MS });
    const third = await queue.lease({ duration: LONG_MS });
    const more = { keep: undefined, result: undefined, onlyCurrent: undefined };
    assert.equal((await third?.handOff([], more))?.completed, true);
    assert.equal((await queue.outcome("c")).state, "result");
  });

  test("of a hand-off of a leased item is that of its completion", async () => {
    const queue = client.queue("q");
    await queue.add(["a", "b"].map((id) => ({ id, data: "", keep: LONG_MS })));
    const [a, b] = await queue.leaseItems({ duration: 1, count: 2 });
    assert.equal((await a?.handOff([], { result: "kept", keep: 2 * LONG_MS }))?.completed, true);
    const { content, ended } = await queue.outcome("a");
    const [kept] = (await queue.listItems("kept")).items;
    assert.deepEqual([content.toString(), (kept?.time ?? 0) - ended], ["kept", 2 * LONG_MS * 1000]);
    await until(async () => (await queue.stats()).get("overdue") === 1);
    assert.ok(await queue.lease({ duration: LONG_MS }));
    assert.equal((await b?.handOff([{ queue, id: "n", data: "" }], { onlyCurrent: true }))?.completed, false);
    assert.equal(await read("n"), undefined);
  });

  test("that is no signal is refused before anything is sent", async () => {
    const queue = client.queue("q");
    const signal = "abort" as unknown as AbortSignal;
    await assert.rejects(queue.add({ id: "a", data: "" }, { signal }), BadArgumentError);
    await assert.rejects(queue.lease({ duration: 1, signal }), BadArgumentError);
    await assert.rejects(client.leaseAny([queue], { duration: 1, signal }), BadArgumentError);
    await assert.rejects(queue.waitForOutcome("a", { signal }), BadArgumentError);
    assert.throws(() => queue.items({ duration: 1, signal }), BadArgumentError);
    assert.equal(await read("a"), undefined);
  });

  test("of headers that are neither an object nor pairs is refused, also inside a span", async () => {
    const tracing = {
      headers: () => ({ traceparent: "00" }),
      start: () => ({ run: <T>(call: () => T) => call(), end() {} }),
    };
    const traced = new Client({ path: server.path }, { tracing });
    for (const queue of [client.queue("q"), traced.queue("q")]) {
      for (const given of ["text", 5, [5]]) {
        const headers = given as unknown as [string, string][];
        await assert.rejects(
          queue.add([
            { id: "a", data: "" },
            { id: "b", data: "", headers },
          ]),
          BadArgumentError,
        );
      }
    }
    await traced.close();
    assert.equal(await read("a"), undefined);
  });

  test("of headers may be a map, or pairs that are read once", async () => {
    const tracing = {
      headers: () => ({ traceparent: "00" }),
      start: () => ({ run: <T>(call: () => T) => call(), end() {} }),
    };
    const traced = new Client({ path: server.path }, { tracing });
    function* pairs(): Generator<[string, string]> {
      yield ["a", "1"];
      yield ["b", "2"];
    }
    const bytes = Buffer.from([0, 255]);
    for (const queue of [client.queue("plain"), traced.queue("traced")]) {
      await queue.add([
        { id: "map", data: "", headers: new Map<string, string | Buffer>([["a", bytes]]) },
        { id: "pairs", data: "", headers: pairs() },
        { id: "object", data: "", headers: { a: new Uint8Array(bytes) } },
        { id: "null", data: "", headers: null as unknown as undefined },
      ]);
      const items = await queue.leaseItems({ duration: LONG_MS, count: 4 });
      const own = items.map(({ headers }) => [...headers].filter(([name]) => name !== "traceparent"));
      assert.deepEqual(own, [
        [["a", bytes]],
        [
          ["a", Buffer.from("1")],
          ["b", Buffer.from("2")],
        ],
        [["a", bytes]],
        [],
      ]);
      assert.ok(items.every(({ headers }) => headers.has("traceparent") === (queue.name === "traced")));
    }
    await traced.close();
  });

  test("signal, aborted already, adds nothing", async () => {
    const queue = client.queue("q");
    for (const timeout of [undefined, 0, 1000]) {
      const adding = queue.add({ id: "a", data: "" }, { timeout, signal: AbortSignal.abort() });
      await assert.rejects(adding, AbortError);
    }
    assert.equal(await read("a"), undefined);
  });

  test("of a worker: a handler that is no function is refused", () => {
    for (const handler of [undefined, "f", {}, Promise.resolve()]) {
      assert.throws(() => client.worker(client.queue("q"), handler as unknown as Handler), BadArgumentError);
    }
  });
});

describe("the package", { concurrency: false }, () => {
  const folder = fileURLToPath(new URL("../..", import.meta.url));
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

  test("reports its version, also without its package.json, as in a bundle", async () => {
    assert.equal(VERSION, version);
    const elsewhere = mkdtempSync(join(tmpdir(), "leaseq-ts-bundle-"));
    try {
      cpSync(join(folder, "dist/src"), join(elsewhere, "bundle"), { recursive: true });
      symlinkSync(join(folder, "node_modules"), join(elsewhere, "node_modules"));
      writeFileSync(join(elsewhere, "package.json"), '{"type": "module"}');
      const bundled = await import(pathToFileURL(join(elsewhere, "bundle/index.js")).href);
      const itsClient: Client = new bundled.Client({ path: server.path });
      const worker = itsClient.worker(itsClient.queue("q"), () => {});
      const ran = worker.run();
      await until(async () => (await client.liveWorkers()).length === 1);
      assert.equal((await client.liveWorkers())[0]?.client, `leaseq (TypeScript) ${version}`);
      await itsClient.close();
      await ran;
    } finally {
      rmSync(elsewhere, { recursive: true });
    }
  });

  test("has a license, and declarations without the sources of the scripts", () => {
    assert.match(readFileSync(join(folder, "LICENSE"), "utf8"), /MIT License/);
    const declarations = readFileSync(join(folder, "dist/src/scripts.generated.d.ts"), "utf8");
    assert.ok(declarations.length < 20_000, `${declarations.length} characters`);
  });
});
