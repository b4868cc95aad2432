// A server, a client and a queue for each file of tests of workers, with what hooks and the log got.
import assert from "node:assert/strict";
import { after, before, beforeEach } from "node:test";
import type { Redis } from "ioredis";
import {
  Cancellation,
  Client,
  type Handler,
  type Hooks,
  type Logger,
  type Queue,
  type WorkerOptions,
} from "../src/index.js";
import { Server } from "./server.js";

export class WorkerFixture {
  server!: Server;
  raw!: Redis;
  client!: Client;
  queue!: Queue;
  /** Hooks that were called, with the item's id. */
  readonly called: string[] = [];
  /** What was logged. */
  readonly lines: string[] = [];
  readonly logger: Logger = {
    info: (text) => this.lines.push(`info ${text}`),
    warn: (text) => this.lines.push(`warn ${text}`),
    error: (text) => this.lines.push(`error ${text}`),
  };
  readonly hooks: Hooks = {
    leased: (items) => this.called.push(`leased ${items.length}`),
    started: ({ id }) => this.called.push(`started ${id}`),
    ended: ({ id }, _ms, error) => this.called.push(`ended ${id}${error ? " with an error" : ""}`),
    completed: ({ id }) => this.called.push(`completed ${id}`),
    released: ({ id }, delay, error) => this.called.push(`released ${id} ${delay} ${error}`),
    deadLettered: ({ id }, error) => this.called.push(`deadLettered ${id} ${error}`),
    lost: ({ id }) => this.called.push(`lost ${id}`),
    progress: ({ id }, value) => this.called.push(`progress ${id} ${value}`),
    serverAway: () => this.called.push("serverAway"),
    serverBack: (ms) => this.called.push(`serverBack ${ms < 5000 ? "soon" : ms}`),
  };

  /** Registers the hooks of a file of tests. */
  static inThisFile(): WorkerFixture {
    const fixture = new WorkerFixture();
    before(async () => {
      fixture.server = await Server.start();
      fixture.raw = fixture.server.raw();
    });
    beforeEach(async () => {
      await fixture.client?.close();
      await fixture.raw.flushall();
      fixture.client = new Client({ path: fixture.server.path }, { logger: fixture.logger });
      fixture.queue = fixture.client.queue("q");
      fixture.called.length = 0;
      fixture.lines.length = 0;
    });
    after(async () => {
      await fixture.client.close();
      fixture.raw.disconnect();
      await fixture.server.end();
    });
    return fixture;
  }

  /** Adds items without data. */
  readonly add = (...ids: string[]): Promise<number[]> => this.queue.add(ids.map((id) => ({ id, data: "" })));

  /** A worker on the queue that reports to the hooks. */
  readonly worker = (handler: Handler, options: WorkerOptions = {}) =>
    this.client.worker(this.queue, handler, { announce: false, hooks: this.hooks, ...options });

  /** The calls of some hooks, in order. */
  calls(...names: string[]): string[] {
    return this.called.filter((line) => names.includes(line.split(" ", 1)[0] ?? ""));
  }
}

/** Resolves with why the signal of a handler was aborted. */
export const whyAborted = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => {
    signal.addEventListener("abort", () => {
      assert.ok(signal.reason instanceof Cancellation);
      resolve(signal.reason.why);
    });
  });
