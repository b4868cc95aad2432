// Notes about the jobs that run here (LQ-JOB-10), for those that look at them.
import type { LeasedItem } from "../queue.js";
import { NOTE_LIFE_MS, type RunningNote } from "./job-state.js";
import type { Store } from "./store.js";

/** How often notes are written. A job that is over by then has none. */
const INTERVAL_MS = 250;

interface Entry {
  note: RunningNote;
  /** When it is to be written next, in ms since 1970; 0: as soon as can be. */
  writeAt: number;
  /** How often it was written. */
  written: number;
}

/** Writes notes about running jobs. Its errors do not concern the work. */
export class ProgressReporter {
  readonly #store: Store;
  readonly #worker: string;
  readonly #entries = new Map<LeasedItem, Entry>();
  #timer: NodeJS.Timeout | undefined;

  constructor(store: Store, worker: string) {
    this.#store = store;
    this.#worker = worker;
  }

  /** A job starts. */
  start(item: LeasedItem, started: number): void {
    const note = { token: item.token, worker: this.#worker, started };
    this.#entries.set(item, { note, writeAt: 0, written: 0 });
    this.#timer ??= setInterval(() => this.#write(), INTERVAL_MS).unref();
  }

  /** A job reports its progress: numbers, or any value. */
  report(item: LeasedItem, reported: Pick<RunningNote, "done" | "total" | "progress">): void {
    const entry = this.#entries.get(item);
    if (!entry) return;
    const { token, worker, started } = entry.note;
    entry.note = { token, worker, started, ...reported };
    entry.writeAt = 0;
  }

  /** An attempt has ended. */
  end(item: LeasedItem, failed: boolean): void {
    const written = this.#entries.get(item)?.written ?? 0;
    this.#entries.delete(item);
    if (written > 0 || failed) this.#inBackground(this.#store.deleteRunning(item, written));
    if (this.#entries.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #write(): void {
    const now = Date.now();
    for (const [item, entry] of this.#entries) {
      if (now < entry.writeAt) continue;
      entry.writeAt = now + NOTE_LIFE_MS / 3;
      this.#inBackground(this.#store.writeRunning(item, { ...entry.note, n: entry.written }));
      entry.written += 1;
    }
  }

  #inBackground(call: Promise<void>): void {
    this.#store.parts.pool.inBackground(call);
  }
}
