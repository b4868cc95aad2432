// The loop `for await (const item of queue.items(...))`. A generator cannot be ended while it waits for an item; this can.
import { AbortError } from "./errors.js";
import type { LeasedItem, LeasingQueue } from "./leased-item.js";

/** Leases items, until the signal is aborted; an empty array when the time is up. */
type Lease<Item> = (ended: AbortSignal) => Promise<Item[]>;

/**
 * Hands out leased items one after the other. `return`, as by `break`, ends a wait at once, and releases uncounted what was leased
 * and not handed out. An item whose lease is over is not handed out.
 */
export class ItemStream<Q extends LeasingQueue> implements AsyncGenerator<LeasedItem<Q>, void, void> {
  readonly #lease: Lease<LeasedItem<Q>>;
  readonly #signals: readonly AbortSignal[];
  readonly #end = new AbortController();
  #leased: LeasedItem<Q>[] = [];
  /** Each step waits for the one before. */
  #last: Promise<unknown> = Promise.resolve();

  /** `signals` end the stream without an error. */
  constructor(lease: Lease<LeasedItem<Q>>, signals: readonly AbortSignal[]) {
    this.#lease = lease;
    this.#signals = [...signals, this.#end.signal];
  }

  next(): Promise<IteratorResult<LeasedItem<Q>, void>> {
    const step = this.#last.then(() => this.#next());
    this.#last = step.catch(() => {});
    return step;
  }

  async return(): Promise<IteratorResult<LeasedItem<Q>, void>> {
    this.#end.abort();
    await this.#last;
    await this.#giveBack(this.#leased.splice(0));
    return { done: true, value: undefined };
  }

  async throw(error: unknown): Promise<IteratorResult<LeasedItem<Q>, void>> {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  async #next(): Promise<IteratorResult<LeasedItem<Q>, void>> {
    while (!this.#isEnded) {
      const item = this.#leased.shift();
      if (!item) {
        if (!(await this.#leaseMore())) break;
      } else if (item.held) {
        return { done: false, value: item };
      } else {
        await this.#giveBack([item]);
      }
    }
    this.#end.abort();
    await this.#giveBack(this.#leased.splice(0));
    return { done: true, value: undefined };
  }

  /** Returns false when the time is up, or the stream was ended. An error ends it too. */
  async #leaseMore(): Promise<boolean> {
    try {
      this.#leased = await this.#lease(this.#end.signal);
    } catch (error) {
      if (error instanceof AbortError && this.#isEnded) return false;
      this.#end.abort();
      throw error;
    }
    return this.#leased.length > 0;
  }

  get #isEnded(): boolean {
    return this.#signals.some((signal) => signal.aborted);
  }

  /** Releases items as if they had not been leased. If that fails, they come back when their lease is over. */
  async #giveBack(items: readonly LeasedItem<Q>[]): Promise<void> {
    await Promise.all(items.map((item) => item.release({ uncounted: true }).catch(() => {})));
  }
}
