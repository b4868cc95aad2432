// Completes the items of a worker. Those whose handlers end in the same turn of the event loop share a call.
// Called by item-run.ts.
import { setImmediate } from "node:timers";
import type { LeasedItem, Queue } from "./queue.js";
import type { FollowUp, HandOff } from "./requests.js";
import { MAX_ENTRIES } from "./scripts.generated.js";
import { isServerAway } from "./server-health.js";

/** The most bytes of results in one call (characters, if they are text), unless one result alone is longer. */
const MAX_RESULT_LENGTH = 4 * 1024 * 1024;

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
    const entry: HandOff = { followUps, result, ...item.entry };
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

  /**
   * Completes a group. If the call fails, each is completed alone, so that the error reaches only the item that caused it.
   * If the server is away, all get the error.
   */
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

/** Completes entries. Only those with follow-ups need `completeWith`, which costs the server more. */
async function complete(queue: Queue, entries: readonly HandOff[]): Promise<readonly boolean[]> {
  if (!entries.some(handsOff)) return await queue.complete(entries);
  return (await queue.completeWith(entries)).map(({ completed }) => completed);
}

const handsOff = ({ followUps = [] }: HandOff): boolean => followUps.length > 0;

/** Splits into groups of what one call takes. An entry with follow-ups is rare, and is a group alone. */
function groups(all: readonly Waiting[]): Waiting[][] {
  const found: Waiting[][] = [];
  let group: Waiting[] = [];
  let total = 0;
  for (const waiting of all) {
    const { entry } = waiting;
    if (handsOff(entry)) {
      found.push([waiting]);
      continue;
    }
    const { length } = entry.result ?? "";
    if (group.length === 0 || group.length === MAX_ENTRIES || total + length > MAX_RESULT_LENGTH) {
      group = [];
      total = 0;
      found.push(group);
    }
    group.push(waiting);
    total += length;
  }
  return found;
}
