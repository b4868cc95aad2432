// The entry of the package: creates queues and workers, and waits for several queues at once.
import {
  checkOnce,
  checkSignal,
  checkTimeout,
  type TimedCheck,
  throwIfAborted,
  unlessAborted,
  untilAborted,
  type WaitTarget,
} from "./blocking.js";
import { now } from "./clock.js";
import { BadArgumentError } from "./errors.js";
import { Reporter } from "./hooks.js";
import type { Handler } from "./item-run.js";
import { QueueKeys } from "./keys.js";
import { type Logger, STDERR } from "./logger.js";
import { ConnectionPool } from "./pool.js";
import { listWorkers, steerWorker, type WorkerInfo } from "./presence.js";
import { type LeasedItem, Queue } from "./queue.js";
import { MAX_QUEUES } from "./scripts.generated.js";
import type { Server } from "./server.js";
import type { Tracing } from "./tracing.js";
import { type LeaseOptions, leaseTarget } from "./wait-targets.js";
import { Worker } from "./worker.js";
import { type Settings, toSettings, type WorkerOptions } from "./worker-settings.js";

/** Node fires a timer with a longer delay at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Settings of a client. */
export interface ClientOptions {
  /** Milliseconds after which a call without a reply fails and its connection is closed. Default: 10000. */
  replyTimeout?: number | undefined;
  /** The logger of its workers, and of items that die where no handler ran. Default: lines on stderr. */
  logger?: Logger | undefined;
  /** Joins what it adds and what its workers do by spans: `tracing` of `leaseq/otel`. Default: no spans. */
  tracing?: Tracing | undefined;
}

/** The parts of a client that the job layer uses. */
export interface ClientParts {
  readonly pool: ConnectionPool;
  readonly replyTimeout: number;
  readonly logger: Logger;
  worker(queues: readonly Queue[], handler: Handler, settings: Settings): Worker;
}

/** Returns the parts of a client. For the job layer. */
export let partsOf: (client: Client) => ClientParts;

/** A client of one server or cluster. Connections are opened when they are needed. */
export class Client {
  static {
    partsOf = (client) => ({
      pool: client.#pool,
      replyTimeout: client.#replyTimeout,
      logger: client.#logger,
      worker: (queues, handler, settings) => client.#worker(queues, handler, settings),
    });
  }

  readonly #pool: ConnectionPool;
  readonly #replyTimeout: number;
  readonly #logger: Logger;
  readonly #tracing: Tracing | undefined;

  /** Takes one server, or several nodes of a cluster. One node that can be reached is enough to find the others. */
  constructor(servers: Server | readonly Server[], options: ClientOptions = {}) {
    const given = Array.isArray(servers) ? (servers as readonly Server[]) : [servers as Server];
    if (given.length === 0) throw new BadArgumentError("no servers");
    const { replyTimeout = 10_000 } = options;
    if (!(typeof replyTimeout === "number" && replyTimeout > 0 && replyTimeout <= MAX_TIMER_MS)) {
      throw new BadArgumentError(`replyTimeout is a number of milliseconds above 0, not ${replyTimeout}`);
    }
    this.#replyTimeout = replyTimeout;
    this.#logger = options.logger ?? STDERR;
    this.#tracing = options.tracing;
    this.#pool = new ConnectionPool(given, this.#replyTimeout, this.#logger);
  }

  /**
   * Returns a queue. It is created when the first item is added. Queues of one group can hand items off to each other, and one
   * call waits for all of them; without `group`, a queue is a separate group. Throws BadArgumentError if `name` or `group` is
   * not a valid name (LQ-KEY-2).
   */
  queue(name: string, options: { group?: string | undefined } = {}): Queue {
    return new Queue(this, this.#pool, new QueueKeys(name, options.group), this.#tracing);
  }

  /**
   * Leases from the first queue that has an item (strict precedence). For round robin, change the order from call to call. Up
   * to 16 queues of one group take one call (LQ-ANY-1); each group waits on a separate connection (LQ-CLUSTER-2). Returns an
   * empty array when the time is up. Throws as `Queue.lease`.
   */
  async leaseAny(queues: readonly Queue[], options: LeaseOptions): Promise<LeasedItem[]> {
    if (queues.length === 0) throw new BadArgumentError("no queues");
    if (queues.some((queue) => queue.client !== this)) {
      throw new BadArgumentError("the queues are not all of this client");
    }
    const timeout = checkTimeout(options.timeout ?? 0);
    const given = checkSignal(options);
    const pool = this.#pool;
    const targets = byGroup(queues).map((group) => leaseTarget(group, options, pool));
    const [only] = targets;
    if (only && targets.length === 1) return (await pool.wait(only, timeout, given)) ?? [];
    const signals = [...given, pool.closing];
    const leasing = this.#leaseOfGroups(targets, timeout, signals);
    pool.inBackground(leasing);
    return await untilAborted(leasing, signals);
  }

  /** Checks group by group, and blocks only if none has an item. */
  async #leaseOfGroups(
    targets: readonly WaitTarget<LeasedItem[]>[],
    timeout: number,
    signals: readonly AbortSignal[],
  ): Promise<LeasedItem[]> {
    const pool = this.#pool;
    const timeoutAt = now() + timeout;
    const checks: TimedCheck<LeasedItem[]>[] = [];
    for (const target of targets) {
      throwIfAborted(signals);
      const check = await checkOnce(target, pool.shared);
      if ("found" in check.result) return await unlessAborted(target, check.result.found, signals);
      checks.push(check);
    }
    return await this.#race(targets, checks, timeoutAt - now(), signals);
  }

