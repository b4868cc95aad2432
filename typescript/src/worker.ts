// The worker loop (page 13): leases items, runs them, and stops. What becomes of each item is in item-run.ts. client.ts creates workers.
import { setMaxListeners } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { onAbort } from "./aborts.js";
import { within } from "./clock.js";
import { Completer } from "./completer.js";
import { BadArgumentError } from "./errors.js";
import type { Reporter } from "./hooks.js";
import { type Handler, ItemRun, type WorkerParts } from "./item-run.js";
import type { ConnectionPool } from "./pool.js";
import { PresenceReporter, type WorkerStatus, workerId } from "./presence.js";
import type { LeasedItem, Queue } from "./queue.js";
import { MAX_ENTRIES } from "./scripts.generated.js";
import { isDamaged, isMisconfigured, isServerAway, pause, ServerHealth } from "./server-health.js";
import type { LeaseOptions } from "./wait-targets.js";
import { checkGrace, type Settings } from "./worker-settings.js";

/**
 * How long to wait for an item while the outage may last, and at first: later refusals are not of its first calls (LQ-WORK-14). A server that refuses writes refuses the block, not the lease of an
 * empty queue: the time must leave some for the block when connections are new and the server is far.
 */
const PROBE_MS = 1000;
/** How long the calls that give items back may take at the end: a server that is silent replies to none. */
const LAST_CALLS_MS = 2000;

/** `Client.leaseAny`. */
type LeaseAny = (queues: readonly Queue[], options: LeaseOptions) => Promise<LeasedItem[]>;

/**
 * Leases items and calls the handler for each, until it is stopped. When a handler returns, its item is completed. When it ends
 * in any other way, its item is released with the error. `Client.worker` creates one; it runs once.
 *
 * Its states: created --run--> running --stop, close--> stopping --handlers ended--> stopped. The end of the grace time, a `close` with
 * `force` and `Client.close` end "stopping" too: then the items of running handlers are given back.
 */
export class Worker {
  /** Its name among the live workers. */
  readonly id: string;
  readonly #leaseAny: LeaseAny;
  readonly #pool: ConnectionPool;
  readonly #queues: readonly Queue[];
  readonly #settings: Settings;
  readonly #reporter: Reporter;
  readonly #parts: WorkerParts;
  readonly #stopping = new AbortController();
  /** Aborted at the stop, and whenever the worker is to be quiet; another one when it resumes. */
  #leasing = new AbortController();
  #resume: (() => void) | undefined;
  /** Aborted at the end of the grace time. */
  readonly #over = new AbortController();
  readonly #runs = new Set<ItemRun>();
  #presence: PresenceReporter | undefined;
  #onSlotFree = () => {};
  #graceTimer: NodeJS.Timeout | undefined;
  /** Whether a call to lease was answered, perhaps without an item. */
  #hasLeased = false;
  #isPrepared = false;
  #failure: { error: unknown } | undefined;
  #completed = 0;
  #turn = 0;
  #ran: Promise<number> | undefined;

