// What a caller holds after a lease. Its methods call the queue that it was leased from.
import { now } from "./clock.js";
import type { Completed, Outcome, Released } from "./codecs.generated.js";
import type { Bytes } from "./encoding.js";
import type { Heartbeat, Heartbeater } from "./heartbeat.js";
import type { QueueKeys } from "./keys.js";
import type { LeasedRecord } from "./replies.js";
import type { Completion, Extension, FollowUp, HandOff, ReleaseRequest } from "./requests.js";

/** The longest time that an extension by the heartbeat waits for its reply. */
const MAX_HEARTBEAT_TIMEOUT_MS = 5000;

/** The reason of an aborted signal: why the work on an item must end. */
export class Cancellation extends Error {
  override readonly name = "Cancellation";

  /** `why`: the lease is "lost", the time limit of the handler is over ("late"), or the worker gives the item back ("stop"). */
  constructor(
    readonly why: "lost" | "late" | "stop",
    message: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? {} : { cause });
  }
}

/** Options of completing a leased item: see `Completion`. */
export interface CompleteOptions {
  onlyCurrent?: boolean | undefined;
  result?: Bytes | undefined;
  /** Milliseconds for which the outcome is kept. Default: as the item was added with. */
  keep?: number | undefined;
}

/** What a leased item needs of the queue that it was leased from. */
export interface LeasingQueue {
  readonly keys: QueueKeys;
  complete(entry: Completion): Promise<boolean>;
  completeWith(entry: HandOff): Promise<Completed>;
  release(entry: ReleaseRequest): Promise<Released>;
  extend(entry: Extension): Promise<number>;
  extendWithin(entry: Extension, timeoutMs: number): Promise<number>;
  outcome(ids: readonly Bytes[]): Promise<Outcome[]>;
}

/** An extension of a lease that is under way. */
interface UnderWay {
  /** Whether another extension of this lease ended meanwhile, so that it is unknown which the server took last. */
  overtaken: boolean;
}

/** An item, and the right to work on it until a deadline. Its operations throw what those of `Queue` do. */
export class LeasedItem<Q extends LeasingQueue = LeasingQueue> {
  readonly id: Buffer;
  readonly data: Buffer;
  /** The number of this lease, greater than that of every earlier lease of the queue: a fencing token (LQ-LEASE-2). */
  readonly token: number;
  /** The number of times it has been leased since it was added or revived, this lease included. */
  readonly attempt: number;
  /** Milliseconds for which its outcome is kept; undefined if it is not kept. */
  readonly keep: number | undefined;
  readonly contentType: Buffer | undefined;
  readonly headers: ReadonlyMap<string, Buffer>;
  /** Milliseconds of the lease, or of its latest extension by `extend`. */
  duration: number;
  /** The end of the lease, in microseconds since 1970 on the server's clock. */
  deadline: number;
  /** The lease lasts at least until then, on the clock of `performance.now()` (LQ-CLIENT-3). */
  heldUntil: number;

  readonly #queue: Q;
  readonly #heartbeater: Heartbeater;
  readonly #lost = new AbortController();
  /** Extensions without a reply yet. */
  readonly #underWay = new Set<UnderWay>();
  /** When the extension that set `duration` was sent. */
  #askedAt = 0;
  /** Whether extensions overlapped, so that the lease must be extended again at once (LQ-CLIENT-28). */
  #inDoubt = false;
  #ended = false;
  #heartbeat: Heartbeat | undefined;

  constructor(
    queue: Q,
    item: LeasedRecord,
    deadline: number,
    duration: number,
    sentAt: number,
    heartbeater: Heartbeater,
  ) {
    this.#queue = queue;
    this.#heartbeater = heartbeater;
    this.id = item.id;
    this.data = item.data;
    this.token = item.token;
    this.attempt = item.attempt;
    this.keep = item.keep;
    this.contentType = item.contentType;
    this.headers = item.headers;
    this.deadline = deadline;
    this.duration = duration;
    this.heldUntil = sentAt + duration;
  }

  /** The queue that it was leased from. */
  get queue(): Q {
    return this.#queue;
  }

  /** Whether the lease is still held: no call ended it, it was not found lost, and `heldUntil` is ahead (LQ-CLIENT-3, 24). */
  get held(): boolean {
    return !this.#ended && !this.#lost.signal.aborted && now() < this.heldUntil;
  }

  /** The lease that a call of `Queue` ends if it is given this item. */
  get lease(): this {
    return this;
  }

  /** A call that ends the item was answered. */
  markEnded(): void {
    this.#ended = true;
  }

  /**
   * Aborted when the lease is found to be lost, or a worker gives the item back: stop working on it. Work that was finished when
   * the lease was lost can still be completed.
   */
  get lostSignal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Returns true if this call completed the item (LQ-COMPLETE-2) or, if its outcome is kept, an earlier call with this lease. */
  async complete(options: CompleteOptions = {}): Promise<boolean> {
    return await this.#queue.complete({ ...this.entry, ...given(options) });
  }

