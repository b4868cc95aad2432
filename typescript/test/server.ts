import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";

// A real server: the path of a program, or a name in the cache that `make servers` fills (server_programs.py of the suite).
const CACHE = process.env.LEASEQ_SERVERS_DIR || fileURLToPath(new URL("../../../.servers", import.meta.url));
const PROGRAM = resolve(CACHE, "bin", process.env.LEASEQ_TEST_SERVER || "valkey-9.1.2");
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const server of running) server.kill("SIGKILL");
});

/** A separate server for each file of tests, on a unix socket; for a cluster, on a port too. */
export class Server {
  readonly folder = mkdtempSync(join(tmpdir(), "leaseq-ts-"));
  readonly path = join(this.folder, "socket");
  readonly #args: readonly string[];
  #process: ChildProcess | undefined;

  constructor(args: readonly string[] = ["--port", "0"]) {
    this.#args = args;
  }

  static async start(...args: readonly string[]): Promise<Server> {
    const server = args.length > 0 ? new Server(args) : new Server();
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    if (!existsSync(PROGRAM)) throw new Error(`there is no ${PROGRAM}: run make servers-newest`);
    const options = ["--unixsocket", this.path, "--save", "", "--dir", this.folder];
    const started = spawn(PROGRAM, [...this.#args, ...options], { stdio: "ignore" });
    this.#process = started;
    running.add(started);
    started.once("exit", () => running.delete(started));
    const probe = this.raw();
    await probe.ping();
    probe.disconnect();
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const process = this.#process;
    if (!process || process.exitCode !== null || process.signalCode !== null) return;
    const exited = new Promise((resolve) => process.once("exit", resolve));
    process.kill(signal);
    await exited;
  }

  /** Stops it and removes what it left. */
  async end(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Deletes everything in it. */
  async flush(): Promise<void> {
    const raw = this.raw();
    await raw.flushall();
    raw.disconnect();
  }

  /** A connection of the tests, which goes around the client. */
  raw(): Redis {
    const redis = new Redis({ path: this.path, retryStrategy: () => 20, maxRetriesPerRequest: null });
    redis.on("error", () => {});
    return redis;
  }
}

/** A proxy in front of a server whose connections can be cut, and which can stop passing replies on. */
export class FaultProxy {
  readonly #folder = mkdtempSync(join(tmpdir(), "leaseq-ts-proxy-"));
  readonly path = join(this.#folder, "socket");
  /** What the client has sent. */
  sent = "";
  /** Whether replies are dropped. */
  silent = false;
  /** If the client sends this, replies are dropped from then on. */
  silentFrom: string | undefined;
  /** If the client sends this command, it gets this error as the reply. */
  refusal: { command: string; reply: string } | undefined;
  /** Replies that are held back, each with where it goes. */
  #held: [Socket, Buffer][] | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #server;

  /** `to` is the path of the server, or gives that of the next connection. */
  constructor(to: string | (() => string)) {
    this.#server = createServer((client) => {
      const server = connect(typeof to === "string" ? to : to());
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on("error", () => {});
      }
      client.on("data", (data) => {
        const text = data.toString("latin1");
        this.sent += text;
        if (this.silentFrom && text.includes(this.silentFrom)) this.silent = true;
        const { refusal } = this;
        if (refusal && text.toUpperCase().includes(`\r\n${refusal.command}\r\n`)) {
          client.write(`-${refusal.reply}\r\n`);
        } else server.write(data);
      });
      server.on("data", (data) => {
        if (this.#held) this.#held.push([client, data]);
        else if (!this.silent) client.write(data);
      });
      client.on("close", () => server.destroy());
      server.on("close", () => client.destroy());
    });
  }

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(this.path, resolve));
    return this;
  }

  /** Holds replies back until `passOn`. */
  hold(): void {
    this.#held = [];
  }

  passOn(): void {
    for (const [client, data] of this.#held ?? []) client.write(data);
    this.#held = undefined;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  close(): void {
    this.cut();
    this.#server.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export async function until(condition: () => Promise<boolean> | boolean, timeoutMs = 60_000): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error("it did not come true");
    await sleep(10);
  }
}

/** A free port below 55000, so that the port of a cluster's bus, 10000 above it, exists. */
export async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    await new Promise((resolve) => server.close(resolve));
    if (address && typeof address === "object" && address.port < 55_000) return address.port;
  }
}
