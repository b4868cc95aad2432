import { LeaseqError } from "./errors.js";
import { now } from "./waiting.js";

/** What a heartbeat keeps alive. */
interface Beating {
  readonly duration: number;
  readonly heldUntil: number;
  extend(duration: number): Promise<number>;
}

/** Extends a lease in the background, and says when that has failed. */
export class Heartbeat {
  readonly #lease: Beating;
  readonly #lost: (reason: Error | undefined) => void;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(lease: Beating, lost: (reason: Error | undefined) => void) {
    this.#lease = lease;
    this.#lost = lost;
    // Two extensions may fail before the lease is over.
    this.#schedule(lease.duration / 3);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #schedule(delay: number): void {
    this.#timer = setTimeout(() => this.#beat(), delay);
  }

  async #beat(): Promise<void> {
    const { duration } = this.#lease;
    let delay = duration / 3;
    try {
      const deadline = await this.#lease.extend(duration);
      if (this.#stopped) return;
      if (deadline === 0) return this.#end(undefined);
    } catch (error) {
      if (this.#stopped) return;
      // To extend again is safe whatever became of the first call. After the deadline it may even work still, but
      // until then the lease is no longer known to be held.
      if (!(error instanceof LeaseqError) || now() >= this.#lease.heldUntil) return this.#end(error as Error);
      delay = Math.min(duration / 10, Math.max(this.#lease.heldUntil - now(), 0));
    }
    this.#schedule(delay);
  }

  #end(reason: Error | undefined): void {
    this.stop();
    this.#lost(reason);
  }
}