  /**
   * Returns a worker on one queue or several, by strict precedence as in `leaseAny`. Its `run` leases items and calls the
   * handler for each. It reports its presence and the items it holds to the server.
   */
  worker(queues: Queue | readonly Queue[], handler: Handler, options: WorkerOptions = {}): Worker {
    const all = Array.isArray(queues) ? (queues as readonly Queue[]) : [queues as Queue];
    return this.#worker(all, handler, toSettings(options));
  }

  #worker(queues: readonly Queue[], handler: Handler, settings: Settings): Worker {
    const leaseAny = (from: readonly Queue[], how: LeaseOptions) => this.leaseAny(from, how);
    const reporter = new Reporter(settings.hooks, this.#logger, this.#tracing);
    return new Worker(leaseAny, this.#pool, queues, handler, settings, reporter);
  }

  /** Lists the live workers of all clients (LQ-WORKER-5). */
  async liveWorkers(): Promise<WorkerInfo[]> {
    return await listWorkers(this.#pool.shared, this.#replyTimeout);
  }

  /**
   * Lets a worker lease nothing more for a day, or until `resumeWorker`: it gives back what it has not started, and handlers that run go
   * on. It does so with its next report, within 15 seconds. Returns false if no such worker is alive (LQ-WORKER-6, LQ-WORKER-7).
   */
  async quietWorker(id: string): Promise<boolean> {
    return await steerWorker(this.#pool.shared, id, "quiet", this.#replyTimeout);
  }

  /** Lets a worker lease again: see `quietWorker`. */
  async resumeWorker(id: string): Promise<boolean> {
    return await steerWorker(this.#pool.shared, id, undefined, this.#replyTimeout);
  }

  /** Stops a worker as `Worker.stop` does: see `quietWorker`. */
  async stopWorker(id: string): Promise<boolean> {
    return await steerWorker(this.#pool.shared, id, "stop", this.#replyTimeout);
  }

  /** Stops its workers, ends every wait, with an AbortError, and closes the connections. */
  async close(): Promise<void> {
    await this.#pool.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Each group blocks on a separate connection. The first group that finds items ends the others. */
  async #race(
    targets: readonly WaitTarget<LeasedItem[]>[],
    checks: readonly TimedCheck<LeasedItem[]>[],
    timeout: number,
    signals: readonly AbortSignal[],
  ): Promise<LeasedItem[]> {
    const decided = new AbortController();
    let winner: LeasedItem[] | undefined;
    let failure: { error: unknown } | undefined;
    await Promise.all(
      targets.map(async (target, index) => {
        try {
          const found = await this.#pool.wait(target, timeout, [...signals, decided.signal], checks[index]);
          if (!found) return;
          if (winner) await target.releaseFound?.(found).catch(() => {});
          else winner = found;
        } catch (error) {
          // Errors behind the decision are its effect, not its cause.
          if (!decided.signal.aborted) failure ??= { error };
        }
        decided.abort();
      }),
    );
    if (winner) return winner;
    if (failure) throw failure.error;
    return [];
  }
}

/** Queues of one group, in their order, up to `MAX_QUEUES` in each array. */
function byGroup(queues: readonly Queue[]): Queue[][] {
  const groups = new Map<string, Queue[]>();
  for (const queue of queues) {
    const { group } = queue.keys;
    groups.set(group, [...(groups.get(group) ?? []), queue]);
  }
  return [...groups.values()].flatMap((group) => {
    const chunks: Queue[][] = [];
    for (let from = 0; from < group.length; from += MAX_QUEUES)
      chunks.push(group.slice(from, from + MAX_QUEUES));
    return chunks;
  });
}
