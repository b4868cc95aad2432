// Extends leases in the background. leased-item.ts starts heartbeats; queue.ts reports the calls that finish items.
import { now } from "./clock.js";
import { LeaseqError } from "./errors.js";
import type { QueueKeys } from "./keys.js";

/**
 * A lease that a heartbeat extends. `heldUntil` is on the clock of `now`, `inDoubt` asks for another extension at once, `extend`
 * returns the new deadline or 0.
 */
interface ExtendableLease {
  readonly duration: number;
  readonly heldUntil: number;
  readonly inDoubt: boolean;
  extend(duration: number): Promise<number>;
}

/** An entry of a call that finishes items, and the leased item that it was made of. */
interface FinishingEntry {
  token: number;
  lease?: { markEnded(): void };
}

/** Extends one lease in the background until it is stopped, and reports the loss of the lease. */
export class Heartbeat {
  readonly #lease: ExtendableLease;
  readonly #onLost: (reason: Error | undefined) => void;
  readonly #onStop: () => void;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #isExtending = false;
  /** How many calls of this client that finish the item are under way. */
  #finishingCalls = 0;
  #finished = false;

  constructor(lease: ExtendableLease, onLost: (reason: Error | undefined) => void, onStop: () => void) {
    this.#lease = lease;
    this.#onLost = onLost;
    this.#onStop = onStop;
    // An extension every third of the lease: two may fail before it is over.
    this.#schedule(this.#untilNextMs());
  }

  /** Extends no more. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#onStop();
  }

  /** The caller has extended the lease, or tried to: the next extension counts from then, by the same duration (LQ-CLIENT-13). */
  reschedule(): void {
    if (this.#stopped || this.#isExtending) return;
    clearTimeout(this.#timer);
    this.#schedule(this.#untilNextMs());
  }

  /** Until a third of the lease has passed, counted from when it was sent for, not from when `heartbeat` was called (LQ-CLIENT-13). */
  #untilNextMs(): number {
    const { duration, heldUntil, inDoubt } = this.#lease;
    if (inDoubt) return 0;
    return Math.max(0, heldUntil - (duration * 2) / 3 - now());
  }

  /** Whether a call of this client finished the item, or may have: an extension that finds no lease is then no loss (LQ-CLIENT-4). */
  get finishing(): boolean {
    return this.#finished || this.#finishingCalls > 0;
  }

  /** A call that finishes the item was sent. */
  callStarted(): void {
    this.#finishingCalls += 1;
  }

  /** That call ended. `finished`: it succeeded or may have run. Otherwise it was refused and the lease goes on (LQ-CLIENT-16). */
  callEnded(finished: boolean): void {
    this.#finishingCalls -= 1;
    if (!finished) return;
    this.#finished = true;
    this.stop();
  }

  #schedule(delayMs: number): void {
    this.#timer = setTimeout(() => this.#beat(), delayMs);
  }

  /** Extends the lease and schedules the next extension, or reports the loss. */
  async #beat(): Promise<void> {
    const { duration } = this.#lease;
    let delay = duration / 3;
    this.#isExtending = true;
    try {
      const deadline = await this.#lease.extend(duration);
      if (this.#stopped) return;
      if (deadline === 0 && !this.finishing) return this.#reportLoss(undefined);
    } catch (error) {
      if (this.#stopped) return;
      // It is safe to extend again whether or not the first call ran. At `heldUntil` the lease counts as lost: after that it
      // is not known to be held.
      const remaining = this.#lease.heldUntil - now();
      const isOver = !(error instanceof LeaseqError) || remaining <= 0;
      if (isOver && !this.finishing) return this.#reportLoss(error as Error);
      delay = isOver ? duration / 10 : Math.min(duration / 10, remaining);
    } finally {
      this.#isExtending = false;
    }
    this.#schedule(this.#lease.inDoubt ? 0 : delay);
  }

  #reportLoss(reason: Error | undefined): void {
    this.stop();
    this.#onLost(reason);
  }
}

/** The heartbeats of a client, by queue and token, so that every call that finishes an item finds its heartbeat. */
export class Heartbeater {
  readonly #heartbeats = new Map<string, Heartbeat>();
  #closed = false;

  /** Starts the heartbeat of a lease, in place of an earlier one of the same lease. */
  start(
    keys: QueueKeys,
    token: number,
    lease: ExtendableLease,
    onLost: (reason: Error | undefined) => void,
  ): Heartbeat {
    const leaseName = leaseNameOf(keys, token);
    this.#heartbeats.get(leaseName)?.stop();
    const heartbeat: Heartbeat = new Heartbeat(lease, onLost, () => {
      // a handle of an earlier heartbeat may be stopped again
      if (this.#heartbeats.get(leaseName) === heartbeat) this.#heartbeats.delete(leaseName);
    });
    this.#heartbeats.set(leaseName, heartbeat);
    if (this.#closed) heartbeat.stop();
    return heartbeat;
  }

  /** Stops all heartbeats, and those that are started later: there is no connection to extend on. */
  close(): void {
    this.#closed = true;
    for (const heartbeat of this.#heartbeats.values()) heartbeat.stop();
  }

  /** Makes a call that finishes items. Their leases are extended while it is under way, since it may be refused. */
  async whileFinishing<Result>(
    keys: QueueKeys,
    entries: readonly FinishingEntry[],
    call: () => Promise<Result>,
  ): Promise<Result> {
    const leaseNames = new Set(entries.map(({ token }) => leaseNameOf(keys, token)));
    const heartbeats = [...leaseNames].flatMap((leaseName) => this.#heartbeats.get(leaseName) ?? []);
    for (const heartbeat of heartbeats) heartbeat.callStarted();
    let finished = true;
    try {
      const result = await call();
      for (const { lease } of entries) lease?.markEnded();
      return result;
    } catch (error) {
      finished = error instanceof LeaseqError && !error.definite;
      throw error;
    } finally {
      for (const heartbeat of heartbeats) heartbeat.callEnded(finished);
    }
  }
}

const leaseNameOf = (keys: QueueKeys, token: number): string => `${keys.registryEntry} ${token}`;
