// The operations of a queue: splits long inputs, waits, and sends commands over the pool. client.ts creates queues.
import {
  type AbortSignals,
  checkSignal,
  checkTimeout,
  throwIfAborted,
  type WaitOptions,
  type WaitTarget,
} from "./blocking.js";
import { chunkHandOffs, oneOrAll, runChunks, toChunks } from "./chunks.js";
import { now } from "./clock.js";
import type {
  Completed,
  DeepCleanPage,
  ItemInfo,
  LightClean,
  ListState,
  Outcome,
  Page,
  Released,
  State,
} from "./codecs.generated.js";
import * as commands from "./commands.js";
import { publishDeaths } from "./deaths.js";
import { type Confirmed, type DurableOptions, type DurableWait, delivered, toWait } from "./durability.js";
import { type Argument, type Bytes, encodeId } from "./encoding.js";
import { AbortError, BadArgumentError, LeaseqError, PartialError, QueueFullError } from "./errors.js";
import { Gatherer } from "./gatherer.js";
import { ItemStream } from "./item-stream.js";
import type { QueueKeys } from "./keys.js";
import { LeasedItem as LeasedItemOf } from "./leased-item.js";
import type { ConnectionPool } from "./pool.js";
import {
  type Completion,
  type Configuration,
  type Extension,
  type HandOff,
  isSimple,
  itemArgs,
  type LeaseRef,
  type NewItem,
  type ReleaseRequest,
} from "./requests.js";
import { MAX_ENTRIES } from "./scripts.generated.js";
import { type Tracing, withSpan } from "./tracing.js";
import {
  checkDuration,
  type LeaseOptions,
  leaseTarget,
  outcomeTarget,
  roomTarget,
  toLeasedItems,
} from "./wait-targets.js";

/** An item that was leased from a `Queue`. */
export type LeasedItem = LeasedItemOf<Queue>;

/**
 * One queue. Operations take one entry and return one result, or take an array and return an array. Arrays may have any length
 * and are sent in calls of 256 (LQ-CALL-8). Durations are milliseconds. Points in time are microseconds since 1970 on the
 * server's clock, as tokens are.
 *
 * Every operation throws a LeaseqError: the errors of page 03 by name, ServerError, ConnectionError, and PartialError if one of
 * the several calls of a long array fails (LQ-CLIENT-2). An absent item and a lost lease are results and not errors
 * (LQ-ERROR-5).
 */
export class Queue {
  readonly #pool: ConnectionPool;
  /** Items that are added one by one, as the arguments of their entries. Four callers never wait for each other. */
  readonly #adds: Gatherer<Argument[], number>;

