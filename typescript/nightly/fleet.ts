// What the driver of a fleet and its workers have in common.

/** Milliseconds of a lease: short, so that many end in a run. */
export const DURATION_MS = 2000;
/** Milliseconds that handlers may run behind SIGTERM. */
export const GRACE_MS = 1500;

/** A stop: the grace time, the calls behind it, and the start of a process on a busy machine. */
export const STOP_MS = GRACE_MS + 2000 + 5000;
/** The longest that a call of a producer may take: its reply timeout (3 s), connecting once (2 s), and 2 s for a busy event loop. */
export const CALL_MS = 3000 + 2000 + 2000;
/** How long outcomes are kept: beyond the end of a run. */
export const KEEP_MS = 3_600_000;
/** How long each part of the campaign lasts: there are two. */
export const SECONDS = Number(process.env.FAULT_SECONDS || 600) / 2;
export const SEED = Number(process.env.FAULT_SEED || Date.now() % 1_000_000);

/** A line that a worker prints. */
export type Line =
  | { began: true }
  | { started: string }
  | { completed: string }
  | { lost: string }
  | { heap: number; resources: number }
  | { ended: true };

/** Runs a worker until SIGTERM, and says so, and each second what its process holds. */
export async function runUntilStopped(
  worker: { run(): Promise<unknown>; stop(): void },
  say: (line: { began: true } | { heap: number; resources: number }) => void,
): Promise<void> {
  process.once("SIGTERM", () => worker.stop());
  say({ began: true });
  const usage = setInterval(() => {
    (globalThis as { gc?: () => void }).gc?.();
    const resources = process.getActiveResourcesInfo().length;
    say({ heap: process.memoryUsage().heapUsed, resources });
  }, 1000);
  await worker.run();
  clearInterval(usage);
}

/** Numbers that look random and are the same for the same seed (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 up to, without, `below`. */
  below(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * below);
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[this.below(values.length)] as Value;
  }
}
