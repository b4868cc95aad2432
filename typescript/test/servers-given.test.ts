// Which server a client connects to, and what it refuses since it cannot be the server that was meant. No address is listened on.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { inspect } from "node:util";
import { Cluster, Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { BadArgumentError, Client, type Server as GivenServer } from "../src/index.js";
import { Server } from "./server.js";

const lazy = { lazyConnect: true, retryStrategy: () => null };

describe("a server that is not understood is refused by name", () => {
  const path = "/nonexistent/leaseq";
  const wrong: Record<string, [unknown, RegExp]> = {
    "a number": [6379, /number/],
    null: [null, /null/],
    "a function": [() => "redis://h", /function/],
    "a promise": [Promise.resolve("redis://h"), /no server/],
    "an empty object": [{}, /no server/],
    "a database alone": [{ db: 1 }, /no server/],
    "a host from an unset variable": [{ host: undefined, port: 6379 }, /no server/],
    "an empty host": [{ host: "", port: 6379 }, /no server/],
    "{ url }": [{ url: "redis://user:hunter2@h" }, /"url"/],
    "options of node-redis": [{ socket: { host: "h" } }, /"socket"/],
    "options of BullMQ": [{ connection: { host: "h" } }, /"connection"/],
    "an unknown option": [{ host: "h", passphrase: "hunter2" }, /"passphrase"/],
    "a cluster without nodes": [
      Object.assign(new Cluster([{ port: 1 }], lazy), { startupNodes: [] }),
      /Cluster.*nodes/,
    ],
    "a cluster with a natMap": [
      new Cluster(["redis://h:7000"], { ...lazy, natMap: { "10.0.0.1:1": { host: "h", port: 1 } } }),
      /natMap.*nodes/,
    ],
    "a cluster with a key prefix": [
      new Cluster(["redis://h:7000"], { ...lazy, keyPrefix: "a:" }),
      /keyPrefix/,
    ],
    "a key prefix": [{ path, keyPrefix: "hunter2:" }, /keyPrefix/],
    "an instance with a key prefix": [new Redis("redis://h", { ...lazy, keyPrefix: "app:" }), /keyPrefix/],
    "no Sentinels": [{ sentinels: [], name: "main" }, /no server|sentinels/],
    "Sentinels without a host": [{ sentinels: [{ port: 1 }], name: "main" }, /sentinels/],
    "a database that is no number": [{ path, db: "abc" }, /database/],
    "a database below 0": [{ path, db: -1 }, /database/],
    "a database NaN": [{ path, db: Number.NaN }, /database/],
    "a port that is no number": [{ host: "h", port: "abc" }, /port/],
    "a port above all": [{ host: "h", port: 70_000 }, /port/],
    "redis://h/abc": ["redis://h/abc", /database/],
    "redis://h/1/2": ["redis://h/1/2", /database/],
    "redis://h/1x": ["redis://h/1x", /database/],
    "redis:///1": ["redis:///1", /host/],
    "redis://h?db=x": ["redis://h?db=x", /database/],
    "redis://h?keyPrefix=a": ["redis://h?keyPrefix=a", /query/],
    "redis://h?tls=true": ["redis://h?tls=true", /query/],
    "a URL object of HTTP": [new URL("http://h"), /redis:\/\//],
  };
  for (const [what, [server, message]] of Object.entries(wrong)) {
    test(what, () => {
      assert.throws(
        () => new Client(server as GivenServer),
        (error: Error) => {
          assert.ok(error instanceof BadArgumentError);
          assert.match(error.message, message);
          assert.ok(!inspect(error, { showHidden: true }).includes("hunter2"));
          return true;
        },
      );
    });
  }
});

describe("a server that is given", { concurrency: false }, () => {
  let server: Server;
  before(async () => {
    server = await Server.start();
  });
  after(() => server.end());

  test("as an instance of ioredis 5 or 6, a path, a URL object or options is connected to", async () => {
    const { path } = server;
    const [five, six] = [new Redis5(path, { ...lazy, db: 3 }), new Redis(path, { ...lazy, db: 3 })];
    const given: GivenServer[] = [five, six, `${path}?db=3`, { path, db: 3 }];
    for (const [number, one] of given.entries()) {
      const client = new Client(one);
      await client.queue("q").add({ id: String(number), data: "" });
      await client.close();
    }
    const raw = server.raw();
    await raw.select(3);
    assert.equal(await raw.hlen("leaseq:{q}:q:items"), given.length);
    assert.equal(five.status, "wait");
    for (const redis of [raw, five, six]) redis.disconnect();
  });

  test("as a URL object is that of its text", async () => {
    const client = new Client(new URL("redis://user:hunter2@127.0.0.1:1/0"));
    await assert.rejects(client.queue("q").stats(), /ECONNREFUSED 127\.0\.0\.1:1/);
    await client.close();
  });
});
