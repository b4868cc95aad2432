import { asLeases, checkedDuration, type LeaseOptions, leaseAim, outcomeAim, roomAim } from "./aims.js";
import type {
  DeepCleaning,
  HandOffAnswer,
  Inspection,
  LightCleaning,
  Listing,
  Outcome,
  Released,
  Removed,
  State,
} from "./answers.js";
import type { Client } from "./client.js";
import * as commands from "./commands.js";
import type { Connections } from "./connections.js";
import {
  type Completion,
  type Configuration,
  type Extension,
  type HandOff,
  type Held,
  isPlain,
  type NewItem,
  type Return,
} from "./entries.js";
import { AbortError, BadArgumentError, FullError, LeaseqError, PartialError } from "./errors.js";
import type { Address } from "./keys.js";
import { Lease } from "./lease.js";
import { MAX_ENTRIES } from "./scripts.generated.js";
import { callEach, handOffsInCalls, inCalls, oneOrAll } from "./split.js";
import { checkedTimeout, now, type Patience } from "./waiting.js";
import type { Bytes } from "./wire.js";

/**
 * One queue. Operations take one entry and answer for it, or an array and answer with one; arrays may have any length and
 * are sent in calls of 256 (LQ-CALL-8). Durations are milliseconds; points in time are microseconds since 1970 of the
 * server's clock, as tokens are.
 *
 * Every operation throws a LeaseqError: the refusals of page 03 by name, ServerError, ConnectionError, and PartialError
 * where one of the several calls of a long array fails (LQ-CLIENT-2). An item that is absent and a lease that is lost are
 * answers and no errors (LQ-ERROR-5).
 */
export class Queue {
  readonly #connections: Connections;

  constructor(
    readonly client: Client,
    connections: Connections,
    readonly address: Address,
  ) {
    this.#connections = connections;
  }

  /**
   * When the item was created, or 0 where its id exists (LQ-ADD-1, LQ-ADD-2). Where there is no room, a FullError, after
   * `timeout`, for which it waits for room (0 without it; LQ-CLIENT-6, LQ-ROOM-2). What was answered before an abort stays
   * so: then that is a FullError too, with the abort as its cause. Another error that comes behind answers is a PartialError
   * with them.
   */
  add(item: NewItem, patience?: Patience): Promise<number>;
  add(items: readonly NewItem[], patience?: Patience): Promise<number[]>;
  add(items: NewItem | readonly NewItem[], patience: Patience = {}): Promise<number | number[]> {
    return oneOrAll(items, async (all) => {
      const giveUp = now() + checkedTimeout(patience.timeout ?? 0);
      const parts = inCalls(all);
      const before: number[] = [];
      for (const part of parts) {
        const answers: number[] = [];
        try {
          await this.#addWaiting(part, answers, giveUp - now(), patience.signal);
        } catch (error) {
          throw errorOfAdd(before, answers, parts.length === 1 ? undefined : part.length, error);
        } finally {
          if (answers.length > 0) this.#connections.enter(this.address);
        }
        before.push(...answers);
        // What is behind finds no room either, and is not sent (LQ-CLIENT-6).
        if (answers.includes(-1)) throw new FullError(before);
      }
      return before;
    });
  }

  /** `answers` are filled in as they come. */
  async #addWaiting(
    part: readonly NewItem[],
    answers: number[],
    timeout: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const aim = roomAim(this.address, part, answers);
    if (timeout > 0) await this.#connections.wait(aim, timeout, [signal]);
    else await aim.look(this.#connections.shared);
  }

  /**
   * One item; undefined when there is none and the time (`timeout`, 0 without it) is up. Waiting is no polling
   * (LQ-BLOCK-1). Throws AbortError when the signal is aborted or the client closed; what arrived then goes back uncounted.
   */
  async lease(options: Omit<LeaseOptions, "count">): Promise<Lease | undefined> {
    const [lease] = await this.leaseMany({ ...options, count: 1 });
    return lease;
  }

