// Waits for the ends of many jobs of one queue, over few connections. handle.ts waits here.
import { setTimeout as sleep } from "node:timers/promises";
import { onAbort } from "../aborts.js";
import type { WaitOptions } from "../blocking.js";
import type { Outcome, State } from "../codecs.generated.js";
import { AbortError } from "../errors.js";
import type { Queue } from "../queue.js";

/** Waits that block, each on a connection. The others are asked for together, again and again. */
const MAX_BLOCKED = 16;
/** Between two times of asking: doubled each time in which no job has ended. */
const MIN_PAUSE_MS = 20;
const MAX_PAUSE_MS = 250;

/** States from which an outcome may come. */
export const WAITING: ReadonlySet<string> = new Set<State>(["ready", "delayed", "leased"]);

/** Whether an item may yet have an outcome. */
export const mayEnd = (outcome: Outcome): boolean => WAITING.has(outcome.state) && outcome.keep > 0;

/** What the item is that was `before`: absent if there is another item of this id by now (LQ-BLOCK-13). */
const unlessReplaced = (before: Outcome, outcome: Outcome): Outcome =>
  outcome.created !== 0 && outcome.created !== before.created ? { ...outcome, state: "absent" } : outcome;

/** A wait that is asked for together with others. */
class PolledWait {
  readonly promise: Promise<Outcome>;
  latest: Outcome;
  resolve!: (outcome: Outcome) => void;
  reject!: (error: unknown) => void;

  constructor(
    readonly id: string,
    first: Outcome,
  ) {
    this.latest = first;
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  /** What the item is now. It is over too if there is another item of this id by now. */
  note(outcome: Outcome): boolean {
    this.latest = unlessReplaced(this.latest, outcome);
    if (mayEnd(this.latest)) return false;
    this.resolve(this.latest);
    return true;
  }
}

/** The waits for jobs of one queue. */
export class ResultWaits {
  readonly #queue: Queue;
  #blocked = 0;
  readonly #polled = new Set<PolledWait>();
  #isPolling = false;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** Returns the outcome of a job once there is one, or what it is when it cannot have one or `timeout` is over. */
  async outcome(id: string, options: WaitOptions): Promise<Outcome> {
    const { timeout = Number.POSITIVE_INFINITY, signal } = options;
    if (signal?.aborted) throw new AbortError(signal.reason);
    const first = await this.#queue.outcome(id);
    if (!mayEnd(first) || timeout <= 0) return first;
    return this.#blocked < MAX_BLOCKED
      ? unlessReplaced(first, await this.#block(id, options))
      : await this.#poll(id, first, options);
  }

  async #block(id: string, options: WaitOptions): Promise<Outcome> {
    this.#blocked += 1;
    try {
      return await this.#queue.waitForOutcome(id, options);
    } finally {
      this.#blocked -= 1;
    }
  }

  async #poll(id: string, first: Outcome, { timeout, signal }: WaitOptions): Promise<Outcome> {
    const wait = new PolledWait(id, first);
    this.#polled.add(wait);
    const leave = onAbort(signal ? [signal] : [], () => wait.reject(new AbortError(signal?.reason)));
    const isLimited = timeout !== undefined && timeout < 2 ** 31;
    const timer = isLimited ? setTimeout(() => wait.resolve(wait.latest), timeout) : undefined;
    if (!this.#isPolling) this.#askAgainAndAgain();
    try {
      return await wait.promise;
    } finally {
      this.#polled.delete(wait);
      clearTimeout(timer);
      leave();
    }
  }

  async #askAgainAndAgain(): Promise<void> {
    this.#isPolling = true;
    let pauseMs = MIN_PAUSE_MS;
    while (this.#polled.size > 0) {
      await sleep(pauseMs);
      const hasEnded = await this.#ask();
      pauseMs = hasEnded ? MIN_PAUSE_MS : Math.min(2 * pauseMs, MAX_PAUSE_MS);
    }
    this.#isPolling = false;
  }

  /** Asks for all. Returns whether any has ended. Never throws. */
  async #ask(): Promise<boolean> {
    const waits = [...this.#polled];
    const ids = [...new Set(waits.map(({ id }) => id))];
    try {
      const outcomes = await this.#queue.outcome(ids);
      const byId = new Map(ids.map((id, index) => [id, outcomes[index] as Outcome]));
      return waits.filter((wait) => wait.note(byId.get(wait.id) as Outcome)).length > 0;
    } catch (error) {
      for (const wait of waits) wait.reject(error);
      return true;
    }
  }
}
