import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { Client, LeaseqError } from "../src/index.js";
import { freePort, Server } from "./server.js";

// One call shares one limit, however many nodes it meets (LQ-CLUSTER-5, LQ-CLIENT-22).
const LIMIT_MS = 500;
const MAX_MS = 2 * LIMIT_MS + 300;

/** A node that accepts connections and replies `reply` to whatever is sent, after `delayMs`; nothing without a reply. */
class FakeNode {
  readonly #sockets = new Set<Socket>();
  readonly #server: NetServer;

  constructor(reply?: (port: number) => string, delayMs = 0) {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("data", () => {
        if (reply) setTimeout(() => socket.destroyed || socket.write(reply(this.port)), delayMs);
      });
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

/** The error of a call, and how many ms it took. */
async function failure(call: Promise<unknown>): Promise<[LeaseqError, number]> {
  const startedAt = performance.now();
  const error = await call.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  assert.ok(error instanceof LeaseqError, `${error}`);
  return [error, performance.now() - startedAt];
}

describe("the limit of a call", { concurrency: false }, () => {
  const nodes: FakeNode[] = [];
  let server: Server;
  let url: string;

  before(async () => {
    for (let number = 0; number < 5; number++) nodes.push(await new FakeNode().open());
    const port = await freePort();
    url = `redis://127.0.0.1:${port}`;
    server = await Server.start("--port", `${port}`, "--bind", "127.0.0.1");
  });
  after(async () => {
    for (const node of nodes) node.close();
    await server.end();
  });

  /** A password has the client wait for a reply before it is connected. */
  const silent = (node: FakeNode) => ({ host: "127.0.0.1", port: node.port, password: "p" });

  test("nodes that are all silent", async () => {
    const client = new Client(nodes.map(silent), { replyTimeout: LIMIT_MS });
    const [error, took] = await failure(client.queue("q").stats());
    assert.ok(error.definite);
    assert.ok(took < MAX_MS, `${took} ms`);
    await client.close();
  });

  test("a node that can be reached behind silent ones", async () => {
    const client = new Client([...nodes.map(silent), url], { replyTimeout: LIMIT_MS });
    const startedAt = performance.now();
    assert.equal((await client.queue("q").stats()).get("ready"), 0);
    assert.ok(performance.now() - startedAt < MAX_MS);
    await client.close();
  });

  test("a node that redirects to itself, slowly", async () => {
    const moved = await new FakeNode((port) => `-MOVED 1 127.0.0.1:${port}\r\n`, 0.4 * LIMIT_MS).open();
    nodes.push(moved);
    const client = new Client(moved.url, { replyTimeout: LIMIT_MS });
    const [error, took] = await failure(client.queue("q").stats());
    assert.ok(error.code === "MOVED" || !error.definite, error.message);
    assert.ok(took < MAX_MS, `${took} ms`);
    await client.close();
  });

  test("a slot that has no node keeps its pauses within the limit", async () => {
    const down = await new FakeNode(() => "-CLUSTERDOWN Hash slot not served\r\n").open();
    nodes.push(down);
    const client = new Client(down.url, { replyTimeout: LIMIT_MS });
    const [error, took] = await failure(client.queue("q").stats());
    assert.deepEqual([error.code, error.definite], ["CLUSTERDOWN", true]);
    assert.ok(took > LIMIT_MS / 2 && took < MAX_MS, `${took} ms`);
    await client.close();
  });
});
