// The ways to a server: a port, the socket of a file system, TLS, and Sentinels that fail over to a replica.
import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import type { Redis } from "ioredis";
import { generate } from "selfsigned";
import { Client, type Server as GivenServer } from "../src/index.js";
import { freePort, Server, until } from "./server.js";

/** Adds, waits, completes by a worker, and ends: all kinds of connections of a client. */
async function useAll(given: GivenServer): Promise<void> {
  const client = new Client(given);
  try {
    const queue = client.queue("q");
    const worker = client.worker(queue, (item) => item.data, { hooks: { completed: () => worker.stop() } });
    const ran = worker.run();
    await queue.add({ id: "a", data: "abc", keep: 60_000 });
    const outcome = await queue.waitForOutcome("a", { timeout: 60_000 });
    assert.equal(outcome.content?.toString(), "abc");
    assert.equal(await ran, 1);
  } finally {
    await client.close();
  }
}

describe("a client reaches a server", { concurrency: false }, () => {
  let server: Server;
  let port: number;
  before(async () => {
    port = await freePort();
    server = await Server.start("--port", `${port}`, "--bind", "127.0.0.1");
  });
  after(() => server.end());

  test("at a port", async () => {
    await useAll(`redis://127.0.0.1:${port}/1`);
  });

  test("at a socket of the file system", async () => {
    await useAll(`${server.path}?db=2`);
  });

  test("at any of several places, the first one again when the others are gone", async () => {
    const raw = server.raw();
    const [first, second] = ["first", "second"].map((name) => join(server.folder, name)) as [string, string];
    symlinkSync(server.path, second);
    const client = new Client([{ path: first }, { path: second }]);
    const queue = client.queue("q");
    for (const [index, [from, to]] of [
      [second, first],
      [first, second],
      [second, first],
    ].entries()) {
      // a call whose connection was killed may have failed
      await until(() => queue.add({ id: `${index}`, data: "" }).then(Boolean, () => false), 20_000);
      renameSync(from as string, to as string);
      await raw.call("CLIENT", "KILL", "TYPE", "normal");
    }
    await until(() => queue.add({ id: "last", data: "" }).then(Boolean, () => false), 20_000);
    await client.close();
    raw.disconnect();
  });

  describe("by TLS", { concurrency: false }, () => {
    let ca: string;
    let tlsPort: number;
    let close: () => void;
    before(async () => {
      const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }]);
      ca = cert;
      const proxy = createTlsServer({ key, cert }, (secure) => {
        const plain = connect(server.path);
        for (const socket of [secure, plain]) socket.on("error", () => {});
        secure.pipe(plain).pipe(secure);
        secure.once("close", () => plain.destroy());
      });
      await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
      tlsPort = (proxy.address() as AddressInfo).port;
      close = () => proxy.close();
    });
    after(() => close());

    test("with the certificate of the server's authority", async () => {
      await useAll({
        host: "localhost",
        port: tlsPort,
        family: 4,
        db: 3,
        tls: { ca, servername: "localhost" },
      });
    });

    test("not with an unsigned certificate: nothing is sent, and the error names the reason", async () => {
      const client = new Client(`rediss://127.0.0.1:${tlsPort}`);
      const queue = client.queue("q");
      await assert.rejects(queue.add({ id: "a", data: "" }), (error: Error & { definite?: boolean }) => {
        assert.match(error.message, /self-signed|certificate/);
        assert.equal(error.definite, true);
        return true;
      });
      await client.close();
    });
  });
});

describe("by Sentinels", { concurrency: false }, () => {
  const servers: Server[] = [];
  const raws: Redis[] = [];
  let ports: [number, number, number];
  let sentinel: Redis;
  let folder: string;

  before(async () => {
    ports = [await freePort(), await freePort(), await freePort()];
    for (const port of ports.slice(0, 2)) {
      const server = await Server.start(
        "--port",
        `${port}`,
        "--bind",
        "127.0.0.1",
        "--repl-diskless-sync-delay",
        "0",
      );
      servers.push(server);
      raws.push(server.raw());
    }
    await raws[1]?.replicaof("127.0.0.1", `${ports[0]}`);
    await until(async () => /master_link_status:up/.test((await raws[1]?.info("replication")) ?? ""));
    // a Sentinel writes what it knows into its file
    folder = mkdtempSync(join(tmpdir(), "leaseq-ts-sentinel-"));
    const file = join(folder, "sentinel.conf");
    writeFileSync(file, "");
    const watcher = await Server.start(file, "--port", `${ports[2]}`, "--bind", "127.0.0.1", "--sentinel");
    servers.push(watcher);
    sentinel = watcher.raw();
    await sentinel.call("SENTINEL", "MONITOR", "main", "127.0.0.1", `${ports[0]}`, "1");
    await until(
      async () => Number(((await sentinel.call("SENTINEL", "REPLICAS", "main")) as unknown[]).length) === 1,
    );
  });
  after(async () => {
    for (const raw of [...raws, sentinel]) raw.disconnect();
    for (const server of servers) await server.end();
    rmSync(folder, { recursive: true });
  });

  test("the master is found, also by options that ask for a replica", async () => {
    const given = {
      sentinels: [{ host: "127.0.0.1", port: ports[2] }],
      name: "main",
      role: "slave" as const,
    };
    const client = new Client(given);
    assert.ok((await client.queue("role").add({ id: "a", data: "" })) > 0);
    await client.close();
  });

  test("the master is found, and its successor after a failover", async () => {
    const client = new Client({ sentinels: [{ host: "127.0.0.1", port: ports[2] }], name: "main" });
    const queue = client.queue("q");
    assert.ok((await queue.add({ id: "a", data: "" })) > 0);
    await raws[0]?.wait(1, 60_000);
    await until(async () => {
      const replies = await sentinel.call("SENTINEL", "FAILOVER", "main").catch((error) => error.message);
      return replies === "OK" || /INPROG/.test(`${replies}`);
    });
    await until(async () => /role:master/.test((await raws[1]?.info("replication")) ?? ""));
    await until(async () => /role:slave/.test((await raws[0]?.info("replication")) ?? ""));
    const worker = client.worker(queue, () => {}, { hooks: { completed: () => worker.stop() } });
    assert.equal(await worker.run(), 1);
    assert.equal(await raws[1]?.hlen("leaseq:{q}:q:items"), 0);
    await client.close();
  });
});
