// Jobs of functions that this worker does not have: another worker may, as while a new version is rolled out (LQ-JOB-42).
import { LeaseqError } from "../errors.js";
import { FailedAttempt } from "../handler.js";
import type { Logger } from "../logger.js";
import type { LeasedItem } from "../queue.js";
import { DeadLetter, Release } from "../retry-policy.js";
import { readFailure, writeFailure } from "./failure.js";

/** How long after the first refusal a job is dead (LQ-JOB-43). */
const REFUSAL_LIMIT_MS = 600_000;
/** A refused job waits as long as it has been refused, within these. */
const MIN_DELAY_MS = 10_000;
const MAX_DELAY_MS = 60_000;
const MAX_NAMES = 20;

const KIND = "UnknownFunction";

/** Puts off jobs of one worker. The time of the first refusal is in the last error of the item, by the server's clock. */
export class UnknownFunctions {
  readonly #worker: string;
  readonly #logger: Logger;
  readonly #named = new Set<string>();

  constructor(worker: string, logger: Logger) {
    this.#worker = worker;
    this.#logger = logger;
  }

  /** Returns what to throw for a job whose function is none of `known`. */
  async refusal(item: LeasedItem, name: string, known: readonly string[]): Promise<FailedAttempt> {
    const worker = this.#worker;
    const names = known.slice(0, MAX_NAMES).join(", ") + (known.length > MAX_NAMES ? ", ..." : "");
    const reason = `this App has no function ${JSON.stringify(name)}; it has ${names || "none"}`;
    const now = Math.floor(item.deadline / 1000 - item.duration);
    const last = readFailure(await lastError(item));
    const refused = (last.type === KIND ? last.refused : undefined) ?? now;
    const since = Math.max(0, now - refused);
    if (since >= REFUSAL_LIMIT_MS) {
      return new FailedAttempt(
        { dead: true, error: writeFailure(KIND, reason, "", { worker }) },
        new DeadLetter(reason),
      );
    }
    this.#warn(name, reason);
    const error = writeFailure(KIND, reason, "", { worker, refused });
    const delay = Math.min(Math.max(since, MIN_DELAY_MS), MAX_DELAY_MS);
    return new FailedAttempt({ uncounted: true, delay, error }, new Release(reason));
  }

  /** Warns once for each function. */
  #warn(name: string, reason: string): void {
    if (this.#named.has(name)) return;
    this.#named.add(name);
    const minutes = REFUSAL_LIMIT_MS / 60_000;
    this.#logger.warn(
      `leaseq jobs: ${reason}: its jobs are put off until a worker has it, and dead ${minutes} minutes after they were first refused`,
    );
  }
}

/** The last error of an item; none if it cannot be read: then this is the first refusal that is known. */
async function lastError(item: LeasedItem): Promise<string> {
  try {
    return String((await item.queue.inspect(item.id)).error ?? "");
  } catch (error) {
    if (error instanceof LeaseqError) return "";
    throw error;
  }
}