  /** Up to `count` items with one deadline (LQ-LEASE-4); none when the time is up. Otherwise as `lease`. */
  async leaseMany(options: LeaseOptions): Promise<Lease[]> {
    const { signal } = options;
    const timeout = checkedTimeout(options.timeout ?? 0);
    const aim = leaseAim([this], options, this.#connections);
    return (await this.#connections.wait(aim, timeout, [signal])) ?? [];
  }

  /**
   * Items as they come, for ever or until none came for `timeout`, or the signal is aborted (which ends the loop without
   * an error). Each is to be completed or released in the loop. With a `count` several are leased at a time; those that
   * the loop did not reach are released.
   */
  async *leases(options: LeaseOptions): AsyncGenerator<Lease, void, void> {
    const { signal, timeout = Number.POSITIVE_INFINITY } = options;
    let waiting: Lease[] = [];
    try {
      for (;;) {
        try {
          waiting = await this.leaseMany({ ...options, timeout });
        } catch (error) {
          if (signal?.aborted) return;
          throw error;
        }
        if (waiting.length === 0) return;
        for (let next = waiting.shift(); next; next = waiting.shift()) {
          yield next;
          if (signal?.aborted) return;
        }
      }
    } finally {
      if (waiting.length > 0) {
        const unreached = waiting.map(({ id, token }) => ({ id, token, uncounted: true }));
        await this.release(unreached).catch(() => {});
      }
    }
  }

  /**
   * Whether this call completed the item: of all calls for it, the first and no other (LQ-COMPLETE-2). A `keep` or a
   * `result` makes it `complete_with` (LQ-CLIENT-7).
   */
  complete(entry: Completion): Promise<boolean>;
  complete(entries: readonly Completion[]): Promise<boolean[]>;
  complete(entries: Completion | readonly Completion[]): Promise<boolean | boolean[]> {
    return oneOrAll(entries, (all) =>
      callEach(inCalls(all), async (part) => {
        const { shared } = this.#connections;
        const entries = part.map(asEntry);
        return await this.#ending(entries, async () => {
          if (entries.every(isPlain)) return await shared.run(commands.complete(this.address, entries));
          return (await shared.run(commands.completeWith(this.address, entries.map(plainCompletion)))).map(
            (answer) => answer.completed,
          );
        });
      }),
    );
  }

