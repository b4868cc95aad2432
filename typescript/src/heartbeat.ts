import { LeaseqError } from "./errors.js";
import type { Address } from "./keys.js";
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
  readonly #over: () => void;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #beats = false;
  /** How many calls of this client that end the item are under way. */
  #ending = 0;
  #ended = false;

  constructor(lease: Beating, lost: (reason: Error | undefined) => void, over: () => void) {
    this.#lease = lease;
    this.#lost = lost;
    this.#over = over;
    // Two extensions may fail before the lease is over.
    this.#schedule(this.#untilNext());
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#over();
  }

  /** Its user has extended the lease: by as much, and from then on, is it extended here too (LQ-CLIENT-13). */
  extended(): void {
    if (this.#stopped || this.#beats) return;
    clearTimeout(this.#timer);
    this.#schedule(this.#untilNext());
  }

  /** A third of the lease, counted from when it was asked for: who holds it may have begun late (LQ-CLIENT-13). */
  #untilNext(): number {
    const { duration, heldUntil } = this.#lease;
    return Math.max(0, heldUntil - (duration * 2) / 3 - now());
  }

  /** Whether a call of this client ended the item, or may be ending it: what finds no lease then found no loss (LQ-CLIENT-4). */
  get ending(): boolean {
    return this.#ended || this.#ending > 0;
  }

  beginEnding(): void {
    this.#ending += 1;
  }

  /** `ended`: that call was answered, or may have run; else it was refused and the lease goes on (LQ-CLIENT-16). */
  finishEnding(ended: boolean): void {
    this.#ending -= 1;
    if (!ended) return;
    this.#ended = true;
    this.stop();
  }

  #schedule(delay: number): void {
    this.#timer = setTimeout(() => this.#beat(), delay);
  }

  async #beat(): Promise<void> {
    const { duration } = this.#lease;
    let delay = duration / 3;
    this.#beats = true;
    try {
      const deadline = await this.#lease.extend(duration);
      if (this.#stopped) return;
      if (deadline === 0 && !this.ending) return this.#end(undefined);
    } catch (error) {
      if (this.#stopped) return;
      // To extend again is safe whatever became of the first call. After the deadline it may even work still, but
      // until then the lease is no longer known to be held.
      const left = this.#lease.heldUntil - now();
      const isOver = !(error instanceof LeaseqError) || left <= 0;
      if (isOver && !this.ending) return this.#end(error as Error);
      delay = isOver ? duration / 10 : Math.min(duration / 10, left);
    } finally {
      this.#beats = false;
    }
    this.#schedule(delay);
  }

  #end(reason: Error | undefined): void {
    this.stop();
    this.#lost(reason);
  }
}

/** The heartbeats of a client: a call that ends items finds those of their leases, in whatever form it was given them. */
export class Heartbeats {
  readonly #beating = new Map<string, Heartbeat>();

  begin(at: Address, token: number, lease: Beating, lost: (reason: Error | undefined) => void): Heartbeat {
    const name = nameOf(at, token);
    this.#beating.get(name)?.stop();
    const heartbeat = new Heartbeat(lease, lost, () => this.#beating.delete(name));
    this.#beating.set(name, heartbeat);
    return heartbeat;
  }

  /** Makes a call that ends the items of these leases. They are extended while it is under way: it may be refused. */
  async ending<Answer>(
    at: Address,
    entries: readonly { token: number }[],
    call: () => Promise<Answer>,
  ): Promise<Answer> {
    const names = new Set(entries.map(({ token }) => nameOf(at, token)));
    const heartbeats = [...names].flatMap((name) => this.#beating.get(name) ?? []);
    for (const heartbeat of heartbeats) heartbeat.beginEnding();
    let ended = true;
    try {
      return await call();
    } catch (error) {
      ended = error instanceof LeaseqError && !error.definite;
      throw error;
    } finally {
      for (const heartbeat of heartbeats) heartbeat.finishEnding(ended);
    }
  }
}

const nameOf = (at: Address, token: number): string => `${at.entry} ${token}`;
