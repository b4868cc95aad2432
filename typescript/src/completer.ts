// Completes the items of a worker. Those whose handlers end in the same turn of the event loop share a call.
// Called by item-run.ts.
import { setImmediate } from "node:timers";
import { Gatherer } from "./gatherer.js";
import type { LeasedItem, Queue } from "./queue.js";
import type { FollowUp, HandOff } from "./requests.js";

export class Completer {
  readonly #byQueue = new Map<Queue, Gatherer<HandOff, boolean>>();

  /** Returns whether this call completed the item. Throws as `Queue.complete` does. */
  async complete(
    item: LeasedItem,
    result: string | Uint8Array | undefined,
    followUps: readonly FollowUp[] = [],
  ): Promise<boolean> {
    const entry: HandOff = { followUps, result, ...item.entry };
    const { queue } = item;
    // An entry with follow-ups is rare, and goes alone. The others need no `completeWith`, which costs the server more.
    if (followUps.length > 0) return (await queue.completeWith(entry)).completed;
    let gatherer = this.#byQueue.get(queue);
    if (!gatherer) {
      gatherer = new Gatherer({
        atOnce: Number.POSITIVE_INFINITY,
        defer: setImmediate,
        length: ({ result = "" }) => result.length,
        call: (entries) => queue.complete(entries),
      });
      this.#byQueue.set(queue, gatherer);
    }
    return await gatherer.run(entry);
  }
}