  /**
   * Completes items, keeps their results, and adds what follows, in one step each (LQ-HANDOFF-2). Throws CrossGroupError
   * for a follow-up to another group, before it sends anything (LQ-CLIENT-9), and BadArgumentError for one to
   * a queue of another client.
   */
  completeWith(entry: HandOff): Promise<HandOffAnswer>;
  completeWith(entries: readonly HandOff[]): Promise<HandOffAnswer[]>;
  completeWith(entries: HandOff | readonly HandOff[]): Promise<HandOffAnswer | HandOffAnswer[]> {
    return oneOrAll(entries, (all) => {
      for (const { queue } of all.flatMap((entry) => entry.followUps ?? [])) {
        // Its keys would be written on this client's server, where nobody looks for them.
        if (queue.client && queue.client !== this.client) {
          throw new BadArgumentError("a follow-up goes to a queue of the same client");
        }
        commands.checkTarget(this.address, queue.address);
      }
      return callEach(handOffsInCalls(all), (part) =>
        this.#ending(part, async () =>
          this.#connections.shared.run(commands.completeWith(this.address, part.map(asEntry))),
        ),
      );
    });
  }

  /**
   * Completes items and leases others, in one round trip (LQ-FUSED-1); in two where an outcome is to be kept or there
   * are more than 256 entries, and then what is completed is, if the second fails.
   */
  async completeAndLease(
    entries: readonly Completion[],
    options: Omit<LeaseOptions, keyof Patience>,
  ): Promise<{ completed: boolean[]; leases: Lease[] }> {
    const duration = checkedDuration(options.duration);
    if (entries.length === 0 || entries.length > MAX_ENTRIES || !entries.every(isPlain)) {
      // The one script takes at most 256 entries and keeps no results.
      return await this.#thenLease(await this.complete(entries), options);
    }
    const sent = now();
    const { completed, leased } = await this.#ending(entries, async () =>
      this.#connections.shared.run(
        commands.completeAndLease(this.address, entries, options.count ?? 1, duration),
      ),
    );
    const leases = asLeases([this], leased, duration, sent, this.#connections);
    // More was due than one call takes (LQ-BLOCK-14).
    if (leases.length === 0 && leased.wait === 0) return await this.#thenLease(completed, options);
    return { completed, leases };
  }

  /** An error has the answers of what was completed before. */
  async #thenLease(
    completed: boolean[],
    options: Omit<LeaseOptions, keyof Patience>,
  ): Promise<{ completed: boolean[]; leases: Lease[] }> {
    try {
      return { completed, leases: await this.leaseMany(options) };
    } catch (error) {
      throw error instanceof LeaseqError ? new PartialError(completed, 0, error) : error;
    }
  }

  /** The new deadline, or 0 where the lease is lost (LQ-EXTEND-1, LQ-EXTEND-2). */
  extend(entry: Extension): Promise<number>;
  extend(entries: readonly Extension[]): Promise<number[]>;
  extend(entries: Extension | readonly Extension[]): Promise<number | number[]> {
    return this.#oneOrAll(entries, (part) => commands.extend(this.address, part));
  }

  /** `extend` of one lease, whose reply may take no longer than this, in milliseconds. For the heartbeat. */
  async extendWithin(entry: Extension, patience: number): Promise<number> {
    const [deadline = 0] = await this.#connections.beats.run(
      commands.extend(this.address, [entry]),
      patience,
    );
    return deadline;
  }

  /** Gives items back; what became of each (LQ-RELEASE-1 to 4, LQ-DEAD-1). */
  release(entry: Return): Promise<Released>;
  release(entries: readonly Return[]): Promise<Released[]>;
  release(entries: Return | readonly Return[]): Promise<Released | Released[]> {
    return oneOrAll(entries, (all) =>
      callEach(inCalls(all), (part) =>
        this.#ending(part, async () =>
          this.#connections.shared.run(commands.release(this.address, part.map(asEntry))),
        ),
      ),
    );
  }

  /** Puts dead items back, with all their attempts: whether each was dead (LQ-DEAD-3). */
  revive(ids: readonly Bytes[]): Promise<boolean[]> {
    return this.#all(ids, (part) => commands.revive(this.address, part));
  }

  /** Drops dead items: whether each had been dead for `olderThan` ms, 0 without it (LQ-DEAD-4). */
  purge(ids: readonly Bytes[], options: { olderThan?: number } = {}): Promise<boolean[]> {
    return this.#all(ids, (part) => commands.purge(this.address, part, options.olderThan ?? 0));
  }

  /** Takes items out in any state, whoever holds them: the state each was in (LQ-REMOVE-1). */
  remove(ids: readonly Bytes[]): Promise<Removed[]> {
    return this.#all(ids, (part) => commands.remove(this.address, part));
  }

  /** What became of items (LQ-OUTCOME-4). */
  outcome(id: Bytes): Promise<Outcome>;
  outcome(ids: readonly Bytes[]): Promise<Outcome[]>;
  outcome(ids: Bytes | readonly Bytes[]): Promise<Outcome | Outcome[]> {
    return oneOrAll<Bytes, Outcome>(ids, async (all) => {
      const outcomes: Outcome[] = [];
      // A reply ends early where contents are long.
      while (outcomes.length < all.length) {
        const rest = all.slice(outcomes.length, outcomes.length + MAX_ENTRIES);
        try {
          outcomes.push(...(await this.#connections.shared.run(commands.outcome(this.address, rest))));
        } catch (error) {
          if (rest.length === all.length || !(error instanceof LeaseqError)) throw error;
          throw new PartialError(outcomes, rest.length, error);
        }
      }
      return outcomes;
    });
  }

  /**
   * Waits until there is an outcome or the item is gone, and answers what is known when the time is up; without a
   * `timeout` for ever (LQ-BLOCK-12). An item of the same id that was added later counts as `absent` (LQ-BLOCK-13), and
   * one that is dead and keeps no outcome is waited for until the time is up. Throws as `lease`.
   */
  async waitForOutcome(id: Bytes, patience: Patience = {}): Promise<Outcome> {
    const timeout = checkedTimeout(patience.timeout ?? Number.POSITIVE_INFINITY);
    const { aim, latest } = outcomeAim(this.address, id);
    return (await this.#connections.wait(aim, timeout, [patience.signal])) ?? latest();
  }

  /** Passes a wake-up on; whether one was needed (LQ-SETTLE-1). Only for those who wait by means of their own. */
  settle(): Promise<boolean> {
    return this.#connections.shared.run(commands.settle(this.address));
  }

  /**
   * Promotes, reclaims and ends all that is over, in steps, and answers the sums (LQ-LIGHT-1 to 5). Workers that wait do the
   * same by themselves.
   */
  async lightClean(): Promise<LightCleaning> {
    const sum = { promoted: 0, reclaimed: 0, died: 0, expired: 0, pruned: 0 };
    const keepers: Buffer[] = [];
    for (;;) {
      const step = await this.lightCleanStep();
      for (const kind of Object.keys(sum) as (keyof typeof sum)[]) sum[kind] += step[kind];
      keepers.push(...step.keepers);
      if (step.wait !== 0) return { ...step, ...sum, keepers };
    }
  }

  /** One step of that: at most `limit` of each, 256 without it; call again at once where `wait` is 0. */
  async lightCleanStep(options: { limit?: number } = {}): Promise<LightCleaning> {
    const cleaning = await this.#connections.shared.run(
      commands.lightClean(this.address, options.limit ?? MAX_ENTRIES),
    );
    if (cleaning.keepers.length > 0) this.#connections.inBackground(this.outcome(cleaning.keepers));
    return cleaning;
  }

  /**
   * A whole pass: looks for damage, repairs it unless `dryRun`, and answers how often it found what (LQ-DEEP-1). Other
   * clients may go on meanwhile (LQ-DEEP-2).
   */
  async deepClean(options: { limit?: number; dryRun?: boolean } = {}): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    let cursor = "0";
    do {
      const page = await this.deepCleanPage(cursor, options);
      for (const [kind, count] of page.repairs) found.set(kind, (found.get(kind) ?? 0) + count);
      cursor = page.cursor;
    } while (cursor !== "0");
    return found;
  }

  /** One step of such a pass: from cursor "0" until the cursor is "0" again. */
  deepCleanPage(cursor: string, options: { limit?: number; dryRun?: boolean } = {}): Promise<DeepCleaning> {
    const { limit = MAX_ENTRIES, dryRun = false } = options;
    return this.#connections.shared.run(commands.deepClean(this.address, cursor, limit, dryRun));
  }

  /** Counts by their names on the wire (LQ-READ-2); `now` and `waited` are microseconds. */
  stats(): Promise<Map<string, number>> {
    return this.#connections.shared.run(commands.stats(this.address));
  }

  /** Items as they are, without changing them (LQ-READ-4). */
  inspect(id: Bytes): Promise<Inspection>;
  inspect(ids: readonly Bytes[]): Promise<Inspection[]>;
  inspect(ids: Bytes | readonly Bytes[]): Promise<Inspection | Inspection[]> {
    return this.#oneOrAll<Bytes, Inspection>(ids, (part) => commands.inspect(this.address, part));
  }

  /** One page of the ids in a state, or of those whose outcome is kept (LQ-READ-5). */
  list(state: State | "kept", options: commands.ListOptions = {}): Promise<Listing> {
    return this.#connections.shared.run(commands.list(this.address, state, options));
  }

  /** Sets limits, pauses and resumes; at least one of them (LQ-CONFIG-1 to 4). */
  async configure(wanted: Configuration): Promise<void> {
    await this.#connections.shared.run(commands.configure(this.address, wanted));
  }

  #ending<Answer>(entries: readonly Held[], call: () => Promise<Answer>): Promise<Answer> {
    return this.#connections.heartbeats.ending(this.address, entries, call);
  }

  #all<Entry, Answer>(
    entries: readonly Entry[],
    call: (part: readonly Entry[]) => commands.Call<Answer[]>,
  ): Promise<Answer[]> {
    return callEach(inCalls(entries), (part) => this.#connections.shared.run(call(part)));
  }

  #oneOrAll<Entry, Answer>(
    entries: Entry | readonly Entry[],
    call: (part: readonly Entry[]) => commands.Call<Answer[]>,
  ): Promise<Answer | Answer[]> {
    return oneOrAll(entries, (all) => this.#all(all, call));
  }
}