  constructor(
    /** The client that it belongs to, for comparison: items are handed off between queues of one client. */
    readonly client: object,
    pool: ConnectionPool,
    readonly keys: QueueKeys,
    /** Its items carry the spans in which they are added. */
    readonly tracing?: Tracing | undefined,
  ) {
    this.#pool = pool;
    this.#adds = new Gatherer({
      atOnce: 4,
      limit: pool.replyTimeoutMs,
      defer: (start) => start(),
      length: (entry) => entry.reduce((total, { length }) => total + length, 0),
      call: (entries) => this.#addEntries(entries),
    });
  }

  get name(): string {
    return this.keys.name;
  }

  /** Queues of one group share a hash slot, so that one call can use several (LQ-KEY-1). */
  get group(): string {
    return this.keys.group;
  }

  /**
   * Adds items. Returns when each was created, or 0 if its id exists (LQ-ADD-1, LQ-ADD-2). If there is no room, it waits for
   * `timeout` (default: 0; LQ-CLIENT-6, LQ-ROOM-2), then throws QueueFullError. An abort after the first answers is a
   * QueueFullError too, with the AbortError as its cause. Any other error after the first answers is a PartialError. With `durable`,
   * each call returns once replicas or disks have it; otherwise it throws NotDurableError.
   */
  add(item: NewItem, options?: WaitOptions & DurableOptions): Promise<number>;
  add(items: readonly NewItem[], options?: WaitOptions & DurableOptions): Promise<number[]>;
  add(
    items: NewItem | readonly NewItem[],
    options: WaitOptions & DurableOptions = {},
  ): Promise<number | number[]> {
    return oneOrAll(items, async (all) => {
      const wait = toWait(options.durable);
      const timeout = checkTimeout(options.timeout ?? 0);
      const timeoutAt = now() + timeout;
      const signals = checkSignal(options);
      const carrying = this.tracing ? all.map((item) => withSpan(item, this.tracing)) : all;
      const [only] = carrying;
      if (only && carrying.length === 1 && !wait && timeout === 0) return [await this.#addOne(only, signals)];
      const calls = toChunks(carrying).map((chunk) => {
        const answers: number[] = [];
        const confirmed: Confirmed<number[]>[] = [];
        const durably = wait && { wait, pool: this.#pool, confirmed };
        return {
          count: chunk.length,
          answers,
          confirmed,
          target: roomTarget(this.keys, chunk, answers, durably),
        };
      });
      const before: number[] = [];
      for (const { count, answers, confirmed, target } of calls) {
        try {
          await this.#addWaiting(target, timeoutAt - now(), signals);
        } catch (error) {
          throw addError(before, answers, calls.length === 1 ? undefined : count, error);
        } finally {
          if (answers.length > 0) this.#pool.register(this.keys);
        }
        before.push(...answers);
        if (wait) for (const call of confirmed) delivered(call, wait, before);
        // The items behind would find no room either, and are not sent (LQ-CLIENT-6).
        if (answers.includes(-1)) throw new QueueFullError(before);
      }
      return before;
    });
  }

  /** Adds an item without a wait, in one call with those that others add meanwhile. */
  async #addOne(item: NewItem, signals: AbortSignals): Promise<number> {
    const entry = itemArgs(item);
    throwIfAborted(signals);
    const created = await this.#adds.run(entry);
    if (created === -1) throw new QueueFullError([created]);
    return created;
  }

  async #addEntries(entries: readonly Argument[][]): Promise<number[]> {
    const answers = await this.#pool.shared.run(commands.addEntries(this.keys, entries));
    this.#pool.register(this.keys);
    return answers;
  }

  /** Adds one chunk. */
  async #addWaiting(target: WaitTarget<number[]>, timeout: number, signals: AbortSignals): Promise<void> {
    throwIfAborted(signals);
    if (timeout > 0) await this.#pool.wait(target, timeout, signals);
    else await target.check(this.#pool.shared);
  }

  /**
   * Leases one item. Waits for `timeout` (default: 0), without polling (LQ-BLOCK-1), then returns undefined. Throws AbortError
   * when the signal is aborted or the client closed; an item that was leased by then is released uncounted.
   */
  async lease(options: Omit<LeaseOptions, "count">): Promise<LeasedItem | undefined> {
    const [item] = await this.leaseItems({ ...options, count: 1 });
    return item;
  }

  /** Leases up to `count` items with one deadline (LQ-LEASE-4). Returns an empty array when the time is up. Otherwise as `lease`. */
  async leaseItems(options: LeaseOptions): Promise<LeasedItem[]> {
    return await this.#leaseUntil(options, checkTimeout(options.timeout ?? 0), checkSignal(options));
  }

  async #leaseUntil(options: LeaseOptions, timeout: number, signals: AbortSignals): Promise<LeasedItem[]> {
    const target = leaseTarget([this], options, this.#pool);
    return (await this.#pool.wait(target, timeout, signals)) ?? [];
  }

  /**
   * Leases items one after the other until none came for `timeout` (default: without limit), or until the signal is aborted,
   * which ends the loop without an error. Complete or release each item in the loop. With `count`, several are leased at a
   * time. Items that the loop did not reach in their lease are released uncounted. `return` ends a wait at once.
   */
  items(options: LeaseOptions): ItemStream<Queue> {
    const timeout = checkTimeout(options.timeout ?? Number.POSITIVE_INFINITY);
    const signals = checkSignal(options);
    return new ItemStream<Queue>((ended) => this.#leaseUntil(options, timeout, [...signals, ended]), signals);
  }

  /**
   * Completes items. Returns true if this call completed the item: of all calls for it, only the first does (LQ-COMPLETE-2).
   * With `keep` or `result`, it runs `complete_with` (LQ-CLIENT-7). `durable` as for `add`.
   */
  complete(entry: Completion, options?: DurableOptions): Promise<boolean>;
  complete(entries: readonly Completion[], options?: DurableOptions): Promise<boolean[]>;
  complete(
    entries: Completion | readonly Completion[],
    options: DurableOptions = {},
  ): Promise<boolean | boolean[]> {
    return oneOrAll(entries, async (all) => {
      const wait = toWait(options.durable);
      return await runChunks(toChunks(all), (chunk) => {
        const entries = chunk.map(toEntry);
        if (entries.every(isSimple)) {
          const command = commands.complete(this.keys, entries);
          return () => this.#finish(entries, command, wait, (done) => done);
        }
        const command = commands.completeWith(this.keys, entries.map(withoutFollowUps));
        return () => this.#finish(entries, command, wait, ({ completed }) => completed);
      });
    });
  }

  /** Makes a call that completes items, and waits behind it if asked to. */
  async #finish<Answer, Result>(
    entries: readonly LeaseRef[],
    command: commands.Command<Answer[]>,
    wait: DurableWait | undefined,
    shape: (answer: Answer) => Result,
  ): Promise<readonly Result[]> {
    const pool = this.#pool;
    if (!wait) return (await this.#whileFinishing(entries, () => pool.shared.run(command))).map(shape);
    const confirmed = await this.#whileFinishing(entries, () => pool.runDurably(command, wait));
    return delivered(confirmed, wait, confirmed.result.map(shape));
  }

  /**
   * Completes items, keeps their results, and adds their follow-ups, in one step each (LQ-HANDOFF-2). Before it sends anything,
   * it throws CrossGroupError if a follow-up goes to another group (LQ-CLIENT-9), and BadArgumentError if one goes to a queue of
   * another client. `durable` as for `add`: it covers the follow-ups.
   */
  completeWith(entry: HandOff, options?: DurableOptions): Promise<Completed>;
  completeWith(entries: readonly HandOff[], options?: DurableOptions): Promise<Completed[]>;
  completeWith(
    entries: HandOff | readonly HandOff[],
    options: DurableOptions = {},
  ): Promise<Completed | Completed[]> {
    return oneOrAll(entries, async (all) => {
      const wait = toWait(options.durable);
      for (const { queue } of all.flatMap((entry) => entry.followUps ?? [])) {
        // The follow-up would be written on this client's server, where no worker of its queue leases.
        if (queue.client && queue.client !== this.client) {
          throw new BadArgumentError("a follow-up goes to a queue of the same client");
        }
        commands.checkTarget(this.keys, queue.keys);
      }
      return await runChunks(chunkHandOffs(all.map(withSpans)), (chunk) => {
        const command = commands.completeWith(this.keys, chunk.map(toEntry));
        return () => this.#finish(chunk, command, wait, (done) => done);
      });
    });
  }

  /**
   * Completes items and leases others in one round trip (LQ-FUSED-1), without waiting. It takes two round trips if an outcome is
   * kept or there are more than 256 entries. If the second one fails, the items are completed: see `answers` of the error.
   */
  async completeAndLease(
    entries: readonly Completion[],
    options: Omit<LeaseOptions, keyof WaitOptions>,
  ): Promise<{ completed: boolean[]; items: LeasedItem[] }> {
    const duration = checkDuration(options.duration);
    if (entries.length === 0 || entries.length > MAX_ENTRIES || !entries.every(isSimple)) {
      // The fused script takes at most 256 entries and keeps no results.
      return await this.#thenLease(await this.complete(entries), options);
    }
    const sentAt = now();
    const { completed, leased } = await this.#whileFinishing(entries, async () =>
      this.#pool.shared.run(commands.completeAndLease(this.keys, entries, options.count ?? 1, duration)),
    );
    const items = toLeasedItems([this], leased, duration, sentAt, this.#pool);
    // More was due than one call takes (LQ-BLOCK-14).
    if (items.length === 0 && leased.wait === 0) return await this.#thenLease(completed, options);
    return { completed, items };
  }

  /** Leases behind a completion. An error has the results of the completion as `answers`. */
  async #thenLease(
    completed: boolean[],
    options: Omit<LeaseOptions, keyof WaitOptions>,
  ): Promise<{ completed: boolean[]; items: LeasedItem[] }> {
    try {
      return { completed, items: await this.leaseItems(options) };
    } catch (error) {
      throw error instanceof LeaseqError ? new PartialError(completed, 0, error) : error;
    }
  }

  /** Extends leases. Returns each new deadline, or 0 if the lease is lost (LQ-EXTEND-1, LQ-EXTEND-2). */
  extend(entry: Extension): Promise<number>;
  extend(entries: readonly Extension[]): Promise<number[]>;
  extend(entries: Extension | readonly Extension[]): Promise<number | number[]> {
    return this.#oneOrAll(entries, (chunk) => commands.extend(this.keys, chunk));
  }

  /** Extends one lease on the connection of heartbeats, with a reply timeout. For the heartbeat. */
  async extendWithin(entry: Extension, timeoutMs: number): Promise<number> {
    const [deadline = 0] = await this.#pool.heartbeatConnection.run(
      commands.extend(this.keys, [entry]),
      timeoutMs,
    );
    return deadline;
  }

  /** Releases items and returns the new state of each (LQ-RELEASE-1 to 4, LQ-DEAD-1). */
  release(entry: ReleaseRequest): Promise<Released>;
  release(entries: readonly ReleaseRequest[]): Promise<Released[]>;
  release(entries: ReleaseRequest | readonly ReleaseRequest[]): Promise<Released | Released[]> {
    return oneOrAll(entries, (all) =>
      runChunks(toChunks(all), (chunk) => {
        const command = commands.release(this.keys, chunk.map(toEntry));
        return () => this.#whileFinishing(chunk, () => this.#pool.shared.run(command));
      }),
    );
  }

  /** Makes dead items ready again, with all their attempts. Returns for each if it was dead (LQ-DEAD-3). */
  revive(ids: readonly Bytes[]): Promise<boolean[]> {
    return this.#all(ids, (chunk) => commands.revive(this.keys, chunk));
  }

  /** Makes delayed items ready now. Returns for each if it was delayed (LQ-PROMOTE-1). */
  promote(ids: readonly Bytes[]): Promise<boolean[]> {
    return this.#all(ids, (chunk) => commands.promote(this.keys, chunk));
  }

  /** Deletes items that have been dead for at least `olderThan` ms (default: 0). Returns for each if it was deleted (LQ-DEAD-4). */
  purge(ids: readonly Bytes[], options: { olderThan?: number | undefined } = {}): Promise<boolean[]> {
    return this.#all(ids, (chunk) => commands.purge(this.keys, chunk, options.olderThan ?? 0));
  }

  /** Removes items in any state, leased ones too. Returns the state each was in (LQ-REMOVE-1). */
  remove(ids: readonly Bytes[]): Promise<State[]> {
    return this.#all(ids, (chunk) => commands.remove(this.keys, chunk));
  }

  /** Returns the outcome of each item, or its state if it has none (LQ-OUTCOME-4). */
  outcome(id: Bytes): Promise<Outcome>;
  outcome(ids: readonly Bytes[]): Promise<Outcome[]>;
  outcome(ids: Bytes | readonly Bytes[]): Promise<Outcome | Outcome[]> {
    return oneOrAll<Bytes, Outcome>(ids, async (all) => {
      const copies = all.map(encodeId);
      const outcomes: Outcome[] = [];
      // A reply has fewer entries if contents are long.
      while (outcomes.length < copies.length) {
        const rest = copies.slice(outcomes.length, outcomes.length + MAX_ENTRIES);
        try {
          outcomes.push(...(await this.#pool.shared.run(commands.outcome(this.keys, rest))));
        } catch (error) {
          if (rest.length === copies.length || !(error instanceof LeaseqError)) throw error;
          throw new PartialError(outcomes, rest.length, error);
        }
      }
      return outcomes;
    });
  }

  /**
   * Waits until the item has an outcome or is gone, for `timeout` (default: without limit), then returns what is known
   * (LQ-BLOCK-12). An item of the same id that was added later counts as `absent` (LQ-BLOCK-13). An item that is dead and keeps
   * no outcome is waited for until the time is up, since it may be revived. Throws as `lease`.
   */
  async waitForOutcome(id: Bytes, options: WaitOptions = {}): Promise<Outcome> {
    const timeout = checkTimeout(options.timeout ?? Number.POSITIVE_INFINITY);
    const { target, latest } = outcomeTarget(this.keys, id);
    return (await this.#pool.wait(target, timeout, checkSignal(options))) ?? latest();
  }

  /** Passes a wake-up on. Returns whether one was needed (LQ-SETTLE-1). Only for callers with a custom way to wait. */
  settle(): Promise<boolean> {
    return this.#pool.shared.run(commands.settle(this.keys));
  }

  /**
   * Promotes due items, reclaims expired leases, drops expired items and old outcomes, in steps, and returns the sums
   * (LQ-LIGHT-1 to 5). Waiting workers do the same automatically.
   */
  async lightClean(): Promise<LightClean> {
    const sum = { promoted: 0, reclaimed: 0, died: 0, expired: 0, pruned: 0 };
    const deadWithOutcome: Buffer[] = [];
    for (;;) {
      const step = await this.lightCleanStep();
      for (const kind of Object.keys(sum) as (keyof typeof sum)[]) sum[kind] += step[kind];
      deadWithOutcome.push(...step.deadWithOutcome);
      if (step.wait !== 0) return { ...step, ...sum, deadWithOutcome };
    }
  }

  /** One step of `lightClean`: at most `limit` of each (default: 256). If `wait` is 0, more is due now. */
  async lightCleanStep(options: { limit?: number | undefined } = {}): Promise<LightClean> {
    const cleaning = await this.#pool.shared.run(
      commands.lightClean(this.keys, options.limit ?? MAX_ENTRIES),
    );
    publishDeaths(this, cleaning.deadWithOutcome, this.#pool);
    return cleaning;
  }

  /**
   * Checks the whole queue for damage, repairs it unless `dryRun`, and returns how often it found each kind (LQ-DEEP-1). Other
   * clients can use the queue meanwhile (LQ-DEEP-2).
   */
  async deepClean(
    options: { limit?: number | undefined; dryRun?: boolean | undefined } = {},
  ): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    let cursor = "0";
    do {
      const page = await this.deepCleanPage(cursor, options);
      for (const [kind, count] of page.repairs) found.set(kind, (found.get(kind) ?? 0) + count);
      cursor = page.cursor;
    } while (cursor !== "0");
    return found;
  }

  /** One page of `deepClean`. A pass starts with cursor "0" and ends when the returned cursor is "0". */
  deepCleanPage(
    cursor: string,
    options: { limit?: number | undefined; dryRun?: boolean | undefined } = {},
  ): Promise<DeepCleanPage> {
    const { limit = MAX_ENTRIES, dryRun = false } = options;
    return this.#pool.shared.run(commands.deepClean(this.keys, cursor, limit, dryRun));
  }

  /** Returns counts by their names in the protocol (LQ-READ-2). `now` and `waited` are microseconds. */
  stats(): Promise<Map<string, number>> {
    return this.#pool.shared.run(commands.stats(this.keys));
  }

  /** Returns items as they are, without changing them (LQ-READ-4). */
  inspect(id: Bytes): Promise<ItemInfo>;
  inspect(ids: readonly Bytes[]): Promise<ItemInfo[]>;
  inspect(ids: Bytes | readonly Bytes[]): Promise<ItemInfo | ItemInfo[]> {
    return this.#oneOrAll<Bytes, ItemInfo>(ids, (chunk) => commands.inspect(this.keys, chunk));
  }

  /** Returns one page of the ids in a state, or of those whose outcome is kept (LQ-READ-5). */
  listItems(state: ListState, options: commands.ListOptions = {}): Promise<Page> {
    return this.#pool.shared.run(commands.list(this.keys, state, options));
  }

  /** Sets limits, pauses or resumes. At least one setting must be given (LQ-CONFIG-1 to 4). */
  async configure(changes: Configuration): Promise<void> {
    await this.#pool.shared.run(commands.configure(this.keys, changes));
  }

  /**
   * Deletes the queue with its settings and counters, and takes it out of the registry. Returns false if there was no queue. It must hold
   * no items, dead ones included, and no outcomes: else it throws LEASEQ_IN_USE (LQ-DELETE-1).
   */
  async delete(): Promise<boolean> {
    const deleted = await this.#pool.shared.run(commands.deleteQueue(this.keys));
    await this.#pool.unregister(this.keys);
    return deleted;
  }

  /** Makes a call that finishes items, so that their heartbeats know of it. */
  #whileFinishing<Result>(entries: readonly LeaseRef[], call: () => Promise<Result>): Promise<Result> {
    return this.#pool.heartbeater.whileFinishing(this.keys, entries, call);
  }

  /** Runs a command for each chunk. */
  #all<Entry, Result>(
    entries: readonly Entry[],
    call: (chunk: readonly Entry[]) => commands.Command<Result[]>,
  ): Promise<Result[]> {
    return runChunks(toChunks(entries), (chunk) => {
      const command = call(chunk);
      return () => this.#pool.shared.run(command);
    });
  }

  /** `#all` for one entry or an array. */
  #oneOrAll<Entry, Result>(
    entries: Entry | readonly Entry[],
    call: (chunk: readonly Entry[]) => commands.Command<Result[]>,
  ): Promise<Result | Result[]> {
    return oneOrAll(entries, (all) => this.#all(all, call));
  }
}

