// Sends to the right node and follows redirections. All that a client sends passes through a ClusterConnection, also to a
// server that is not a cluster.
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisOptions } from "ioredis";
import { now } from "./clock.js";
import type { Command } from "./commands.js";
import { Connection, connectionOptions, type Runner } from "./connection.js";
import type { Confirmed, DurableWait } from "./durability.js";
import type { Argument } from "./encoding.js";
import { LeaseqError } from "./errors.js";
import { groupOfKey } from "./keys.js";
import type { Server } from "./server.js";

/** How many MOVED and ASK one call follows. */
const MAX_REDIRECTS = 16;
/** The pause after TRYAGAIN and CLUSTERDOWN: it doubles from the first to the second. */
const MIN_RETRY_DELAY_MS = 20;
const MAX_RETRY_DELAY_MS = 1000;

/** A node of a cluster, or the one server: its name for look-ups, and how to connect. */
interface Node {
  readonly name: string;
  readonly options: RedisOptions;
}

/**
 * Which node of a cluster has which group, learned from MOVED: all keys of a group are in one slot (LQ-CLUSTER-1). A server
 * that is not a cluster never replies MOVED; then every group is on the first server that was given and can be reached.
 */
export class SlotTable {
  readonly #nodes = new Map<string, Node>();
  readonly #servers: readonly Node[];
  /** Index of the server to use for groups without a known node. */
  #default = 0;

  constructor(servers: readonly Server[]) {
    const given = servers.flatMap((server) => connectionOptions(server));
    this.#servers = given.map((options, index) => ({ name: `given ${index}`, options }));
  }

  /** The node to send commands of a group to. */
  nodeOf(group: string): Node {
    return this.#nodes.get(group) ?? (this.#servers[this.#default] as Node);
  }

  /** A node replied MOVED: `node` has the group now. */
  recordMove(group: string, node: Node): void {
    this.#nodes.set(group, node);
  }

  /** There is no connection to that node: another one may know which node has its groups now. */
  markUnreachable(group: string, node: Node): void {
    if (!this.#nodes.delete(group) && this.#servers[this.#default] === node) {
      this.#default = (this.#default + 1) % this.#servers.length;
    }
  }

  /** How many nodes a call may still try to reach: this one, and the servers that were given. */
  countUntried(node: Node, unreachable: ReadonlySet<string>): number {
    return 1 + this.#servers.filter(({ name }) => name !== node.name && !unreachable.has(name)).length;
  }
}

/** One connection to each node that was needed so far. On a server that is not a cluster, one connection. */
export class ClusterConnection implements Runner {
  readonly #slots: SlotTable;
  readonly #replyTimeoutMs: number;
  readonly #connections = new Map<string, Connection>();
  #closed = false;

  constructor(slots: SlotTable, replyTimeoutMs: number) {
    this.#slots = slots;
    this.#replyTimeoutMs = replyTimeoutMs;
  }

  /** Opens the connection to the node of a key, so that the next command is written at once. */
  async open(key: Argument | undefined): Promise<void> {
    await this.#connection(this.#slots.nodeOf(groupOfKey(key))).open();
  }

