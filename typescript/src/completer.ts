// Completes the items of a worker: those whose handlers end in one turn of the event loop, in one call. item-run.ts asks it.
import { setImmediate } from "node:timers";
import type { LeasedItem, Queue } from "./queue.js";
import type { FollowUp, HandOff } from "./requests.js";
import { MAX_ENTRIES } from "./scripts.generated.js";
import { isServerAway } from "./server-health.js";

/** The most bytes of results in one call, unless one result alone is longer. */
const MAX_RESULT_BYTES = 4 * 1024 * 1024;

/** An item to complete, and its caller. */
interface Waiting {
  readonly entry: HandOff;
  resolve(completed: boolean): void;
  reject(error: unknown): void;
}

export class Completer {
  readonly #waiting = new Map<Queue, Waiting[]>();

  /** Returns whether this call completed the item. Throws as `Queue.complete` does. */
  complete(
    item: LeasedItem,
    result: string | Uint8Array | undefined,
    followUps: readonly FollowUp[] = [],
  ): Promise<boolean> {
    const entry: HandOff = { ...item.entry, ...(result === undefined ? {} : { result }), followUps };
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) setImmediate(() => this.#sendAll());
      const waiting = this.#waiting.get(item.queue) ?? [];
      this.#waiting.set(item.queue, waiting);
      waiting.push({ entry, resolve, reject });
    });
  }

  #sendAll(): void {
    const all = [...this.#waiting];
    this.#waiting.clear();
    for (const [queue, waiting] of all) {
      for (const group of groups(waiting)) this.#send(queue, group);
    }
  }

  /** Completes a group. An error that one of them can be the cause of is the error of that one: then each is completed alone. */
  async #send(queue: Queue, group: readonly Waiting[]): Promise<void> {
    try {
      const answers = await complete(
        queue,
        group.map(({ entry }) => entry),
      );
      for (const [index, { resolve }] of group.entries()) resolve(answers[index] === true);
    } catch (error) {
      if (group.length === 1 || isServerAway(error)) for (const { reject } of group) reject(error);
      else await Promise.all(group.map((one) => this.#send(queue, [one])));
    }
  }
}

/** Hand-offs are completed by another call, which costs the server more. */
async function complete(queue: Queue, entries: readonly HandOff[]): Promise<readonly boolean[]> {
  if (!entries.some(handsOff)) return await queue.complete(entries);
  return (await queue.completeWith(entries)).map(({ completed }) => completed);
}

const handsOff = ({ followUps = [] }: HandOff): boolean => followUps.length > 0;

/** Splits into what one call takes; hand-offs, which few calls are, go alone. */
function groups(all: readonly Waiting[]): Waiting[][] {
  const found: Waiting[][] = [];
  let group: Waiting[] = [];
  let bytes = 0;
  for (const waiting of all) {
    const { entry } = waiting;
    if (handsOff(entry)) {
      found.push([waiting]);
      continue;
    }
    const { length } = entry.result ?? "";
    if (group.length === 0 || group.length === MAX_ENTRIES || bytes + length > MAX_RESULT_BYTES) {
      group = [];
      bytes = 0;
      found.push(group);
    }
    group.push(waiting);
    bytes += length;
  }
  return found;
}
