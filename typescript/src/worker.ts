// The worker loop (page 13): leases, calls the handler, completes or releases. client.ts creates workers.
import { AsyncResource } from "node:async_hooks";
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { onAbort } from "./aborts.js";
import { now } from "./clock.js";
import { encodeMilliseconds } from "./encoding.js";
import { BadArgumentError } from "./errors.js";
import { type Ending, runHandler, textOf } from "./handler.js";
import type { ConnectionPool } from "./pool.js";
import { PresenceReporter } from "./presence.js";
import type { LeasedItem, Queue } from "./queue.js";
import { isDamaged, isMisconfigured, isServerAway, pauseMs } from "./server-health.js";
import type { LeaseOptions } from "./wait-targets.js";

/** The longest delay of an item: 10 years. */
const MAX_DELAY_MS = 315_360_000_000;
/** Node fires a timer with a longer delay at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** How long to wait for an item while the outage may last: a server that is back shows it soon, by a lease and a block. */
const PROBE_MS = 50;

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
  /** Milliseconds before an item whose handler failed can be leased again. Default: 0. */
  retryDelay?: number;
  /**
   * Milliseconds that handlers may run after `stop`; Infinity is without limit. Then `lostSignal` of their items is aborted and the
   * items are released, uncounted. Default: 25000.
   */
  grace?: number;
  /**
   * Called with the error of a handler, or of completing or releasing its item; and without an item once for each outage of the
   * server. No such error stops the worker. Default: a line on stderr.
   */
  onError?: (error: unknown, item: LeasedItem | undefined) => unknown;
  /** Whether it reports its presence and the items it holds to the server (page 02.9). Default: true. */
  announce?: boolean;
}

/** An item that is worked on. */
interface Slot {
  /** When it was leased, on the clock of `now`. */
  readonly since: number;
  readonly heartbeat: { stop(): void };
  handlerEnded: boolean;
  /** Resolves when the item was completed or released, or was given up. */
  done: Promise<void>;
}

/**
 * Leases items and calls the handler for each, until it is stopped. When a handler returns, its item is completed. When it ends
 * in any other way, its item is released with the error. `Client.worker` creates one; it runs once.
 */
export class Worker {
  readonly #leaseAny: LeaseAny;
  readonly #queues: readonly Queue[];
  readonly #handler: Handler;
  readonly #options: WorkerOptions;
  readonly #concurrency: number;
  readonly #retryDelay: number;
  readonly #stopping = new AbortController();
  /** Aborted at the end of the grace time. */
  readonly #over = new AbortController();
  readonly #closed: AbortSignal;
  /** Aborted when it is over or the client is closed: no call is made again. */
  readonly #lastCalls: AbortSignal;
  readonly #slots = new Map<LeasedItem, Slot>();
  readonly #pool: ConnectionPool;
  #presence: PresenceReporter | undefined;
  #onSlotFree = () => {};
  #graceTimer: NodeJS.Timeout | undefined;
  #isAway = false;
  /** Whether a call to lease was answered, perhaps without an item. */
  #hasLeased = false;
  #failure: { error: unknown } | undefined;
  #completed = 0;
  #started = false;

  constructor(
    leaseAny: LeaseAny,
    pool: ConnectionPool,
    queues: readonly Queue[],
    handler: Handler,
    options: WorkerOptions,
  ) {
    const { concurrency = 1, retryDelay = 0, grace = 25_000 } = options;
    encodeMilliseconds(retryDelay, "retryDelay");
    if (retryDelay < 0 || retryDelay > MAX_DELAY_MS) {
      throw new BadArgumentError(`retryDelay is 0 to ${MAX_DELAY_MS} ms (10 years), not ${retryDelay}`);
    }
    if (!(typeof grace === "number" && grace >= 0)) {
      throw new BadArgumentError(`grace is a number of milliseconds from 0 on, not ${String(grace)}`);
    }
    if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
      throw new BadArgumentError(`concurrency is a number from 1 on, not ${concurrency}`);
    }
    if (queues.length === 0) throw new BadArgumentError("no queues");
    this.#leaseAny = leaseAny;
    this.#pool = pool;
    this.#closed = pool.closing;
    this.#lastCalls = AbortSignal.any([this.#over.signal, this.#closed]);
    this.#queues = queues;
    if (typeof handler !== "function")
      throw new BadArgumentError(`the handler is a function, not ${typeof handler}`);
    this.#handler = handler;
    this.#options = { ...options, grace };
    this.#concurrency = concurrency;
    this.#retryDelay = retryDelay;
    // Every item that waits for the end of an outage adds a listener.
    setMaxListeners(0, this.#lastCalls);
  }

