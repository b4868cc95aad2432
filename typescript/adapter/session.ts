// The state of an actor: its queues, its leased items and its worker loops.
import { EventEmitter, once } from "node:events";
import type { Client, LeasedItem, Queue, Worker } from "leaseq";
import { bytes, type Json, lease } from "./values.js";

/** A request that the adapter cannot carry out, whatever the client can do. */
export class HarnessError extends Error {}

/** A queue that the actor has opened. */
interface OpenQueue {
  readonly queue: Queue;
  /** Aborted when the queue is closed: ends the calls that wait on it. */
  readonly closing: AbortController;
}

/** A running worker, and how to let its handlers return. */
interface WorkerLoop {
  readonly worker: Worker;
  finish(): void;
  /** Lets the handlers that run now return. */
  endHandlers(): void;
  /** Resolves when `count` more items have reached handlers. */
  handedOut(count: number): Promise<void>;
  readonly completed: Promise<number>;
}

export class Session {
  readonly #queues = new Map<string, OpenQueue>();
  readonly #leases = new Map<string, LeasedItem>();
  readonly #loops = new Map<string, WorkerLoop>();

  constructor(readonly client: Client) {}

  open(handle: string, name: string, group: string | null): void {
    if (this.#queues.has(handle)) throw new HarnessError(`queue ${handle} is open already`);
    const queue = this.client.queue(name, group === null ? {} : { group });
    this.#queues.set(handle, { queue, closing: new AbortController() });
  }

  close(handle: string): void {
    this.#of(handle).closing.abort();
    this.#queues.delete(handle);
  }

  queue(handle: string | null): Queue {
    return this.#of(handle).queue;
  }

  closing(handle: string): AbortSignal {
    return this.#of(handle).closing.signal;
  }

  #of(handle: string | null): OpenQueue {
    const open = this.#queues.get(handle ?? "");
    if (!open) throw new HarnessError(`queue ${handle} is not open`);
    return open;
  }

  /** Starts the client's worker loop on a queue. Its handlers return when `finish` or `endHandlers` is called. */
  work(handle: string | null, concurrency: number): void {
    let finish = () => {};
    let finished = Promise.resolve();
    const renewFinished = () => {
      finished = new Promise<void>((resolve) => {
        finish = resolve;
      });
    };
    renewFinished();
    const endHandlers = () => {
      const end = finish;
      renewFinished();
      end();
    };
    const itemEvents = new EventEmitter();
    let handedOutCount = 0;
    const worker = this.client.worker(
      this.queue(handle),
      () => {
        handedOutCount += 1;
        itemEvents.emit("item");
        return finished;
      },
      { concurrency },
    );
    const handedOut = async (count: number) => {
      while (handedOutCount < count) await once(itemEvents, "item");
      handedOutCount -= count;
    };
    const completed = worker.run();
    completed.catch(() => {}); // `finish` reports it
    this.#loops.set(handle ?? "", { worker, finish: () => finish(), endHandlers, handedOut, completed });
  }

  loop(handle: string | null): WorkerLoop {
    const loop = this.#loops.get(handle ?? "");
    if (!loop) throw new HarnessError(`there is no loop on ${handle}`);
    return loop;
  }

  leased(leases: readonly LeasedItem[]): Json {
    const [first] = leases;
    if (!first) return { queue: null, leases: [] };
    const [handle] = [...this.#queues].find(([, open]) => open.queue === first.queue) ?? [""];
    for (const held of leases) this.#leases.set(key(handle, held.id, String(held.token)), held);
    return { queue: handle, leases: leases.map(lease) };
  }

  held(handle: string | null, entry: Json): LeasedItem {
    const found = this.#leases.get(key(handle ?? "", bytes(entry.id), String(entry.token)));
    if (!found) throw new HarnessError(`this actor was not given the lease ${entry.token}`);
    return found;
  }
}

const key = (handle: string, id: Buffer, token: string) => `${token} ${id.toString("hex")} ${handle}`;
