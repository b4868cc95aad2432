import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster, type Redis } from "ioredis";
import { Cluster as Cluster5 } from "ioredis5";
import { Client } from "../src/index.js";
import { freePort, Server, until } from "./server.js";

const LAST_SLOT = 16_383;
const FIRST_SLOT_OF_SECOND = 8192;
const servers: Server[] = [];
const raws: Redis[] = [];
let ports: number[];
let client: Client;

before(async () => {
  ports = [await freePort(), await freePort()];
  for (const port of ports) {
    const server = await Server.start("--port", `${port}`, "--bind", "127.0.0.1", "--cluster-enabled", "yes");
    servers.push(server);
    raws.push(server.raw());
  }
  for (const [index, raw] of raws.entries()) {
    const first = index * FIRST_SLOT_OF_SECOND;
    const slots = Array.from({ length: FIRST_SLOT_OF_SECOND }, (_, offset) => first + offset);
    assert.equal(slots.at(-1), index === 0 ? FIRST_SLOT_OF_SECOND - 1 : LAST_SLOT);
    await raw.call("CLUSTER", "ADDSLOTS", ...slots.map(String));
    await raw.call("CLUSTER", "SET-CONFIG-EPOCH", `${index + 1}`);
  }
  await raws[0]?.call("CLUSTER", "MEET", "127.0.0.1", `${ports[1]}`);
  await until(async () => {
    const infos = await Promise.all(raws.map((raw) => raw.call("CLUSTER", "INFO")));
    return infos.every((text) => /cluster_state:ok/.test(`${text}`) && /cluster_size:2/.test(`${text}`));
  }, 20_000);
  client = new Client(`redis://127.0.0.1:${ports[0]}`);
});
after(async () => {
  await client?.close();
  for (const raw of raws) raw.disconnect();
  for (const server of servers) await server.end();
});

/** A queue whose slot is on that node. */
async function queueOn(node: number, prefix: string) {
  for (let number = 0; ; number++) {
    const queue = client.queue(`${prefix}${number}`);
    const slot = Number(await raws[0]?.call("CLUSTER", "KEYSLOT", queue.keys.key("items")));
    if (slot >= FIRST_SLOT_OF_SECOND === (node === 1)) return { queue, slot };
  }
}

describe("a cluster", { concurrency: false }, () => {
  test("a queue is found on the node that has it", async () => {
    for (const node of [0, 1]) {
      const { queue } = await queueOn(node, "found");
      assert.ok((await queue.add({ id: "a", data: "" })) > 0);
      assert.equal(await raws[node]?.hlen(queue.keys.key("items")), 1);
      // The registry is in another slot, on one of the two.
      const slot = Number(await raws[0]?.call("CLUSTER", "KEYSLOT", "leaseq:queues"));
      const home = raws[slot >= FIRST_SLOT_OF_SECOND ? 1 : 0];
      await until(async () => (await home?.sismember("leaseq:queues", queue.keys.registryEntry)) === 1);
      const lease = await queue.lease({ duration: 5000 });
      assert.equal(await lease?.complete(), true);
    }
  });

  test("waiting for queues of several groups on several nodes", async () => {
    const queues = [(await queueOn(0, "wait")).queue, (await queueOn(1, "wait")).queue];
    for (const [index, queue] of queues.entries()) {
      const waiting = client.leaseAny(queues, { duration: 5000, timeout: 5000 });
      await sleep(50);
      await queue.add({ id: `i${index}`, data: "" });
      const startedAt = performance.now();
      const [lease] = await waiting;
      assert.equal(lease?.queue, queue);
      assert.ok(performance.now() - startedAt < 3500);
    }
  });

  test("workers are reported and listed, whichever nodes their keys are on", async () => {
    const { queue } = await queueOn(0, "works");
    const stop: (() => void)[] = [];
    const hold = () => new Promise<void>((resolve) => stop.push(resolve));
    const workers = Array.from({ length: 6 }, () => client.worker(queue, hold));
    const ran = workers.map((worker) => worker.run());
    await until(async () => (await client.liveWorkers()).length === workers.length);
    for (const worker of workers) worker.stop();
    await Promise.all(ran);
    assert.deepEqual(await client.liveWorkers(), []);
  });

  test("a slot that moves: ASK, TRYAGAIN and MOVED are definite, the call runs once, at its new place", async () => {
    const { queue, slot } = await queueOn(0, "moves");
    const waiting = queue.lease({ duration: 5000, timeout: 10_000 });
    const [source, target] = raws as [Redis, Redis];
    const [sourceId, targetId] = [
      await source.call("CLUSTER", "MYID"),
      await target.call("CLUSTER", "MYID"),
    ] as string[];
    await target.call("CLUSTER", "SETSLOT", `${slot}`, "IMPORTING", `${sourceId}`);
    await source.call("CLUSTER", "SETSLOT", `${slot}`, "MIGRATING", `${targetId}`);
    const adding = queue.add({ id: "a", data: "" });
    await sleep(100);
    for (const raw of [target, source])
      await raw.call("CLUSTER", "SETSLOT", `${slot}`, "NODE", `${targetId}`);
    assert.ok((await adding) > 0);
    assert.equal(await target.hlen(queue.keys.key("items")), 1);
    assert.equal((await waiting)?.id.toString(), "a");
  });

  test("several nodes are given, and one is not there", async () => {
    const both = new Client([`redis://127.0.0.1:${await freePort()}`, `redis://127.0.0.1:${ports[1]}`]);
    const { queue } = await queueOn(0, "given");
    assert.ok((await both.queue(queue.keys.name).add({ id: "a", data: "" })) > 0);
    await both.close();
  });

  for (const [version, Instance] of [
    ["5", Cluster5],
    ["6", Cluster],
  ] as const) {
    test(`an instance of Cluster of ioredis ${version} names its nodes`, async () => {
      const nodes = [{ host: "127.0.0.1", port: await freePort() }, `redis://127.0.0.1:${ports[1]}`];
      const instance = new Instance(nodes, { lazyConnect: true });
      const given = new Client(instance);
      const { queue } = await queueOn(0, `cluster-${version}`);
      assert.ok((await given.queue(queue.keys.name).add({ id: "a", data: "" })) > 0);
      await given.close();
      assert.equal(instance.status, "wait");
      instance.disconnect();
    });
  }
});