  /**
   * Runs a command on the node that has its queue. It is sent again only after a reply that shows that it did not run
   * (LQ-CLUSTER-3), or if it could not be sent.
   */
  async run<Result>(command: Command<Result>, timeoutMs = this.#replyTimeoutMs): Promise<Result> {
    return await this.#sendFollowingRedirects(command.keys[0], timeoutMs, (node, asking, leftMs) =>
      node.run(command, leftMs, asking),
    );
  }

  /** Runs a command and a wait behind it on the node that has its queue, as `run`. */
  async runDurably<Result>(command: Command<Result>, wait: DurableWait): Promise<Confirmed<Result>> {
    return await this.#sendFollowingRedirects(command.keys[0], this.#replyTimeoutMs, (node, asking, leftMs) =>
      node.runDurably(command, wait, leftMs, asking),
    );
  }

  /** Sends a Redis command whose first argument is a key, and follows redirections as `run` does. */
  async sendToSlot(name: string, args: readonly Argument[], timeoutMs: number): Promise<unknown> {
    return await this.#sendFollowingRedirects(args[0], timeoutMs, (node, asking, leftMs) =>
      node.send(name, args, leftMs, asking),
    );
  }

  /** Runs commands on keys of one slot in one transaction; otherwise as `sendToSlot`. An entry that failed is an Error. */
  async transaction(
    key: Argument,
    entries: readonly (readonly [string, ...Argument[]])[],
    timeoutMs: number,
  ): Promise<readonly unknown[]> {
    return await this.#sendFollowingRedirects(key, timeoutMs, (node, _asking, leftMs) =>
      node.transaction(entries, leftMs),
    );
  }

  /**
   * Sends to the node of a key until a node replies to the command itself, within `MAX_REDIRECTS`. Connecting, redirections,
   * pauses and the reply share one limit: the reply timeout for connecting, and `timeoutMs` (LQ-CLUSTER-5).
   */
  async #sendFollowingRedirects<Result>(
    key: Argument | undefined,
    timeoutMs: number,
    send: (node: Connection, asking: boolean, leftMs: number) => Promise<Result>,
  ): Promise<Result> {
    const group = groupOfKey(key);
    const timeoutAt = now() + this.#replyTimeoutMs + timeoutMs;
    const unreachable = new Set<string>();
    let node = this.#slots.nodeOf(group);
    let asking = false;
    let redirects = 0;
    for (let delayMs = MIN_RETRY_DELAY_MS; ; ) {
      try {
        const connection = this.#connection(node);
        if (!connection.isReady) {
          await connection.open((timeoutAt - now()) / this.#slots.countUntried(node, unreachable));
        }
        return await send(connection, asking, Math.min(timeoutMs, Math.max(1, timeoutAt - now())));
      } catch (error) {
        if (!(error instanceof LeaseqError && error.definite) || now() >= timeoutAt) throw error;
        asking = error.code === "ASK";
        if (error.code === "MOVED" || asking) {
          if (++redirects > MAX_REDIRECTS) throw error;
          node = nodeFromRedirect(error.message, node);
          if (!asking) this.#slots.recordMove(group, node);
        } else if (error.code === "TRYAGAIN" || error.code === "CLUSTERDOWN") {
          if (now() + delayMs > timeoutAt) throw error;
          await sleep(delayMs);
          delayMs = Math.min(2 * delayMs, MAX_RETRY_DELAY_MS);
          node = this.#slots.nodeOf(group);
        } else if (error.code === "CONNECTION") {
          unreachable.add(node.name);
          this.#slots.markUnreachable(group, node);
          node = this.#slots.nodeOf(group);
          if (this.#closed || unreachable.has(node.name)) throw error;
        } else {
          throw error;
        }
      }
    }
  }

  /** Sends a Redis command whose first argument is a key, once. For blocks: their waiter checks again anyway. */
  async sendOnce(name: string, args: readonly Argument[], timeoutMs: number): Promise<unknown> {
    return await this.#connection(this.#slots.nodeOf(groupOfKey(args[0]))).send(name, args, timeoutMs);
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#connections.values()) connection.close();
  }

  #connection(node: Node): Connection {
    const connection = this.#connections.get(node.name) ?? new Connection(node.options, this.#replyTimeoutMs);
    if (this.#closed) connection.close();
    this.#connections.set(node.name, connection);
    return connection;
  }
}

/** The node of `MOVED <slot> <host>:<port>`, or ASK. Without a host it is the host of the node that replied. */
function nodeFromRedirect(message: string, sender: Node): Node {
  const { path: _path, sentinels: _sentinels, ...options } = sender.options;
  const address = message.split(" ")[2] ?? "";
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon) || options.host || "localhost";
  const port = Number(address.slice(colon + 1));
  return { name: `${host}:${port}`, options: { ...options, host, port } };
}
