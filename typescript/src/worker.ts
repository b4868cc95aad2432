// The worker loop: leases, calls the handler, completes or releases. client.ts creates workers.
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "./clock.js";
import { encodeMilliseconds } from "./encoding.js";
import { AbortError, BadArgumentError, ConnectionError } from "./errors.js";
import type { ConnectionPool } from "./pool.js";
import { PresenceReporter } from "./presence.js";
import type { LeasedItem, Queue } from "./queue.js";
import type { LeaseOptions } from "./wait-targets.js";

/** The pause before leasing again from a server that could not be reached. */
const LEASE_RETRY_DELAY_MS = 1000;

/**
 * Works on one item. If it returns or resolves to a string or bytes, these are the result that is kept of an item that was added
 * with `keep`.
 */
export type Handler = (item: LeasedItem) => unknown;

/** `Client.leaseAny`. */
type LeaseAny = (queues: readonly Queue[], options: LeaseOptions) => Promise<LeasedItem[]>;

/** How a worker works. */
export interface WorkerOptions {
  /** Milliseconds of each lease. It is extended while the handler works. Default: 30000. */
  duration?: number;
  /** The most items to work on at a time. Default: 1. */
  concurrency?: number;
  /** Milliseconds before an item whose handler threw can be leased again. Default: 0. */
  retryDelay?: number;
  /** Called with the error of a handler, or of completing or releasing its item. No such error stops the worker. */
  onError?: (error: unknown, item: LeasedItem) => void;
  /** Whether it reports its presence and the items it holds to the server (page 02.9). Default: true. */
  announce?: boolean;
}

/**
 * Leases items and calls the handler for each, until it is stopped. When a handler returns, its item is completed. When it
 * throws, its item is released with the error. `Client.worker` creates one; it runs once.
 */
export class Worker {
  readonly #leaseAny: LeaseAny;
  readonly #queues: readonly Queue[];
  readonly #handler: Handler;
  readonly #options: WorkerOptions;
  readonly #concurrency: number;
  readonly #stopping = new AbortController();
  readonly #closed: AbortSignal;
  /** When each item that is worked on was leased, on the clock of `now`. */
  readonly #leasedAt = new Map<LeasedItem, number>();
  readonly #running = new Set<Promise<void>>();
  readonly #presence: PresenceReporter | undefined;
  #completed = 0;
  #started = false;

  constructor(
    leaseAny: LeaseAny,
    pool: ConnectionPool,
    queues: readonly Queue[],
    handler: Handler,
    options: WorkerOptions,
  ) {
    const { concurrency = 1, announce = true, retryDelay = 0 } = options;
    encodeMilliseconds(retryDelay, "retryDelay");
    if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
      throw new BadArgumentError(`concurrency is a number from 1 on, not ${concurrency}`);
    }
    if (queues.length === 0) throw new BadArgumentError("no queues");
    this.#leaseAny = leaseAny;
    this.#closed = pool.closing;
    this.#queues = queues;
    this.#handler = handler;
    this.#options = options;
    this.#concurrency = concurrency;
    const entries = queues.map(({ keys }) => keys.registryEntry);
    if (announce)
      this.#presence = new PresenceReporter(pool.dedicated(), concurrency, entries, () => this.#status());
  }

  /** Stops leasing. `run` resolves when the running handlers have ended. */
  stop(): void {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort(new Error("the worker is stopped"));
    this.#presence?.reportNow();
  }

  /**
   * Works until `stop` is called or the client is closed, and returns how many items it completed. While the server cannot be
   * reached, it tries again. Any other error of leasing is thrown once the handlers have ended.
   */
  async run(): Promise<number> {
    if (this.#started) throw new BadArgumentError("a worker runs once");
    this.#started = true;
    this.#presence?.start();
    try {
      while (!this.#stopping.signal.aborted && !this.#closed.aborted) await this.#leaseOrWait();
    } catch (error) {
      // stopped, or the client is closed
      if (!(error instanceof AbortError)) throw error;
    } finally {
      this.stop();
      await Promise.all(this.#running);
      await this.#presence?.unregister();
    }
    return this.#completed;
  }

  /** Leases as many items as there are free slots, or waits until one is free. */
  async #leaseOrWait(): Promise<void> {
    const { signal } = this.#stopping;
    const free = this.#concurrency - this.#running.size;
    if (free === 0) {
      await Promise.race(this.#running);
      return;
    }
    const { duration = 30_000 } = this.#options;
    const timeout = Number.POSITIVE_INFINITY;
    try {
      const items = await this.#leaseAny(this.#queues, {
        duration,
        count: Math.min(free, 256),
        timeout,
        signal,
      });
      for (const item of items) this.#dispatch(item);
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      if (!this.#closed.aborted) await sleep(LEASE_RETRY_DELAY_MS, undefined, { signal }).catch(() => {});
    }
  }

  /** Starts the handler of an item. */
  #dispatch(item: LeasedItem): void {
    this.#leasedAt.set(item, now());
    const done = this.#handle(item).finally(() => {
      this.#leasedAt.delete(item);
      this.#running.delete(done);
    });
    this.#running.add(done);
  }

  async #handle(item: LeasedItem): Promise<void> {
    item.heartbeat();
    try {
      const result = await this.#handler(item);
      const options = typeof result === "string" || result instanceof Uint8Array ? { result } : {};
      if (await item.complete(options)) this.#completed += 1;
    } catch (error) {
      this.#emitError(error, item);
      await this.#release(item, error);
    }
  }

  async #release(item: LeasedItem, error: unknown): Promise<void> {
    const { retryDelay: delay = 0 } = this.#options;
    try {
      await item.release({ error: String(error), ...(delay > 0 && { delay }) });
    } catch (failure) {
      this.#emitError(failure, item);
    }
  }

  #emitError(error: unknown, item: LeasedItem): void {
    try {
      this.#options.onError?.(error, item);
    } catch {
      // an error of the listener does not stop the worker
    }
  }

  /** For reports of the presence. */
  #status() {
    const items = [...this.#leasedAt].map(([item, since]) => ({
      queue: item.queue.keys.registryEntry,
      id: item.id.toString(),
      attempt: item.attempt,
      ms: Math.round(now() - since),
    }));
    return { stopping: this.#stopping.signal.aborted, completed: this.#completed, held: items.length, items };
  }
}
