// The state of an actor: its queues, its leased items and its worker loops.
import { EventEmitter, once } from "node:events";
import type { Client, LeasedItem, Queue, Worker } from "leaseq";
import { App, type Format } from "leaseq/jobs";
import { bytes, type Json, lease, workerOptions } from "./values.js";

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
  /** Ends the handlers that run now, as `endHandler` does. */
  endHandlers(how?: string): void;
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

  /** The App whose jobs go to the queue. */
  app(handle: string | null, format: Format): App {
    const { name, group } = this.queue(handle);
    return new App(this.client, { group, queue: name, format });
  }

  closing(handle: string): AbortSignal {
    return this.#of(handle).closing.signal;
  }

  #of(handle: string | null): OpenQueue {
    const open = this.#queues.get(handle ?? "");
    if (!open) throw new HarnessError(`queue ${handle} is not open`);
    return open;
  }

  /** Starts the client's worker loop on a queue and those of `also`. Its handlers end when `endHandlers` is called. */
  work(handle: string | null, args: Json): void {
    const itemEvents = new EventEmitter().setMaxListeners(0);
    let handedOutCount = 0;
    const worker = this.client.worker(
      [handle, ...((args.also ?? []) as string[])].map((name) => this.queue(name)),
      async () => {
        handedOutCount += 1;
        itemEvents.emit("item");
        const [how] = await once(itemEvents, "end");
        return endHandler(how);
      },
      workerOptions(args),
    );
    const endHandlers = (how?: string) => void itemEvents.emit("end", how);
    const handedOut = async (count: number) => {
      while (handedOutCount < count) await once(itemEvents, "item");
      handedOutCount -= count;
    };
    const completed = worker.run();
    completed.catch(() => {}); // `finish` reports it
    this.#loops.set(handle ?? "", { worker, endHandlers, handedOut, completed });
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

/** Ends a handler: well, by what it throws, or with work that nothing waited for. */
function endHandler(how: string | undefined): unknown {
  if (how === "raise") throw new Error("handler failed");
  if (how === "panic") throw Object.create(null);
  if (how === "cancel") throw AbortSignal.abort().reason;
  return how === "unfinished" ? [Promise.resolve()] : undefined;
}

const key = (handle: string, id: Buffer, token: string) => `${token} ${id.toString("hex")} ${handle}`;
