import { setTimeout as sleep } from "node:timers/promises";
import type { RedisOptions } from "ioredis";
import type { Call } from "./commands.js";
import { Connection, connectionOptions, type Runner, type Server } from "./connection.js";
import { LeaseqError } from "./errors.js";
import { groupOf } from "./keys.js";
import type { Word } from "./wire.js";

const MOST_REDIRECTIONS = 16;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1000;

interface Node {
  readonly name: string;
  readonly options: RedisOptions;
}

/**
 * Which node of a cluster has which group, learned from its answers MOVED: all keys of a group are in one slot
 * (LQ-CLUSTER-1). A server that is no cluster never says so, and then this is always the first of those given.
 */
export class Places {
  readonly #known = new Map<string, Node>();
  readonly #given: readonly Node[];
  #first = 0;

  constructor(given: readonly Server[]) {
    this.#given = given.map((to, index) => ({ name: `given ${index}`, options: connectionOptions(to) }));
  }

  of(group: string): Node {
    return this.#known.get(group) ?? (this.#given[this.#first] as Node);
  }

  moved(group: string, node: Node): void {
    this.#known.set(group, node);
  }

  /** No connection to that node: another one may know who has its groups now. */
  lost(group: string, node: Node): void {
    if (!this.#known.delete(group) && this.#given[this.#first] === node) {
      this.#first = (this.#first + 1) % this.#given.length;
    }
  }
}

/** A connection to each node that it was led to. On a server that is no cluster it is one connection. */
export class Route implements Runner {
  readonly #places: Places;
  readonly #patience: number;
  readonly #connections = new Map<string, Connection>();
  #closed = false;

  constructor(places: Places, patience: number) {
    this.#places = places;
    this.#patience = patience;
  }

  /** Resolves when the next command about that key is written at once. */
  async open(key: Word | undefined): Promise<void> {
    await this.#connection(this.#places.of(groupOf(key))).open();
  }

  /**
   * Sends a call to the node that has its queue. It is sent again only after an answer that says that it did not run
   * (LQ-CLUSTER-3), or where it could not be sent.
   */
  async run<Answer>(call: Call<Answer>, patience = this.#patience): Promise<Answer> {
    return await this.#reach(call.keys[0], patience, (node, asking) => node.run(call, patience, asking));
  }

  /** A command whose first argument is a key, sent as `run` sends a call. */
  async follow(name: string, args: readonly Word[], patience: number): Promise<unknown> {
    return await this.#reach(args[0], patience, (node, asking) => node.command(name, args, patience, asking));
  }

  async #reach<Answer>(
    key: Word | undefined,
    patience: number,
    send: (node: Connection, asking: boolean) => Promise<Answer>,
  ): Promise<Answer> {
    const group = groupOf(key);
    const giveUp = performance.now() + patience;
    const unreached = new Set<string>();
    let node = this.#places.of(group);
    let asking = false;
    let redirections = 0;
    for (let pause = FIRST_PAUSE_MS; ; ) {
      try {
        return await send(this.#connection(node), asking);
      } catch (error) {
        if (!(error instanceof LeaseqError && error.definite)) throw error;
        asking = error.code === "ASK";
        if (error.code === "MOVED" || asking) {
          if (++redirections > MOST_REDIRECTIONS) throw error;
          node = namedIn(error.message, node);
          if (!asking) this.#places.moved(group, node);
        } else if (error.code === "TRYAGAIN" || error.code === "CLUSTERDOWN") {
          if (performance.now() + pause > giveUp) throw error;
          await sleep(pause);
          pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
          node = this.#places.of(group);
        } else if (error.code === "CONNECTION") {
          unreached.add(node.name);
          this.#places.lost(group, node);
          node = this.#places.of(group);
          if (this.#closed || unreached.has(node.name)) throw error;
        } else {
          throw error;
        }
      }
    }
  }

  /** A command whose first argument is a key, sent once: a block, after whose end its waiter looks anyway. */
  async command(name: string, args: readonly Word[], patience: number): Promise<unknown> {
    return await this.#connection(this.#places.of(groupOf(args[0]))).command(name, args, patience);
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#connections.values()) connection.close();
  }

  #connection(node: Node): Connection {
    const made = this.#connections.get(node.name) ?? new Connection(node.options, this.#patience);
    if (this.#closed) made.close();
    this.#connections.set(node.name, made);
    return made;
  }
}

/** `MOVED <slot> <host>:<port>`; without a host it is that of the node that says so. */
function namedIn(message: string, by: Node): Node {
  const { path: _path, sentinels: _sentinels, ...options } = by.options;
  const address = message.split(" ")[2] ?? "";
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon) || options.host || "localhost";
  const port = Number(address.slice(colon + 1));
  return { name: `${host}:${port}`, options: { ...options, host, port } };
}
