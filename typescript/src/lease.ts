import type { LeasedItem, Released } from "./answers.js";
import type { FollowUp, Return } from "./entries.js";
import type { Heartbeat, Heartbeats } from "./heartbeat.js";
import type { Queue } from "./queue.js";
import { now } from "./waiting.js";
import type { Bytes } from "./wire.js";

/** The longest time that an extension in the background waits for its reply. */
const LONGEST_BEAT_MS = 5000;

/** How to complete an item that is held: see `Completion`. */
export interface CompleteOptions {
  onlyCurrent?: boolean;
  result?: Bytes;
  /** Milliseconds; without it, an outcome that the item asks for is kept by its own time. */
  keep?: number;
}

/** The right to work on an item until a deadline. Its operations throw what those of `Queue` do. */
export class Lease {
  readonly id: Buffer;
  readonly data: Buffer;
  /** Greater than all tokens that the queue gave before: a fencing token for systems that are written to (LQ-LEASE-2). */
  readonly token: number;
  readonly attempt: number;
  /** For how long, in milliseconds, the outcome of the item is kept; undefined if it is not. */
  readonly keep: number | undefined;
  readonly contentType: Buffer | undefined;
  readonly headers: ReadonlyMap<string, Buffer>;
  /** Milliseconds, of the lease or its latest extension. */
  duration: number;
  /** Microseconds since 1970 on the server's clock. */
  deadline: number;
  /** On the clock of `performance.now()`: until then at least the lease lasts (LQ-CLIENT-3). */
  heldUntil: number;

  readonly #queue: Queue;
  readonly #heartbeats: Heartbeats;
  readonly #lost = new AbortController();
  #heartbeat: Heartbeat | undefined;

  constructor(
    queue: Queue,
    item: LeasedItem,
    deadline: number,
    duration: number,
    sent: number,
    heartbeats: Heartbeats,
  ) {
    this.#queue = queue;
    this.#heartbeats = heartbeats;
    this.id = item.id;
    this.data = item.data;
    this.token = item.token;
    this.attempt = item.attempt;
    this.keep = item.keep;
    this.contentType = item.contentType;
    this.headers = item.headers;
    this.deadline = deadline;
    this.duration = duration;
    this.heldUntil = sent + duration;
  }

  get queue(): Queue {
    return this.#queue;
  }

  /** Whether the lease is certainly still held, as far as its time goes. */
  get held(): boolean {
    return !this.#lost.signal.aborted && now() < this.heldUntil;
  }

  /** Aborted when the lease is found to be lost. Work that is done can be completed all the same. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** True if this call completed the item (LQ-COMPLETE-2), or where its outcome is kept, an earlier one with this lease. */
  async complete(options: CompleteOptions = {}): Promise<boolean> {
    return await this.#queue.complete({ ...this.entry, ...options });
  }

  /** Completes the item and adds what follows, in one step (LQ-HANDOFF-2). */
  async handOff(
    followUps: readonly FollowUp[],
    options: CompleteOptions = {},
  ): Promise<{ completed: boolean; followUps: number[] }> {
    return await this.#queue.completeWith({ ...this.entry, ...options, followUps });
  }

  /** Gives the item back; what became of it (LQ-RELEASE-1 to 4). */
  async release(options: Omit<Return, "id" | "token"> = {}): Promise<Released> {
    return await this.#queue.release({ ...this.entry, ...options });
  }

  /** The new deadline, `duration` ms from now, or 0 where the lease is lost, which aborts `lost` too (LQ-EXTEND-1, 2). */
  async extend(duration: number = this.duration): Promise<number> {
    const { id, token } = this;
    const deadline = await this.#extended(duration, () => this.#queue.extend({ id, token, duration }));
    if (deadline > 0) this.#heartbeat?.extended();
    else if (!this.#heartbeat?.ending) this.#loses(undefined);
    return deadline;
  }

  /** Of the heartbeat: a reply that is lost leaves time to ask again before the lease is over (LQ-CLIENT-14). */
  async #beat(duration: number): Promise<number> {
    const { id, token } = this;
    return await this.#extended(duration, () =>
      this.#queue.extendWithin({ id, token, duration }, Math.min(duration / 9, LONGEST_BEAT_MS)),
    );
  }

  async #extended(duration: number, ask: () => Promise<number>): Promise<number> {
    const sent = now();
    const deadline = await ask();
    if (deadline > 0) {
      this.deadline = deadline;
      this.duration = Math.round(duration);
      this.heldUntil = sent + this.duration;
    }
    return deadline;
  }

  /**
   * Extends the lease in the background, every third of its duration, until it is completed, released or lost (see
   * `lost`; LQ-CLIENT-4), or `stop` is called. Whether its own methods or those of `Queue` end it is the same.
   */
  heartbeat(): { stop(): void } {
    const lease = this;
    const beating = {
      get duration() {
        return lease.duration;
      },
      get heldUntil() {
        return lease.heldUntil;
      },
      extend: (duration: number) => lease.#beat(duration),
    };
    const lost = (reason: Error | undefined) => this.#loses(reason);
    const heartbeat = this.#heartbeats.begin(this.#queue.address, this.token, beating, lost);
    this.#heartbeat = heartbeat;
    return { stop: () => heartbeat.stop() };
  }

  /**
   * The item in a list for `Queue`: a lease stands for this by itself, and so does what is made of it, as in
   * `{ ...lease.entry, result }`. `keep` 0 keeps an outcome for the item's own time (LQ-CLIENT-7).
   */
  get entry(): { id: Buffer; token: number; keep?: number } {
    return { id: this.id, token: this.token, ...(this.keep === undefined ? {} : { keep: 0 }) };
  }

  #loses(reason: Error | undefined): void {
    this.#lost.abort(reason ?? new Error("the lease is lost"));
  }
}
