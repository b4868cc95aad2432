// A primary and its replica behind one address, for fleets under faults.
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { FaultProxy, freePort, Server, until } from "../test/server.js";

/** A primary and its replica behind one address, that of a proxy. The server keeps its data: each write is on the disk. */
export class Pair {
  readonly proxy: FaultProxy;
  #primary: Server;
  #replica: Server;
  readonly #ports: Map<Server, number>;

  private constructor(primary: Server, replica: Server, ports: Map<Server, number>) {
    this.#primary = primary;
    this.#replica = replica;
    this.#ports = ports;
    this.proxy = new FaultProxy(() => this.#primary.path);
  }

  static async start(): Promise<Pair> {
    const ports = new Map<Server, number>();
    for (let count = 0; count < 2; count += 1) {
      const port = await freePort();
      const durable = ["--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"];
      ports.set(await Server.start("--port", `${port}`, "--bind", "127.0.0.1", ...durable), port);
    }
    const [primary, replica] = [...ports.keys()] as [Server, Server];
    const pair = new Pair(primary, replica, ports);
    await pair.#follow();
    await pair.proxy.open();
    return pair;
  }

  raw(): Redis {
    return this.#primary.raw();
  }

  async #follow(): Promise<void> {
    const raw = this.#replica.raw();
    await raw.replicaof("127.0.0.1", `${this.#ports.get(this.#primary)}`);
    await until(async () => /master_link_status:up/.test(await raw.info("replication")));
    raw.disconnect();
  }

  /** Restarts the primary, which is gone for `ms`. */
  async restart(ms: number, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    await this.#primary.stop(signal);
    await sleep(ms);
    await this.#primary.start();
    await this.#follow();
  }

  /** Lets the replica take over, once it has everything; the old primary refuses writes until the address has moved. */
  async failOver(): Promise<void> {
    const raw = this.#primary.raw();
    await raw.call("FAILOVER");
    await until(async () => /role:slave/.test(await raw.info("replication")));
    await sleep(200);
    raw.disconnect();
    [this.#primary, this.#replica] = [this.#replica, this.#primary];
    this.proxy.cut();
    await this.#follow();
  }

  async end(): Promise<void> {
    this.proxy.close();
    await this.#primary.end();
    await this.#replica.end();
  }
}