  /**
   * Leases no more and starts no handler. `run` resolves when the running handlers have ended, or after the grace time
   * (LQ-WORK-9, LQ-WORK-10).
   */
  stop(): void {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort(new Error("the worker is stopped"));
    this.#presence?.reportNow();
    const { grace = 0 } = this.#options;
    if (this.#started && grace <= MAX_TIMER_MS)
      this.#graceTimer = setTimeout(() => this.#over.abort(new Error("the worker stopped")), grace);
  }

  /**
   * Works until `stop` is called, and returns how many items it completed. While the server is away or refuses, or a record of a queue
   * is damaged, it tries again, with growing pauses (LQ-WORK-7). It throws, once the handlers have ended, if the server refuses its
   * first calls because of its settings (LQ-WORK-14), and any other error of leasing. If the client is closed, the items of running
   * handlers are released, uncounted, before its connections are.
   */
  async run(): Promise<number> {
    if (this.#started) throw new BadArgumentError("a worker runs once");
    this.#started = true;
    const ran = this.#run();
    this.#pool.inBackground(ran);
    return await ran;
  }

  async #run(): Promise<number> {
    this.#announce();
    const leave = onAbort([this.#closed], () => {
      this.stop();
      this.#over.abort(new Error("the client is closed"));
    });
    const over = new Promise<void>((resolve) => onAbort([this.#over.signal], resolve));
    await Promise.race([this.#work(), over]);
    leave();
    clearTimeout(this.#graceTimer);
    this.#over.abort(new Error("the worker stopped"));
    const left = [...this.#slots];
    await Promise.all(
      left.map(([item, slot]) => (slot.handlerEnded ? slot.done : this.#abandon(item, slot))),
    );
    await this.#presence?.unregister();
    if (this.#failure) throw this.#failure.error;
    return this.#completed;
  }

  /** Reports its presence to the server, unless it has nothing to do. */
  #announce(): void {
    if (this.#options.announce === false || this.#stopping.signal.aborted || this.#closed.aborted) return;
    const entries = this.#queues.map(({ keys }) => keys.registryEntry);
    const connection = this.#pool.dedicated();
    this.#presence = new PresenceReporter(connection, this.#concurrency, entries, () => this.#status());
    this.#presence.start();
  }

  /** Leases until it is stopped, and waits for the handlers. */
  async #work(): Promise<void> {
    let failures = 0;
    while (!this.#stopping.signal.aborted) {
      const free = this.#concurrency - this.#slots.size;
      if (free === 0) {
        await new Promise<void>((resolve) => {
          this.#onSlotFree = resolve;
        });
        continue;
      }
      try {
        await this.#lease(free, this.#isAway ? PROBE_MS : Number.POSITIVE_INFINITY);
        failures = 0;
        this.#hasLeased = true;
        this.#isAway = false;
      } catch (error) {
        if (this.#stopping.signal.aborted) break;
        const isFirst = !this.#hasLeased && isMisconfigured(error);
        if (isFirst || !(isServerAway(error) || isDamaged(error))) {
          this.#failure = { error };
          break;
        }
        this.#reportAway(error);
        failures += 1;
        await pause(failures, this.#stopping.signal);
      }
    }
    this.stop();
    await Promise.all([...this.#slots.values()].map(({ done }) => done));
  }

  /** Leases up to `count` items and starts their handlers, unless it was stopped meanwhile. */
  async #lease(count: number, timeout: number): Promise<void> {
    const { duration = 30_000 } = this.#options;
    const { signal } = this.#stopping;
    const items = await this.#leaseAny(this.#queues, {
      duration,
      count: Math.min(count, 256),
      timeout,
      signal,
    });
    // a handler may stop the worker before it first waits
    const left: LeasedItem[] = [];
    for (const item of items) {
      if (signal.aborted) left.push(item);
      else this.#dispatch(item);
    }
    await Promise.all(left.map((item) => this.#giveBack(item)));
  }

  /** Starts the handler of an item. */
  #dispatch(item: LeasedItem): void {
    const slot: Slot = {
      since: now(),
      heartbeat: item.heartbeat(),
      handlerEnded: false,
      done: Promise.resolve(),
    };
    this.#slots.set(item, slot);
    slot.done = this.#handle(item, slot).finally(() => {
      this.#slots.delete(item);
      this.#onSlotFree();
    });
  }

  /** Runs the handler in an async context of its own, and ends the item as the handler ended. */
  async #handle(item: LeasedItem, slot: Slot): Promise<void> {
    const context = new AsyncResource("leaseq.handler");
    const ending = await context.runInAsyncScope(runHandler, undefined, this.#handler, item);
    slot.heartbeat.stop();
    slot.handlerEnded = true;
    if (this.#over.signal.aborted) return; // the item was given back
    try {
      const failure = await this.#complete(item, ending);
      if (failure) await this.#release(item, failure.error);
    } catch (error) {
      this.#report(error, item);
    }
  }

  /** Completes an item whose handler returned. Returns why it failed otherwise. */
  async #complete(item: LeasedItem, ending: Ending): Promise<{ error: unknown } | undefined> {
    if ("error" in ending) return ending;
    try {
      if (await this.#whileHeld(item, () => item.complete(ending))) this.#completed += 1;
      return undefined;
    } catch (error) {
      if (isServerAway(error)) throw error;
      return { error }; // the item cannot be completed, for example because its result is too large
    }
  }

  async #release(item: LeasedItem, error: unknown): Promise<void> {
    this.#report(error, item);
    const delay = this.#retryDelay;
    const options = { error: textOf(error), ...(delay > 0 && { delay }) };
    await this.#whileHeld(item, () => item.release(options));
  }

  /** Releases an item as if it had never been leased. */
  async #giveBack(item: LeasedItem): Promise<void> {
    try {
      await this.#whileHeld(item, () => item.release({ uncounted: true }));
    } catch (error) {
      this.#report(error, item);
    }
  }

  /** Gives an item back whose handler runs at the end of the grace time. */
  async #abandon(item: LeasedItem, slot: Slot): Promise<void> {
    slot.heartbeat.stop();
    item.abandon(new Error("the worker stopped"));
    await this.#giveBack(item);
  }

  /** Makes the call that ends an item: in an outage again and again, but only while the lease is held (LQ-WORK-6). */
  async #whileHeld<Answer>(item: LeasedItem, call: () => Promise<Answer>): Promise<Answer> {
    for (let failures = 1; ; failures += 1) {
      try {
        return await call();
      } catch (error) {
        if (!isServerAway(error) || this.#lastCalls.aborted) throw error;
        this.#reportAway(error);
        await pause(failures, this.#lastCalls);
        if (now() >= item.heldUntil) throw error;
      }
    }
  }

  /** Reports the first error of an outage. */
  #reportAway(error: unknown): void {
    if (!this.#isAway) this.#report(error, undefined);
    this.#isAway = true;
  }

  #report(error: unknown, item: LeasedItem | undefined): void {
    const { onError = logError } = this.#options;
    // an error of the listener does not stop the worker
    new Promise((resolve) => resolve(onError(error, item))).catch(() => {});
  }

  /** For reports of the presence. */
  #status() {
    const items = [...this.#slots].map(([item, { since }]) => ({
      queue: item.queue.keys.registryEntry,
      id: item.id.toString(),
      attempt: item.attempt,
      ms: Math.round(now() - since),
    }));
    return { stopping: this.#stopping.signal.aborted, completed: this.#completed, held: items.length, items };
  }
}

/** Waits after a failure, until the signal is aborted. */
async function pause(failures: number, signal: AbortSignal): Promise<void> {
  await sleep(pauseMs(failures), undefined, { signal }).catch(() => {});
}

/** The default of `onError`. */
function logError(error: unknown, item: LeasedItem | undefined): void {
  const what = item
    ? `item ${JSON.stringify(item.id.toString())} failed, attempt ${item.attempt}:`
    : "the server is away or refuses, trying again:";
  console.error(`leaseq worker: ${what}`, error);
}
