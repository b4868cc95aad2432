// The connections of a client, and its tasks in the background. client.ts creates the one pool; queues and waits use it.
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ConnectionProvider,
  type TimedCheck,
  untilAborted,
  type WaitTarget,
  waitFor,
} from "./blocking.js";
import { now, within } from "./clock.js";
import { ClusterConnection, SlotTable } from "./cluster.js";
import type { Command } from "./commands.js";
import type { Confirmed, DurableWait } from "./durability.js";
import { UnavailableError } from "./errors.js";
import { Heartbeater } from "./heartbeat.js";
import { type QueueKeys, REGISTRY } from "./keys.js";
import type { Logger } from "./logger.js";
import { WAIT_CAP_MS } from "./scripts.generated.js";
import type { Server } from "./server.js";

/** How many connections to block on are kept for later waiters. */
const MAX_IDLE_CONNECTIONS = 16;
/** A queue is registered again after this time, in case the server lost its registry. */
const REGISTRATION_REFRESH_MS = 300_000;
/** How long `close` waits for replies. A server that is silent gives none. */
const CLOSE_TIMEOUT_MS = 2000;
/** How long `close` waits for the registration of a queue. */
const CLOSE_REGISTRATION_TIMEOUT_MS = 1000;

/**
 * The connections of a client: one shared by all calls, one for heartbeats, and one for each waiter. It also tracks the tasks
 * in the background, which `close` waits for.
 */
export class ConnectionPool implements ConnectionProvider {
  /** For all calls that do not block. */
  readonly shared: ClusterConnection;
  /** For extensions by heartbeats. Their timeout is short, and a timeout closes the connection. */
  readonly heartbeatConnection: ClusterConnection;
  readonly heartbeater = new Heartbeater();
  /** How long a reply may take. */
  readonly replyTimeoutMs: number;
  readonly #create: () => ClusterConnection;
  readonly #closing = new AbortController();
  /** Connections to block on that no waiter uses. */
  #idle: ClusterConnection[] = [];
  /** Connections that waiters released, with the commands whose replies are pending on them. */
  readonly #settling = new Map<ClusterConnection, readonly Command<unknown>[]>();
  /** Connections of calls that wait for durability. */
  readonly #waiting = new Set<ClusterConnection>();
  /** Tasks that `close` waits for. */
  readonly #background = new Set<Promise<unknown>>();
  /** When each queue was last registered. */
  readonly #registeredAt = new Map<string, number>();

  constructor(
    servers: readonly Server[],
    replyTimeoutMs: number,
    readonly logger: Logger,
  ) {
    const slots = new SlotTable(servers);
    this.replyTimeoutMs = replyTimeoutMs;
    this.#create = () => new ClusterConnection(slots, replyTimeoutMs);
    this.shared = this.#create();
    this.heartbeatConnection = this.#create();
  }

  /** A connection to block on. Give it back with `release`. */
  acquire(): ClusterConnection {
    return this.#idle.pop() ?? this.#create();
  }

  /** Aborted when the client is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** A separate connection. The caller closes it. */
  dedicated(): ClusterConnection {
    return this.#create();
  }

  /** See `ConnectionProvider`. The connection is kept for the next waiter once `settle` was replied to. */
  release(connection: ClusterConnection, settle: readonly Command<unknown>[], failed: boolean): void {
    // Without a command to settle, nothing shows when the block is over, and the next waiter's block would wait for that.
    if (failed && settle.length === 0) {
      connection.close();
      return;
    }
    if (this.#closing.signal.aborted) {
      connection.close();
      this.#settleElsewhere(settle);
      return;
    }
    // Sent behind a block that may still be under way, so that the block cannot take a wake-up afterwards.
    this.#settling.set(connection, settle);
    this.inBackground(
      Promise.all(settle.map((command) => connection.run(command, 2 * WAIT_CAP_MS))).finally(() => {
        if (!this.#settling.delete(connection)) return;
        if (this.#idle.length < MAX_IDLE_CONNECTIONS) this.#idle.push(connection);
        else connection.close();
      }),
    );
  }

  /** Waits until the time is up, a signal is aborted or the client is closed. */
  wait<Found>(
    target: WaitTarget<Found>,
    timeout: number,
    signals: readonly AbortSignal[],
    first?: TimedCheck<Found>,
  ): Promise<Found | undefined> {
    const all = [...signals, this.#closing.signal];
    const waiting = waitFor(target, this, timeout, all, first);
    this.inBackground(waiting);
    return target.releaseFound ? untilAborted(waiting, all) : waiting;
  }

  /** Runs a command and a wait behind it, on a separate connection: a wait holds up what is sent behind it. */
  async runDurably<Result>(command: Command<Result>, wait: DurableWait): Promise<Confirmed<Result>> {
    if (this.#closing.signal.aborted) throw new UnavailableError("the client is closed");
    const connection = this.acquire();
    this.#waiting.add(connection);
    let failed = true;
    try {
      const running = connection.runDurably(command, wait);
      this.inBackground(running);
      const confirmed = await running;
      failed = confirmed.reached === undefined;
      return confirmed;
    } finally {
      this.#waiting.delete(connection);
      this.release(connection, [], failed);
    }
  }

  /** Registers a queue in the background, after a call that added or leased. No call waits for it or fails by it (LQ-REGISTRY-3). */
  register(keys: QueueKeys): void {
    const last = this.#registeredAt.get(keys.registryEntry);
    if (last !== undefined && now() - last < REGISTRATION_REFRESH_MS) return;
    this.#registeredAt.set(keys.registryEntry, now());
    // The reply timeout is that of every call, because replies of calls on the same connection come behind this one.
    const registered = this.shared.sendToSlot("SADD", [REGISTRY, keys.registryEntry], this.replyTimeoutMs);
    this.inBackground(
      Promise.race([registered, sleep(CLOSE_REGISTRATION_TIMEOUT_MS, undefined, { ref: false })]),
    );
  }

  /** Takes a queue out of the registry (LQ-DELETE-3). The next call that adds or leases enters it again. Never throws. */
  async unregister(keys: QueueKeys): Promise<void> {
    await this.shared.sendToSlot("SREM", [REGISTRY, keys.registryEntry], this.replyTimeoutMs).catch(() => {});
    this.#registeredAt.delete(keys.registryEntry);
  }

  /** Runs a task to its end and ignores its errors. `close` waits for it. */
  inBackground(task: Promise<unknown>): void {
    const ended = task.catch(() => {}).finally(() => this.#background.delete(ended));
    this.#background.add(ended);
  }

  /** Ends every wait and heartbeat, waits for the tasks in the background, and closes all connections. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the client is closed"));
    this.heartbeater.close();
    // The blocks of released connections may take 4 s to end. Instead of waiting, settle on the shared connection.
    for (const [connection, settle] of this.#settling) {
      this.#settling.delete(connection);
      connection.close();
      this.#settleElsewhere(settle);
    }
    await within(this.#backgroundEnd(), CLOSE_TIMEOUT_MS);
    for (const connection of [...this.#idle, ...this.#waiting]) connection.close();
    this.#idle = [];
    this.shared.close();
    this.heartbeatConnection.close();
  }

  /** Resolves when no task runs in the background: one may start another. */
  async #backgroundEnd(): Promise<void> {
    while (this.#background.size > 0) await Promise.all(this.#background);
  }

  /** Sends `settle` on the shared connection, when the connection of the waiter is closed. */
  #settleElsewhere(settle: readonly Command<unknown>[]): void {
    for (const command of settle) this.inBackground(this.shared.run(command));
  }
}
