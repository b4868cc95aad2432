// A server, a client and an App for each file of tests of jobs, and workers that are closed after each test.
import { after, before, beforeEach } from "node:test";
import type { Redis } from "ioredis";
import { Client, type Worker } from "../src/index.js";
import { App } from "../src/jobs/index.js";
import { Server } from "./server.js";

export class JobFixture {
  server!: Server;
  raw!: Redis;
  client!: Client;
  app!: App;
  readonly logged: string[] = [];
  readonly #workers: Worker[] = [];

  /** Registers the hooks of a file of tests. */
  static inThisFile(): JobFixture {
    const fixture = new JobFixture();
    before(async () => {
      fixture.server = await Server.start();
      fixture.raw = fixture.server.raw();
    });
    beforeEach(() => fixture.#reset());
    after(async () => {
      await fixture.#end();
      fixture.raw.disconnect();
      await fixture.server.end();
    });
    return fixture;
  }

  /** Starts a worker. */
  work(app: App = this.app, options: Parameters<App["worker"]>[0] = {}): Worker {
    const worker = app.worker(options);
    this.#workers.push(worker);
    worker.run();
    return worker;
  }

  /** The key of a part of a queue of jobs. */
  key(part: string, queue = "default"): string {
    return `leaseq:{jobs}:${queue}:${part}`;
  }

  async #reset(): Promise<void> {
    await this.#end();
    await this.raw.flushall();
    this.logged.length = 0;
    const log = (text: string, error?: unknown) => this.logged.push(`${text} ${error ?? ""}`);
    this.client = new Client({ path: this.server.path }, { logger: { info: log, warn: log, error: log } });
    this.app = new App(this.client);
  }

  async #end(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.close({ force: true })));
    await this.client?.close();
  }
}
