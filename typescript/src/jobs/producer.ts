// Enqueues calls. app.ts and job-function.ts use it.
import { derivedId } from "../item-id.js";
import type { Call, Written } from "./call.js";
import type { Stage } from "./envelope.js";
import type { Format } from "./format.js";
import { itemOptions, needsServerTime } from "./options.js";
import type { Store } from "./store.js";

/** What became of a call. */
export interface Enqueued {
  readonly id: string;
  readonly added: boolean;
}

/** Enqueues jobs in one format. */
export class Producer {
  constructor(
    readonly store: Store,
    readonly format: Format,
  ) {}

  /** Enqueues calls, in one call of the server for each queue and 256 of them. Throws SerializationError, BadInputError. */
  async enqueue(calls: readonly Call[]): Promise<Enqueued[]> {
    const written = calls.map((call) => call.written(this.format));
    await Promise.all(calls.map((call) => call.check()));
    const found: Enqueued[] = new Array(calls.length);
    for (const [name, indexes] of byQueue(calls.map((call) => call.options.queue))) {
      const chosen = indexes.map((index) => calls[index] as Call);
      const queue = this.store.queue(name);
      const isTimed = chosen.some((call) => needsServerTime(call.options));
      const time = isTimed ? await this.store.serverTime(queue) : undefined;
      const items = indexes.map((index) => ({
        ...itemOptions((calls[index] as Call).options, time),
        ...(written[index] as Written),
      }));
      const [only] = items;
      const created = only && items.length === 1 ? [await queue.add(only)] : await queue.add(items);
      const added = created.map((when) => when !== 0);
      await this.#forgetEarlier(
        chosen.filter((call, index) => added[index] && call.options.id !== undefined),
      );
      for (const [position, index] of indexes.entries()) {
        found[index] = { id: items[position]?.id ?? "", added: added[position] ?? false };
      }
    }
    return found;
  }

  /** Deletes what stands beside earlier jobs of these ids, and of the stages behind them (LQ-JOB-26, LQ-JOB-29). */
  async #forgetEarlier(calls: readonly Call[]): Promise<void> {
    const jobs = calls.flatMap((call) => [
      { queue: call.options.queue, id: call.options.id },
      ...call.stages,
    ]);
    for (const [name, indexes] of byQueue(jobs.map((job) => job.queue))) {
      await this.store.forget(
        this.store.queue(name),
        indexes.map((index) => jobs[index]?.id ?? ""),
      );
    }
  }
}

/** The stages of a chain behind a job: their ids are derived from its id and their numbers (LQ-JOB-28). */
export function numbered(first: string, stages: readonly Stage[]): Stage[] {
  return stages.map((stage, index) => ({ ...stage, id: derivedId(first, index + 1) }));
}

/** The positions of each name in a list. */
export function byQueue(names: readonly string[]): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const [index, name] of names.entries()) {
    const indexes = found.get(name);
    if (indexes) indexes.push(index);
    else found.set(name, [index]);
  }
  return found;
}