/**
 * What an add fails with behind answers: those of calls before, and those so far of the one that failed, which waited for
 * room. `count`: of how many entries that is, where it is one of several.
 */
function errorOfAdd(
  before: readonly number[],
  answers: readonly number[],
  count: number | undefined,
  error: unknown,
): unknown {
  if (!(error instanceof LeaseqError)) return error;
  const all = [...before, ...answers];
  const isAbort = error instanceof AbortError;
  if (!all.some((answer) => answer >= 0) && (isAbort || count === undefined)) return error;
  if (isAbort) return new FullError(all, error);
  if (error.definite || answers.length === 0) return new PartialError(all, count ?? 0, error);
  // Those without room were sent again, and it is not known what became of them.
  const known = answers.indexOf(-1);
  return new PartialError(
    [...before, ...answers.slice(0, known)],
    answers.lastIndexOf(-1) + 1 - known,
    error,
  );
}

/** What a lease that is handed in as an entry says of its item: see `Lease.entry`. */
function asEntry<Entry extends Held>(entry: Entry): Entry | Lease["entry"] {
  return entry instanceof Lease ? entry.entry : entry;
}

/** A completion may be a lease, or have more that is not meant here. */
function plainCompletion({ id, token, onlyCurrent, keep, result }: Completion): HandOff {
  return { id, token, keep, ...(onlyCurrent && { onlyCurrent }), ...(result !== undefined && { result }) };
}
