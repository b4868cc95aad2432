import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "./client.js";
import type { Connections } from "./connections.js";
import { AbortError, BadArgumentError, ConnectionError } from "./errors.js";
import type { Lease } from "./lease.js";
import { Announcer } from "./live.js";
import type { Queue } from "./queue.js";
import { now } from "./waiting.js";
import { milliseconds } from "./wire.js";

/** Between two tries to lease from a server that is not there. */
const PAUSE_MS = 1000;

/**
 * Works on one item. A string or bytes that it answers, or that its promise does, are the result that completing the item
 * keeps, where it was added with `keep`.
 */
export type Handler = (lease: Lease) => unknown;

export interface WorkerOptions {
  /** Milliseconds of each lease, which is extended while the handler works; 30000 without it. */
  duration?: number;
  /** How many items are worked on at a time; 1 without it. */
  concurrency?: number;
  /** Milliseconds before an item whose handler threw may be leased again; 0 without it. */
  retryDelay?: number;
  /** Told of what a handler threw and of what ending its item threw; none of these ends the worker. */
  onError?: (error: unknown, lease: Lease) => void;
  /** Whether it says on the server that it lives and what it holds (page 02.9); true without it. */
  announce?: boolean;
}

/**
 * Leases items and hands them out, until it is told to stop. An item whose handler ends is completed, one whose handler
 * throws is released with the error as its last one. `Client.worker` makes one; it runs once.
 */
export class Worker {
  readonly #client: Client;
  readonly #queues: readonly Queue[];
  readonly #handler: Handler;
  readonly #options: WorkerOptions;
  readonly #concurrency: number;
  readonly #stop = new AbortController();
  readonly #closed: AbortSignal;
  /** What is worked on, and since when it is leased. */
  readonly #held = new Map<Lease, number>();
  readonly #running = new Set<Promise<void>>();
  readonly #announcer: Announcer | undefined;
  #completed = 0;
  #ran = false;

  constructor(
    client: Client,
    connections: Connections,
    queues: readonly Queue[],
    handler: Handler,
    options: WorkerOptions,
  ) {
    const { concurrency = 1, announce = true, retryDelay = 0 } = options;
    milliseconds(retryDelay, "retryDelay");
    if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
      throw new BadArgumentError(`concurrency is a number from 1 on, not ${concurrency}`);
    }
    if (queues.length === 0) throw new BadArgumentError("no queues");
    this.#client = client;
    this.#closed = connections.closing;
    this.#queues = queues;
    this.#handler = handler;
    this.#options = options;
    this.#concurrency = concurrency;
    const entries = queues.map(({ address }) => address.entry);
    if (announce)
      this.#announcer = new Announcer(connections.apart(), concurrency, entries, () => this.#doing());
  }

  /** Leases no more; `run` ends when the handlers have. */
  stop(): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort(new Error("the worker is stopped"));
    this.#announcer?.announce();
  }

  /**
   * Works until `stop` is called or the client is closed, and answers how many items it completed. A server that is not
   * there is waited for. Throws what else leasing throws, once the handlers have ended.
   */
  async run(): Promise<number> {
    if (this.#ran) throw new BadArgumentError("a worker runs once");
    this.#ran = true;
    this.#announcer?.begin();
    try {
      while (!this.#stop.signal.aborted && !this.#closed.aborted) await this.#turn();
    } catch (error) {
      // stopped, or the client is closed
      if (!(error instanceof AbortError)) throw error;
    } finally {
      this.stop();
      await Promise.all(this.#running);
      await this.#announcer?.end();
    }
    return this.#completed;
  }

  /** Leases for those that are free, or waits until one is. */
  async #turn(): Promise<void> {
    const { signal } = this.#stop;
    const free = this.#concurrency - this.#running.size;
    if (free === 0) {
      await Promise.race(this.#running);
      return;
    }
    const { duration = 30_000 } = this.#options;
    const timeout = Number.POSITIVE_INFINITY;
    try {
      const leases = await this.#client.leaseAny(this.#queues, {
        duration,
        count: Math.min(free, 256),
        timeout,
        signal,
      });
      for (const lease of leases) this.#begin(lease);
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      if (!this.#closed.aborted) await sleep(PAUSE_MS, undefined, { signal }).catch(() => {});
    }
  }

  #begin(lease: Lease): void {
    this.#held.set(lease, now());
    const done = this.#work(lease).finally(() => {
      this.#held.delete(lease);
      this.#running.delete(done);
    });
    this.#running.add(done);
  }

  async #work(lease: Lease): Promise<void> {
    lease.heartbeat();
    try {
      const result = await this.#handler(lease);
      const kept = typeof result === "string" || result instanceof Uint8Array ? { result } : {};
      if (await lease.complete(kept)) this.#completed += 1;
    } catch (error) {
      this.#tell(error, lease);
      await this.#giveBack(lease, error);
    }
  }

  async #giveBack(lease: Lease, error: unknown): Promise<void> {
    const { retryDelay: delay = 0 } = this.#options;
    try {
      await lease.release({ error: String(error), ...(delay > 0 && { delay }) });
    } catch (failure) {
      this.#tell(failure, lease);
    }
  }

  #tell(error: unknown, lease: Lease): void {
    try {
      this.#options.onError?.(error, lease);
    } catch {
      // who listens does not end the work
    }
  }

  #doing() {
    const items = [...this.#held].map(([lease, since]) => ({
      queue: lease.queue.address.entry,
      id: lease.id.toString(),
      attempt: lease.attempt,
      ms: Math.round(now() - since),
    }));
    return { stopping: this.#stop.signal.aborted, completed: this.#completed, held: items.length, items };
  }
}