  /** Completes the item and adds its follow-ups in one step (LQ-HANDOFF-2). */
  async handOff(followUps: readonly FollowUp[], options: CompleteOptions = {}): Promise<Completed> {
    return await this.#queue.completeWith({ ...this.entry, ...given(options), followUps });
  }

  /** Releases the item and returns its new state (LQ-RELEASE-1 to 4). */
  async release(options: Omit<ReleaseRequest, "id" | "token"> = {}): Promise<Released> {
    return await this.#queue.release({ ...this.entry, ...given(options) });
  }

  /**
   * Extends the lease to `duration` ms from now. Returns the new deadline, or 0 if the lease is lost, which aborts `lostSignal`
   * too (LQ-EXTEND-1, 2).
   */
  async extend(duration: number = this.duration): Promise<number> {
    const { id, token } = this;
    const sentAt = now();
    try {
      const deadline = await this.#recordExtension(duration, () =>
        this.#queue.extend({ id, token, duration }),
      );
      if (deadline > 0) this.#setDuration(Math.round(duration), sentAt);
      else if (!this.#heartbeat?.finishing) this.#markLost(undefined);
      return deadline;
    } finally {
      this.#heartbeat?.reschedule();
    }
  }

  /** The user of the item has extended it: of two overlapping calls, the last sent counts (LQ-CLIENT-13). */
  #setDuration(duration: number, sentAt: number): void {
    if (sentAt < this.#askedAt) return;
    this.duration = duration;
    this.#askedAt = sentAt;
  }

  /** Extends for the heartbeat. The timeout leaves time to try again before the lease is over (LQ-CLIENT-14). */
  async #extendForHeartbeat(duration: number): Promise<number> {
    const { id, token } = this;
    return await this.#recordExtension(duration, () =>
      this.#queue.extendWithin({ id, token, duration }, Math.min(duration / 9, MAX_HEARTBEAT_TIMEOUT_MS)),
    );
  }

  /** Runs an extension and records the new deadline, if the lease was not lost. It settles what is in doubt, unless another overlaps it too. */
  async #recordExtension(duration: number, extend: () => Promise<number>): Promise<number> {
    const extension = { overtaken: false };
    const heldUntil = now() + Math.round(duration);
    this.#underWay.add(extension);
    this.#inDoubt = false;
    try {
      const deadline = await extend();
      if (deadline > 0) {
        // overtaken: the server may have taken either last
        this.deadline = extension.overtaken ? Math.min(deadline, this.deadline) : deadline;
        this.heldUntil = extension.overtaken ? Math.min(heldUntil, this.heldUntil) : heldUntil;
      }
      return deadline;
    } finally {
      this.#underWay.delete(extension);
      for (const other of this.#underWay) other.overtaken = true;
      this.#inDoubt ||= extension.overtaken;
    }
  }

  /**
   * Extends the lease in the background, every third of its duration, until the item is completed or released, by its own
   * methods or those of `Queue`, until the lease is lost (see `lostSignal`; LQ-CLIENT-4), or until `stop` is called.
   */
  heartbeat(): { stop(): void } {
    const item = this;
    const lease = {
      get duration() {
        return item.duration;
      },
      get heldUntil() {
        return item.heldUntil;
      },
      get inDoubt() {
        return item.#inDoubt;
      },
      extend: (duration: number) => item.#extendForHeartbeat(duration),
    };
    const onLost = (reason: Error | undefined) => this.#markLost(reason);
    const heartbeat = this.#heartbeater.start(this.#queue.keys, this.token, lease, onLost);
    this.#heartbeat = heartbeat;
    return { stop: () => heartbeat.stop() };
  }

  /**
   * The entry of this item in a call of `Queue`, for use in `{ ...item.entry, result }`. The item itself is a valid entry too.
   * `keep` 0 keeps the outcome as the item was added (LQ-CLIENT-7).
   */
  get entry(): { id: Buffer; token: number; keep?: number; lease: LeasedItem<Q> } {
    return { id: this.id, token: this.token, lease: this, ...(this.keep === undefined ? {} : { keep: 0 }) };
  }

  /** Tells the work on the item to end, as when the lease is lost. For a worker that gives the item back. */
  abandon(reason: Cancellation): void {
    this.#lost.abort(reason);
  }

  /** Aborts `lostSignal`. */
  #markLost(cause: Error | undefined): void {
    this.#lost.abort(new Cancellation("lost", "the lease is lost", cause));
  }
}

/** The options that are set: an undefined option must not replace what the item was added with. */
function given<Options extends object>(options: Options): Partial<Options> {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as Partial<Options>;
}