  constructor(
    leaseAny: LeaseAny,
    pool: ConnectionPool,
    queues: readonly Queue[],
    handler: Handler,
    settings: Settings,
    reporter: Reporter,
  ) {
    this.#settings = settings;
    this.id = settings.id ?? workerId();
    if (queues.length === 0) throw new BadArgumentError("no queues");
    if (typeof handler !== "function") {
      throw new BadArgumentError(`the handler is a function, not ${typeof handler}`);
    }
    this.#leaseAny = leaseAny;
    this.#pool = pool;
    this.#queues = queues;
    this.#reporter = reporter;
    const health = new ServerHealth(
      (error) => {
        reporter.log("warn", "the server is away or refuses, trying again:", error);
        reporter.emit("serverAway", error);
      },
      (ms) => {
        reporter.log("info", `the server is back after ${Math.round(ms)} ms`);
        reporter.emit("serverBack", ms);
      },
    );
    const [stopping, lastCalls] = [this.#stopping.signal, this.#over.signal];
    // Every handler and every item that waits for the end of an outage may add a listener.
    setMaxListeners(0, stopping, lastCalls);
    const completer = new Completer();
    this.#parts = { handler, completer, settings: this.#settings, reporter, health, stopping, lastCalls };
  }

  /**
   * Works until `stop` is called, and returns how many items it completed. While the server is away or refuses, or a record of a queue
   * is damaged, it tries again, with growing pauses (LQ-WORK-7). It throws, once the handlers have ended, if the server refuses its
   * first calls because of its settings (LQ-WORK-14), and any other error of leasing. If the client is closed, the items of running
   * handlers are released, uncounted, before its connections are.
   */
  async run(): Promise<number> {
    if (this.#ran) throw new BadArgumentError("a worker runs once");
    this.#ran = this.#run();
    this.#pool.inBackground(this.#ran);
    return await this.#ran;
  }

  /**
   * Leases no more and starts no handler. `run` resolves when the running handlers have ended, or after the grace time
   * (LQ-WORK-9, LQ-WORK-10).
   */
  stop(): void {
    if (!this.#stopping.signal.aborted) this.#stop(this.#settings.grace);
  }

  /**
   * Stops, and resolves when the worker has stopped. Handlers may run for `timeout` ms (default: `grace`), with `force` not at all; a
   * later call can set another time. In a handler call `stop` instead: this waits for it.
   */
  async close(options: { timeout?: number | undefined; force?: boolean | undefined } = {}): Promise<void> {
    this.#stop(options.force ? 0 : checkGrace(options.timeout ?? this.#settings.grace, "timeout"));
    await this.#ran?.catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Stops, and sets the time that is left for handlers. */
  #stop(grace: number): void {
    const isFirst = !this.#stopping.signal.aborted;
    if (isFirst) {
      this.#stopping.abort(new Error("the worker is stopped"));
      this.#leasing.abort(this.#stopping.signal.reason);
      this.#resume?.();
    }
    clearTimeout(this.#graceTimer);
    if (!this.#ran || this.#over.signal.aborted) return;
    if (grace === 0) this.#over.abort();
    else if (grace < Number.POSITIVE_INFINITY) {
      this.#graceTimer = setTimeout(() => this.#over.abort(), grace);
    }
    if (isFirst) this.#presence?.reportNow();
  }

  /** Does what a program wishes that steers this worker from elsewhere (LQ-WORKER-6). */
  #steer(wish: string): void {
    const isQuiet = this.#leasing.signal.aborted;
    if (this.#stopping.signal.aborted) return;
    if (wish === "stop") this.stop();
    else if (wish === "quiet" && !isQuiet) {
      this.#leasing.abort(new Error("the worker is quiet"));
      this.#presence?.reportNow();
    } else if (wish !== "quiet" && isQuiet) {
      this.#leasing = new AbortController();
      this.#resume?.();
      this.#presence?.reportNow();
    }
  }

  async #run(): Promise<number> {
    await Promise.resolve(); // `#ran` is set
    this.#announce();
    const leave = onAbort([this.#pool.closing], () => this.#stop(0));
    const over = new Promise<void>((resolve) => onAbort([this.#over.signal], resolve));
    await Promise.race([this.#work(), over]);
    leave();
    clearTimeout(this.#graceTimer);
    this.#over.abort();
    await within(this.#giveBackRest(), LAST_CALLS_MS);
    await this.#presence?.unregister();
    if (this.#failure) throw this.#failure.error;
    return this.#completed;
  }

  /** Reports its presence to the server, unless it has nothing to do. */
  #announce(): void {
    if (!this.#settings.announce || this.#stopping.signal.aborted || this.#pool.closing.aborted) return;
    const entries = this.#queues.map(({ keys }) => keys.registryEntry);
    const connection = this.#pool.dedicated();
    const { concurrency } = this.#settings;
    this.#presence = new PresenceReporter(
      this.id,
      connection,
      concurrency,
      entries,
      () => this.#status(),
      (wish) => this.#steer(wish),
    );
    this.#presence.start();
  }

  /** Leases until it is stopped, and waits for the handlers. */
  async #work(): Promise<void> {
    const { health, stopping } = this.#parts;
    let failures = 0;
    while (!stopping.aborted) {
      if (this.#leasing.signal.aborted) {
        await new Promise<void>((resolve) => {
          this.#resume = resolve;
        });
        continue;
      }
      const leasing = this.#leasing.signal;
      const free = this.#settings.concurrency - this.#runs.size;
      if (free === 0) {
        await this.#slotFree();
        await nextTurn(); // the slots of all that were completed together
        continue;
      }
      try {
        await this.#prepare();
        await this.#lease(free, health.isAway || !this.#hasLeased ? PROBE_MS : Number.POSITIVE_INFINITY);
        failures = 0;
        this.#hasLeased = true;
        health.callWorked();
      } catch (error) {
        if (leasing.aborted) continue;
        const isFirst = !this.#hasLeased && isMisconfigured(error);
        if (isFirst || !(isServerAway(error) || isDamaged(error))) {
          this.#failure = { error };
          break;
        }
        health.callFailed(error);
        failures += 1;
        await pause(failures, stopping);
      }
    }
    this.stop();
    while (this.#runs.size > 0) await this.#slotFree();
  }

  /** Runs what the worker needs before its first lease. */
  async #prepare(): Promise<void> {
    if (this.#isPrepared) return;
    await this.#settings.prepare?.();
    this.#isPrepared = true;
  }

  /** Resolves when the next item is over. */
  async #slotFree(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onSlotFree = resolve;
    });
  }

  /** Leases up to `count` items and starts their handlers, unless it was stopped meanwhile. */
  async #lease(count: number, timeout: number): Promise<void> {
    const leasing = this.#leasing.signal;
    const items = await this.#leaseAny(this.#nextQueues(), {
      duration: this.#settings.duration,
      count: Math.min(count, MAX_ENTRIES),
      timeout,
      signal: leasing,
    });
    const [first] = items;
    if (first === undefined) return;
    if (!first.held) {
      // This process stood still, and others may have the items by now (LQ-WORK-15).
      const entries = items.map((item) => ({ ...item.entry, uncounted: true }));
      await first.queue.release(entries).catch(() => {}); // else they come back at once: their lease is over
      return;
    }
    this.#reporter.emit("leased", items);
    // A handler or a hook may stop the worker before it first waits.
    const left: ItemRun[] = [];
    for (const item of items) {
      const run = new ItemRun(item, this.#parts);
      if (leasing.aborted) left.push(run);
      else this.#start(run);
    }
    await Promise.all(left.map((run) => run.giveBack()));
  }

  /** The queues in the order to lease from. */
  #nextQueues(): readonly Queue[] {
    const { fair, urgentQueues = 0 } = this.#settings;
    const urgent = this.#queues.slice(0, urgentQueues);
    const queues = this.#queues.slice(urgentQueues);
    if (!fair || queues.length <= 1) return this.#queues;
    const first = this.#turn++ % queues.length;
    return [...urgent, ...queues.slice(first), ...queues.slice(0, first)];
  }

  /** Runs an item. */
  #start(run: ItemRun): void {
    this.#runs.add(run);
    run.run().then((completed) => {
      if (completed) this.#completed += 1;
      this.#runs.delete(run);
      this.#onSlotFree();
    });
  }

  /** Gives back the items of handlers that run, and waits for those that are being completed or released. */
  async #giveBackRest(): Promise<void> {
    await Promise.all([...this.#runs].map((run) => run.giveBack()));
    while ([...this.#runs].some(({ isEnding }) => isEnding)) await this.#slotFree();
  }

  /** For reports of the presence. */
  #status(): WorkerStatus {
    const items = [...this.#runs].map((run) => run.report());
    const stopping = this.#stopping.signal.aborted;
    const quiet = this.#leasing.signal.aborted && !stopping;
    return { stopping, quiet, completed: this.#completed, held: items.length, items };
  }
}