/**
 * The error of an `add` with the answers so far: `before` of earlier calls, `answers` of the call that failed, which may have
 * waited for room. `count` is how many entries that call has, undefined if it is the only one.
 */
function addError(
  before: readonly number[],
  answers: readonly number[],
  count: number | undefined,
  error: unknown,
): unknown {
  if (!(error instanceof LeaseqError)) return error;
  const all = [...before, ...answers];
  const isAbort = error instanceof AbortError;
  if (!all.some((answer) => answer >= 0) && (isAbort || count === undefined)) return error;
  if (isAbort) return new QueueFullError(all, error);
  if (error.definite || answers.length === 0) return new PartialError(all, count ?? 0, error);
  // Items without room were sent again, and it is unknown whether these were added.
  const known = answers.indexOf(-1);
  return new PartialError(
    [...before, ...answers.slice(0, known)],
    answers.lastIndexOf(-1) + 1 - known,
    error,
  );
}

/** The entry of a leased item, see `LeasedItem.entry`; any other entry as it is. */
function toEntry<Entry extends LeaseRef>(entry: Entry): Entry | LeasedItem["entry"] {
  return entry instanceof LeasedItemOf ? entry.entry : entry;
}

/** The entry with the current span in its follow-ups. A leased item is an entry without any. */
function withSpans<Entry extends HandOff>(entry: Entry): Entry {
  if (!entry.followUps?.some(({ queue }) => queue.tracing)) return entry;
  return { ...entry, followUps: entry.followUps.map((item) => withSpan(item, item.queue.tracing)) };
}

/** The fields of a completion alone: a caller may pass an object with more, such as a leased item. */
function withoutFollowUps({ id, token, onlyCurrent, keep, result }: Completion): HandOff {
  return { id, token, keep, ...(onlyCurrent && { onlyCurrent }), ...(result !== undefined && { result }) };
}
