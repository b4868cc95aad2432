// Waits for the next change of a job, over few connections. watch.ts waits here.
import { type AbortSignals, pause } from "../blocking.js";
import { now } from "../clock.js";
import { outcome } from "../commands.js";
import type { QueueKeys } from "../keys.js";
import type { ConnectionPool } from "../pool.js";
import { elementTarget } from "../wait-targets.js";
import { changedKey } from "./job-state.js";

/** Waits that block, each on two connections. The others are pauses. */
const MAX_BLOCKED = 16;
/** Until a watch looks again that has no connections, or that was woken and saw nothing new. */
const PAUSE_MS = 250;

/** A change of a job that its worker publishes (LQ-JOB-63). */
export interface Change {
  readonly id: string;
  /** Of the item. */
  readonly attempt: number;
  readonly n: number;
}

/** The waits of one App. All of them throw AbortError when a signal is aborted or the client is closed. */
export class ChangeWaits {
  readonly #pool: ConnectionPool;
  #blocked = 0;

  constructor(pool: ConnectionPool) {
    this.#pool = pool;
  }

  /** Waits until a job has changed so, its outcome is there, or the time is over. Waits for the cap at most, and perhaps for a pause only. */
  async wait(keys: QueueKeys, change: Change, timeMs: number, signals: AbortSignals): Promise<void> {
    if (this.#blocked >= MAX_BLOCKED) return await this.pause(timeMs, signals);
    this.#blocked += 1;
    try {
      await this.#block(keys, change, timeMs, signals);
    } finally {
      this.#blocked -= 1;
    }
  }

  /** Lets a quarter of a second pass, or less if `timeMs` is less. */
  async pause(timeMs: number, signals: AbortSignals): Promise<void> {
    await pause(Math.min(PAUSE_MS, timeMs), [...signals, this.#pool.closing]);
  }

  async #block(keys: QueueKeys, change: Change, timeMs: number, signals: AbortSignals): Promise<void> {
    const { id, attempt, n } = change;
    const isOver = new AbortController();
    const last = { result: { dueInMs: timeMs }, sentAt: now() };
    const waits = [changedKey(keys, id, attempt, n), keys.resultKey(id)].map((list) => {
      const target = elementTarget(list, outcome(keys, [id]));
      return this.#pool.wait(target, Number.POSITIVE_INFINITY, [...signals, isOver.signal], last);
    });
    try {
      await Promise.race(waits);
    } finally {
      isOver.abort();
    }
  }
}
