import { type LeaseOptions, leaseAim } from "./aims.js";
import type { Server } from "./connection.js";
import { Connections } from "./connections.js";
import { BadArgumentError } from "./errors.js";
import { Address } from "./keys.js";
import type { Lease } from "./lease.js";
import { type LiveWorker, liveWorkers } from "./live.js";
import { Queue } from "./queue.js";
import { MAX_QUEUES } from "./scripts.generated.js";
import { type Aim, type Begun, checkedTimeout, lookOnce, now } from "./waiting.js";
import { type Handler, Worker, type WorkerOptions } from "./worker.js";

/** Node's timers end at once beyond that. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface ClientOptions {
  /** Milliseconds after which a call without a reply has failed, and its connection is given up; 10000 without it. */
  replyTimeout?: number;
}

/** The connections to one server or cluster, opened when they are needed, and the queues on it. */
export class Client {
  readonly #connections: Connections;
  readonly #replyTimeout: number;

  /** One server, or several nodes of a cluster, one of which has to be there for the others to be found. */
  constructor(to: Server | readonly Server[], options: ClientOptions = {}) {
    const given = Array.isArray(to) ? (to as readonly Server[]) : [to as Server];
    if (given.length === 0) throw new BadArgumentError("no servers");
    const { replyTimeout = 10_000 } = options;
    if (!(replyTimeout > 0 && replyTimeout <= LONGEST_TIMER_MS)) {
      throw new BadArgumentError(`replyTimeout is a number of milliseconds above 0, not ${replyTimeout}`);
    }
    this.#replyTimeout = replyTimeout;
    this.#connections = new Connections(given, this.#replyTimeout);
  }

  /**
   * A queue, which need not be there before. Queues of one group can hand items on to each other and are waited for
   * together; without a group, a queue is alone in its own. Throws BadArgumentError for what is no name (LQ-KEY-2).
   */
  queue(name: string, options: { group?: string } = {}): Queue {
    return new Queue(this, this.#connections, new Address(name, options.group));
  }

  /**
   * Leases from the first queue that has something: strict precedence; who wants turns changes the order from call to
   * call. Up to 16 queues of one group take one call (LQ-ANY-1), each group has a connection of its own
   * (LQ-CLUSTER-2). An empty array when the time is up. Throws as `Queue.lease`.
   */
  async leaseAny(queues: readonly Queue[], options: LeaseOptions): Promise<Lease[]> {
    if (queues.length === 0) throw new BadArgumentError("no queues");
    if (queues.some((queue) => queue.client !== this)) {
      throw new BadArgumentError("the queues are not all of this client");
    }
    const { signal } = options;
    const timeout = checkedTimeout(options.timeout ?? 0);
    const lanes = this.#connections;
    const aims = byGroup(queues).map((group) => leaseAim(group, options, lanes));
    const [only] = aims;
    if (only && aims.length === 1) return (await lanes.wait(only, timeout, [signal])) ?? [];

    // Group by group, as long as nobody has to block.
    const giveUp = now() + timeout;
    const looks: Begun<Lease[]>[] = [];
    for (const aim of aims) {
      const begun = await lookOnce(aim, lanes.shared);
      if ("found" in begun.look) return begun.look.found;
      looks.push(begun);
    }
    return await this.#race(aims, looks, giveUp - now(), signal);
  }

  /**
   * A worker on one queue or several, by strict precedence as `leaseAny`: `run` leases, and gives each item to the handler.
   * It says on the server that it lives and what it holds.
   */
  worker(queues: Queue | readonly Queue[], handler: Handler, options: WorkerOptions = {}): Worker {
    const all = Array.isArray(queues) ? (queues as readonly Queue[]) : [queues as Queue];
    return new Worker(this, this.#connections, all, handler, options);
  }

  /** The workers, of all clients, that say that they live: for people who look (LQ-WORKER-5). */
  async liveWorkers(): Promise<LiveWorker[]> {
    return await liveWorkers(this.#connections.shared, this.#replyTimeout);
  }

  /** Ends every wait, with an AbortError, and closes the connections. */
  async close(): Promise<void> {
    await this.#connections.close();
  }

  /** Each group blocks on a connection of its own. The first that finds something ends the others. */
  async #race(
    aims: readonly Aim<Lease[]>[],
    looks: readonly Begun<Lease[]>[],
    timeout: number,
    signal: AbortSignal | undefined,
  ): Promise<Lease[]> {
    const over = new AbortController();
    let winner: Lease[] | undefined;
    let failure: { error: unknown } | undefined;
    await Promise.all(
      aims.map(async (aim, index) => {
        try {
          const found = await this.#connections.wait(aim, timeout, [signal, over.signal], looks[index]);
          if (!found) return;
          if (winner) await aim.giveBack?.(found).catch(() => {});
          else winner = found;
        } catch (error) {
          // What the others throw because of the end is not its cause.
          if (!over.signal.aborted) failure ??= { error };
        }
        over.abort();
      }),
    );
    if (winner) return winner;
    if (failure) throw failure.error;
    return [];
  }
}

function byGroup(queues: readonly Queue[]): Queue[][] {
  const groups = new Map<string, Queue[]>();
  for (const queue of queues) {
    const { group } = queue.address;
    groups.set(group, [...(groups.get(group) ?? []), queue]);
  }
  // More than one call takes are asked as several groups are.
  return [...groups.values()].flatMap((group) => {
    const parts: Queue[][] = [];
    for (let from = 0; from < group.length; from += MAX_QUEUES)
      parts.push(group.slice(from, from + MAX_QUEUES));
    return parts;
  });
}
